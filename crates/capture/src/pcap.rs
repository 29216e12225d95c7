//! The pcap format: a file header of 24 bytes, then records.
//!
//! The magic number tells byte order, time resolution and record layout; old
//! versions had the two lengths of a record the other way round.

use crate::fault::Problem;
use crate::framing::{Frame, Step};
use crate::{ByteOrder, Interface, LinkType, Resolution, Timestamp};

/// Bytes of the file header.
pub(crate) const FILE_HEADER: usize = 24;
/// Bytes of a standard record header.
const RECORD_HEADER: u32 = 16;

/// A file header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcapHeader {
    /// What it says about all packets.
    pub interface: Interface,
    /// How records are laid out.
    pub layout: Layout,
    lengths: Lengths,
    /// Bytes of a record's header.
    record_header: u32,
    /// No packet has more captured bytes.
    limit: u32,
    /// Captured bytes beyond this are not shown: `snaplen`, unless that is 0 or
    /// absurd.
    cut: u32,
    /// As it stands in the file.
    raw: [u8; FILE_HEADER],
}

/// How records are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A header of 16 bytes: seconds, fraction, captured and wire length.
    Standard,
    /// The same and 8 bytes more (interface, protocol, packet type), as some
    /// old Linux systems wrote.
    Extended,
}

impl Layout {
    fn header_len(self) -> u32 {
        match self {
            Layout::Standard => RECORD_HEADER,
            Layout::Extended => RECORD_HEADER + 8,
        }
    }
}

/// Which length of a record stands first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    WireFirst,
    /// Version 2.3 was written either way: the larger is the wire length.
    Either,
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const EXTENDED: u32 = 0xa1b2_cd34;

impl PcapHeader {
    /// Byte order and meaning of a magic number; `None` when it is not pcap's.
    fn magic(magic: [u8; 4]) -> Option<(ByteOrder, Resolution, Layout)> {
        [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find_map(|order| match order.u32(&magic, 0) {
                MICROSECONDS => Some((order, Resolution::MICROSECONDS, Layout::Standard)),
                NANOSECONDS => Some((order, Resolution::NANOSECONDS, Layout::Standard)),
                EXTENDED => Some((order, Resolution::MICROSECONDS, Layout::Extended)),
                _ => None,
            })
    }

    /// True for the first bytes of a pcap file.
    pub(crate) fn is_magic(magic: [u8; 4]) -> bool {
        Self::magic(magic).is_some()
    }

    /// Decodes a file header that starts with a pcap magic.
    pub(crate) fn decode(raw: [u8; FILE_HEADER]) -> Result<PcapHeader, Problem> {
        let magic = [raw[0], raw[1], raw[2], raw[3]];
        let Some((order, resolution, layout)) = Self::magic(magic) else {
            return Err(Problem::UnknownFormat { magic });
        };
        let lengths = match (order.u16(&raw, 4), order.u16(&raw, 6)) {
            (2, 0..=2) | (543, 0) => Lengths::WireFirst,
            (2, 3) => Lengths::Either,
            (2, 4) => Lengths::CapturedFirst,
            (major, minor) => return Err(Problem::UnsupportedVersion { major, minor }),
        };
        let snaplen = order.u32(&raw, 16);
        // The upper bits say whether, and how long, a frame check sequence is.
        let link_type = LinkType(order.u32(&raw, 20) & 0x03ff_ffff);
        let limit = link_type.max_captured();
        let cut = match snaplen {
            0 | 0x8000_0000.. => limit,
            // A faked Ethernet header may have come on top of the limit.
            _ if layout == Layout::Extended && link_type == LinkType::ETHERNET => snaplen + 14,
            _ => snaplen,
        };
        Ok(PcapHeader {
            interface: Interface {
                link_type,
                snaplen,
                resolution,
                time_offset: 0,
                order,
            },
            layout,
            lengths,
            record_header: layout.header_len(),
            limit,
            cut,
            raw,
        })
    }

    /// A standard header of today.
    pub fn new(interface: Interface) -> PcapHeader {
        let order = interface.order;
        let magic = match interface.resolution {
            Resolution::NANOSECONDS => NANOSECONDS,
            _ => MICROSECONDS,
        };
        let mut raw = [0; FILE_HEADER];
        raw[0..4].copy_from_slice(&order.put_u32(magic));
        raw[4..6].copy_from_slice(&order.put_u16(2));
        raw[6..8].copy_from_slice(&order.put_u16(4));
        raw[16..20].copy_from_slice(&order.put_u32(interface.snaplen));
        raw[20..24].copy_from_slice(&order.put_u32(interface.link_type.0));
        Self::decode(raw).expect("a header of today decodes")
    }

    /// The header as it stands, or would stand, in a file.
    pub fn raw(&self) -> &[u8; FILE_HEADER] {
        &self.raw
    }

    /// The same header with another snapshot length.
    pub fn with_snaplen(mut self, snaplen: u32) -> PcapHeader {
        self.raw[16..20].copy_from_slice(&self.interface.order.put_u32(snaplen));
        Self::decode(self.raw).expect("only the snapshot length changed")
    }

    #[inline(always)]
    pub(crate) fn step(&self, bytes: &[u8]) -> Result<Step, Problem> {
        let header = self.record_header;
        // The first makes what follows free of bounds checks.
        if bytes.len() < RECORD_HEADER as usize || bytes.len() < header as usize {
            return Ok(Step::Need(header));
        }
        let (mut captured, mut wire_len) = self.stored_lengths(bytes);
        if self.lengths != Lengths::CapturedFirst
            && (self.lengths == Lengths::WireFirst || captured > wire_len)
        {
            (captured, wire_len) = (wire_len, captured);
        }
        let limit = self.limit;
        if captured > limit {
            return Err(Problem::CapturedTooLong { captured, limit });
        }
        let len = header + captured;
        if bytes.len() < len as usize {
            return Ok(Step::Need(len));
        }
        Ok(Step::Packet(Frame {
            len,
            data_at: header,
            data_len: captured.min(self.cut),
            wire_len,
            interface: 0,
        }))
    }

    /// The two lengths of a record in the order in which they stand.
    #[inline(always)]
    fn stored_lengths(&self, record: &[u8]) -> (u32, u32) {
        let order = self.interface.order;
        (order.u32(record, 8), order.u32(record, 12))
    }

    /// Seconds and fraction of a record, as they stand.
    pub(crate) fn stored_time(&self, record: &[u8]) -> (u32, u32) {
        let order = self.interface.order;
        (order.u32(record, 0), order.u32(record, 4))
    }

    pub(crate) fn timestamp(&self, record: &[u8]) -> Timestamp {
        let (seconds, fraction) = self.stored_time(record);
        let unit = 1_000_000_000 / self.interface.resolution.per_second();
        let nanoseconds = u64::from(fraction) * unit;
        // Fractions of a second and more are kept as they are meant.
        Timestamp {
            seconds: i64::from(seconds) + (nanoseconds / 1_000_000_000) as i64,
            nanoseconds: (nanoseconds % 1_000_000_000) as u32,
        }
    }

    /// True when a record as it stands in a file with this header can stand in
    /// a file with the other.
    pub(crate) fn shares_records_with(&self, other: &PcapHeader) -> bool {
        self.interface.order == other.interface.order
            && self.interface.resolution == other.interface.resolution
            && self.layout == other.layout
            && self.lengths == other.lengths
    }

    /// True when `record` could be one: what [`first_record`](crate::first_record)
    /// looks for.
    pub(crate) fn is_plausible(&self, record: &[u8]) -> bool {
        let (first, second) = self.stored_lengths(record);
        let (captured, wire_len) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::WireFirst => (second, first),
            Lengths::Either => (first.min(second), first.max(second)),
        };
        let (_, fraction) = self.stored_time(record);
        u64::from(fraction) < self.interface.resolution.per_second()
            && captured > 0
            && captured <= wire_len
            && captured <= self.cut.min(self.limit)
            && wire_len < 1 << 24
    }

    /// Where a record has its captured length.
    pub(crate) fn captured_length_at(&self, record: &[u8]) -> usize {
        let (first, second) = self.stored_lengths(record);
        match self.lengths {
            Lengths::CapturedFirst => 8,
            Lengths::WireFirst => 12,
            Lengths::Either => {
                if first > second {
                    12
                } else {
                    8
                }
            }
        }
    }

    /// Length of the record that starts `bytes`, if they show it.
    pub(crate) fn record_len(&self, bytes: &[u8]) -> Option<u64> {
        let header = self.record_header;
        let record = bytes.get(..header as usize)?;
        let captured = self
            .interface
            .order
            .u32(record, self.captured_length_at(record));
        Some(u64::from(header) + u64::from(captured))
    }
}
