//! Helpers that say what a socket is: its pointer as one of another type, or null.

use vm::network::{NetSocket, SocketPart, SocketProtocol, SocketRef, SocketState, Sockets};
use vm::{MemoryPort, RunContext};

use super::socket_lookup::listener_of;
use crate::call::{Call, Return};

/// Object behind a pointer to a socket.
pub(super) enum Found<'s> {
    /// Nothing: it is null.
    Nothing,
    /// The socket of the packet, of no protocol.
    OfPacket,
    /// A socket of the network, with its number.
    Numbered(usize, &'s NetSocket),
}

/// The socket that a pointer refers to.
pub(super) fn found<'s, M: MemoryPort>(
    pointer: u64,
    memory: &M,
    sockets: &'s Sockets,
) -> Result<Found<'s>, M::Fault> {
    if pointer == 0 {
        return Ok(Found::Nothing);
    }
    Ok(match memory.socket(sockets, pointer)? {
        SocketRef::OfPacket => Found::OfPacket,
        SocketRef::Numbered(number) => Found::Numbered(number, &sockets.list()[number]),
    })
}

/// The pointer to a structure of the socket of a number.
pub(super) fn pointer<M: MemoryPort>(
    number: usize,
    part: SocketPart,
    memory: &M,
    sockets: &Sockets,
) -> u64 {
    Sockets::pointer(memory.sockets(sockets), number, part)
}

/// The pointer to the socket that a map of sockets holds under a key; 0 if it holds none.
pub(super) fn in_map<M: MemoryPort>(
    map: u64,
    key: &[u8],
    memory: &M,
    cx: &RunContext<'_>,
) -> Return<M> {
    let sockets = &cx.system.network.sockets;
    let cookie = memory.map(map)?.operations().socket(key);
    let number = cookie.and_then(|cookie| sockets.by_cookie(cookie));
    Ok(number.map_or(0, |number| {
        pointer(number, SocketPart::Socket, memory, sockets)
    }))
}

/// `struct bpf_sock *bpf_sk_fullsock(struct bpf_sock *sk)`: the socket, if it is a whole one.
pub(super) fn sk_fullsock<M: MemoryPort>(Call([socket, ..], memory, cx): Call<M>) -> Return<M> {
    let sockets = &cx.system.network.sockets;
    Ok(match found(socket, memory, sockets)? {
        Found::Nothing => 0,
        Found::OfPacket => socket,
        Found::Numbered(number, found) => match found.is_whole() {
            true => pointer(number, SocketPart::Socket, memory, sockets),
            false => 0,
        },
    })
}

/// `struct bpf_tcp_sock *bpf_tcp_sock(struct bpf_sock *sk)`: the figures of a whole TCP socket.
pub(super) fn tcp_sock<M: MemoryPort>(Call([socket, ..], memory, cx): Call<M>) -> Return<M> {
    part_if(socket, SocketPart::Tcp, memory, cx, is_tcp)
}

/// `struct bpf_sock *bpf_get_listener_sock(struct bpf_sock *sk)`: the socket that waits for
/// connections, for itself and for a connection that it is asked for.
pub(super) fn get_listener_sock<M: MemoryPort>(
    Call([socket, ..], memory, cx): Call<M>,
) -> Return<M> {
    let sockets = &cx.system.network.sockets;
    let Found::Numbered(number, found) = found(socket, memory, sockets)? else {
        return Ok(0);
    };
    let listener = match found.state {
        SocketState::Listen => Some(number),
        SocketState::NewSynRecv => listener_of(sockets.list(), found),
        _ => None,
    };
    Ok(listener.map_or(0, |number| {
        pointer(number, SocketPart::Socket, memory, sockets)
    }))
}

/// `struct tcp6_sock *bpf_skc_to_tcp6_sock(void *sk)`: a whole TCP socket of IPv6.
pub(super) fn skc_to_tcp6_sock<M: MemoryPort>(
    Call([socket, ..], memory, cx): Call<M>,
) -> Return<M> {
    let fits = |socket: &NetSocket| is_tcp(socket) && socket.is_ipv6();
    part_if(socket, SocketPart::Kernel, memory, cx, fits)
}

/// `struct tcp_sock *bpf_skc_to_tcp_sock(void *sk)`: a whole TCP socket.
pub(super) fn skc_to_tcp_sock<M: MemoryPort>(Call([socket, ..], memory, cx): Call<M>) -> Return<M> {
    part_if(socket, SocketPart::Kernel, memory, cx, is_tcp)
}

/// `struct tcp_timewait_sock *bpf_skc_to_tcp_timewait_sock(void *sk)`: what is left of a
/// connection.
pub(super) fn skc_to_tcp_timewait_sock<M: MemoryPort>(
    Call([socket, ..], memory, cx): Call<M>,
) -> Return<M> {
    let fits = |socket: &NetSocket| socket.state == SocketState::TimeWait;
    part_if(socket, SocketPart::Kernel, memory, cx, fits)
}

/// `struct tcp_request_sock *bpf_skc_to_tcp_request_sock(void *sk)`: a connection that is asked
/// for.
pub(super) fn skc_to_tcp_request_sock<M: MemoryPort>(
    Call([socket, ..], memory, cx): Call<M>,
) -> Return<M> {
    let fits = |socket: &NetSocket| socket.state == SocketState::NewSynRecv;
    part_if(socket, SocketPart::Kernel, memory, cx, fits)
}

/// `struct udp6_sock *bpf_skc_to_udp6_sock(void *sk)`: a UDP socket of IPv6.
pub(super) fn skc_to_udp6_sock<M: MemoryPort>(
    Call([socket, ..], memory, cx): Call<M>,
) -> Return<M> {
    let fits = |socket: &NetSocket| socket.protocol == SocketProtocol::Udp && socket.is_ipv6();
    part_if(socket, SocketPart::Kernel, memory, cx, fits)
}

/// `struct unix_sock *bpf_skc_to_unix_sock(void *sk)`: null, no socket of the network is a Unix
/// socket.
pub(super) fn skc_to_unix_sock<M: MemoryPort>(
    Call([socket, ..], memory, cx): Call<M>,
) -> Return<M> {
    part_if(socket, SocketPart::Kernel, memory, cx, |_| false)
}

/// `struct mptcp_sock *bpf_skc_to_mptcp_sock(void *sk)`: null, no connection has several paths.
pub(super) fn skc_to_mptcp_sock<M: MemoryPort>(
    Call([socket, ..], memory, cx): Call<M>,
) -> Return<M> {
    part_if(socket, SocketPart::Kernel, memory, cx, |_| false)
}

fn is_tcp(socket: &NetSocket) -> bool {
    socket.is_whole() && socket.protocol == SocketProtocol::Tcp
}

/// The pointer to a structure of a socket of the network that fits; otherwise 0.
fn part_if<M: MemoryPort>(
    socket: u64,
    part: SocketPart,
    memory: &M,
    cx: &RunContext<'_>,
    fits: impl Fn(&NetSocket) -> bool,
) -> Return<M> {
    let sockets = &cx.system.network.sockets;
    Ok(match found(socket, memory, sockets)? {
        Found::Numbered(number, found) if fits(found) => pointer(number, part, memory, sockets),
        Found::Numbered(..) | Found::Nothing | Found::OfPacket => 0,
    })
}
