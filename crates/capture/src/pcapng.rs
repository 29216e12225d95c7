//! The pcapng format: sections of blocks, each block with its length at both ends.
//!
//! A section has its own byte order and interfaces. Section headers, interface
//! descriptions and packets (enhanced, simple and obsolete) are decoded; other blocks are
//! returned as bytes. Only the interfaces of the current section are kept, at most
//! [`MAX_INTERFACES`].

use crate::fault::Problem;
use crate::framing::{Frame, Step};
use crate::{ByteOrder, Interface, LinkType, Resolution, Timestamp};

/// Section header; a palindrome, the same in both byte orders.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// Interface description.
pub(crate) const INTERFACE: u32 = 1;
/// Obsolete packet.
pub(crate) const PACKET: u32 = 2;
/// Simple packet.
pub(crate) const SIMPLE_PACKET: u32 = 3;
/// Enhanced packet.
pub(crate) const ENHANCED_PACKET: u32 = 6;

/// Byte-order magic of a section, in its own byte order.
pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Type and length at the start of a block, length at its end.
const BLOCK_FRAME: u32 = 12;
/// Offset of the body of a block.
pub(crate) const BODY: usize = 8;
/// Offset of the packet in an enhanced or obsolete packet block.
pub(crate) const ENHANCED_DATA: usize = 28;
/// Offset of the packet in a simple packet block.
pub(crate) const SIMPLE_DATA: usize = 12;

/// Maximum length of a block in bytes (libpcap's limit), unless the packets of an
/// interface can be longer.
const MAX_BLOCK: u32 = 16 << 20;
/// Bytes for the options beside such a long packet.
const MAX_OPTIONS: u32 = 128 << 10;

/// Maximum number of interfaces of a section.
pub(crate) const MAX_INTERFACES: usize = 1 << 16;

pub(crate) const OPTION_END: u16 = 0;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// State of a pcapng file: byte order and interfaces of the current section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
    order: ByteOrder,
    /// Interfaces of the current section.
    pub(crate) interfaces: Vec<Interface>,
    max_block: u32,
}

impl Sections {
    /// State before the first section header.
    pub(crate) fn new() -> Sections {
        Sections {
            order: ByteOrder::Little,
            interfaces: Vec::new(),
            max_block: MAX_BLOCK,
        }
    }

    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    #[inline(always)]
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        if bytes.len() < BLOCK_FRAME as usize {
            return Ok(Step::Need(BLOCK_FRAME));
        }
        match self.enhanced_block_len(bytes) {
            Some(len) => self.packet(ENHANCED_PACKET, len, bytes),
            None => self.other(bytes),
        }
    }

    /// Packet at the start of `bytes`, if it is a complete, valid enhanced packet block.
    #[inline(always)]
    pub(crate) fn enhanced_packet(&self, bytes: &[u8]) -> Option<Frame> {
        if bytes.len() < BLOCK_FRAME as usize {
            return None;
        }
        let len = self.enhanced_block_len(bytes)?;
        match self.packet(ENHANCED_PACKET, len, bytes) {
            Ok(Step::Packet(frame)) => Some(frame),
            _ => None,
        }
    }

    /// Length of the enhanced packet block at the start of `bytes`, if it is complete and
    /// valid. `bytes` has at least [`BLOCK_FRAME`] bytes.
    #[inline(always)]
    fn enhanced_block_len(&self, bytes: &[u8]) -> Option<u32> {
        let order = self.order;
        let (kind, len) = (order.u32(bytes, 0), order.u32(bytes, 4));
        let is_valid = kind == ENHANCED_PACKET
            && len as usize <= bytes.len()
            && len >= ENHANCED_DATA as u32 + 4
            && len.is_multiple_of(4)
            && order.u32(bytes, len as usize - 4) == len;
        is_valid.then_some(len)
    }

    /// Steps over any block but a valid enhanced packet.
    #[cold]
    fn other(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        let kind = self.order.u32(bytes, 0);
        let order = match kind {
            SECTION => section_order(bytes)?,
            _ => self.order,
        };
        let length = order.u32(bytes, 4);
        if length < BLOCK_FRAME || !length.is_multiple_of(4) {
            return Err(Problem::BlockLength { length });
        }
        if length > self.max_block {
            let limit = self.max_block;
            return Err(Problem::BlockTooLong { length, limit });
        }
        let Some(block) = bytes.get(..length as usize) else {
            return Ok(Step::Need(length));
        };
        let trailer = order.u32(block, length as usize - 4);
        if trailer != length {
            return Err(Problem::BlockTrailer { length, trailer });
        }
        match kind {
            SECTION => self.open_section(order, block)?,
            INTERFACE => self.add_interface(block)?,
            PACKET | SIMPLE_PACKET | ENHANCED_PACKET => return self.packet(kind, length, block),
            _ => {}
        }
        Ok(Step::Block { len: length })
    }

    /// Decodes a complete packet block of `length` bytes, of one of the three types.
    #[inline(always)]
    fn packet(&self, kind: u32, length: u32, block: &[u8]) -> Result<Step, Problem> {
        let order = self.order;
        let data_at = match kind {
            SIMPLE_PACKET => SIMPLE_DATA,
            _ => ENHANCED_DATA,
        } as u32;
        if length < data_at + 4 {
            return Err(Problem::BlockTooShort { kind, length });
        }
        let interface = match kind {
            ENHANCED_PACKET => order.u32(block, BODY),
            PACKET => u32::from(order.u16(block, BODY)),
            _ => 0,
        };
        let Some(described) = self.interfaces.get(interface as usize) else {
            return Err(Problem::UnknownInterface {
                interface,
                described: self.interfaces.len() as u32,
            });
        };
        let (data_len, wire_len) = match kind {
            SIMPLE_PACKET => {
                let wire_len = order.u32(block, BODY);
                match described.snaplen {
                    0 => (wire_len, wire_len),
                    snaplen => (wire_len.min(snaplen), wire_len),
                }
            }
            _ => (order.u32(block, BODY + 12), order.u32(block, BODY + 16)),
        };
        if data_len > length - 4 - data_at {
            return Err(Problem::BlockTooShort { kind, length });
        }
        Ok(Step::Packet(Frame {
            len: length,
            data_at,
            data_len,
            wire_len,
            interface,
        }))
    }

    fn open_section(&mut self, order: ByteOrder, block: &[u8]) -> Result<(), Problem> {
        if block.len() < 28 {
            return Err(Problem::BlockTooShort {
                kind: SECTION,
                length: block.len() as u32,
            });
        }
        let (major, minor) = (order.u16(block, 12), order.u16(block, 14));
        if major != 1 {
            return Err(Problem::UnsupportedVersion { major, minor });
        }
        self.order = order;
        self.interfaces.clear();
        self.max_block = MAX_BLOCK;
        Ok(())
    }

    fn add_interface(&mut self, block: &[u8]) -> Result<(), Problem> {
        let order = self.order;
        let too_short = Problem::BlockTooShort {
            kind: INTERFACE,
            length: block.len() as u32,
        };
        if block.len() < 20 {
            return Err(too_short);
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(Problem::TooManyInterfaces {
                limit: MAX_INTERFACES as u32,
            });
        }
        let mut interface = Interface {
            link_type: LinkType(u32::from(order.u16(block, BODY))),
            snaplen: order.u32(block, BODY + 4),
            resolution: Resolution::MICROSECONDS,
            time_offset: 0,
            order,
        };
        for option in Options::new(order, &block[16..block.len() - 4]) {
            let (code, value) = option.ok_or(too_short)?;
            match (code, value) {
                (OPTION_TIME_RESOLUTION, &[byte]) => {
                    interface.resolution =
                        Resolution::decode(byte).ok_or(Problem::TimeResolution)?;
                }
                (OPTION_TIME_RESOLUTION, _) => return Err(Problem::TimeResolution),
                (OPTION_TIME_OFFSET, value) if value.len() == 8 => {
                    interface.time_offset = order.u64(value, 0) as i64;
                }
                (OPTION_TIME_OFFSET, _) => return Err(Problem::TimeResolution),
                _ => {}
            }
        }
        let packet = interface.link_type.max_captured();
        self.max_block = self
            .max_block
            .max(ENHANCED_DATA as u32 + packet + MAX_OPTIONS + 4);
        self.interfaces.push(interface);
        Ok(())
    }

    /// Time of capture of the packet of a block; `None` for a simple packet.
    pub(crate) fn timestamp(&self, block: &[u8], frame: &Frame) -> Option<Timestamp> {
        let interface = self.interfaces.get(frame.interface as usize)?;
        Some(Timestamp::from_units(self.units(block)?, interface))
    }

    /// The same in the units of the interface.
    pub(crate) fn units(&self, block: &[u8]) -> Option<u64> {
        if self.order.u32(block, 0) == SIMPLE_PACKET {
            return None;
        }
        let high = u64::from(self.order.u32(block, BODY + 4));
        let low = u64::from(self.order.u32(block, BODY + 8));
        Some(high << 32 | low)
    }

    /// The options of a packet block.
    pub(crate) fn packet_options<'a>(&self, block: &'a [u8], frame: &Frame) -> &'a [u8] {
        let end = frame.data_at as usize + (frame.data_len as usize).next_multiple_of(4);
        match self.order.u32(block, 0) {
            SIMPLE_PACKET => &[],
            _ => block.get(end..block.len() - 4).unwrap_or(&[]),
        }
    }

    /// Stated length of the block at the start of `bytes`; `None` if they are too short.
    pub(crate) fn block_len(&self, bytes: &[u8]) -> Option<u64> {
        let head = bytes.get(..BLOCK_FRAME as usize)?;
        let order = match self.order.u32(head, 0) {
            SECTION => section_order(head).ok()?,
            _ => self.order,
        };
        Some(u64::from(order.u32(head, 4)))
    }

    /// True if a block may start at `bytes`, for [`first_record`](crate::first_record).
    /// Its end may be beyond them.
    pub(crate) fn is_plausible(&self, bytes: &[u8]) -> bool {
        let order = self.order;
        let (kind, len) = (order.u32(bytes, 0), order.u32(bytes, 4));
        // Registered types are small numbers; those of local use have the upper bit set.
        let known = kind < 0x1000 || kind == SECTION || kind >= 0x8000_0000;
        if !known || len < BLOCK_FRAME || !len.is_multiple_of(4) || len > self.max_block {
            return false;
        }
        let trailer = bytes.get(len as usize - 4..len as usize);
        trailer.is_none_or(|trailer| order.u32(trailer, 0) == len)
    }
}

/// Byte order of a section header, by its byte-order magic.
fn section_order(bytes: &[u8]) -> Result<ByteOrder, Problem> {
    [ByteOrder::Little, ByteOrder::Big]
        .into_iter()
        .find(|order| order.u32(bytes, BODY) == BYTE_ORDER_MAGIC)
        .ok_or_else(|| Problem::ByteOrderMagic {
            magic: [bytes[8], bytes[9], bytes[10], bytes[11]],
        })
}

/// Iterator over the options of a block: code and value. Yields `None` once, at the end,
/// if an option reaches beyond the block.
pub(crate) struct Options<'a> {
    order: ByteOrder,
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    pub(crate) fn new(order: ByteOrder, rest: &'a [u8]) -> Options<'a> {
        Options { order, rest }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Option<(u16, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return None;
        }
        if rest.len() < 4 {
            return Some(None);
        }
        let (code, len) = (self.order.u16(rest, 0), self.order.u16(rest, 2));
        if code == OPTION_END {
            return None;
        }
        let len = usize::from(len);
        let Some(value) = rest.get(4..4 + len) else {
            return Some(None);
        };
        self.rest = rest.get(4 + len.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Some((code, value)))
    }
}
