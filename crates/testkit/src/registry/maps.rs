//! Map kinds: which helpers take them (`check_map_func_compatibility`), which
//! programs that sleep use them (`check_map_prog_compatibility`), whose values may
//! be addressed directly, which special fields values may have (`map_check_btf`).
//!
//! Read from the source of Linux 6.18. The comparison of the registry with the running
//! kernel does not ask about kinds of maps: only the verdicts of whole programs test this
//! table.

use std::collections::{BTreeMap, BTreeSet};

use spec::helpers;
use spec::maps::MapKind;
use spec::registry::MapTraits;

/// Helpers that take kinds of maps, and no other kinds: those of the second half of
/// the check, from the side of the helper.
const BY_HELPER: &[(&[&str], &[MapKind])] = &[
    (&["tail_call"], &[MapKind::ProgArray]),
    (
        &[
            "perf_event_read",
            "perf_event_output",
            "perf_event_read_value",
            "skb_output",
            "xdp_output",
        ],
        &[MapKind::PerfEventArray],
    ),
    (
        &[
            "ringbuf_output",
            "ringbuf_reserve",
            "ringbuf_query",
            "ringbuf_reserve_dynptr",
            "ringbuf_submit_dynptr",
            "ringbuf_discard_dynptr",
        ],
        &[MapKind::Ringbuf],
    ),
    (&["user_ringbuf_drain"], &[MapKind::UserRingbuf]),
    (&["get_stackid"], &[MapKind::StackTrace]),
    (
        &["current_task_under_cgroup", "skb_under_cgroup"],
        &[MapKind::CgroupArray],
    ),
    (
        &["redirect_map"],
        &[
            MapKind::Devmap,
            MapKind::DevmapHash,
            MapKind::Cpumap,
            MapKind::Xskmap,
        ],
    ),
    (
        &["sk_redirect_map", "msg_redirect_map", "sock_map_update"],
        &[MapKind::Sockmap],
    ),
    (
        &["sk_redirect_hash", "msg_redirect_hash", "sock_hash_update"],
        &[MapKind::Sockhash],
    ),
    (
        &["get_local_storage"],
        &[MapKind::CgroupStorage, MapKind::PercpuCgroupStorage],
    ),
    (
        &["sk_select_reuseport"],
        &[
            MapKind::ReuseportSockarray,
            MapKind::Sockmap,
            MapKind::Sockhash,
        ],
    ),
    (&["map_pop_elem"], &[MapKind::Queue, MapKind::Stack]),
    (
        &["map_peek_elem", "map_push_elem"],
        &[MapKind::Queue, MapKind::Stack, MapKind::BloomFilter],
    ),
    (
        &["map_lookup_percpu_elem"],
        &[
            MapKind::PercpuArray,
            MapKind::PercpuHash,
            MapKind::LruPercpuHash,
        ],
    ),
    (
        &["sk_storage_get", "sk_storage_delete"],
        &[MapKind::SkStorage],
    ),
    (
        &["inode_storage_get", "inode_storage_delete"],
        &[MapKind::InodeStorage],
    ),
    (
        &["task_storage_get", "task_storage_delete"],
        &[MapKind::TaskStorage],
    ),
    (
        &["cgrp_storage_get", "cgrp_storage_delete"],
        &[MapKind::CgrpStorage],
    ),
];

/// Kinds that only certain helpers take: the first half of the check. Updates and
/// deletions of sockets depend on the program (`may_update_sockmap`).
const BY_KIND: &[(&[MapKind], &[&str])] = &[
    (&[MapKind::ProgArray], &["tail_call"]),
    (
        &[MapKind::PerfEventArray],
        &[
            "perf_event_read",
            "perf_event_output",
            "skb_output",
            "perf_event_read_value",
            "xdp_output",
        ],
    ),
    (
        &[MapKind::Ringbuf],
        &[
            "ringbuf_output",
            "ringbuf_reserve",
            "ringbuf_query",
            "ringbuf_reserve_dynptr",
            "ringbuf_submit_dynptr",
            "ringbuf_discard_dynptr",
        ],
    ),
    (&[MapKind::UserRingbuf], &["user_ringbuf_drain"]),
    (&[MapKind::StackTrace], &["get_stackid"]),
    (
        &[MapKind::CgroupArray],
        &["skb_under_cgroup", "current_task_under_cgroup"],
    ),
    (
        &[MapKind::CgroupStorage, MapKind::PercpuCgroupStorage],
        &["get_local_storage"],
    ),
    (
        &[MapKind::Devmap, MapKind::DevmapHash],
        &["redirect_map", "map_lookup_elem"],
    ),
    (&[MapKind::Cpumap], &["redirect_map"]),
    (&[MapKind::Xskmap], &["redirect_map", "map_lookup_elem"]),
    (
        &[MapKind::ArrayOfMaps, MapKind::HashOfMaps],
        &["map_lookup_elem"],
    ),
    (
        &[MapKind::Sockmap],
        &[
            "sk_redirect_map",
            "sock_map_update",
            "msg_redirect_map",
            "sk_select_reuseport",
            "map_lookup_elem",
            "map_update_elem",
            "map_delete_elem",
        ],
    ),
    (
        &[MapKind::Sockhash],
        &[
            "sk_redirect_hash",
            "sock_hash_update",
            "msg_redirect_hash",
            "sk_select_reuseport",
            "map_lookup_elem",
            "map_update_elem",
            "map_delete_elem",
        ],
    ),
    (&[MapKind::ReuseportSockarray], &["sk_select_reuseport"]),
    (
        &[MapKind::Queue, MapKind::Stack],
        &["map_peek_elem", "map_pop_elem", "map_push_elem"],
    ),
    (
        &[MapKind::SkStorage],
        &["sk_storage_get", "sk_storage_delete", "kptr_xchg"],
    ),
    (
        &[MapKind::InodeStorage],
        &["inode_storage_get", "inode_storage_delete", "kptr_xchg"],
    ),
    (
        &[MapKind::TaskStorage],
        &["task_storage_get", "task_storage_delete", "kptr_xchg"],
    ),
    (
        &[MapKind::CgrpStorage],
        &["cgrp_storage_get", "cgrp_storage_delete", "kptr_xchg"],
    ),
    (&[MapKind::BloomFilter], &["map_peek_elem", "map_push_elem"]),
];

const IN_SLEEPABLE: &[MapKind] = &[
    MapKind::Hash,
    MapKind::LruHash,
    MapKind::Array,
    MapKind::PercpuHash,
    MapKind::PercpuArray,
    MapKind::LruPercpuHash,
    MapKind::ArrayOfMaps,
    MapKind::HashOfMaps,
    MapKind::Ringbuf,
    MapKind::UserRingbuf,
    MapKind::InodeStorage,
    MapKind::SkStorage,
    MapKind::TaskStorage,
    MapKind::CgrpStorage,
    MapKind::Queue,
    MapKind::Stack,
    MapKind::Arena,
];

/// Last map kind of 6.18.
const LAST: MapKind = MapKind::Arena;

/// What the verifier must know of every map kind of 6.18.
pub fn traits() -> BTreeMap<MapKind, MapTraits> {
    let kinds = MapKind::ALL.iter().filter(|&&kind| kind <= LAST);
    kinds.map(|&kind| (kind, of_kind(kind))).collect()
}

fn of_kind(kind: MapKind) -> MapTraits {
    let number = |name: &&str| {
        let number = helpers::number(&format!("bpf_{name}"));
        number.unwrap_or_else(|| panic!("no helper {name}")) as u32
    };
    let of_kind = BY_KIND.iter().find(|(kinds, _)| kinds.contains(&kind));
    let candidates: BTreeSet<u32> = match of_kind {
        Some((_, names)) => names.iter().map(number).collect(),
        None => (1..=super::build::HELPERS).collect(),
    };
    let is_taken = |id: &u32| {
        BY_HELPER
            .iter()
            .filter(|(names, _)| names.iter().any(|name| number(name) == *id))
            .all(|(_, kinds)| kinds.contains(&kind))
    };
    MapTraits {
        kind,
        helpers: candidates.into_iter().filter(is_taken).collect(),
        has_direct_value: matches!(kind, MapKind::Array | MapKind::Arena),
        in_sleepable: IN_SLEEPABLE.contains(&kind),
        special_fields: special_fields(kind),
    }
}

/// Bits of `enum btf_field_type` that `map_check_btf` lets pass.
fn special_fields(kind: MapKind) -> u32 {
    use MapKind::{
        Array, CgroupStorage, CgrpStorage, Hash, InodeStorage, LruHash, LruPercpuHash, PercpuArray,
        PercpuHash, SkStorage, TaskStorage,
    };
    const SPIN_LOCK: u32 = 1;
    const TIMER: u32 = 2;
    const KPTR_UNREF: u32 = 4;
    const KPTR_REF: u32 = 8;
    const KPTR_PERCPU: u32 = 16;
    const LIST_HEAD: u32 = 32;
    const RB_ROOT: u32 = 128;
    const REFCOUNT: u32 = 512;
    const WORKQUEUE: u32 = 1024;
    const UPTR: u32 = 2048;
    const RES_SPIN_LOCK: u32 = 4096;
    const TASK_WORK: u32 = 8192;
    let allowed: [(u32, &[MapKind]); 6] = [
        (
            SPIN_LOCK | RES_SPIN_LOCK,
            &[
                Hash,
                Array,
                CgroupStorage,
                SkStorage,
                InodeStorage,
                TaskStorage,
                CgrpStorage,
            ],
        ),
        (TIMER | WORKQUEUE | TASK_WORK, &[Hash, LruHash, Array]),
        (
            KPTR_UNREF | KPTR_REF | KPTR_PERCPU | REFCOUNT,
            &[
                Hash,
                PercpuHash,
                LruHash,
                LruPercpuHash,
                Array,
                PercpuArray,
                SkStorage,
                InodeStorage,
                TaskStorage,
                CgrpStorage,
            ],
        ),
        (UPTR, &[TaskStorage]),
        (LIST_HEAD | RB_ROOT, &[Hash, LruHash, Array]),
        (0, &[]),
    ];
    let of_kind = allowed.iter().filter(|(_, kinds)| kinds.contains(&kind));
    of_kind.fold(0, |bits, (more, _)| bits | more)
}
