//! Helpers that change what the kernel knows of a socket buffer: hash, checksum, type,
//! timestamp.

use spec::{Errno, SplitMix};
use vm::{Checksum, MemoryPort};

use super::vlan;
use crate::call::{Call, Return, fail_if};
use crate::programs::field::{HASH, PACKET_TYPE, PROTOCOL, TSTAMP, TSTAMP_TYPE};

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Reads a field of the context.
pub(super) fn get<M: MemoryPort>(memory: &M, context: u64, at: usize) -> Result<u32, M::Fault> {
    let mut bytes = [0; 4];
    memory.read(memory.field(context, at), &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Writes a field of the context.
pub(super) fn set<M: MemoryPort>(
    memory: &mut M,
    context: u64,
    at: usize,
    value: u32,
) -> Result<(), M::Fault> {
    memory.write(memory.field(context, at), &value.to_le_bytes())
}

/// The protocol of the packet, in host order.
pub(super) fn protocol<M: MemoryPort>(memory: &M, context: u64) -> Result<u16, M::Fault> {
    Ok((get(memory, context, PROTOCOL)? as u16).swap_bytes())
}

/// Sets the protocol of the packet, given in host order.
pub(super) fn set_protocol<M: MemoryPort>(
    memory: &mut M,
    context: u64,
    protocol: u16,
) -> Result<(), M::Fault> {
    set(memory, context, PROTOCOL, protocol.swap_bytes().into())
}

/// Forgets the hash.
pub(super) fn clear_hash<M: MemoryPort>(memory: &mut M, context: u64) -> Result<(), M::Fault> {
    memory.change_packet(context, |packet| packet.state.has_hash = false)?;
    set(memory, context, HASH, 0)
}

/// `long bpf_set_hash_invalid(skb)`.
pub(super) fn set_hash_invalid<M: MemoryPort>(
    Call([context, ..], memory, _): Call<M>,
) -> Return<M> {
    clear_hash(memory, context)?;
    Ok(0)
}

/// `long bpf_set_hash(skb, u32 hash)`.
pub(super) fn set_hash<M: MemoryPort>(Call([context, hash, ..], memory, _): Call<M>) -> Return<M> {
    memory.change_packet(context, |packet| packet.state.has_hash = true)?;
    set(memory, context, HASH, hash as u32)?;
    Ok(0)
}

/// `u32 bpf_get_hash_recalc(skb)`: the hash, computed if there is none: equal for packets of
/// one flow (addresses, protocol, ports). Linux keys it at random, here it has a fixed key.
pub(super) fn get_hash_recalc<M: MemoryPort>(Call([context, ..], memory, _): Call<M>) -> Return<M> {
    let packet = memory.packet(context)?;
    if packet.state.has_hash {
        return Ok(get(memory, context, HASH)?.into());
    }
    let network = packet.up_to_end().get(packet.state.network_header..);
    let flow = flow(protocol(memory, context)?, network.unwrap_or(&[]));
    let hash = flow.chunks(8).fold(0, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        SplitMix::new(hash ^ u64::from_le_bytes(word)).next_u64()
    });
    let hash = (hash as u32).max(1);
    memory.change_packet(context, |packet| packet.state.has_hash = true)?;
    set(memory, context, HASH, hash)?;
    Ok(hash.into())
}

/// Flow key of a packet: protocols, addresses and ports.
fn flow(protocol: u16, network: &[u8]) -> Vec<u8> {
    let mut flow = protocol.to_be_bytes().to_vec();
    let (next, addresses, len) = match (protocol, network) {
        (ETHERTYPE_IPV4, [first, ..]) if network.len() >= 20 => {
            (network[9], &network[12..20], usize::from(first & 15) * 4)
        }
        (ETHERTYPE_IPV6, _) if network.len() >= 40 => (network[6], &network[8..40], 40),
        _ => return flow,
    };
    flow.push(next);
    flow.extend_from_slice(addresses);
    // TCP, UDP and SCTP begin with the ports.
    if matches!(next, 6 | 17 | 132) {
        flow.extend_from_slice(network.get(len..len + 4).unwrap_or(&[]));
    }
    flow
}

/// `s64 bpf_csum_update(skb, u32 sum)`: adds to the sum of the device; `-ENOTSUPP` if it has
/// none.
pub(super) fn csum_update<M: MemoryPort>(
    Call([context, sum, ..], memory, _): Call<M>,
) -> Return<M> {
    memory.change_packet(context, |packet| match &mut packet.state.checksum {
        Checksum::Complete(complete) => {
            *complete = super::csum_diff::add(*complete, sum as u32);
            u64::from(*complete)
        }
        Checksum::None | Checksum::Unnecessary(_) => Errno::ENOTSUPP.negated(),
    })
}

/// `long bpf_csum_level(skb, u64 level)`: queries (0), increments (1), decrements (2) or
/// resets (3) the number of layers whose checksums the device verified; a query answers
/// `-EACCES` if it verified none.
pub(super) fn csum_level<M: MemoryPort>(
    Call([context, level, ..], memory, _): Call<M>,
) -> Return<M> {
    /// Most layers (`SKB_MAX_CSUM_LEVEL`).
    const MOST: u8 = 3;
    memory.change_packet(context, |packet| {
        let checksum = &mut packet.state.checksum;
        match (level, *checksum) {
            (0, Checksum::Unnecessary(level)) => return level.into(),
            (0, _) => return Errno::EACCES.negated(),
            (1, Checksum::Unnecessary(level)) => {
                *checksum = Checksum::Unnecessary((level + 1).min(MOST));
            }
            (1, Checksum::None) => *checksum = Checksum::Unnecessary(0),
            (2, Checksum::Unnecessary(0)) | (3, Checksum::Unnecessary(_)) => {
                *checksum = Checksum::None;
            }
            (2, Checksum::Unnecessary(level)) => *checksum = Checksum::Unnecessary(level - 1),
            (1..=3, _) => {}
            _ => return Errno::EINVAL.negated(),
        }
        0
    })
}

/// `long bpf_skb_change_type(skb, u32 type)`: `-EINVAL` unless the old and the new type are
/// those of received packets.
pub(super) fn skb_change_type<M: MemoryPort>(
    Call([context, kind, ..], memory, _): Call<M>,
) -> Return<M> {
    /// `PACKET_OTHERHOST`, the last type of received packets.
    const LAST: u32 = 3;
    let kind = kind as u32;
    fail_if!(get(memory, context, PACKET_TYPE)? > LAST || kind > LAST => Errno::EINVAL);
    set(memory, context, PACKET_TYPE, kind)?;
    Ok(0)
}

/// `long bpf_skb_set_tstamp(skb, u64 time, u32 type)`: sets the time of delivery, of a clock;
/// `-EOPNOTSUPP` for other packets than IP.
pub(super) fn skb_set_tstamp<M: MemoryPort>(
    Call([context, time, kind, ..], memory, _): Call<M>,
) -> Return<M> {
    if !matches!(protocol(memory, context)?, ETHERTYPE_IPV4 | ETHERTYPE_IPV6) {
        return Ok(Errno::EOPNOTSUPP.negated());
    }
    match (kind as u32, time) {
        (0, _) => {}
        (1 | 2, 0) => return Ok(Errno::EINVAL.negated()),
        (1 | 2, _) => {}
        _ => return Ok(Errno::EINVAL.negated()),
    }
    memory.write(memory.field(context, TSTAMP), &time.to_le_bytes())?;
    memory.write(memory.field(context, TSTAMP_TYPE), &[kind as u8])?;
    Ok(0)
}

/// `long bpf_skb_pull_data(skb, u32 len)`: 0; `-ENOMEM` if the packet is shorter. All bytes
/// are linear.
pub(super) fn skb_pull_data<M: MemoryPort>(
    Call([context, len, ..], memory, _): Call<M>,
) -> Return<M> {
    Ok(match len as u32 as usize <= memory.packet(context)?.len() {
        true => 0,
        false => Errno::ENOMEM.negated(),
    })
}

/// `long bpf_skb_ecn_set_ce(skb)`: marks congestion; 1 if the packet has the mark then, 0 if
/// it is none of IP or its sender does not take part.
pub(super) fn skb_ecn_set_ce<M: MemoryPort>(Call([context, ..], memory, _): Call<M>) -> Return<M> {
    let protocol = protocol(memory, context)?;
    memory.change_packet(context, |packet| {
        let protocol = vlan::inner_protocol(packet, protocol);
        let Some(at) = packet.state.network_header.checked_sub(packet.start()) else {
            return 0;
        };
        let network = packet.linear_mut().get_mut(at..).unwrap_or(&mut []);
        match (protocol, network.len()) {
            (ETHERTYPE_IPV4, 20..) => mark_ipv4(network),
            (ETHERTYPE_IPV6, 40..) => mark_ipv6(network),
            _ => 0,
        }
    })
}

/// Marks congestion in the type of service, and adjusts the checksum.
fn mark_ipv4(header: &mut [u8]) -> u64 {
    match header[1] & 3 {
        0 => return 0,
        3 => return 1,
        _ => {}
    }
    let old = header[1];
    header[1] |= 3;
    // The checksum has the complement of the sum.
    let sum = u16::from_be_bytes([header[10], header[11]]);
    let (sum, carry) = sum.overflowing_sub(u16::from(header[1] - old));
    let sum = sum.wrapping_sub(carry.into());
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    1
}

fn mark_ipv6(header: &mut [u8]) -> u64 {
    match header[1] >> 4 & 3 {
        0 => 0,
        _ => {
            header[1] |= 0x30;
            1
        }
    }
}
