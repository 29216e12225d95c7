//! Reading and encoding of each feature of both formats.

use beebox_capture::{
    ByteOrder, Encoder, Error, Event, Fault, Format, Interface, LinkType, Problem, Reader,
    Resolution, Timestamp, decompress,
};

/// Builder of the bytes of a capture in one byte order.
struct Bytes {
    order: ByteOrder,
    bytes: Vec<u8>,
}

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

impl Bytes {
    fn new(order: ByteOrder) -> Bytes {
        Bytes {
            order,
            bytes: Vec::new(),
        }
    }

    fn u16(mut self, value: u16) -> Bytes {
        self.bytes.extend_from_slice(&self.order.put_u16(value));
        self
    }

    fn u32s(mut self, values: &[u32]) -> Bytes {
        for &value in values {
            self.bytes.extend_from_slice(&self.order.put_u32(value));
        }
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// A pcap file header of Ethernet packets.
    fn pcap(order: ByteOrder, magic: u32, version: (u16, u16), snaplen: u32) -> Bytes {
        let start = Bytes::new(order)
            .u32s(&[magic])
            .u16(version.0)
            .u16(version.1);
        start.u32s(&[0, 0, snaplen, 1])
    }

    /// Appends a block with this content and padding.
    fn block(self, kind: u32, content: &Bytes) -> Bytes {
        let len = content.bytes.len().next_multiple_of(4);
        let padding = vec![0; len - content.bytes.len()];
        let total = len as u32 + 12;
        self.u32s(&[kind, total])
            .raw(&content.bytes)
            .raw(&padding)
            .u32s(&[total])
    }

    fn section(self) -> Bytes {
        let body = Bytes::new(self.order)
            .u32s(&[0x1a2b_3c4d])
            .u16(1)
            .u16(0)
            .raw(&[0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, link_type: u16, snaplen: u32, options: &[(u16, &[u8])]) -> Bytes {
        let mut body = Bytes::new(self.order)
            .u16(link_type)
            .u16(0)
            .u32s(&[snaplen]);
        for (code, value) in options {
            body = body.u16(*code).u16(value.len() as u16).raw(value);
            body = body.raw(&vec![0; value.len().next_multiple_of(4) - value.len()]);
        }
        self.block(1, &body)
    }

    /// An enhanced packet with a comment.
    fn packet(self, interface: u32, time: u64, data: &[u8], wire_len: u32) -> Bytes {
        let head = [
            interface,
            (time >> 32) as u32,
            time as u32,
            data.len() as u32,
            wire_len,
        ];
        let padding = vec![0; data.len().next_multiple_of(4) - data.len()];
        let body = Bytes::new(self.order).u32s(&head).raw(data).raw(&padding);
        let body = body.u16(1).u16(3).raw(b"yes\0").u16(0).u16(0);
        self.block(6, &body)
    }
}

/// Fields of a packet that was read.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    data: Vec<u8>,
    wire_len: u32,
    interface: u32,
    link_type: u32,
    time: Option<(i64, u32)>,
}

impl Seen {
    fn new(data: &[u8], wire_len: u32, time: (i64, u32)) -> Seen {
        Seen {
            data: data.to_vec(),
            wire_len,
            interface: 0,
            link_type: 1,
            time: Some(time),
        }
    }
}

/// All packets of a capture, and its fault, if any.
fn read(bytes: &[u8]) -> (Vec<Seen>, Option<Fault>) {
    let mut seen = Vec::new();
    let fault = |error| match error {
        Error::Fault(fault) => fault,
        Error::Io { source, .. } => panic!("{source}"),
    };
    let mut reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (seen, Some(fault(error))),
    };
    loop {
        match reader.next() {
            Ok(Some(Event::Packet(record))) => seen.push(Seen {
                data: record.data().to_vec(),
                wire_len: record.wire_len(),
                interface: record.interface_id(),
                link_type: record.interface().link_type.0,
                time: record.timestamp().map(
                    |Timestamp {
                         seconds,
                         nanoseconds,
                     }| (seconds, nanoseconds),
                ),
            }),
            Ok(Some(Event::Block(_))) => {}
            Ok(None) => return (seen, None),
            Err(error) => return (seen, Some(fault(error))),
        }
    }
}

/// Copy of a capture in this format.
fn copy(bytes: &[u8], output: Option<Format>, snaplen: Option<u32>) -> Vec<u8> {
    let mut reader = Reader::new(bytes).unwrap();
    let format = reader.framing().format();
    let output = output.unwrap_or_else(|| Format::common(&[format]));
    let encoder = Encoder::new(output, format, snaplen);
    let mut out = Vec::new();
    encoder.start_file(&mut out);
    encoder.start_capture(reader.framing(), &mut out);
    while let Some(event) = reader.next().unwrap() {
        match event {
            Event::Packet(record) => encoder.put_packet(&record, &mut out).unwrap(),
            Event::Block(block) => encoder.put_block(&block, &mut out),
        }
    }
    out
}

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
const EXTENDED: u32 = 0xa1b2_cd34;

#[oracle::test]
fn pcap_in_every_byte_order_and_resolution_and_layout() {
    for order in ORDERS {
        let cases = [
            (MICRO, 5_000, &[][..]),
            (NANO, 5, &[]),
            (EXTENDED, 5_000, &[0; 8]),
        ];
        for (magic, nanoseconds, extension) in cases {
            let file = Bytes::pcap(order, magic, (2, 4), 65_535);
            let file = file.u32s(&[7, 5, 3, 60]).raw(extension).raw(&[1, 2, 3]);
            let file = file.u32s(&[8, 0, 0, 0]).raw(extension).bytes;
            let expected = vec![
                Seen::new(&[1, 2, 3], 60, (7, nanoseconds)),
                Seen::new(&[], 0, (8, 0)),
            ];
            assert_eq!(read(&file), (expected, None), "{order:?} {magic:#x}");
            assert_eq!(copy(&file, None, None), file, "as it stands");
        }
    }
}

#[oracle::test]
fn old_pcap_versions_have_the_lengths_in_reverse_order() {
    for order in ORDERS {
        for (version, lengths) in [
            ((2, 2), [60, 3]),
            ((543, 0), [60, 3]),
            ((2, 3), [60, 3]),
            ((2, 3), [3, 60]),
        ] {
            let file = Bytes::pcap(order, MICRO, version, 65_535);
            let file = file.u32s(&[7, 5]).u32s(&lengths).raw(&[1, 2, 3]).bytes;
            let expected = Seen::new(&[1, 2, 3], 60, (7, 5_000));
            assert_eq!(read(&file), (vec![expected], None), "{version:?}");
            assert_eq!(copy(&file, None, None), file);
            let cut = read(&copy(&file, None, Some(2))).0;
            assert_eq!(cut, vec![Seen::new(&[1, 2], 60, (7, 5_000))], "{version:?}");
        }
    }
    for version in [(1, 2), (2, 5), (3, 0)] {
        let file = Bytes::pcap(ByteOrder::Little, MICRO, version, 65_535).bytes;
        let (major, minor) = version;
        let problem = Problem::UnsupportedVersion { major, minor };
        assert_eq!(
            read(&file).1,
            Some(Fault {
                packets: 0,
                offset: 0,
                problem
            })
        );
    }
}

#[oracle::test]
fn packets_longer_than_the_files_snapshot_length_are_cut() {
    let file = Bytes::pcap(ByteOrder::Little, MICRO, (2, 4), 2)
        .u32s(&[7, 5, 3, 60])
        .raw(&[1, 2, 3])
        .bytes;
    assert_eq!(read(&file).0, vec![Seen::new(&[1, 2], 60, (7, 5_000))]);
    assert_eq!(
        read(&copy(&file, None, None)).0,
        vec![Seen::new(&[1, 2], 60, (7, 5_000))]
    );
    // No limit, and one beyond 2^31.
    for snaplen in [0, u32::MAX] {
        let file = Bytes::pcap(ByteOrder::Little, MICRO, (2, 4), snaplen)
            .u32s(&[7, 5, 3, 60])
            .raw(&[1, 2, 3]);
        assert_eq!(
            read(&file.bytes).0,
            vec![Seen::new(&[1, 2, 3], 60, (7, 5_000))]
        );
    }
}

#[oracle::test]
fn the_frame_check_sequence_bits_are_not_part_of_the_link_type() {
    let mut file = Bytes::pcap(ByteOrder::Big, MICRO, (2, 4), 100).bytes;
    file[20] = 0x44;
    let reader = Reader::new(&file[..]).unwrap();
    assert_eq!(
        reader.framing().interfaces()[0].link_type,
        LinkType::ETHERNET
    );
    assert_eq!(copy(&file, None, None), file);
}

/// A section with two interfaces and packets in all three forms.
fn pcapng(order: ByteOrder) -> Bytes {
    Bytes::new(order)
        .section()
        .interface(1, 4, &[(2, b"eth0"), (9, &[9])])
        .interface(
            101,
            0,
            &[
                (9, &[0x80 | 10]),
                (
                    14,
                    &match order {
                        ByteOrder::Little => 100i64.to_le_bytes(),
                        ByteOrder::Big => 100i64.to_be_bytes(),
                    },
                ),
            ],
        )
        .block(0x8000_0bad, &Bytes::new(order).raw(b"kept as it stands!"))
        .packet(0, 3_000_000_007, &[1, 2, 3], 60)
        .packet(1, 2 * 1024 + 512, &[4, 5, 6, 7, 8], 5)
        .block(3, &Bytes::new(order).u32s(&[60]).raw(&[9, 8, 7, 6]))
        .block(
            2,
            &Bytes::new(order)
                .u16(1)
                .u16(0)
                .u32s(&[0, 1024, 2, 2])
                .raw(&[1, 1]),
        )
        .block(5, &Bytes::new(order).u32s(&[0, 0, 0]))
}

fn pcapng_packets() -> Vec<Seen> {
    vec![
        Seen::new(&[1, 2, 3], 60, (3, 7)),
        Seen {
            interface: 1,
            link_type: 101,
            ..Seen::new(&[4, 5, 6, 7, 8], 5, (102, 500_000_000))
        },
        Seen {
            time: None,
            ..Seen::new(&[9, 8, 7, 6], 60, (0, 0))
        },
        Seen {
            interface: 1,
            link_type: 101,
            ..Seen::new(&[1, 1], 2, (101, 0))
        },
    ]
}

#[oracle::test]
fn pcapng_with_several_interfaces_and_every_form_of_packet() {
    for order in ORDERS {
        let file = pcapng(order).bytes;
        assert_eq!(read(&file), (pcapng_packets(), None), "{order:?}");
        assert_eq!(copy(&file, None, None), file, "every block as it stands");
    }
}

#[oracle::test]
fn sections_have_byte_order_and_interfaces_of_their_own() {
    let mut file = pcapng(ByteOrder::Little).bytes;
    file.extend(pcapng(ByteOrder::Big).bytes);
    let mut expected = pcapng_packets();
    expected.extend(pcapng_packets());
    assert_eq!(read(&file), (expected, None));
    assert_eq!(copy(&file, None, None), file);

    let offset = file.len() as u64;
    let more = Bytes::new(ByteOrder::Big)
        .section()
        .packet(0, 0, &[1], 1)
        .bytes;
    let section = Bytes::new(ByteOrder::Big).section().bytes.len() as u64;
    file.extend(&more);
    let fault = read(&file).1.unwrap();
    assert_eq!(
        fault.problem,
        Problem::UnknownInterface {
            interface: 0,
            described: 0
        }
    );
    assert_eq!((fault.packets, fault.offset), (8, offset + section));
}

#[oracle::test]
fn a_stated_section_length_becomes_unknown() {
    let mut file = pcapng(ByteOrder::Little).bytes;
    let whole = file.clone();
    file[16..24].copy_from_slice(&1000u64.to_le_bytes());
    assert_eq!(copy(&file, None, None), whole);
}

#[oracle::test]
fn cutting_keeps_wire_length_time_and_options_and_states_the_limit() {
    for order in ORDERS {
        let cut = copy(&pcapng(order).bytes, None, Some(2));
        let mut expected = pcapng_packets();
        for packet in &mut expected {
            packet.data.truncate(2);
        }
        assert_eq!(read(&cut), (expected, None));
        let reader = &mut Reader::new(&cut[..]).unwrap();
        let first = reader.first_interface().unwrap().unwrap();
        assert_eq!(
            (first.snaplen, first.resolution),
            (2, Resolution::NANOSECONDS)
        );
        let comments = cut.windows(4).filter(|bytes| bytes == b"yes\0").count();
        assert_eq!(comments, 2, "comments are kept");
    }
}

#[oracle::test]
fn a_snapshot_length_of_zero_is_no_limit() {
    for order in ORDERS {
        let whole = copy(&pcapng(order).bytes, None, None);
        assert_eq!(copy(&pcapng(order).bytes, None, Some(0)), whole);
    }
}

#[oracle::test]
fn different_captures_have_a_common_format() {
    let order = ByteOrder::Little;
    let pcap = |order, magic, link_type| {
        let mut header = Bytes::pcap(order, magic, (2, 4), 100).bytes;
        header[20..24].copy_from_slice(&order.put_u32(link_type));
        Bytes {
            order,
            bytes: header,
        }
        .u32s(&[7, 5, 3, 60])
        .raw(&[1, 2, 3])
        .bytes
    };
    let format = |file: &[u8]| Reader::new(file).unwrap().framing().format();
    let micro = pcap(order, MICRO, 1);
    let nano = pcap(ByteOrder::Big, NANO, 1);
    let raw = pcap(order, MICRO, 101);
    let blocks = pcapng(order).bytes;

    assert_eq!(
        Format::common(&[format(&micro), format(&raw)]),
        Format::Pcapng
    );
    assert_eq!(
        Format::common(&[format(&micro), format(&blocks)]),
        Format::Pcapng
    );
    let both = Format::common(&[format(&micro), format(&nano)]);
    let Format::Pcap(header) = both else {
        panic!("one pcap file holds both")
    };
    assert_eq!(header.interface.resolution, Resolution::NANOSECONDS);
    for (file, nanoseconds) in [(&micro, 5_000), (&nano, 5)] {
        let expected = vec![Seen::new(&[1, 2, 3], 60, (7, nanoseconds))];
        assert_eq!(
            read(&copy(file, Some(both), None)),
            (expected.clone(), None)
        );
        // As a section of a pcapng file.
        assert_eq!(
            read(&copy(file, Some(Format::Pcapng), None)),
            (expected, None)
        );
    }
    assert_eq!(
        read(&copy(&raw, Some(Format::Pcapng), None)).0[0].link_type,
        101
    );
    assert!(matches!(format(&blocks), Format::Pcapng));
}

#[oracle::test]
fn every_truncation_is_a_fault_after_the_complete_packets() {
    for whole in [
        Bytes::pcap(ByteOrder::Big, MICRO, (2, 4), 100)
            .u32s(&[7, 5, 3, 60])
            .raw(&[1, 2, 3])
            .u32s(&[8, 5, 1, 1, 0])
            .bytes,
        pcapng(ByteOrder::Little).bytes,
    ] {
        let complete = read(&whole).0.len();
        for len in 0..whole.len() {
            let (seen, fault) = read(&whole[..len]);
            assert!(seen.len() <= complete);
            match fault.map(|fault| (fault.packets, fault.offset, fault.problem)) {
                None => assert!(len >= 24),
                Some((0, 0, Problem::Empty)) => assert_eq!(len, 0),
                Some((0, 0, Problem::UnknownFormat { .. })) => assert!(len < 4),
                Some((packets, offset, Problem::Truncated { needed, present })) => {
                    assert_eq!(packets, seen.len() as u64);
                    assert_eq!(offset + present, len as u64);
                    assert!(needed > present);
                }
                Some(other) => panic!("{other:?}"),
            }
        }
    }
}

#[oracle::test]
fn damaged_lengths_are_faults_at_their_offset() {
    let order = ByteOrder::Little;
    let pcap = Bytes::pcap(order, MICRO, (2, 4), 100)
        .u32s(&[7, 5, 1, 1])
        .raw(&[1]);
    let long = pcap.u32s(&[7, 5, u32::MAX, u32::MAX]).bytes;
    let limit = 262_144;
    assert_eq!(
        read(&long).1,
        Some(Fault {
            packets: 1,
            offset: 41,
            problem: Problem::CapturedTooLong {
                captured: u32::MAX,
                limit
            }
        })
    );

    let after = |more: &[u32]| {
        let file = Bytes::new(order)
            .section()
            .interface(1, 0, &[])
            .packet(0, 0, &[1], 1);
        let offset = file.bytes.len() as u64;
        let (seen, fault) = read(&file.u32s(more).bytes);
        assert_eq!(seen.len(), 1);
        let fault = fault.unwrap();
        assert_eq!((fault.packets, fault.offset), (1, offset));
        fault.problem
    };
    assert_eq!(after(&[6, 8, 8]), Problem::BlockLength { length: 8 });
    assert_eq!(after(&[6, 33, 0]), Problem::BlockLength { length: 33 });
    let limit = 16 << 20;
    assert_eq!(
        after(&[9, u32::MAX - 3, 0]),
        Problem::BlockTooLong {
            length: u32::MAX - 3,
            limit
        }
    );
    assert_eq!(
        after(&[9, 16, 0, 20]),
        Problem::BlockTrailer {
            length: 16,
            trailer: 20
        }
    );
    assert_eq!(
        after(&[6, 16, 0, 16]),
        Problem::BlockTooShort {
            kind: 6,
            length: 16
        }
    );
    assert_eq!(
        after(&[6, 32, 0, 0, 0, 1, 1, 32]),
        Problem::BlockTooShort {
            kind: 6,
            length: 32
        }
    );
    assert_eq!(
        after(&[6, 32, 7, 0, 0, 0, 0, 32]),
        Problem::UnknownInterface {
            interface: 7,
            described: 1
        }
    );
    assert_eq!(
        after(&[3, 16, 9, 16]),
        Problem::BlockTooShort {
            kind: 3,
            length: 16
        }
    );
    assert_eq!(
        after(&[1, 16, 9, 16]),
        Problem::BlockTooShort {
            kind: 1,
            length: 16
        }
    );
    // An option that reaches beyond its block; invalid resolutions.
    assert_eq!(
        after(&[1, 24, 1, 0, 0x0008_0002, 24]),
        Problem::BlockTooShort {
            kind: 1,
            length: 24
        }
    );
    assert_eq!(
        after(&[1, 28, 1, 0, 0x0001_0009, 20, 28]),
        Problem::TimeResolution
    );
    assert_eq!(
        after(&[1, 28, 1, 0, 0x0002_0009, 6, 28]),
        Problem::TimeResolution
    );
    assert_eq!(
        after(&[0x0a0d_0d0a, 28, 0x1234, 0]),
        Problem::ByteOrderMagic {
            magic: [0x34, 0x12, 0, 0]
        }
    );
    assert_eq!(
        after(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 2, 0, 0, 28]),
        Problem::UnsupportedVersion { major: 2, minor: 0 }
    );
}

#[oracle::test]
fn an_unknown_magic_number_is_a_fault() {
    for start in [&b"GET / HTTP"[..], b"\x1f\x8b", b"\0"] {
        let fault = read(start).1.unwrap();
        assert!(
            matches!(fault.problem, Problem::UnknownFormat { .. }),
            "{fault:?}"
        );
    }
}

#[oracle::test]
fn the_window_grows_for_a_long_packet_only() {
    let data = vec![7; 262_144];
    let mut file = Bytes::pcap(ByteOrder::Little, MICRO, (2, 4), 0);
    for _ in 0..20 {
        file = file
            .u32s(&[1, 1, 262_144, 262_144])
            .raw(&data)
            .u32s(&[1, 1, 1, 1])
            .raw(&[1]);
    }
    let seen = read(&file.bytes);
    assert_eq!((seen.0.len(), seen.1), (40, None));
    assert!(seen.0.iter().step_by(2).all(|packet| packet.data == data));
}

/// The word "capture" as gzip 1.12 and zstd 1.5.4 (with a checksum) compress it.
const GZIP: &[u8] =
    b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4e\x2c\x28\x29\x2d\x4a\x05\0\xe5\xa6\xfe\x8b\x07\0\0\0";
const ZSTANDARD: &[u8] = b"\x28\xb5\x2f\xfd\x24\x07\x39\0\0capture\xa1\x81\xa1\x03";
const SKIPPABLE: &[u8] = b"\x52\x2a\x4d\x18\x03\0\0\0abc";

#[oracle::test]
fn compression_is_detected_and_may_have_several_parts() {
    use std::io::Read;
    let plain = |parts: &[&[u8]]| {
        let bytes = parts.concat();
        let mut text = String::new();
        let mut source = decompress(&bytes[..]).unwrap();
        source.read_to_string(&mut text).map(|_| text)
    };
    assert_eq!(plain(&[b"capture"]).unwrap(), "capture");
    assert_eq!(plain(&[b"ca"]).unwrap(), "ca");
    assert_eq!(plain(&[GZIP, GZIP]).unwrap(), "capturecapture");
    assert_eq!(
        plain(&[SKIPPABLE, ZSTANDARD, SKIPPABLE, ZSTANDARD]).unwrap(),
        "capturecapture"
    );
    // Damaged and cut short.
    let wrong_sum = [&ZSTANDARD[..ZSTANDARD.len() - 1], &[4]].concat();
    assert!(plain(&[&wrong_sum]).is_err());
    assert!(plain(&[&ZSTANDARD[..14]]).is_err());
    assert!(plain(&[ZSTANDARD, &SKIPPABLE[..9]]).is_err());
    assert!(plain(&[&GZIP[..12]]).is_err());
    assert!(plain(&[GZIP, &GZIP[..12]]).is_err());
}

#[oracle::test]
fn a_header_made_for_an_interface_decodes_to_it() {
    for order in ORDERS {
        for resolution in [Resolution::MICROSECONDS, Resolution::NANOSECONDS] {
            let interface = Interface {
                link_type: LinkType::LINUX_SLL2,
                snaplen: 77,
                resolution,
                time_offset: 0,
                order,
            };
            let header = beebox_capture::PcapHeader::new(interface);
            let reader = Reader::new(&header.raw()[..]).unwrap();
            assert_eq!(reader.framing().interfaces(), [interface]);
        }
    }
}

/// "capture" 40,000 times as zstd 1.5.4 compresses it: three blocks, the last two
/// of which are missing.
const ZSTANDARD_START: &[u8] = b"\x28\xb5\x2f\xfd\xa4\xc0\x45\x04\x00\x7c\x00\x00\x38\x63\x61\x70\x74\x75\x72\x65\x01\x00\xf6\xff\xca\x8b\x11\x4c\x00\x00\x08\x75";

#[oracle::test]
fn bytes_decoded_before_a_truncation_are_returned() {
    use std::io::Read;
    let mut source = decompress(ZSTANDARD_START).unwrap();
    let mut text = Vec::new();
    let error = source.read_to_end(&mut text).unwrap_err();
    assert_eq!(text.len(), 128 << 10, "one block: {error}");
    assert!(text.chunks_exact(7).all(|word| word == b"capture"));
}
