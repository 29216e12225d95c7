//! Ancillary loads: packet metadata that Linux makes available to filters.
//!
//! Source: net/core/filter.c of Linux 6.18, confirmed by the running kernel
//! (docs/classic-oracle.md). The plain interpreter uses these functions, and converted
//! programs are compared with them.

use isa::classic::Extension;
use packet::Packet;
use spec::Random;

/// Result of an ancillary load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ancillary {
    /// The value for the accumulator.
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
        Extension::Nlattr => packet::netlink_attribute(packet.data(), a, x),
        Extension::NlattrNest => packet::netlink_nested_attribute(packet.data(), a, x),
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
