//! Helpers that add and remove VLAN tags. The outermost tag is a field of the context, as a
//! device strips it, and the others are in the packet.

use spec::{Errno, Result};
use vm::{MemoryPort, PacketBuffer};

use super::skb::{get, protocol, set, set_protocol};
use crate::call::{Call, Return};
use crate::programs::LINK_HEADER;
use crate::programs::field::{VLAN_PRESENT, VLAN_PROTOCOL, VLAN_TCI};

/// Bytes of a tag.
const TAG: usize = 4;
/// Bytes of the two link-layer addresses.
const ADDRESSES: usize = 12;

const ETHERTYPE_8021Q: u16 = 0x8100;
const ETHERTYPE_8021AD: u16 = 0x88a8;

fn is_tag(protocol: u16) -> bool {
    matches!(protocol, ETHERTYPE_8021Q | ETHERTYPE_8021AD)
}

/// The protocol behind the tags of a packet, 0 if it ends before (`vlan_get_protocol`).
pub(super) fn inner_protocol(packet: &PacketBuffer, protocol: u16) -> u16 {
    /// Tags that are looked at, and one more.
    const MOST_TAGS: usize = 8;
    let mut at = match packet.state.measured_link_header {
        0 => LINK_HEADER,
        len => len.saturating_sub(TAG),
    };
    let mut protocol = protocol;
    let mut left = MOST_TAGS;
    while is_tag(protocol) {
        left -= 1;
        match packet.linear().get(at..at + TAG) {
            Some(&[_, _, high, low]) if left > 0 => {
                protocol = u16::from_be_bytes([high, low]);
            }
            _ => return 0,
        }
        at += TAG;
    }
    protocol
}

/// `long bpf_skb_vlan_push(skb, __be16 protocol, u16 tci)`: adds a tag.
pub(super) fn skb_vlan_push<M: MemoryPort>(
    Call([context, kind, tci, ..], memory, _): Call<M>,
) -> Return<M> {
    let kind = match (kind as u16).swap_bytes() {
        kind if is_tag(kind) => kind,
        _ => ETHERTYPE_8021Q,
    };
    if get(memory, context, VLAN_PRESENT)? != 0 {
        let present = (get(memory, context, VLAN_PROTOCOL)? as u16).swap_bytes();
        let old = get(memory, context, VLAN_TCI)? as u16;
        let result = memory.change_packet(context, |packet| {
            if packet.start() != packet.state.link_header || packet.linear_len() < ADDRESSES {
                return Err(Errno::EINVAL);
            }
            packet.insert(ADDRESSES, TAG);
            packet.state.link_header -= TAG;
            packet.state.network_header -= TAG;
            let tag = &mut packet.linear_mut()[ADDRESSES..ADDRESSES + TAG];
            tag[..2].copy_from_slice(&present.to_be_bytes());
            tag[2..].copy_from_slice(&old.to_be_bytes());
            Ok(())
        })?;
        if let Err(errno) = result {
            return Ok(errno.negated());
        }
        set_protocol(memory, context, present)?;
    }
    put_tag(memory, context, kind, tci as u16)?;
    measure(memory, context)
}

/// `long bpf_skb_vlan_pop(skb)`: removes the outermost tag, if there is one; the next one in
/// the packet becomes that of the context.
pub(super) fn skb_vlan_pop<M: MemoryPort>(Call([context, ..], memory, _): Call<M>) -> Return<M> {
    if get(memory, context, VLAN_PRESENT)? != 0 {
        set(memory, context, VLAN_PRESENT, 0)?;
        set(memory, context, VLAN_PROTOCOL, 0)?;
        set(memory, context, VLAN_TCI, 0)?;
    } else {
        if !is_tag(protocol(memory, context)?) {
            return measure(memory, context);
        }
        if let Err(errno) = take_tag(memory, context)? {
            return Ok(errno.negated());
        }
    }
    let kind = protocol(memory, context)?;
    if !is_tag(kind) {
        return measure(memory, context);
    }
    match take_tag(memory, context)? {
        Ok(tci) => {
            put_tag(memory, context, kind, tci)?;
            measure(memory, context)
        }
        Err(errno) => Ok(errno.negated()),
    }
}

/// Measures the link-layer header; 0.
fn measure<M: MemoryPort>(memory: &mut M, context: u64) -> Return<M> {
    memory.change_packet(context, PacketBuffer::measure_link_header)?;
    Ok(0)
}

/// Puts a tag into the context.
fn put_tag<M: MemoryPort>(
    memory: &mut M,
    context: u64,
    kind: u16,
    tci: u16,
) -> Result<(), M::Fault> {
    set(memory, context, VLAN_PRESENT, 1)?;
    set(memory, context, VLAN_PROTOCOL, kind.swap_bytes().into())?;
    set(memory, context, VLAN_TCI, tci.into())
}

/// Removes the first tag of the packet; returns its control information.
fn take_tag<M: MemoryPort>(memory: &mut M, context: u64) -> Result<Result<u16>, M::Fault> {
    let taken = memory.change_packet(context, remove_tag)?;
    Ok(match taken {
        Ok((tci, next)) => {
            set_protocol(memory, context, next)?;
            Ok(tci)
        }
        Err(errno) => Err(errno),
    })
}

/// Control information of the first tag, and the protocol behind it.
fn remove_tag(packet: &mut PacketBuffer) -> Result<(u16, u16)> {
    Errno::EINVAL.when(packet.start() != packet.state.link_header)?;
    let Some(&[_, _, tci_high, tci_low, high, low]) = packet.linear().get(ADDRESSES..ADDRESSES + 6)
    else {
        return Err(Errno::ENOMEM);
    };
    let behind = packet.linear().get(ADDRESSES + 6..ADDRESSES + 8);
    let next = encapsulated(u16::from_be_bytes([high, low]), behind);
    packet.remove(ADDRESSES, TAG);
    packet.state.link_header += TAG;
    let least = packet.start() + LINK_HEADER;
    packet.state.network_header = packet.state.network_header.max(least);
    Ok((u16::from_be_bytes([tci_high, tci_low]), next))
}

/// The protocol of a type field, which may be a length (`vlan_set_encap_proto`).
fn encapsulated(kind: u16, behind: Option<&[u8]>) -> u16 {
    const LEAST_TYPE: u16 = 0x0600;
    const NOVELL: u16 = 1;
    const LLC: u16 = 4;
    match behind {
        _ if kind >= LEAST_TYPE => kind,
        Some([0xff, 0xff]) => NOVELL,
        _ => LLC,
    }
}
