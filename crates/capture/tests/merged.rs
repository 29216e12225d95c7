//! Packets of several captures in one pcapng section, and pcapng packets in pcap files.

use beebox_capture::{
    ByteOrder, Encoder, Event, Format, Interface, LinkType, Numbering, OtherLinkType, Reader,
    Section, Timestamp,
};

/// A block around its content.
fn block(order: ByteOrder, kind: u32, content: &[u8]) -> Vec<u8> {
    let total = order.put_u32(content.len() as u32 + 12);
    [&order.put_u32(kind)[..], &total, content, &total].concat()
}

/// A section with one interface that counts nanoseconds and has a time offset of 5 s,
/// and one packet at 2.000000001 s (offset left out) with a comment and flags.
fn capture(order: ByteOrder, link_type: u16) -> Vec<u8> {
    let mut section = order.put_u32(0x1a2b_3c4d).to_vec();
    section.extend([order.put_u16(1), order.put_u16(0)].concat());
    section.extend([0xff; 8]);
    let mut interface = [order.put_u16(link_type), [0; 2]].concat();
    interface.extend(order.put_u32(0));
    for (code, value) in [
        (2, &b"eth7"[..]),
        (9, &[9]),
        (14, &order_u64(order, 5)),
        (8, &order_u64(order, 1_000_000_000)),
    ] {
        put_option(order, code, value, &mut interface);
    }
    interface.extend([0; 4]);
    let units = 2_000_000_001u64;
    let mut packet = Vec::new();
    for word in [0, (units >> 32) as u32, units as u32, 3, 60] {
        packet.extend(order.put_u32(word));
    }
    packet.extend([1, 2, 3, 0]);
    put_option(order, 1, b"seen", &mut packet);
    put_option(order, 2, &order.put_u32(0x201), &mut packet);
    packet.extend([0; 4]);
    [
        block(order, 0x0a0d_0d0a, &section),
        block(order, 1, &interface),
        block(order, 6, &packet),
    ]
    .concat()
}

fn order_u64(order: ByteOrder, value: u64) -> Vec<u8> {
    match order {
        ByteOrder::Little => value.to_le_bytes().to_vec(),
        ByteOrder::Big => value.to_be_bytes().to_vec(),
    }
}

fn put_option(order: ByteOrder, code: u16, value: &[u8], out: &mut Vec<u8>) {
    out.extend(order.put_u16(code));
    out.extend(order.put_u16(value.len() as u16));
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Appends all packets of a capture to a section.
fn add(section: &mut Section, bytes: &[u8], out: &mut Vec<u8>) {
    let mut reader = Reader::new(bytes).unwrap();
    let mut numbering = Numbering::default();
    section.add_capture(reader.framing(), &mut numbering, out);
    while let Some(event) = reader.next().unwrap() {
        match event {
            Event::Block(block) => section.add_block(&block, &mut numbering, out),
            Event::Packet(record) => {
                let time = record.timestamp().unwrap();
                section.put_packet(&record, time, &numbering, out);
            }
        }
    }
}

#[oracle::test]
fn interfaces_and_packets_are_those_of_the_captures() {
    use ByteOrder::{Big, Little};
    for (to, from) in [(Little, Little), (Little, Big), (Big, Little), (Big, Big)] {
        let mut merged = Vec::new();
        let mut section = Section::start(to, None, &mut merged);
        add(&mut section, &capture(from, 101), &mut merged);
        add(&mut section, &capture(to, 1), &mut merged);
        // The first capture, converted, is the same capture in the other order.
        let converted = capture(to, 101);
        assert_eq!(merged[..converted.len()], converted, "{from:?} to {to:?}");
        let mut reader = Reader::new(&merged[..]).unwrap();
        let mut seen = Vec::new();
        while let Some(event) = reader.next().unwrap() {
            if let Event::Packet(record) = event {
                let link_type = record.interface().link_type;
                seen.push((
                    record.interface_id(),
                    link_type,
                    record.timestamp().unwrap(),
                ));
            }
        }
        let time = Timestamp {
            seconds: 7,
            nanoseconds: 1,
        };
        assert_eq!(
            seen,
            [(0, LinkType::RAW, time), (1, LinkType::ETHERNET, time)]
        );
    }
}

#[oracle::test]
fn a_snapshot_length_cuts_and_is_announced() {
    let mut merged = Vec::new();
    let mut section = Section::start(ByteOrder::Little, Some(2), &mut merged);
    add(&mut section, &capture(ByteOrder::Big, 1), &mut merged);
    let mut reader = Reader::new(&merged[..]).unwrap();
    let mut packets = 0;
    while let Some(event) = reader.next().unwrap() {
        if let Event::Packet(record) = event {
            packets += 1;
            assert_eq!((record.data(), record.wire_len()), (&[1, 2][..], 60));
            assert_eq!(record.interface().snaplen, 2);
        }
    }
    assert_eq!(packets, 1);
}

/// The first interface of a capture.
fn interface(bytes: &[u8]) -> Interface {
    let mut reader = Reader::new(bytes).unwrap();
    reader.first_interface().unwrap().unwrap()
}

#[oracle::test]
fn pcapng_packets_become_pcap_records_with_their_time() {
    let ethernet = capture(ByteOrder::Big, 1);
    let raw = capture(ByteOrder::Big, 101);
    let shape = Format::pcap_of(&[interface(&ethernet)]).unwrap();
    let write = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes).unwrap();
        let encoder = Encoder::new(shape, reader.framing().format(), None);
        let mut out = Vec::new();
        encoder.start_file(&mut out);
        while let Some(event) = reader.next().unwrap() {
            if let Event::Packet(record) = event {
                encoder.put_packet(&record, &mut out)?;
            }
        }
        Ok::<_, OtherLinkType>(out)
    };
    let words: [u32; 4] = [7, 1, 3, 60];
    let record: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let expected = [
        // Nanoseconds, big-endian, version 2.4, the link type's largest packet, Ethernet.
        &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4][..],
        &[0; 8],
        &[0, 4, 0, 0, 0, 0, 0, 1],
        &record,
        &[1, 2, 3],
    ]
    .concat();
    assert_eq!(write(&ethernet), Ok(expected));
    let mismatch = OtherLinkType {
        file: LinkType::ETHERNET,
        packet: LinkType::RAW,
    };
    assert_eq!(write(&raw), Err(mismatch));
    assert_eq!(
        Format::pcap_of(&[interface(&ethernet), interface(&raw)]),
        Err(mismatch)
    );
    assert_eq!(
        mismatch.to_string(),
        "link type RAW does not fit a pcap file of link type EN10MB"
    );
}
