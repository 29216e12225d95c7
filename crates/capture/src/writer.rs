//! Writing what was read.
//!
//! A record that goes into a file of its own kind is copied as it stands, so it
//! keeps its bytes, time, interface, options and comments; so is every pcapng
//! block that holds no packet. Only three things are ever rewritten: a captured
//! length that is cut, the snapshot length that announces it, and the length of
//! a section (some of whose packets are left out; it becomes "not known").
//! Captures that can't share one pcap file make sections of a pcapng file.

use crate::framing::{Format, Framing, Kind};
use crate::pcap::PcapHeader;
use crate::pcapng::{self, BODY};
use crate::{Block, ByteOrder, Record, Resolution};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A pcap file with this header.
    Pcap(PcapHeader),
    /// A pcapng file.
    Pcapng,
}

impl Shape {
    /// The shape that holds all of these captures, one after the other, without
    /// loss: pcap when all of them are pcap with one link type, pcapng
    /// otherwise.
    pub fn holding(captures: &[Format]) -> Shape {
        let mut shape = None;
        for capture in captures {
            let Format::Pcap(header) = capture else {
                return Shape::Pcapng;
            };
            shape = Some(match shape {
                None => *header,
                Some(so_far) => match join(&so_far, header) {
                    Some(joined) => joined,
                    None => return Shape::Pcapng,
                },
            });
        }
        shape.map_or(Shape::Pcapng, Shape::Pcap)
    }
}

/// A header under which the records of both can stand.
fn join(a: &PcapHeader, b: &PcapHeader) -> Option<PcapHeader> {
    if a.interface.link_type != b.interface.link_type {
        return None;
    }
    // 0 stands for "no limit".
    let snaplen = match (a.interface.snaplen, b.interface.snaplen) {
        (0, _) | (_, 0) => 0,
        (a, b) => a.max(b),
    };
    if a.shares_records_with(b) {
        return Some(a.with_snaplen(snaplen));
    }
    let nanoseconds = [a, b]
        .iter()
        .any(|header| header.interface.resolution == Resolution::NANOSECONDS);
    let mut interface = a.interface;
    interface.snaplen = snaplen;
    if nanoseconds {
        interface.resolution = Resolution::NANOSECONDS;
    }
    Some(PcapHeader::new(interface))
}

/// Turns what was read from one capture into the bytes to write.
#[derive(Clone, Copy, Debug)]
pub struct Encoder {
    shape: Shape,
    /// Captured bytes that are kept of a packet.
    keep: u32,
    /// Records of the capture can be copied as they stand.
    verbatim: bool,
}

impl Encoder {
    /// For the records of a capture, of which at most `snaplen` bytes are kept. As in
    /// the formats themselves, 0 is no limit.
    pub fn new(shape: Shape, capture: Format, snaplen: Option<u32>) -> Encoder {
        Encoder {
            shape,
            keep: snaplen.filter(|&len| len != 0).unwrap_or(u32::MAX),
            verbatim: match (shape, capture) {
                (Shape::Pcapng, Format::Pcapng) => true,
                (Shape::Pcap(to), Format::Pcap(from)) => to.shares_records_with(&from),
                _ => false,
            },
        }
    }

    /// What a file of this shape starts with.
    pub fn start_file(&self, out: &mut Vec<u8>) {
        if let Shape::Pcap(header) = &self.shape {
            let snaplen = self.announced(header.interface.snaplen);
            out.extend_from_slice(header.with_snaplen(snaplen).raw());
        }
    }

    /// What the records of a capture start with.
    pub fn start_capture(&self, framing: &Framing, out: &mut Vec<u8>) {
        if let (Shape::Pcapng, Kind::Pcap(header)) = (&self.shape, &framing.0) {
            let order = header.interface.order;
            let mut body = order.put_u32(pcapng::BYTE_ORDER_MAGIC).to_vec();
            body.extend_from_slice(&order.put_u16(1));
            body.extend_from_slice(&order.put_u16(0));
            body.extend_from_slice(&[0xff; 8]);
            put_block(order, pcapng::SECTION, &[&body], out);

            let interface = &header.interface;
            let mut body = order.put_u16(interface.link_type.0 as u16).to_vec();
            body.extend_from_slice(&[0; 2]);
            body.extend_from_slice(&order.put_u32(self.announced(interface.snaplen)));
            // if_tsresol, one byte long, and the end of options.
            body.extend_from_slice(&order.put_u16(9));
            body.extend_from_slice(&order.put_u16(1));
            body.extend_from_slice(&[interface.resolution.encode(), 0, 0, 0]);
            body.extend_from_slice(&[0; 4]);
            put_block(order, pcapng::INTERFACE, &[&body], out);
        }
    }

    /// The snapshot length that a file announces.
    fn announced(&self, snaplen: u32) -> u32 {
        match (snaplen, self.keep) {
            (snaplen, u32::MAX) => snaplen,
            (0, keep) => keep,
            (snaplen, keep) => snaplen.min(keep),
        }
    }

    /// A packet.
    #[inline]
    pub fn put_packet(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        if self.verbatim && record.frame.data_len <= self.keep && !is_cut_on_reading(record) {
            out.extend_from_slice(record.raw);
        } else {
            self.put_rewritten(record, out);
        }
    }

    #[cold]
    fn put_rewritten(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        let kept = record.data().len().min(self.keep as usize);
        let data = &record.data()[..kept];
        match (&self.shape, &record.framing.0) {
            (Shape::Pcap(_), Kind::Pcap(from)) if self.verbatim => {
                let header = &record.raw[..record.frame.data_at as usize];
                let start = out.len();
                out.extend_from_slice(header);
                let at = start + from.captured_length_at(header);
                let captured = from.interface.order.put_u32(kept as u32);
                out[at..at + 4].copy_from_slice(&captured);
                out.extend_from_slice(data);
            }
            (Shape::Pcap(to), _) => put_pcap_record(to, record, data, out),
            (Shape::Pcapng, Kind::Pcapng(sections)) => {
                put_cut_block(sections.order(), record, data, out);
            }
            (Shape::Pcapng, Kind::Pcap(from)) => {
                let order = from.interface.order;
                let (seconds, fraction) = from.stored_time(record.raw);
                let per_second = from.interface.resolution.per_second();
                let units = u64::from(seconds) * per_second + u64::from(fraction);
                let head = [
                    0,
                    (units >> 32) as u32,
                    units as u32,
                    kept as u32,
                    record.wire_len(),
                ];
                let head: Vec<u8> = head.iter().flat_map(|&word| order.put_u32(word)).collect();
                put_block(order, pcapng::ENHANCED_PACKET, &[&head, data], out);
            }
        }
    }

    /// A block without a packet; left out where pcap has no place for it.
    pub fn put_block(&self, block: &Block<'_>, out: &mut Vec<u8>) {
        let Kind::Pcapng(sections) = &block.framing.0 else {
            return;
        };
        if self.shape != Shape::Pcapng {
            return;
        }
        let order = sections.order();
        let start = out.len();
        out.extend_from_slice(block.raw);
        match block.kind() {
            // A section's length, "not known" being all ones.
            pcapng::SECTION => out[start + 16..start + 24].fill(0xff),
            pcapng::INTERFACE => {
                let at = start + BODY + 4;
                let snaplen = self.announced(order.u32(block.raw, BODY + 4));
                out[at..at + 4].copy_from_slice(&order.put_u32(snaplen));
            }
            _ => {}
        }
    }
}

/// True when a pcap record holds more than its file's snapshot length.
fn is_cut_on_reading(record: &Record<'_>) -> bool {
    matches!(record.framing.0, Kind::Pcap(_))
        && record.frame.data_at + record.frame.data_len != record.frame.len
}

/// A pcap record, made anew.
fn put_pcap_record(to: &PcapHeader, record: &Record<'_>, data: &[u8], out: &mut Vec<u8>) {
    let order = to.interface.order;
    let (seconds, nanoseconds) = record
        .timestamp()
        .map_or((0, 0), |time| (time.seconds, time.nanoseconds));
    let unit = 1_000_000_000 / to.interface.resolution.per_second();
    let head = [
        seconds as u32,
        nanoseconds / unit as u32,
        data.len() as u32,
        record.wire_len(),
    ];
    out.extend(head.iter().flat_map(|&word| order.put_u32(word)));
    out.extend_from_slice(data);
}

/// A pcapng packet block with less of its packet.
fn put_cut_block(order: ByteOrder, record: &Record<'_>, data: &[u8], out: &mut Vec<u8>) {
    let raw = record.raw;
    let kind = order.u32(raw, 0);
    let data_at = record.frame.data_at as usize;
    if kind == pcapng::SIMPLE_PACKET {
        return put_block(order, kind, &[&raw[BODY..data_at], data], out);
    }
    let mut head = raw[BODY..data_at].to_vec();
    head[12..16].copy_from_slice(&order.put_u32(data.len() as u32));
    let options = data_at + (record.frame.data_len as usize).next_multiple_of(4);
    let options = raw.get(options..raw.len() - 4).unwrap_or(&[]);
    let padding = [0; 3];
    let padding = &padding[..data.len().next_multiple_of(4) - data.len()];
    put_block(order, kind, &[&head, data, padding, options], out);
}

/// A block around its content, padded.
fn put_block(order: ByteOrder, kind: u32, content: &[&[u8]], out: &mut Vec<u8>) {
    let len: usize = content.iter().map(|part| part.len()).sum();
    let padded = len.next_multiple_of(4);
    let total = order.put_u32(padded as u32 + 12);
    out.extend_from_slice(&order.put_u32(kind));
    out.extend_from_slice(&total);
    for part in content {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&[0; 3][..padded - len]);
    out.extend_from_slice(&total);
}
