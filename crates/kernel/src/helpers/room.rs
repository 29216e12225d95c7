//! Helpers that add and remove bytes of a socket buffer.

use spec::{Errno, Result};
use vm::{Checksum, MemoryPort, PacketBuffer};

use super::skb::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, get, protocol, set, set_protocol};
use crate::call::{Call, Return, fail_if};
use crate::programs::field::{GSO_SEGS, GSO_SIZE};

/// Most bytes of a packet (`SKB_MAX_ALLOC`).
const MOST: usize = 16_384 - 320;

/// Most bytes of a packet that Linux allocates (`KMALLOC_MAX_SIZE`), without what it keeps behind it.
const MOST_AT_ONCE: u64 = (4 << 20) - 320;

/// Bytes of the headers of IPv4 and IPv6.
const IPV4: usize = 20;
const IPV6: usize = 40;

/// Flags of `bpf_skb_adjust_room` (`BPF_F_ADJ_ROOM_*`).
const FIXED_GSO: u64 = 1;
const ENCAP_IPV4: u64 = 1 << 1;
const ENCAP_IPV6: u64 = 1 << 2;
const ENCAP_GRE: u64 = 1 << 3;
const ENCAP_UDP: u64 = 1 << 4;
const NO_CSUM_RESET: u64 = 1 << 5;
const ENCAP_ETHERNET: u64 = 1 << 6;
const DECAP_IPV4: u64 = 1 << 7;
const DECAP_IPV6: u64 = 1 << 8;
/// The flags for removing bytes.
const SHRINKING: u64 = FIXED_GSO | DECAP_IPV4 | DECAP_IPV6 | NO_CSUM_RESET;
/// Bytes of an inner link-layer header, from this bit on.
const INNER_LINK_HEADER: u32 = 56;
const KNOWN: u64 = 0x1ff | 0xff << INNER_LINK_HEADER;

/// True for a packet that stands for several segments.
fn is_gso<M: MemoryPort>(memory: &M, context: u64) -> Result<bool, M::Fault> {
    Ok(get(memory, context, GSO_SIZE)? as u16 != 0)
}

/// `long bpf_skb_change_tail(skb, u32 len, u64 flags)`: sets the length; new bytes are zero.
/// `-EINVAL` for flags, more than 16,064 bytes, or fewer than the headers; `-ENOTSUPP` if
/// the packet is encapsulated.
pub(super) fn skb_change_tail<M: MemoryPort>(
    Call([context, len, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    let len = len as u32 as usize;
    let packet = memory.packet(context)?;
    let state = &packet.state;
    let offset = |header: usize| header.checked_sub(packet.start()).filter(|at| *at > 0);
    let headers = [
        state.transport_header.and_then(offset),
        offset(state.network_header),
    ];
    let least = headers.into_iter().flatten().next().unwrap_or(0);
    fail_if!(flags != 0 || len > MOST || len < least => Errno::EINVAL);
    fail_if!(state.is_encapsulated => Errno::ENOTSUPP);
    memory.change_packet(context, |packet| packet.set_linear_len(len))?;
    if is_gso(memory, context)? {
        set(memory, context, GSO_SIZE, 0)?;
        set(memory, context, GSO_SEGS, 0)?;
    }
    Ok(0)
}

/// `long bpf_skb_change_head(skb, u32 len, u64 flags)`: adds so many zeros in front, where
/// the link-layer header then begins. `-EINVAL` for flags and too long packets; `-ENOMEM` for more
/// than Linux allocates at once, where the length of packets that stand for several segments has no
/// other limit.
pub(super) fn skb_change_head<M: MemoryPort>(
    Call([context, len, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    let len = len as u32;
    let new = memory.packet(context)?.len() as u64 + u64::from(len);
    let is_long = new > MOST as u64 && !is_gso(memory, context)?;
    fail_if!(flags != 0 || len > i32::MAX as u32 || is_long => Errno::EINVAL);
    fail_if!(new > MOST_AT_ONCE => Errno::ENOMEM);
    memory.change_packet(context, |packet| {
        packet.insert(0, len as usize);
        packet.state.link_header = packet.start();
        packet.measure_link_header();
    })?;
    Ok(0)
}

/// `long bpf_skb_change_proto(skb, __be16 protocol, u64 flags)`: makes an IPv4 packet an IPv6
/// packet or the other way round, by 20 zeros behind the link-layer header or 20 bytes less
/// there.
pub(super) fn skb_change_proto<M: MemoryPort>(
    Call([context, to, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    const DIFFERENCE: usize = IPV6 - IPV4;
    fail_if!(flags != 0 => Errno::EINVAL);
    let (from, to) = (protocol(memory, context)?, (to as u16).swap_bytes());
    let is_longer = match (from, to) {
        (ETHERTYPE_IPV4, ETHERTYPE_IPV6) => true,
        (ETHERTYPE_IPV6, ETHERTYPE_IPV4) => false,
        _ => return Ok(Errno::ENOTSUPP.negated()),
    };
    let result = memory.change_packet(context, |packet| {
        let at = packet.link_header_len();
        match is_longer {
            true => {
                push(packet, at, DIFFERENCE);
                Ok(())
            }
            false => pop(packet, at, DIFFERENCE),
        }
    })?;
    if let Err(errno) = result {
        return Ok(errno.negated());
    }
    set_protocol(memory, context, to)?;
    skb::clear_hash(memory, context)?;
    Ok(0)
}

/// `long bpf_skb_adjust_room(skb, s32 difference, u32 mode, u64 flags)`: adds or removes bytes
/// behind the network header (mode 0) or the link-layer header (mode 1).
pub(super) fn skb_adjust_room<M: MemoryPort>(
    Call([context, difference, mode, flags, _], memory, _): Call<M>,
) -> Return<M> {
    const DECAP: u64 = DECAP_IPV4 | DECAP_IPV6;
    let difference = difference as i32;
    let count = difference.unsigned_abs() as usize;
    fail_if!(flags & !KNOWN != 0 => Errno::EINVAL);
    fail_if!(count > 0xfff => Errno::EFAULT);
    let mut protocol = protocol(memory, context)?;
    let header = match protocol {
        ETHERTYPE_IPV4 => IPV4,
        ETHERTYPE_IPV6 => IPV6,
        _ => return Ok(Errno::ENOTSUPP.negated()),
    };
    let packet = memory.packet(context)?;
    let at = match mode as u32 {
        0 => packet.link_header_len() + header,
        1 => packet.link_header_len(),
        _ => return Ok(Errno::ENOTSUPP.negated()),
    };
    let is_shorter = difference < 0;
    let least = match flags & DECAP {
        0 => header as u32,
        _ if !is_shorter => return Ok(Errno::EINVAL.negated()),
        DECAP_IPV4 => IPV4 as u32,
        DECAP_IPV6 => IPV6 as u32,
        _ => return Ok(Errno::EINVAL.negated()),
    };
    // The network header may be in front of the packet or behind it; lengths have 32 bits.
    let current = (packet.end() as u32).wrapping_sub(packet.state.network_header as u32);
    let is_wrong = match is_shorter {
        true => current
            .checked_sub(count as u32)
            .is_none_or(|rest| rest == 0 || rest < least),
        false => packet.len() + count > MOST && !is_gso(memory, context)?,
    };
    fail_if!(is_wrong => Errno::ENOTSUPP);
    fail_if!(is_shorter && flags & !SHRINKING != 0 => Errno::EINVAL);
    fail_if!(is_gso(memory, context)? => Errno::ENOTSUPP);
    let result = memory.change_packet(context, |packet| match is_shorter {
        true => shrink(packet, at, count, flags, &mut protocol),
        false => grow(packet, at, count, flags, &mut protocol),
    })?;
    if let Err(errno) = result {
        return Ok(errno.negated());
    }
    set_protocol(memory, context, protocol)?;
    if flags & NO_CSUM_RESET == 0 {
        memory.change_packet(context, |packet| {
            if let Checksum::Unnecessary(_) = packet.state.checksum {
                packet.state.checksum = Checksum::None;
            }
        })?;
    }
    Ok(0)
}

/// Adds bytes, perhaps for the headers of a tunnel.
fn grow(
    packet: &mut PacketBuffer,
    at: usize,
    count: usize,
    flags: u64,
    protocol: &mut u16,
) -> Result {
    let inner_link_header = (flags >> INNER_LINK_HEADER) as usize;
    let has = |flag| flags & flag != 0;
    let is_tunnel = has(ENCAP_IPV4 | ENCAP_IPV6);
    let link_header = packet.link_header_len();
    if is_tunnel {
        let is_wrong = has(ENCAP_IPV4) && has(ENCAP_IPV6)
            || has(ENCAP_GRE) && has(ENCAP_UDP)
            || has(ENCAP_ETHERNET) && inner_link_header < 14;
        Errno::EINVAL.when(is_wrong)?;
        Errno::EALREADY.when(packet.state.is_encapsulated)?;
        Errno::EINVAL.when(inner_link_header > count)?;
    }
    push(packet, at, count);
    if !is_tunnel {
        return Ok(());
    }
    packet.state.is_encapsulated = true;
    packet.state.network_header = packet.start() + link_header;
    if has(ENCAP_GRE | ENCAP_UDP) {
        let header = if has(ENCAP_IPV6) { IPV6 } else { IPV4 };
        packet.state.transport_header = Some(packet.state.network_header + header);
    }
    *protocol = if has(ENCAP_IPV6) {
        ETHERTYPE_IPV6
    } else {
        ETHERTYPE_IPV4
    };
    Ok(())
}

/// Removes bytes, perhaps the headers of a tunnel.
fn shrink(
    packet: &mut PacketBuffer,
    at: usize,
    count: usize,
    flags: u64,
    protocol: &mut u16,
) -> Result {
    pop(packet, at, count)?;
    match flags & (DECAP_IPV4 | DECAP_IPV6) {
        DECAP_IPV4 => *protocol = ETHERTYPE_IPV4,
        DECAP_IPV6 => *protocol = ETHERTYPE_IPV6,
        _ => {}
    }
    Ok(())
}

/// Adds zeros at an offset; the headers in front move. As in Linux, the packet may end
/// before.
fn push(packet: &mut PacketBuffer, at: usize, count: usize) {
    packet.insert(at, count);
    let state = &mut packet.state;
    let is_same = state.transport_header == Some(state.network_header);
    state.link_header -= count;
    state.network_header -= count;
    if is_same {
        state.transport_header = Some(state.network_header);
    }
}

/// Removes bytes at an offset; the headers in front move.
fn pop(packet: &mut PacketBuffer, at: usize, count: usize) -> Result {
    Errno::ENOMEM.when(at + count > packet.linear_len())?;
    packet.remove(at, count);
    let state = &mut packet.state;
    let is_same = state.transport_header == Some(state.network_header);
    state.link_header += count;
    state.network_header += count;
    if is_same {
        state.transport_header = Some(state.network_header);
    }
    Ok(())
}
