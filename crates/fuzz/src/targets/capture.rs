//! Any bytes can be read as a capture, and what was read can be written.
//!
//! The input: one byte that says in what portions the source gives its bytes, one
//! that says how many bytes of each packet are kept, then the capture.

use std::io::{self, Read};

use ::capture::{
    Encoder, Error, Event, Format, Problem, Reader, Timestamp, first_record, packet_metadata,
};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "capture",
    property: "a capture reads the same in any portions, and what is written of it reads the same",
    words: &[
        "\u{a1}",
        "\n\r\r\n",
        "\x01\0\0\0",
        "\x02\0\0\0",
        "\x03\0\0\0",
        "\x06\0\0\0",
    ],
    run,
};

fn run(input: &[u8]) -> Signature {
    let [portion, keep, file @ ..] = input else {
        return Signature::of(());
    };
    let whole = read(file);
    let dribbled = read(Dribble {
        bytes: file,
        portion: usize::from(*portion) + 1,
    });
    assert_eq!(
        whole, dribbled,
        "portions of the source change what is read"
    );

    if let Some((offset, packets)) = whole
        .fault
        .as_ref()
        .map(|fault| (fault.offset, fault.packets))
    {
        assert!(offset <= file.len() as u64);
        assert_eq!(
            packets,
            whole.packets.len() as u64,
            "packets delivered before the fault"
        );
    }
    if whole.packets.is_empty() {
        return Signature::of(whole.fault.map(|fault| fault.kind));
    }

    let limit = (keep & 1 == 1).then(|| u32::from(keep / 2));
    let at_most = limit.filter(|&limit| limit != 0).unwrap_or(u32::MAX);
    // A link type of pcapng has 16 bits, and so has every one that exists.
    let link_type = whole.packets.iter().map(|packet| packet.link_type).max();
    let fits_pcapng = link_type <= Some(u16::MAX.into());
    for as_pcapng in [false, true] {
        if as_pcapng && !fits_pcapng {
            continue;
        }
        let written = write(file, as_pcapng, limit);
        let again = read(&written[..]);
        assert_eq!(again.fault, None, "what was written is damaged");
        assert_eq!(again.packets.len(), whole.packets.len());
        for (before, after) in whole.packets.iter().zip(&again.packets) {
            let kept = before.data.len().min(at_most as usize);
            assert_eq!(after.data, before.data[..kept]);
            assert_eq!(after.wire_len, before.wire_len);
            assert_eq!(after.link_type, before.link_type);
            assert_eq!(after.time, before.time);
        }
    }
    Signature::of((
        whole.fault.map(|fault| fault.kind),
        whole.packets.len().min(16),
        link_type,
    ))
}

/// Packets read from a capture.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    packets: Vec<Kept>,
    blocks: usize,
    fault: Option<Fault>,
}

#[derive(Debug, PartialEq, Eq)]
struct Kept {
    data: Vec<u8>,
    wire_len: u32,
    link_type: u32,
    time: Option<Timestamp>,
}

#[derive(Debug, PartialEq, Eq)]
struct Fault {
    packets: u64,
    offset: u64,
    problem: Problem,
    kind: std::mem::Discriminant<Problem>,
}

fn read(source: impl Read) -> Contents {
    let mut contents = Contents::default();
    contents.fault = read_into(source, &mut contents)
        .err()
        .map(|error| match error {
            Error::Fault(fault) => Fault {
                packets: fault.packets,
                offset: fault.offset,
                problem: fault.problem,
                kind: std::mem::discriminant(&fault.problem),
            },
            Error::Io { source, .. } => panic!("memory cannot fail: {source}"),
        });
    contents
}

fn read_into(source: impl Read, contents: &mut Contents) -> Result<(), Error> {
    let mut reader = Reader::new(source)?;
    let mut before = reader.offset();
    while let Some(event) = reader.next()? {
        match event {
            Event::Packet(record) => {
                let interface = record.interface();
                packet_metadata(interface, record.interface_id(), record.data());
                contents.packets.push(Kept {
                    data: record.data().to_vec(),
                    wire_len: record.wire_len(),
                    link_type: interface.link_type.0,
                    time: record.timestamp(),
                });
            }
            Event::Block(_) => contents.blocks += 1,
        }
        assert!(reader.offset() > before, "the reader stands still");
        before = reader.offset();
    }
    Ok(())
}

/// Writes what can be read of a capture.
fn write(file: &[u8], as_pcapng: bool, limit: Option<u32>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut reader = Reader::new(file).expect("it was read before");
    let format = reader.framing().format();
    let output = if as_pcapng {
        Format::Pcapng
    } else {
        Format::common(&[format])
    };
    let encoder = Encoder::new(output, format, limit);
    encoder.start_file(&mut out);
    encoder.start_capture(reader.framing(), &mut out);
    if let Some(at) = first_record(reader.framing(), file) {
        assert!(at < file.len());
    }
    while let Ok(Some(event)) = reader.next() {
        match event {
            Event::Packet(record) => {
                let put = encoder.put_packet(&record, &mut out);
                put.expect("a copy has the link types of its original");
            }
            Event::Block(block) => encoder.put_block(&block, &mut out),
        }
    }
    out
}

/// A source that gives its bytes in small portions.
struct Dribble<'a> {
    bytes: &'a [u8],
    portion: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(self.portion).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.bytes = later;
        Ok(len)
    }
}
