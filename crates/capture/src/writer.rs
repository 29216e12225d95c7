//! Encoder of captures.
//!
//! Records are copied unchanged to a file of the same format, with time, interface,
//! options and comments, as are pcapng blocks without a packet. Three fields are
//! rewritten: captured length and snapshot length where packets are cut, and the section
//! length, which becomes unspecified because packets may be omitted. Captures that one
//! pcap file cannot contain become sections of a pcapng file. Packets of a pcapng file that go into
//! a pcap file keep bytes, lengths and time.

use std::{error, fmt};

use crate::framing::{Format, Framing, Kind};
use crate::pcap::PcapHeader;
use crate::pcapng::{self, BODY};
use crate::{Block, ByteOrder, Interface, LinkType, Record, Resolution};

impl Format {
    /// A pcap file for the packets of these interfaces, in the byte order of the first.
    /// It counts nanoseconds if one of them counts finer than microseconds.
    #[doc(hidden)]
    pub fn pcap_of(interfaces: &[Interface]) -> Result<Format, OtherLinkType> {
        let Some(first) = interfaces.first() else {
            return Ok(Format::Pcap(PcapHeader::new(Interface::UNKNOWN)));
        };
        let mut joined = *first;
        joined.resolution = Resolution::MICROSECONDS;
        joined.time_offset = 0;
        joined.snaplen = 0;
        for interface in interfaces {
            check_link_type(first.link_type, interface.link_type)?;
            if interface.resolution.per_second() > Resolution::MICROSECONDS.per_second() {
                joined.resolution = Resolution::NANOSECONDS;
            }
            let snaplen = match interface.snaplen {
                0 => interface.link_type.max_captured(),
                snaplen => snaplen,
            };
            joined.snaplen = joined.snaplen.max(snaplen);
        }
        Ok(Format::Pcap(PcapHeader::new(joined)))
    }

    /// Format that can contain all of these captures, one after the other, without loss:
    /// pcap if all are pcap with one link type, else pcapng.
    pub fn common(captures: &[Format]) -> Format {
        let mut common = None;
        for capture in captures {
            let Format::Pcap(header) = capture else {
                return Format::Pcapng;
            };
            common = Some(match common {
                None => *header,
                Some(so_far) => match common_header(&so_far, header) {
                    Some(header) => header,
                    None => return Format::Pcapng,
                },
            });
        }
        common.map_or(Format::Pcapng, Format::Pcap)
    }
}

/// A packet of another link type than that of the pcap file it should go into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherLinkType {
    /// The link type of the file.
    pub file: LinkType,
    /// The link type of the packet.
    pub packet: LinkType,
}

impl fmt::Display for OtherLinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherLinkType { file, packet } = self;
        write!(
            f,
            "link type {packet} does not fit a pcap file of link type {file}"
        )
    }
}

impl error::Error for OtherLinkType {}

fn check_link_type(file: LinkType, packet: LinkType) -> Result<(), OtherLinkType> {
    match file == packet {
        true => Ok(()),
        false => Err(OtherLinkType { file, packet }),
    }
}

/// File header that fits the records of both files; `None` if their link types differ.
fn common_header(a: &PcapHeader, b: &PcapHeader) -> Option<PcapHeader> {
    if a.interface.link_type != b.interface.link_type {
        return None;
    }
    // 0 means no limit.
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

/// Encoder of the items of one capture into an output format.
#[derive(Clone, Copy, Debug)]
pub struct Encoder {
    format: Format,
    /// Maximum number of captured bytes written of a packet.
    keep: u32,
    /// True if records of the capture are copied unchanged.
    verbatim: bool,
}

impl Encoder {
    /// Encoder of records of a capture into `format`. At most `snaplen` bytes of a packet
    /// are written; 0 is no limit, as in the file formats.
    pub fn new(format: Format, capture: Format, snaplen: Option<u32>) -> Encoder {
        Encoder {
            format,
            keep: snaplen.filter(|&len| len != 0).unwrap_or(u32::MAX),
            verbatim: match (format, capture) {
                (Format::Pcapng, Format::Pcapng) => true,
                (Format::Pcap(to), Format::Pcap(from)) => to.shares_records_with(&from),
                _ => false,
            },
        }
    }

    /// Writes the file header, if the format has one.
    pub fn start_file(&self, out: &mut Vec<u8>) {
        if let Format::Pcap(header) = &self.format {
            let snaplen = self.stated_snaplen(header.interface.snaplen);
            out.extend_from_slice(header.with_snaplen(snaplen).raw());
        }
    }

    /// Writes the blocks before the records of a capture: section header and interface
    /// description of a pcap capture in a pcapng file, else nothing.
    pub fn start_capture(&self, framing: &Framing, out: &mut Vec<u8>) {
        if let (Format::Pcapng, Kind::Pcap(header)) = (&self.format, &framing.0) {
            let interface = &header.interface;
            put_section(interface.order, out);
            put_interface(
                interface.order,
                interface,
                self.stated_snaplen(interface.snaplen),
                out,
            );
        }
    }

    /// Snapshot length that the output states.
    fn stated_snaplen(&self, snaplen: u32) -> u32 {
        stated_snaplen(snaplen, self.keep)
    }

    /// Writes a packet.
    #[inline]
    pub fn put_packet(&self, record: &Record<'_>, out: &mut Vec<u8>) -> Result<(), OtherLinkType> {
        if self.verbatim && record.frame.data_len <= self.keep && !is_cut_on_reading(record) {
            out.extend_from_slice(record.raw);
            Ok(())
        } else {
            self.put_rewritten(record, record.data(), record.wire_len(), out)
        }
    }

    /// Writes a packet of other bytes in place of that of a record. Its length on the wire
    /// changes by as much as that of the bytes.
    pub fn put_changed(
        &self,
        record: &Record<'_>,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), OtherLinkType> {
        if data == record.data() {
            return self.put_packet(record, out);
        }
        let unseen = (record.wire_len() as usize).saturating_sub(record.data().len());
        let wire_len = u32::try_from(data.len() + unseen).unwrap_or(u32::MAX);
        self.put_rewritten(record, data, wire_len, out)
    }

    /// As [`Encoder::put_changed`], with a comment, in a format that has them.
    pub fn put_commented(
        &self,
        record: &Record<'_>,
        data: &[u8],
        comment: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), OtherLinkType> {
        let start = out.len();
        self.put_changed(record, data, out)?;
        if self.format == Format::Pcapng {
            let order = match &record.framing.0 {
                Kind::Pcap(from) => from.interface.order,
                Kind::Pcapng(sections) => sections.order(),
            };
            add_comment(order, comment, start, out);
        }
        Ok(())
    }

    #[cold]
    fn put_rewritten(
        &self,
        record: &Record<'_>,
        data: &[u8],
        wire_len: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), OtherLinkType> {
        let kept = data.len().min(self.keep as usize);
        let data = &data[..kept];
        match (&self.format, &record.framing.0) {
            (Format::Pcap(_), Kind::Pcap(from)) if self.verbatim => {
                let header = &record.raw[..record.frame.data_at as usize];
                let start = out.len();
                out.extend_from_slice(header);
                let at = from.captured_length_at(header);
                let order = from.interface.order;
                // The two lengths are beside each other, in one order or the other.
                for (at, len) in [(at, kept as u32), (20 - at, wire_len)] {
                    out[start + at..start + at + 4].copy_from_slice(&order.put_u32(len));
                }
                out.extend_from_slice(data);
            }
            (Format::Pcap(to), _) => {
                check_link_type(to.interface.link_type, record.interface().link_type)?;
                put_pcap_record(to, record, data, wire_len, out);
            }
            (Format::Pcapng, Kind::Pcapng(sections)) => {
                put_changed_block(sections.order(), record, data, wire_len, out);
            }
            (Format::Pcapng, Kind::Pcap(from)) => {
                let order = from.interface.order;
                let units = from.units(record.raw);
                let head = [0, (units >> 32) as u32, units as u32, kept as u32, wire_len];
                let head: Vec<u8> = head.iter().flat_map(|&word| order.put_u32(word)).collect();
                put_block(order, pcapng::ENHANCED_PACKET, &[&head, data], out);
            }
        }
        Ok(())
    }

    /// Writes a block without a packet; a pcap file omits it.
    pub fn put_block(&self, block: &Block<'_>, out: &mut Vec<u8>) {
        let Kind::Pcapng(sections) = &block.framing.0 else {
            return;
        };
        if self.format != Format::Pcapng {
            return;
        }
        let order = sections.order();
        let start = out.len();
        out.extend_from_slice(block.raw);
        match block.kind() {
            // Section length: all ones is unspecified.
            pcapng::SECTION => out[start + 16..start + 24].fill(0xff),
            pcapng::INTERFACE => {
                let at = start + BODY + 4;
                let snaplen = self.stated_snaplen(order.u32(block.raw, BODY + 4));
                out[at..at + 4].copy_from_slice(&order.put_u32(snaplen));
            }
            _ => {}
        }
    }
}

/// The snapshot length of an interface of whose packets `keep` bytes are kept.
pub(crate) fn stated_snaplen(snaplen: u32, keep: u32) -> u32 {
    match (snaplen, keep) {
        (snaplen, u32::MAX) => snaplen,
        (0, keep) => keep,
        (snaplen, keep) => snaplen.min(keep),
    }
}

/// A pcapng section header; the section's length is "not known".
pub(crate) fn put_section(order: ByteOrder, out: &mut Vec<u8>) {
    let mut body = order.put_u32(pcapng::BYTE_ORDER_MAGIC).to_vec();
    body.extend_from_slice(&order.put_u16(1));
    body.extend_from_slice(&order.put_u16(0));
    body.extend_from_slice(&[0xff; 8]);
    put_block(order, pcapng::SECTION, &[&body], out);
}

/// A pcapng interface description with a time resolution.
pub(crate) fn put_interface(
    order: ByteOrder,
    interface: &Interface,
    snaplen: u32,
    out: &mut Vec<u8>,
) {
    let mut body = order.put_u16(interface.link_type.0 as u16).to_vec();
    body.extend_from_slice(&[0; 2]);
    body.extend_from_slice(&order.put_u32(snaplen));
    // if_tsresol, one byte long, and the end of options.
    body.extend_from_slice(&order.put_u16(9));
    body.extend_from_slice(&order.put_u16(1));
    body.extend_from_slice(&[interface.resolution.encode(), 0, 0, 0]);
    body.extend_from_slice(&[0; 4]);
    put_block(order, pcapng::INTERFACE, &[&body], out);
}

/// True if a pcap record contains more than the snapshot length of its file.
fn is_cut_on_reading(record: &Record<'_>) -> bool {
    matches!(record.framing.0, Kind::Pcap(_))
        && record.frame.data_at + record.frame.data_len != record.frame.len
}

/// Writes a pcap record with a new header.
fn put_pcap_record(
    to: &PcapHeader,
    record: &Record<'_>,
    data: &[u8],
    wire_len: u32,
    out: &mut Vec<u8>,
) {
    let order = to.interface.order;
    let (seconds, nanoseconds) = record
        .timestamp()
        .map_or((0, 0), |time| (time.seconds, time.nanoseconds));
    let unit = 1_000_000_000 / to.interface.resolution.per_second();
    let head = [
        seconds as u32,
        nanoseconds / unit as u32,
        data.len() as u32,
        wire_len,
    ];
    out.extend(head.iter().flat_map(|&word| order.put_u32(word)));
    out.extend_from_slice(data);
}

/// Writes a pcapng packet block with other bytes of the packet.
fn put_changed_block(
    order: ByteOrder,
    record: &Record<'_>,
    data: &[u8],
    wire_len: u32,
    out: &mut Vec<u8>,
) {
    let raw = record.raw;
    let kind = order.u32(raw, 0);
    let data_at = record.frame.data_at as usize;
    if kind == pcapng::SIMPLE_PACKET {
        return put_block(order, kind, &[&order.put_u32(wire_len), data], out);
    }
    let mut head = raw[BODY..data_at].to_vec();
    head[12..16].copy_from_slice(&order.put_u32(data.len() as u32));
    head[16..20].copy_from_slice(&order.put_u32(wire_len));
    let (_, options) = record.options().unwrap_or((order, &[]));
    let padding = [0; 3];
    let padding = &padding[..data.len().next_multiple_of(4) - data.len()];
    put_block(order, kind, &[&head, data, padding, options], out);
}

/// Puts a comment (`opt_comment`) in front of the options of the packet block at `start`, the last one in
/// `out`. Simple packet blocks have no options, and stay as they are.
fn add_comment(order: ByteOrder, comment: &str, start: usize, out: &mut Vec<u8>) {
    const COMMENT: u16 = 1;
    let kind = order.u32(out, start);
    if kind == pcapng::SIMPLE_PACKET {
        return;
    }
    let data_at = start + BODY + 20;
    let captured = order.u32(out, start + BODY + 12) as usize;
    let at = data_at + captured.next_multiple_of(4);
    // Options end in front of the second length of the block.
    let has_options = at + 4 < out.len();
    let text = &comment.as_bytes()[..comment.len().min(usize::from(u16::MAX))];
    let mut option = order.put_u16(COMMENT).to_vec();
    option.extend_from_slice(&order.put_u16(text.len() as u16));
    option.extend_from_slice(text);
    option.resize(option.len().next_multiple_of(4), 0);
    if !has_options {
        option.extend_from_slice(&[0; 4]);
    }
    out.splice(at..at, option);
    let total = order.put_u32((out.len() - start) as u32);
    out[start + 4..start + 8].copy_from_slice(&total);
    let end = out.len() - 4;
    out[end..].copy_from_slice(&total);
}

/// Writes a block with this content and padding.
pub(crate) fn put_block(order: ByteOrder, kind: u32, content: &[&[u8]], out: &mut Vec<u8>) {
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
