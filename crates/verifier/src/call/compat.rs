//! Which helpers take which map types (`check_map_func_compatibility`).

use super::functions::*;
use crate::state::MapRef;
use crate::walk::Walk;
use crate::{Result, refuse};

/// Checks that a helper may take a map, from the map's side and from the helper's.
pub(super) fn check(walk: &mut Walk<'_>, map: Option<MapRef>, id: i32) -> Result<()> {
    let Some(map) = map else { return Ok(()) };
    let map_type = walk.env.maps[map].map_type();
    let by_map = match map_type {
        3 => id == TAIL_CALL,
        4 => matches!(
            id,
            PERF_EVENT_READ | PERF_EVENT_OUTPUT | SKB_OUTPUT | PERF_EVENT_READ_VALUE | XDP_OUTPUT
        ),
        27 => matches!(
            id,
            RINGBUF_OUTPUT
                | RINGBUF_RESERVE
                | RINGBUF_QUERY
                | RINGBUF_RESERVE_DYNPTR
                | RINGBUF_SUBMIT_DYNPTR
                | RINGBUF_DISCARD_DYNPTR
        ),
        31 => id == USER_RINGBUF_DRAIN,
        7 => id == GET_STACKID,
        8 => matches!(id, SKB_UNDER_CGROUP | CURRENT_TASK_UNDER_CGROUP),
        19 | 21 => id == GET_LOCAL_STORAGE,
        14 | 25 | 17 => matches!(id, REDIRECT_MAP | MAP_LOOKUP_ELEM),
        16 => id == REDIRECT_MAP,
        12 | 13 => id == MAP_LOOKUP_ELEM,
        15 => {
            matches!(
                id,
                SK_REDIRECT_MAP
                    | SOCK_MAP_UPDATE
                    | MSG_REDIRECT_MAP
                    | SK_SELECT_REUSEPORT
                    | MAP_LOOKUP_ELEM
            ) || may_update_sockmap(walk, id)
        }
        18 => {
            matches!(
                id,
                SK_REDIRECT_HASH
                    | SOCK_HASH_UPDATE
                    | MSG_REDIRECT_HASH
                    | SK_SELECT_REUSEPORT
                    | MAP_LOOKUP_ELEM
            ) || may_update_sockmap(walk, id)
        }
        20 => id == SK_SELECT_REUSEPORT,
        22 | 23 => matches!(id, MAP_PEEK_ELEM | MAP_POP_ELEM | MAP_PUSH_ELEM),
        24 => matches!(id, SK_STORAGE_GET | SK_STORAGE_DELETE | KPTR_XCHG),
        28 => matches!(id, INODE_STORAGE_GET | INODE_STORAGE_DELETE | KPTR_XCHG),
        29 => matches!(id, TASK_STORAGE_GET | TASK_STORAGE_DELETE | KPTR_XCHG),
        32 => matches!(id, CGRP_STORAGE_GET | CGRP_STORAGE_DELETE | KPTR_XCHG),
        30 => matches!(id, MAP_PEEK_ELEM | MAP_PUSH_ELEM),
        _ => true,
    };
    let takes: &[u32] = match id {
        TAIL_CALL => &[3],
        PERF_EVENT_READ | PERF_EVENT_OUTPUT | PERF_EVENT_READ_VALUE | SKB_OUTPUT | XDP_OUTPUT => {
            &[4]
        }
        RINGBUF_OUTPUT
        | RINGBUF_RESERVE
        | RINGBUF_QUERY
        | RINGBUF_RESERVE_DYNPTR
        | RINGBUF_SUBMIT_DYNPTR
        | RINGBUF_DISCARD_DYNPTR => &[27],
        USER_RINGBUF_DRAIN => &[31],
        GET_STACKID => &[7],
        CURRENT_TASK_UNDER_CGROUP | SKB_UNDER_CGROUP => &[8],
        REDIRECT_MAP => &[14, 25, 16, 17],
        SK_REDIRECT_MAP | MSG_REDIRECT_MAP | SOCK_MAP_UPDATE => &[15],
        SK_REDIRECT_HASH | MSG_REDIRECT_HASH | SOCK_HASH_UPDATE => &[18],
        GET_LOCAL_STORAGE => &[19, 21],
        SK_SELECT_REUSEPORT => &[20, 15, 18],
        MAP_POP_ELEM => &[22, 23],
        MAP_PEEK_ELEM | MAP_PUSH_ELEM => &[22, 23, 30],
        MAP_LOOKUP_PERCPU_ELEM => &[6, 5, 10],
        SK_STORAGE_GET | SK_STORAGE_DELETE => &[24],
        INODE_STORAGE_GET | INODE_STORAGE_DELETE => &[28],
        TASK_STORAGE_GET | TASK_STORAGE_DELETE => &[29],
        CGRP_STORAGE_GET | CGRP_STORAGE_DELETE => &[32],
        _ => &[],
    };
    if by_map && (takes.is_empty() || takes.contains(&map_type)) {
        return Ok(());
    }
    let name = name(id);
    Err(refuse!(
        walk,
        EINVAL,
        Map,
        "cannot pass map_type {map_type} into func {name}#{id}"
    ))
}

/// True if the program may change sockets in a map; says so in the log if not
/// (`may_update_sockmap`).
fn may_update_sockmap(walk: &mut Walk<'_>, id: i32) -> bool {
    if !matches!(id, MAP_UPDATE_ELEM | MAP_DELETE_ELEM) {
        return false;
    }
    let is_allowed = match walk.env.context.kind.number() {
        // BPF_TRACE_ITER
        26 => walk.env.context.attach == 28,
        // sock_ops
        13 => id == MAP_DELETE_ELEM,
        // socket_filter, sched_cls, sched_act, xdp, sk_reuseport, flow_dissector, sk_lookup
        1 | 3 | 4 | 6 | 21 | 22 | 30 => true,
        _ => false,
    };
    if !is_allowed {
        crate::verbose!(walk, "cannot update sockmap in this context\n");
    }
    is_allowed
}
