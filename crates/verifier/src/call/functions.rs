//! Helpers with rules of their own, by number (`enum bpf_func_id`).

use spec::maps::MapKind;

macro_rules! helpers {
    ($($constant:ident = $name:literal;)*) => {
        $(
            #[doc = concat!("Number of `", $name, "`.")]
            pub const $constant: i32 = match spec::helpers::number($name) {
                Some(number) => number,
                None => 0,
            };
        )*
    };
}

helpers! {
    MAP_LOOKUP_ELEM = "bpf_map_lookup_elem";
    MAP_UPDATE_ELEM = "bpf_map_update_elem";
    MAP_DELETE_ELEM = "bpf_map_delete_elem";
    MAP_PUSH_ELEM = "bpf_map_push_elem";
    MAP_POP_ELEM = "bpf_map_pop_elem";
    MAP_PEEK_ELEM = "bpf_map_peek_elem";
    MAP_LOOKUP_PERCPU_ELEM = "bpf_map_lookup_percpu_elem";
    FOR_EACH_MAP_ELEM = "bpf_for_each_map_elem";
    TAIL_CALL = "bpf_tail_call";
    PERF_EVENT_READ = "bpf_perf_event_read";
    PERF_EVENT_OUTPUT = "bpf_perf_event_output";
    PERF_EVENT_READ_VALUE = "bpf_perf_event_read_value";
    SKB_OUTPUT = "bpf_skb_output";
    XDP_OUTPUT = "bpf_xdp_output";
    RINGBUF_OUTPUT = "bpf_ringbuf_output";
    RINGBUF_RESERVE = "bpf_ringbuf_reserve";
    RINGBUF_QUERY = "bpf_ringbuf_query";
    RINGBUF_RESERVE_DYNPTR = "bpf_ringbuf_reserve_dynptr";
    RINGBUF_SUBMIT_DYNPTR = "bpf_ringbuf_submit_dynptr";
    RINGBUF_DISCARD_DYNPTR = "bpf_ringbuf_discard_dynptr";
    USER_RINGBUF_DRAIN = "bpf_user_ringbuf_drain";
    GET_STACKID = "bpf_get_stackid";
    GET_STACK = "bpf_get_stack";
    GET_TASK_STACK = "bpf_get_task_stack";
    SKB_UNDER_CGROUP = "bpf_skb_under_cgroup";
    CURRENT_TASK_UNDER_CGROUP = "bpf_current_task_under_cgroup";
    GET_LOCAL_STORAGE = "bpf_get_local_storage";
    REDIRECT_MAP = "bpf_redirect_map";
    SK_REDIRECT_MAP = "bpf_sk_redirect_map";
    SOCK_MAP_UPDATE = "bpf_sock_map_update";
    MSG_REDIRECT_MAP = "bpf_msg_redirect_map";
    SK_SELECT_REUSEPORT = "bpf_sk_select_reuseport";
    SK_REDIRECT_HASH = "bpf_sk_redirect_hash";
    SOCK_HASH_UPDATE = "bpf_sock_hash_update";
    MSG_REDIRECT_HASH = "bpf_msg_redirect_hash";
    SK_STORAGE_GET = "bpf_sk_storage_get";
    SK_STORAGE_DELETE = "bpf_sk_storage_delete";
    INODE_STORAGE_GET = "bpf_inode_storage_get";
    INODE_STORAGE_DELETE = "bpf_inode_storage_delete";
    TASK_STORAGE_GET = "bpf_task_storage_get";
    TASK_STORAGE_DELETE = "bpf_task_storage_delete";
    CGRP_STORAGE_GET = "bpf_cgrp_storage_get";
    CGRP_STORAGE_DELETE = "bpf_cgrp_storage_delete";
    KPTR_XCHG = "bpf_kptr_xchg";
    SPIN_LOCK = "bpf_spin_lock";
    SPIN_UNLOCK = "bpf_spin_unlock";
    TIMER_SET_CALLBACK = "bpf_timer_set_callback";
    LOOP = "bpf_loop";
    FIND_VMA = "bpf_find_vma";
    SNPRINTF = "bpf_snprintf";
    SET_RETVAL = "bpf_set_retval";
    DYNPTR_FROM_MEM = "bpf_dynptr_from_mem";
    DYNPTR_DATA = "bpf_dynptr_data";
    DYNPTR_WRITE = "bpf_dynptr_write";
    PER_CPU_PTR = "bpf_per_cpu_ptr";
    THIS_CPU_PTR = "bpf_this_cpu_ptr";
    SK_LOOKUP_TCP = "bpf_sk_lookup_tcp";
    SK_LOOKUP_UDP = "bpf_sk_lookup_udp";
    SKC_LOOKUP_TCP = "bpf_skc_lookup_tcp";
    SK_RELEASE = "bpf_sk_release";
    SK_FULLSOCK = "bpf_sk_fullsock";
    TCP_SOCK = "bpf_tcp_sock";
    SKC_TO_TCP_SOCK = "bpf_skc_to_tcp_sock";
    SKC_TO_TCP6_SOCK = "bpf_skc_to_tcp6_sock";
    SKC_TO_UDP6_SOCK = "bpf_skc_to_udp6_sock";
    SKC_TO_MPTCP_SOCK = "bpf_skc_to_mptcp_sock";
    SKC_TO_TCP_TIMEWAIT_SOCK = "bpf_skc_to_tcp_timewait_sock";
    SKC_TO_TCP_REQUEST_SOCK = "bpf_skc_to_tcp_request_sock";
    PROBE_READ = "bpf_probe_read";
    PROBE_READ_KERNEL = "bpf_probe_read_kernel";
    PROBE_READ_STR = "bpf_probe_read_str";
    PROBE_READ_KERNEL_STR = "bpf_probe_read_kernel_str";
    PROBE_READ_USER_STR = "bpf_probe_read_user_str";
    GET_SMP_PROCESSOR_ID = "bpf_get_smp_processor_id";
    GET_FUNC_IP = "bpf_get_func_ip";
    SKB_VLAN_PUSH = "bpf_skb_vlan_push";
    SKB_VLAN_POP = "bpf_skb_vlan_pop";
    SKB_STORE_BYTES = "bpf_skb_store_bytes";
    SKB_CHANGE_PROTO = "bpf_skb_change_proto";
    SKB_CHANGE_HEAD = "bpf_skb_change_head";
    SKB_CHANGE_TAIL = "bpf_skb_change_tail";
    SKB_ADJUST_ROOM = "bpf_skb_adjust_room";
    SKB_PULL_DATA = "bpf_skb_pull_data";
    CLONE_REDIRECT = "bpf_clone_redirect";
    L3_CSUM_REPLACE = "bpf_l3_csum_replace";
    L4_CSUM_REPLACE = "bpf_l4_csum_replace";
    XDP_ADJUST_HEAD = "bpf_xdp_adjust_head";
    XDP_ADJUST_META = "bpf_xdp_adjust_meta";
    XDP_ADJUST_TAIL = "bpf_xdp_adjust_tail";
    MSG_PULL_DATA = "bpf_msg_pull_data";
    MSG_PUSH_DATA = "bpf_msg_push_data";
    MSG_POP_DATA = "bpf_msg_pop_data";
    LWT_SEG6_STORE_BYTES = "bpf_lwt_seg6_store_bytes";
    LWT_SEG6_ADJUST_SRH = "bpf_lwt_seg6_adjust_srh";
    LWT_SEG6_ACTION = "bpf_lwt_seg6_action";
    LWT_PUSH_ENCAP = "bpf_lwt_push_encap";
    STORE_HDR_OPT = "bpf_store_hdr_opt";
}

/// True if the helper returns a reference that must be released
/// (`is_acquire_function`).
pub fn is_acquire(id: i32, map: Option<MapKind>) -> bool {
    let is_sockmap = map.is_some_and(MapKind::holds_sockets);
    matches!(
        id,
        SK_LOOKUP_TCP | SK_LOOKUP_UDP | SKC_LOOKUP_TCP | RINGBUF_RESERVE | KPTR_XCHG
    ) || id == MAP_LOOKUP_ELEM && is_sockmap
}

/// True if the helper returns its argument under another type (`is_ptr_cast_function`).
pub fn is_ptr_cast(id: i32) -> bool {
    matches!(
        id,
        TCP_SOCK
            | SK_FULLSOCK
            | SKC_TO_TCP_SOCK
            | SKC_TO_TCP6_SOCK
            | SKC_TO_UDP6_SOCK
            | SKC_TO_MPTCP_SOCK
            | SKC_TO_TCP_TIMEWAIT_SOCK
            | SKC_TO_TCP_REQUEST_SOCK
    )
}

/// True if the helper calls a function of the program before it returns
/// (`is_sync_callback_calling_function`).
pub fn is_sync_callback(id: i32) -> bool {
    matches!(id, FOR_EACH_MAP_ELEM | FIND_VMA | LOOP | USER_RINGBUF_DRAIN)
}

/// True if the helper may change packet data (`bpf_helper_changes_pkt_data`).
pub fn changes_pkt_data(id: i32) -> bool {
    matches!(
        id,
        CLONE_REDIRECT
            | L3_CSUM_REPLACE
            | L4_CSUM_REPLACE
            | LWT_PUSH_ENCAP
            | LWT_SEG6_ACTION
            | LWT_SEG6_ADJUST_SRH
            | LWT_SEG6_STORE_BYTES
            | MSG_POP_DATA
            | MSG_PULL_DATA
            | MSG_PUSH_DATA
            | SKB_ADJUST_ROOM
            | SKB_CHANGE_HEAD
            | SKB_CHANGE_PROTO
            | SKB_CHANGE_TAIL
            | SKB_PULL_DATA
            | SKB_STORE_BYTES
            | SKB_VLAN_POP
            | SKB_VLAN_PUSH
            | STORE_HDR_OPT
            | XDP_ADJUST_HEAD
            | XDP_ADJUST_META
            | XDP_ADJUST_TAIL
            | TAIL_CALL
    )
}

/// True if the helper finds or creates an element of local storage
/// (`is_storage_get_function`).
pub fn is_storage_get(id: i32) -> bool {
    matches!(
        id,
        SK_STORAGE_GET | INODE_STORAGE_GET | TASK_STORAGE_GET | CGRP_STORAGE_GET
    )
}
