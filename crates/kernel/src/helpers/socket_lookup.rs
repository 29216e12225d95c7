//! Helpers that find sockets of the network by addresses and ports
//! (`__bpf_sk_lookup` of `net/core/filter.c`).

use std::net::{IpAddr, SocketAddr};

use vm::network::{NetSocket, SocketPart, SocketProtocol, SocketState, Sockets};
use vm::{MemoryPort, XDP};

use super::bytes::Bytes;
use crate::call::{Call, Return};
use crate::lookups::SocketQuery;
use crate::programs::{XDP_IFINDEX, field::IFINDEX};

/// Bytes of the members of `struct bpf_sock_tuple`, for addresses of IPv4 and IPv6.
const IPV4_TUPLE: usize = 12;
const IPV6_TUPLE: usize = 36;

/// `struct bpf_sock *bpf_sk_lookup_tcp(ctx, struct bpf_sock_tuple *tuple, u32 size, u64 netns,
/// u64 flags)`: the TCP socket that a packet between these ends is for; of a connection that is
/// asked for the socket that waits for it. Null for other sizes than those of addresses, for
/// flags and for namespaces that there are not. The namespace is a `u32` for programs of XDP.
pub(super) fn sk_lookup_tcp<M: MemoryPort>(call: Call<M>) -> Return<M> {
    lookup(SocketProtocol::Tcp, call, true)
}

/// `struct bpf_sock *bpf_sk_lookup_udp(…)`: as [`sk_lookup_tcp`], for UDP.
pub(super) fn sk_lookup_udp<M: MemoryPort>(call: Call<M>) -> Return<M> {
    lookup(SocketProtocol::Udp, call, true)
}

/// `struct bpf_sock *bpf_skc_lookup_tcp(…)`: as [`sk_lookup_tcp`], with connections that are asked
/// for and what is left of old ones.
pub(super) fn skc_lookup_tcp<M: MemoryPort>(call: Call<M>) -> Return<M> {
    lookup(SocketProtocol::Tcp, call, false)
}

/// `long bpf_sk_release(struct bpf_sock *sock)`: 0. Sockets stay where they are.
pub(super) fn sk_release<M: MemoryPort>(Call([socket, ..], memory, cx): Call<M>) -> Return<M> {
    if socket != 0 {
        memory.socket(&cx.system.network.sockets, socket)?;
    }
    Ok(0)
}

fn lookup<M: MemoryPort>(
    protocol: SocketProtocol,
    Call([context, tuple, len, namespace, flags], memory, cx): Call<M>,
    is_whole: bool,
) -> Return<M> {
    let len = len as u32 as usize;
    let tuple = Bytes::read(memory, tuple, len)?;
    let Some([source, destination]) = ends(tuple.get()) else {
        return Ok(0);
    };
    // Programs of XDP give a number of 32 bits.
    let namespace = match memory.packet(context)?.context() == XDP {
        true => namespace & 0xffff_ffff,
        false => namespace,
    };
    let namespace = match namespace as i32 {
        ..0 => None,
        _ if i32::try_from(namespace).is_err() => return Ok(0),
        id => Some(id as u32),
    };
    if flags != 0 {
        return Ok(0);
    }
    let network = &cx.system.network;
    let device = device(memory, context)?;
    let is_in_vrf = |device: &vm::network::NetDevice| device.vrf_table.is_some();
    let query = SocketQuery {
        protocol,
        namespace,
        source,
        destination,
        device,
        vrf_device: match network.device(device).is_some_and(is_in_vrf) {
            true => device,
            false => 0,
        },
        cpu: cx.cpu(),
    };
    let list = network.sockets.list();
    let found = query.find(list);
    let found = match is_whole {
        true => found.and_then(|number| whole(list, number)),
        false => found,
    };
    let start = memory.sockets(&network.sockets);
    Ok(found.map_or(0, |number| {
        Sockets::pointer(start, number, SocketPart::Socket)
    }))
}

/// The whole socket of one that was found.
fn whole(list: &[NetSocket], number: usize) -> Option<usize> {
    match list[number].state {
        SocketState::NewSynRecv => listener_of(list, &list[number]),
        SocketState::TimeWait => None,
        _ => Some(number),
    }
}

/// The socket that waits for the connection which a socket stands for.
pub(super) fn listener_of(list: &[NetSocket], socket: &NetSocket) -> Option<usize> {
    let query = SocketQuery {
        protocol: socket.protocol,
        namespace: socket.namespace,
        source: socket.remote,
        destination: socket.local,
        device: socket.device,
        vrf_device: 0,
        cpu: 0,
    };
    query.find_listener(list)
}

/// The ends of a `struct bpf_sock_tuple`: source, destination. `None` for other lengths.
fn ends(tuple: &[u8]) -> Option<[SocketAddr; 2]> {
    let address = |bytes: &[u8]| match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    let len = match tuple.len() {
        IPV4_TUPLE => 4,
        IPV6_TUPLE => 16,
        _ => return None,
    };
    let (source, rest) = tuple.split_at(len);
    let (destination, ports) = rest.split_at(len);
    let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    Some([
        SocketAddr::new(address(source)?, port(0)),
        SocketAddr::new(address(destination)?, port(2)),
    ])
}

/// Index of the device that the packet of a context comes from.
fn device<M: MemoryPort>(memory: &M, context: u64) -> Result<u32, M::Fault> {
    let is_xdp = memory.packet(context)?.context() == XDP;
    let field = if is_xdp { XDP_IFINDEX } else { IFINDEX };
    super::skb::get(memory, context, field)
}
