//! The pcapng format: sections of blocks, each block with its length at both
//! ends, so that what is not known can be passed over.
//!
//! A section has its own byte order and its own interfaces. Four kinds of block
//! matter here: the section header, the interface description, and packets in
//! their three forms (enhanced, simple, obsolete); all others are handed out as
//! they stand. What a file describes without end is bounded: interfaces are
//! those of the current section, and no more than [`MAX_INTERFACES`].

use crate::fault::Problem;
use crate::framing::{Frame, Step};
use crate::{ByteOrder, Interface, LinkType, Resolution, Timestamp};

/// Section header (the same both ways round).
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// Interface description.
pub(crate) const INTERFACE: u32 = 1;
/// Obsolete packet.
pub(crate) const PACKET: u32 = 2;
/// Simple packet.
pub(crate) const SIMPLE_PACKET: u32 = 3;
/// Enhanced packet.
pub(crate) const ENHANCED_PACKET: u32 = 6;

/// What a section's byte-order field holds in its own order.
pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Type and length at the start of a block, length at its end.
const BLOCK_FRAME: u32 = 12;
/// Where a block's own content starts.
pub(crate) const BODY: usize = 8;
/// Where the packet starts in an enhanced (or obsolete) packet block.
pub(crate) const ENHANCED_DATA: usize = 28;
/// Where the packet starts in a simple packet block.
pub(crate) const SIMPLE_DATA: usize = 12;

/// The longest block that is taken for sane (libpcap's limit too), unless the
/// packets of some interface can be longer.
const MAX_BLOCK: u32 = 16 << 20;
/// Room for options beside such a long packet.
const MAX_OPTIONS: u32 = 128 << 10;

/// Interfaces that a section may describe.
pub(crate) const MAX_INTERFACES: usize = 1 << 16;

const OPTION_END: u16 = 0;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// What the blocks so far have told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
    order: ByteOrder,
    /// Interfaces of the current section.
    pub(crate) interfaces: Vec<Interface>,
    max_block: u32,
}

impl Sections {
    /// Before the first section header.
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
        match self.sane_enhanced(bytes) {
            Some(len) => self.packet(ENHANCED_PACKET, len, bytes),
            None => self.other(bytes),
        }
    }

    /// The packet that `bytes` start with, if it is of the common kind.
    #[inline(always)]
    pub(crate) fn common_packet(&self, bytes: &[u8]) -> Option<Frame> {
        if bytes.len() < BLOCK_FRAME as usize {
            return None;
        }
        let len = self.sane_enhanced(bytes)?;
        match self.packet(ENHANCED_PACKET, len, bytes) {
            Ok(Step::Packet(frame)) => Some(frame),
            _ => None,
        }
    }

    /// The length of the whole and sane enhanced packet block that `bytes`, at
    /// least a block's frame, start with.
    #[inline(always)]
    fn sane_enhanced(&self, bytes: &[u8]) -> Option<u32> {
        let order = self.order;
        let (kind, len) = (order.u32(bytes, 0), order.u32(bytes, 4));
        let is_sane = kind == ENHANCED_PACKET
            && len as usize <= bytes.len()
            && len >= ENHANCED_DATA as u32 + 4
            && len.is_multiple_of(4)
            && order.u32(bytes, len as usize - 4) == len;
        is_sane.then_some(len)
    }

    /// Any block but a sane enhanced packet.
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

    /// A packet block of one of the three kinds, `length` bytes, all there.
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

    /// When the packet of a block was captured; a simple packet does not tell.
    pub(crate) fn timestamp(&self, block: &[u8], frame: &Frame) -> Option<Timestamp> {
        if self.order.u32(block, 0) == SIMPLE_PACKET {
            return None;
        }
        let high = u64::from(self.order.u32(block, BODY + 4));
        let low = u64::from(self.order.u32(block, BODY + 8));
        let interface = self.interfaces.get(frame.interface as usize)?;
        Some(Timestamp::from_units(high << 32 | low, interface))
    }

    /// Length of the block that starts `bytes`, if they show it.
    pub(crate) fn block_len(&self, bytes: &[u8]) -> Option<u64> {
        let head = bytes.get(..BLOCK_FRAME as usize)?;
        let order = match self.order.u32(head, 0) {
            SECTION => section_order(head).ok()?,
            _ => self.order,
        };
        Some(u64::from(order.u32(head, 4)))
    }

    /// True when `bytes` could start with a block: what
    /// [`first_record`](crate::first_record) looks for. Its end may lie beyond
    /// them.
    pub(crate) fn is_plausible(&self, bytes: &[u8]) -> bool {
        let order = self.order;
        let (kind, len) = (order.u32(bytes, 0), order.u32(bytes, 4));
        // Registered types are small numbers, or have the upper bit set for
        // local use.
        let known = kind < 0x1000 || kind == SECTION || kind >= 0x8000_0000;
        if !known || len < BLOCK_FRAME || !len.is_multiple_of(4) || len > self.max_block {
            return false;
        }
        let trailer = bytes.get(len as usize - 4..len as usize);
        trailer.is_none_or(|trailer| order.u32(trailer, 0) == len)
    }
}

/// Byte order that a section header states.
fn section_order(bytes: &[u8]) -> Result<ByteOrder, Problem> {
    [ByteOrder::Little, ByteOrder::Big]
        .into_iter()
        .find(|order| order.u32(bytes, BODY) == BYTE_ORDER_MAGIC)
        .ok_or_else(|| Problem::ByteOrderMagic {
            magic: [bytes[8], bytes[9], bytes[10], bytes[11]],
        })
}

/// The options of a block: code and value; `None` once, at the end, when they
/// reach beyond the block.
struct Options<'a> {
    order: ByteOrder,
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    fn new(order: ByteOrder, rest: &'a [u8]) -> Options<'a> {
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
