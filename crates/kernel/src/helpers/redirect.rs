//! Helpers that redirect packets: recorded as effects.

use spec::Errno;
use vm::network::DeviceQueue;
use vm::{ClonedPacket, MemoryPort, Redirect, RunContext, XDP};

use super::skb::get;
use crate::call::{Call, Return, fail_if};
use crate::programs::field::GSO_SIZE;
use crate::programs::{TC_ACT_REDIRECT, XDP_IFINDEX, XDP_QUEUE, XDP_REDIRECT};

/// The packet is received instead of sent (`BPF_F_INGRESS`).
const INGRESS: u64 = 1;

const XDP_ABORTED: u64 = 0;
const TC_ACT_SHOT: u64 = 2;

/// A receiver drops a packet, a queue drops one.
const NET_RX_DROP: u64 = 1;
const NET_XMIT_CN: u64 = 2;

/// Bytes of `struct bpf_redir_neigh`.
const NEIGHBOUR: u32 = 20;

/// `long bpf_redirect(u32 ifindex, u64 flags)`: for XDP, which takes no flags, the result is
/// `XDP_REDIRECT` or `XDP_ABORTED`; otherwise `TC_ACT_REDIRECT` or `TC_ACT_SHOT`.
pub(super) fn redirect<M: MemoryPort>(Call([index, flags, ..], memory, _): Call<M>) -> Return<M> {
    let is_xdp = memory.packet(memory.context())?.context() == XDP;
    match (is_xdp, flags) {
        (true, 1..) => return Ok(XDP_ABORTED),
        (false, flags) if flags & !INGRESS != 0 => return Ok(TC_ACT_SHOT),
        _ => {}
    }
    let index = index as u32;
    record(memory, Redirect::Interface { index, flags })?;
    Ok(match is_xdp {
        true => XDP_REDIRECT.into(),
        false => TC_ACT_REDIRECT.into(),
    })
}

/// `long bpf_redirect_neigh(u32 ifindex, struct bpf_redir_neigh *params, int size, u64 flags)`.
pub(super) fn redirect_neigh<M: MemoryPort>(
    Call([index, _, size, flags, _], memory, _): Call<M>,
) -> Return<M> {
    if flags != 0 || (1..NEIGHBOUR).contains(&(size as u32)) {
        return Ok(TC_ACT_SHOT);
    }
    let index = index as u32;
    record(memory, Redirect::Neighbour { index })?;
    Ok(TC_ACT_REDIRECT.into())
}

/// `long bpf_redirect_peer(u32 ifindex, u64 flags)`.
pub(super) fn redirect_peer<M: MemoryPort>(
    Call([index, flags, ..], memory, _): Call<M>,
) -> Return<M> {
    if flags != 0 {
        return Ok(TC_ACT_SHOT);
    }
    let index = index as u32;
    record(memory, Redirect::Peer { index })?;
    Ok(TC_ACT_REDIRECT.into())
}

/// `long bpf_redirect_map(map, u64 key, u64 flags)`: `XDP_REDIRECT`; if there is no target,
/// the lower two bits of the flags; `XDP_ABORTED` for unknown flags.
pub(super) fn redirect_map<M: MemoryPort>(
    Call([map, key, flags, ..], memory, cx): Call<M>,
) -> Return<M> {
    const BROADCAST: u64 = 8;
    const EXCLUDE_INGRESS: u64 = 16;
    const ACTION: u64 = 3;
    let known = match memory.map(map)?.kind.holds_devices() {
        true => ACTION | BROADCAST | EXCLUDE_INGRESS,
        false => ACTION,
    };
    if flags & !known != 0 {
        return Ok(XDP_ABORTED);
    }
    let key = key as u32;
    if let Some(cookie) = memory.map(map)?.operations().socket(&key.to_le_bytes()) {
        let is_delivered = receives(cookie, memory, cx)?;
        record(
            memory,
            Redirect::Socket {
                cookie,
                is_delivered,
            },
        )?;
        return Ok(XDP_REDIRECT.into());
    }
    let has_target = memory.lookup(map, cx.cpu(), &key.to_le_bytes())? != 0;
    if !has_target && flags & BROADCAST == 0 {
        memory.change_packet(memory.context(), |packet| packet.state.redirect = None)?;
        return Ok(flags & ACTION);
    }
    record(memory, Redirect::Map { key, flags })?;
    Ok(XDP_REDIRECT.into())
}

/// True if the AF_XDP socket of a cookie gets packets of the queue that this one came from.
fn receives<M: MemoryPort>(cookie: u64, memory: &M, cx: &RunContext<'_>) -> Result<bool, M::Fault> {
    let context = memory.context();
    let came_from = DeviceQueue {
        device: get(memory, context, XDP_IFINDEX)?,
        queue: get(memory, context, XDP_QUEUE)? as u16,
    };
    let socket = cx.system.network.sockets.xdp_by_cookie(cookie);
    Ok(socket.is_some_and(|socket| socket.receives_from(came_from)))
}

fn record<M: MemoryPort>(memory: &mut M, redirect: Redirect) -> Result<(), M::Fault> {
    memory.change_packet(memory.context(), |packet| {
        packet.state.redirect = Some(redirect);
    })
}

/// `long bpf_clone_redirect(skb, u32 ifindex, u64 flags)`: sends a copy of the packet, or has
/// an interface receive it. `-EINVAL` for unknown flags and interfaces; of an interface that
/// is down 2, or 1 for a receiver.
pub(super) fn clone_redirect<M: MemoryPort>(
    Call([context, index, flags, ..], memory, cx): Call<M>,
) -> Return<M> {
    fail_if!(flags & !INGRESS != 0 => Errno::EINVAL);
    fail_if!(get(memory, context, GSO_SIZE)? as u16 != 0 => Errno::EBADMSG);
    let index = index as u32;
    let Some(interface) = cx.system.network.device(index) else {
        return Ok(Errno::EINVAL.negated());
    };
    let is_ingress = flags & INGRESS != 0;
    let packet = memory.packet(context)?;
    if packet.state.link_header >= packet.state.network_header || packet.is_empty() {
        return Ok(Errno::ERANGE.negated());
    }
    match (interface.is_up, is_ingress) {
        (true, _) => {}
        (false, true) => return Ok(NET_RX_DROP),
        (false, false) => return Ok(NET_XMIT_CN),
    }
    memory.change_packet(context, |packet| {
        let bytes = packet.to_vec();
        packet.state.clones.push(ClonedPacket {
            bytes,
            interface: index,
            is_ingress,
        });
    })?;
    Ok(0)
}
