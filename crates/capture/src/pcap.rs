//! The pcap format: a file header of 24 bytes, then records.
//!
//! The magic number states byte order, time resolution and record layout. Old versions
//! have the two lengths of a record in reverse order.

use crate::fault::Problem;
use crate::framing::{Frame, Step};
use crate::{ByteOrder, Interface, LinkType, Resolution, Timestamp};

/// Size of the file header in bytes.
pub(crate) const FILE_HEADER: usize = 24;
/// Size of a standard record header in bytes.
const RECORD_HEADER: u32 = 16;

/// Decoded pcap file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcapHeader {
    /// Interface of all packets.
    pub interface: Interface,
    /// Layout of records.
    pub layout: Layout,
    lengths: Lengths,
    /// Size of a record header in bytes.
    record_header: u32,
    /// Maximum captured length; a longer one is a fault.
    limit: u32,
    /// Captured bytes beyond this are cut: `snaplen`, unless that is 0 or beyond 2³¹.
    cut: u32,
    /// Bytes of the header in the file.
    raw: [u8; FILE_HEADER],
}

/// Layout of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Header of 16 bytes: seconds, fraction, captured and wire length.
    Standard,
    /// Header of 24 bytes: the standard one, then interface, protocol and packet type, as
    /// some old Linux systems wrote it.
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

/// Order of the two lengths of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    WireFirst,
    /// Version 2.3 has either order: the larger is the wire length.
    Either,
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const EXTENDED: u32 = 0xa1b2_cd34;

impl PcapHeader {
    /// Byte order, time resolution and layout of a magic number; `None` if it is not
    /// pcap's.
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
        // The upper bits state the length of the frame check sequence.
        let link_type = LinkType(order.u32(&raw, 20) & 0x03ff_ffff);
        let limit = link_type.max_captured();
        let cut = match snaplen {
            0 | 0x8000_0000.. => limit,
            // A synthesised Ethernet header may exceed the limit.
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

    /// Standard header of version 2.4.
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
        Self::decode(raw).expect("a header of version 2.4 decodes")
    }

    /// Bytes of the header in a file.
    pub fn raw(&self) -> &[u8; FILE_HEADER] {
        &self.raw
    }

    /// Copy of the header with another snapshot length.
    pub fn with_snaplen(mut self, snaplen: u32) -> PcapHeader {
        self.raw[16..20].copy_from_slice(&self.interface.order.put_u32(snaplen));
        Self::decode(self.raw).expect("only the snapshot length changed")
    }

    #[inline(always)]
    pub(crate) fn step(&self, bytes: &[u8]) -> Result<Step, Problem> {
        let header = self.record_header;
        // The constant bound removes the bounds checks below.
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

    /// The two lengths of a record in file order.
    #[inline(always)]
    fn stored_lengths(&self, record: &[u8]) -> (u32, u32) {
        let order = self.interface.order;
        (order.u32(record, 8), order.u32(record, 12))
    }

    /// Seconds and fraction of a second of a record, in units of the file.
    pub(crate) fn stored_time(&self, record: &[u8]) -> (u32, u32) {
        let order = self.interface.order;
        (order.u32(record, 0), order.u32(record, 4))
    }

    /// The time of a record in the units of the file.
    pub(crate) fn units(&self, record: &[u8]) -> u64 {
        let (seconds, fraction) = self.stored_time(record);
        u64::from(seconds) * self.interface.resolution.per_second() + u64::from(fraction)
    }

    pub(crate) fn timestamp(&self, record: &[u8]) -> Timestamp {
        let (seconds, fraction) = self.stored_time(record);
        let unit = 1_000_000_000 / self.interface.resolution.per_second();
        let nanoseconds = u64::from(fraction) * unit;
        // A fraction may exceed a second.
        Timestamp {
            seconds: i64::from(seconds) + (nanoseconds / 1_000_000_000) as i64,
            nanoseconds: (nanoseconds % 1_000_000_000) as u32,
        }
    }

    /// True if the bytes of a record mean the same in files with these headers.
    pub(crate) fn shares_records_with(&self, other: &PcapHeader) -> bool {
        self.interface.order == other.interface.order
            && self.interface.resolution == other.interface.resolution
            && self.layout == other.layout
            && self.lengths == other.lengths
    }

    /// True if a record may start at `record`, for
    /// [`first_record`](crate::first_record).
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

    /// Maximum length of a record in bytes.
    pub(crate) fn max_record(&self) -> usize {
        (self.record_header + self.limit) as usize
    }

    /// Offset of the captured length in a record.
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

    /// Stated length of the record at the start of `bytes`; `None` if they are too short.
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
