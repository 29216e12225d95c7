//! Helpers about the socket and the cgroup of a packet. A packet's socket is one of the
//! process that runs the program.

use vm::{MemoryPort, RunContext, System};

use super::process::ancestor;

/// `u64 bpf_skb_cgroup_id(skb)`: the process's cgroup.
pub(super) fn skb_cgroup_id<M: MemoryPort>(
    _: [u64; 5],
    _: &mut M,
    cx: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(cx.system.cgroup())
}

/// `u64 bpf_skb_ancestor_cgroup_id(skb, int level)`: 0 for a level below the cgroup.
pub(super) fn skb_ancestor_cgroup_id<M: MemoryPort>(
    [_, level, ..]: [u64; 5],
    _: &mut M,
    cx: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(ancestor(cx, level))
}

/// `u64 bpf_get_socket_cookie(skb)`: a number of the socket. There is one.
pub(super) fn get_socket_cookie<M: MemoryPort>(
    _: [u64; 5],
    _: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(1)
}

/// `u32 bpf_get_socket_uid(skb)`: the owner. The socket of a test run is root's.
pub(super) fn get_socket_uid<M: MemoryPort>(
    _: [u64; 5],
    _: &mut M,
    _: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(0)
}

/// `u64 bpf_get_netns_cookie(ctx)`: a number of the network namespace; of the first one
/// without a context.
pub(super) fn get_netns_cookie<M: MemoryPort>(
    [context, ..]: [u64; 5],
    _: &mut M,
    cx: &mut RunContext<'_>,
) -> Result<u64, M::Fault> {
    Ok(match context {
        0 => System::FIRST_NETNS_COOKIE,
        _ => cx.system.netns_cookie,
    })
}
