//! `bpf_lwt_push_encap`: headers of a tunnel in front of a packet that a lightweight tunnel
//! receives or sends.

use std::net::{IpAddr, Ipv6Addr};

use spec::{Errno, Result};
use vm::network::{Network, RouteKind, table};
use vm::{Checksum, MemoryPort, PacketBuffer, RunContext, System};

use super::bytes::Bytes;
use super::csum_diff::{add, fold, sum_of};
use super::skb::{self, ETHERTYPE_IPV4, ETHERTYPE_IPV6, get, protocol, set, set_protocol};
use crate::call::{Call, Return, fail_if};
use crate::lookups::{Flow, NoRoute, Tables, lookup_ipv6, source_ipv6_on};
use crate::programs::field::{CB, GSO_SIZE, IFINDEX, INGRESS_IFINDEX, MARK, WIRE_LEN};

/// Types of headers (`BPF_LWT_ENCAP_…`).
const SEG6: u32 = 0;
const SEG6_INLINE: u32 = 1;
const IP: u32 = 2;

/// Bytes of the headers of IPv4 without options, IPv6 and UDP.
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;

/// Protocols of the next header.
const IS_IPV6: u8 = 41;
const IS_ROUTING: u8 = 43;
const IS_UDP: u8 = 17;

/// Most bytes of IP headers (`LWT_BPF_MAX_HEADROOM`).
const MOST_IP: usize = 256;
/// Most bytes of a segment routing header: its length has 8 bits.
const MOST_SEGMENTS: usize = 256 * 8;

/// Room for the link-layer header of the device that sends (`LL_RESERVED_SPACE`).
const LINK_ROOM: usize = 16;

/// `long bpf_lwt_push_encap(skb, u32 type, void *header, u32 len)`: puts a header in front of
/// the packet: one of IP, perhaps with more behind it, or, where the packet is received, one
/// of segment routing (RFC 8754) with a header of IPv6 in front, or behind that of the packet.
/// `-EINVAL` for wrong headers and other types, `-EBADMSG` if the packet is not one of IPv6,
/// `-ENOTSUPP` for packets that stand for several segments. Behind a header of segment routing
/// the packet has another route: the error is that of its lookup.
pub(super) fn lwt_push_encap<M: MemoryPort>(
    Call([context, kind, header, len, _], memory, cx): Call<M>,
) -> Return<M> {
    let is_sent = memory.packet(context)?.state.is_sent;
    let len = len as u32 as usize;
    let most = match (kind as u32, is_sent) {
        (SEG6 | SEG6_INLINE, false) => MOST_SEGMENTS,
        (IP, _) => MOST_IP,
        _ => 0,
    };
    fail_if!(len > most => Errno::EINVAL);
    let header = Bytes::read(memory, header, len)?;
    let result = match kind as u32 {
        IP => push_ip(memory, context, header.get())?,
        kind => push_segments(memory, cx, context, kind == SEG6_INLINE, header.get())?,
    };
    Ok(match result {
        Ok(()) => 0,
        Err(errno) => errno.negated(),
    })
}

/// Puts a header of IP in front, with what follows it.
fn push_ip<M: MemoryPort>(memory: &mut M, context: u64, header: &[u8]) -> Result<Result, M::Fault> {
    let Some(ip) = IpHeader::of(header) else {
        return Ok(Err(Errno::EINVAL));
    };
    memory.change_packet(context, |packet| {
        let room = match packet.state.is_sent {
            true => LINK_ROOM,
            false => packet.state.measured_link_header,
        };
        packet.reserve_head(header.len() + room);
        packet.insert(0, header.len());
        packet.linear_mut()[..header.len()].copy_from_slice(header);
        packet.state.is_encapsulated = true;
        packet.state.network_header = packet.start();
        if ip.is_udp {
            packet.state.transport_header = Some(packet.start() + ip.len);
        }
        if !packet.state.is_sent {
            replace_in_checksum(packet, &[], header);
        }
        if ip.is_ipv4 && header[10..12] == [0, 0] {
            fill_checksum(packet.linear_mut());
        }
    })?;
    let ethertype = match ip.is_ipv4 {
        true => ETHERTYPE_IPV4,
        false => ETHERTYPE_IPV6,
    };
    set_protocol(memory, context, ethertype)?;
    skb::clear_hash(memory, context)?;
    // Segments of test runs are of no kind that a tunnel could carry.
    Ok(match get(memory, context, GSO_SIZE)? as u16 {
        0 => Ok(()),
        _ => Err(Errno::ENOTSUPP),
    })
}

/// Fields of an IP header.
struct IpHeader {
    is_ipv4: bool,
    len: usize,
    is_udp: bool,
}

impl IpHeader {
    /// `None` if the header is shorter than it says, or a header of UDP does not fit.
    fn of(bytes: &[u8]) -> Option<IpHeader> {
        if bytes.len() < IPV4 {
            return None;
        }
        let (is_ipv4, len, protocol) = match bytes[0] >> 4 {
            4 => (true, 4 * usize::from(bytes[0] & 15), bytes[9]),
            6 => (false, IPV6, bytes[6]),
            _ => return None,
        };
        let is_udp = protocol == IS_UDP;
        let least = if is_udp { len + UDP } else { len };
        (bytes.len() >= least).then_some(IpHeader {
            is_ipv4,
            len,
            is_udp,
        })
    }
}

/// Computes the checksum of a header of IPv4. As in Linux, that of a header of up to four
/// words is its first half word.
fn fill_checksum(header: &mut [u8]) {
    let words = usize::from(header[0] & 15);
    let sum = match words {
        0..=4 => u16::from_le_bytes([header[0], header[1]]),
        _ => !fold(sum_of(&header[..4 * words])),
    };
    header[10..12].copy_from_slice(&sum.to_le_bytes());
}

/// Changes the sum of the device by bytes that replace others.
fn replace_in_checksum(packet: &mut PacketBuffer, old: &[u8], new: &[u8]) {
    if let Checksum::Complete(sum) = &mut packet.state.checksum {
        *sum = add(add(*sum, sum_of(new)), !sum_of(old));
    }
}

/// Puts a header of segment routing behind that of the packet, or in front of it with one of
/// IPv6, and looks up the route to the next segment.
fn push_segments<M: MemoryPort>(
    memory: &mut M,
    cx: &RunContext<'_>,
    context: u64,
    is_inline: bool,
    header: &[u8],
) -> Result<Result, M::Fault> {
    if !is_segment_header(header) {
        return Ok(Err(Errno::EINVAL));
    }
    let is_ipv6 = protocol(memory, context)? == ETHERTYPE_IPV6;
    let network = &cx.system.network;
    let pushed = match (is_inline, is_ipv6) {
        (true, false) => return Ok(Err(Errno::EBADMSG)),
        (true, true) => memory.change_packet(context, |packet| push_inline(packet, header))?,
        (false, _) => memory.change_packet(context, |packet| {
            push_outer(packet, header, is_ipv6, network)
        })?,
    };
    if !is_inline && !is_ipv6 {
        clear_control_block(memory, context)?;
    }
    if let Err(errno) = pushed {
        return Ok(Err(errno));
    }
    let (input, mark) = (get(memory, context, IFINDEX)?, get(memory, context, MARK)?);
    let (result, is_shared) = memory.change_packet(context, |packet| {
        packet.state.transport_header = Some(packet.start() + IPV6);
        route(network, packet, input, mark)
    })?;
    if is_shared {
        // The control block of IPv6 says so, where the third of the program's words is.
        const IS_MULTIPATH: u32 = 0x400;
        let word = get(memory, context, CB + 8)?;
        set(memory, context, CB + 8, word | IS_MULTIPATH)?;
    }
    Ok(result)
}

/// True for a header of segment routing (`seg6_validate_srh`).
fn is_segment_header(bytes: &[u8]) -> bool {
    const ROUTING_TYPE: u8 = 4;
    let &[_, len, kind, left, first, ..] = bytes else {
        return false;
    };
    let last = usize::from(first) + 1;
    let is_wrong = kind != ROUTING_TYPE
        || (usize::from(len) + 1) * 8 != bytes.len()
        || left > first
        || last > usize::from(len) / 2;
    if is_wrong {
        return false;
    }
    let Some(mut options) = bytes.get(8 + 16 * last..) else {
        return false;
    };
    while let [_, rest @ ..] = options {
        let [len, values @ ..] = rest else {
            return false;
        };
        match values.get(usize::from(*len)..) {
            Some(behind) => options = behind,
            None => return false,
        }
    }
    true
}

/// The address of a segment in a header of segment routing.
fn segment(header: &[u8], index: u8) -> &[u8] {
    let at = 8 + 16 * usize::from(index);
    &header[at..at + 16]
}

/// Makes room for headers in front of the packet, whose first bytes move there.
fn push(packet: &mut PacketBuffer, moved: usize, count: usize) {
    packet.reserve_head(count + packet.state.measured_link_header);
    packet.insert(moved, count);
    packet.state.network_header = packet.start();
    packet.state.link_header = packet.start() - packet.state.measured_link_header;
}

fn push_inline(packet: &mut PacketBuffer, header: &[u8]) -> Result {
    Errno::EINVAL.when(packet.linear_len() < IPV6)?;
    let old = packet.linear()[..IPV6].to_vec();
    push(packet, IPV6, header.len());
    let (ip, behind) = packet.linear_mut().split_at_mut(IPV6);
    let routing = &mut behind[..header.len()];
    routing.copy_from_slice(header);
    routing[0] = ip[6];
    ip[6] = IS_ROUTING;
    routing[8..24].copy_from_slice(&ip[24..40]);
    ip[24..40].copy_from_slice(segment(routing, routing[4]));
    seal(packet, &old, header.len())
}

fn push_outer(
    packet: &mut PacketBuffer,
    header: &[u8],
    is_ipv6: bool,
    network: &Network,
) -> Result {
    /// Hops of packets that say none (`IPV6_DEFAULT_HOPLIMIT`).
    const HOPS: u8 = 64;
    let mut ip = [0; IPV6];
    ip[0] = 0x60;
    ip[7] = HOPS;
    if let Some(inner) = packet.linear().get(..IPV6).filter(|_| is_ipv6) {
        ip[..4].copy_from_slice(&inner[..4]);
        ip[0] = 0x60 | inner[0] & 15;
        ip[7] = inner[7];
    }
    ip[6] = IS_ROUTING;
    ip[24..40].copy_from_slice(segment(header, header[4]));
    let mut destination = [0; 16];
    destination.copy_from_slice(&ip[24..40]);
    let device = network.device(packet.state.route_device.unwrap_or(System::LOOPBACK));
    let source = device.and_then(|device| source_ipv6_on(network, device, destination.into()));
    ip[8..24].copy_from_slice(&source.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
    push(packet, 0, IPV6 + header.len());
    packet.state.is_encapsulated = true;
    let front = packet.linear_mut();
    front[..IPV6].copy_from_slice(&ip);
    let routing = &mut front[IPV6..IPV6 + header.len()];
    routing.copy_from_slice(header);
    routing[0] = IS_IPV6;
    seal(packet, &[], header.len())
}

/// Sets the length in the header of IPv6 in front of one of segment routing of so many bytes,
/// which together replace others. `-EINVAL` if the header is to be signed and has no room for
/// it, `-ENOENT` if it has: no key is known.
fn seal(packet: &mut PacketBuffer, old: &[u8], routing: usize) -> Result {
    const IS_SIGNED: u8 = 8;
    const SIGNATURE: [u8; 2] = [5, 38];
    let header = &packet.linear()[IPV6..IPV6 + routing];
    if header[5] & IS_SIGNED != 0 {
        let has_room = usize::from(header[1]) >= (usize::from(header[4]) + 1) * 2 + 5;
        let is_last = has_room && header[routing - 40..][..2] == SIGNATURE;
        return Err(match is_last {
            true => Errno::ENOENT,
            false => Errno::EINVAL,
        });
    }
    let len = (packet.len() - IPV6) as u16;
    packet.linear_mut()[4..6].copy_from_slice(&len.to_be_bytes());
    let new = packet.linear()[..IPV6 + routing].to_vec();
    replace_in_checksum(packet, old, &new);
    Ok(())
}

/// The program's words after the control block of IPv6 took their place: all
/// but the last are zero, and the device that received the packet is where its length was.
fn clear_control_block<M: MemoryPort>(memory: &mut M, context: u64) -> Result<(), M::Fault> {
    let input = get(memory, context, INGRESS_IFINDEX)?;
    for word in 0..4 {
        set(memory, context, CB + 4 * word, 0)?;
    }
    set(memory, context, WIRE_LEN, input)
}

/// Looks up the route of a packet that came from a device, which gets it; true if the route
/// has several next hops.
fn route(network: &Network, packet: &mut PacketBuffer, input: u32, mark: u32) -> (Result, bool) {
    let ip = &packet.linear()[..IPV6];
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&ip[at..at + 16]);
        IpAddr::from(octets)
    };
    let flow = Flow {
        input,
        output: 0,
        vrf_device: input,
        mark,
        tos: ip[0] << 4 | ip[1] >> 4,
        protocol: ip[6],
        has_source: true,
        source: address(8),
        destination: address(24),
        source_port: 0,
        destination_port: 0,
        flow_label: u32::from_be_bytes([0, ip[1] & 15, ip[2], ip[3]]),
        is_bound: is_of_link(&ip[24..40]),
    };
    let found = match lookup_ipv6(network, &flow, Tables::ByRules) {
        // It ends the lookup in its table only.
        Ok(found) if found.route.kind == RouteKind::Throw => {
            lookup_ipv6(network, &flow, Tables::Only(table::MAIN))
        }
        answer => answer,
    };
    let is_shared = (found.as_ref()).is_ok_and(|found| found.route.next_hops.len() > 1);
    let device = found.as_ref().ok().and_then(|found| found.hop);
    let device = device.map_or(System::LOOPBACK, |hop| hop.device);
    let result = match found.map(|found| found.route.kind) {
        // The host receives no packets here.
        Ok(RouteKind::Unicast | RouteKind::Multicast) if device != System::LOOPBACK => Ok(()),
        Ok(RouteKind::Throw) | Err(NoRoute::NoneMatches) => Err(Errno::ENETUNREACH),
        Ok(_) | Err(NoRoute::Blackhole | NoRoute::BlackholeRule) => Err(Errno::EINVAL),
        Err(NoRoute::Unreachable) => Err(Errno::EHOSTUNREACH),
        Err(NoRoute::Prohibited | NoRoute::ProhibitRule) => Err(Errno::EACCES),
    };
    packet.state.route_device = Some(match result {
        Ok(()) => device,
        Err(_) => System::LOOPBACK,
    });
    (result, is_shared)
}

/// True for addresses of groups, links and the host, which belong to one device.
fn is_of_link(address: &[u8]) -> bool {
    let host = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    address[0] == 0xff || address[0] == 0xfe && address[1] & 0xc0 == 0x80 || *address == host
}
