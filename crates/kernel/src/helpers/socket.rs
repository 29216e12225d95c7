//! Helpers about the socket and the cgroup of a packet. A packet's socket is one of the
//! process that runs the program, and so are those of the network.

use vm::network::SocketState;
use vm::{MemoryPort, RunContext, System};

use super::process::ancestor;
use super::socket_parts::{Found, found};
use crate::call::{Call, Return};

/// `u64 bpf_skb_cgroup_id(skb)`: the process's cgroup.
pub(super) fn skb_cgroup_id<M: MemoryPort>(Call(_, _, cx): Call<M>) -> Return<M> {
    Ok(cx.system.cgroup())
}

/// `u64 bpf_skb_ancestor_cgroup_id(skb, int level)`: 0 for a level below the cgroup.
pub(super) fn skb_ancestor_cgroup_id<M: MemoryPort>(
    Call([_, level, ..], _, cx): Call<M>,
) -> Return<M> {
    Ok(ancestor(cx, level))
}

/// `u64 bpf_sk_cgroup_id(void *sk)`: the cgroup of a whole socket; otherwise 0.
pub(super) fn sk_cgroup_id<M: MemoryPort>(Call([socket, ..], memory, cx): Call<M>) -> Return<M> {
    Ok(match has_cgroup(socket, memory, cx)? {
        true => cx.system.cgroup(),
        false => 0,
    })
}

/// `u64 bpf_sk_ancestor_cgroup_id(void *sk, int level)`: as [`skb_ancestor_cgroup_id`].
pub(super) fn sk_ancestor_cgroup_id<M: MemoryPort>(
    Call([socket, level, ..], memory, cx): Call<M>,
) -> Return<M> {
    Ok(match has_cgroup(socket, memory, cx)? {
        true => ancestor(cx, level),
        false => 0,
    })
}

/// True for whole sockets, and for connections that are asked for: their listener has one.
fn has_cgroup<M: MemoryPort>(
    socket: u64,
    memory: &M,
    cx: &RunContext<'_>,
) -> Result<bool, M::Fault> {
    Ok(match found(socket, memory, &cx.system.network.sockets)? {
        Found::Nothing => false,
        Found::OfPacket => true,
        Found::Numbered(_, socket) => socket.state != SocketState::TimeWait,
    })
}

/// `u64 bpf_get_socket_cookie(void *ctx_or_sk)`: the number of a socket; of that of a packet 1.
pub(super) fn get_socket_cookie<M: MemoryPort>(
    Call([pointer, ..], memory, cx): Call<M>,
) -> Return<M> {
    if memory.has_packet(pointer) {
        return Ok(1);
    }
    Ok(match found(pointer, memory, &cx.system.network.sockets)? {
        Found::Nothing => 0,
        Found::OfPacket => 1,
        Found::Numbered(_, socket) => socket.cookie,
    })
}

/// `u32 bpf_get_socket_uid(skb)`: the owner. The socket of a test run is root's.
pub(super) fn get_socket_uid<M: MemoryPort>(_: Call<M>) -> Return<M> {
    Ok(0)
}

/// `u64 bpf_get_netns_cookie(ctx)`: a number of the network namespace; of the first one
/// without a context.
pub(super) fn get_netns_cookie<M: MemoryPort>(Call([context, ..], _, cx): Call<M>) -> Return<M> {
    Ok(match context {
        0 => System::FIRST_NETNS_COOKIE,
        _ => cx.system.netns_cookie,
    })
}
