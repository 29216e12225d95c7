//! What ancillary loads give: values that Linux knows about a packet beside its
//! bytes.
//!
//! Facts from net/core/filter.c of Linux 6.18, confirmed by asking the kernel
//! (docs/classic-oracle.md). The converted program and the plain interpreter
//! both take their answers from here or are compared with it.

use isa::classic::Extension;
use packet::Packet;
use spec::Random;

/// Bytes of a netlink attribute's header: length, then type, in host order.
const ATTRIBUTE_HEADER: u32 = 4;
/// The bits of an attribute's type that are not flags.
const ATTRIBUTE_TYPE_MASK: u16 = 0x3fff;

/// What an extension does to the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ancillary {
    /// It loads this value.
    Value(u32),
    /// The packet has no device: the program ends with the accumulator.
    NoDevice,
}

/// Evaluates one extension for a packet with `a` and `x` in the registers.
pub fn load(
    extension: Extension,
    a: u32,
    x: u32,
    packet: &Packet<'_>,
    random: &mut dyn Random,
) -> Ancillary {
    let meta = packet.meta();
    Ancillary::Value(match extension {
        Extension::Protocol => u32::from(meta.protocol),
        Extension::PktType => u32::from(meta.pkt_type & 7),
        Extension::Ifindex => match meta.device {
            Some(device) => device.ifindex,
            None => return Ancillary::NoDevice,
        },
        Extension::Hatype => match meta.device {
            Some(device) => u32::from(device.hatype),
            None => return Ancillary::NoDevice,
        },
        Extension::Nlattr => netlink_attribute(packet.data(), a, x),
        Extension::NlattrNest => netlink_nested_attribute(packet.data(), a, x),
        Extension::Mark => meta.mark,
        Extension::Queue => u32::from(meta.queue),
        Extension::Rxhash => meta.hash,
        Extension::Cpu => meta.cpu,
        Extension::AluXorX => a ^ x,
        Extension::VlanTci => meta.vlan.map_or(0, |tag| u32::from(tag.tci)),
        Extension::VlanPresent => packet.stripped_tag().is_some().into(),
        Extension::PayOffset => packet::payload_offset(packet),
        Extension::Random => random.next_u32(),
        Extension::VlanTpid => meta.vlan.map_or(0, |tag| u32::from(tag.protocol)),
    })
}

/// Offset of the first netlink attribute of type `kind` at or after `from`;
/// 0 when there is none.
pub fn netlink_attribute(data: &[u8], from: u32, kind: u32) -> u32 {
    match attribute_header(data, from) {
        Some(_) => find_attribute(data, from, data.len() as u32, kind),
        None => 0,
    }
}

/// Offset of the first attribute of type `kind` inside the attribute at `at`;
/// 0 when there is none.
pub fn netlink_nested_attribute(data: &[u8], at: u32, kind: u32) -> u32 {
    match attribute_header(data, at) {
        // A length below that of a header leaves no room inside.
        Some((len, _)) if at as usize + usize::from(len) <= data.len() => find_attribute(
            data,
            at.saturating_add(ATTRIBUTE_HEADER),
            at.saturating_add(u32::from(len)),
            kind,
        ),
        _ => 0,
    }
}

/// Walks the attributes in `from..end`, each padded to four bytes.
fn find_attribute(data: &[u8], from: u32, end: u32, kind: u32) -> u32 {
    let mut at = from;
    while let Some((len, this)) = attribute_header(data, at) {
        let remaining = end.saturating_sub(at);
        if remaining < ATTRIBUTE_HEADER
            || u32::from(len) < ATTRIBUTE_HEADER
            || u32::from(len) > remaining
        {
            break;
        }
        if u32::from(this & ATTRIBUTE_TYPE_MASK) == kind {
            return at;
        }
        at = at.saturating_add(u32::from(len).next_multiple_of(4));
    }
    0
}

/// Length and type of the attribute at `at`, if its header lies inside.
fn attribute_header(data: &[u8], at: u32) -> Option<(u16, u16)> {
    let start = at as usize;
    let header = data.get(start..start.checked_add(ATTRIBUTE_HEADER as usize)?)?;
    Some((
        u16::from_le_bytes([header[0], header[1]]),
        u16::from_le_bytes([header[2], header[3]]),
    ))
}
