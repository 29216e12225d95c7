//! Helpers that are not built, and what they wait for.

/// What a helper that is not built waits for; `None` for those that are built and for names
/// that no helper has.
pub fn why_waiting(name: &str) -> Option<&'static str> {
    let is_listed = |(_, names): &&(&str, &[&str])| names.contains(&name);
    WAITING.iter().find(is_listed).map(|(why, _)| *why)
}

/// Helpers by what they wait for.
const WAITING: &[(&str, &[&str])] = &[
    ("user ring buffers", &["bpf_user_ringbuf_drain"]),
    (
        "timers of the host",
        &[
            "bpf_timer_init",
            "bpf_timer_set_callback",
            "bpf_timer_start",
            "bpf_timer_cancel",
        ],
    ),
    ("tail calls", &["bpf_tail_call"]),
    ("fields of map values by their types", &["bpf_kptr_xchg"]),
    (
        "dynptrs in the verifier",
        &[
            "bpf_dynptr_from_mem",
            "bpf_dynptr_read",
            "bpf_dynptr_write",
            "bpf_dynptr_data",
            "bpf_ringbuf_reserve_dynptr",
            "bpf_ringbuf_submit_dynptr",
            "bpf_ringbuf_discard_dynptr",
        ],
    ),
    ("lightweight tunnels", &["bpf_lwt_push_encap"]),
    (
        "model sockets",
        &[
            "bpf_sk_assign",
            "bpf_sk_fullsock",
            "bpf_tcp_sock",
            "bpf_get_listener_sock",
            "bpf_tcp_check_syncookie",
            "bpf_tcp_gen_syncookie",
            "bpf_sk_cgroup_id",
            "bpf_sk_ancestor_cgroup_id",
            "bpf_skc_to_tcp6_sock",
            "bpf_skc_to_tcp_sock",
            "bpf_skc_to_tcp_timewait_sock",
            "bpf_skc_to_tcp_request_sock",
            "bpf_skc_to_udp6_sock",
            "bpf_skc_to_unix_sock",
            "bpf_skc_to_mptcp_sock",
            "bpf_sk_storage_get",
            "bpf_sk_storage_delete",
            "bpf_sock_from_file",
        ],
    ),
    (
        "maps of its kind",
        &[
            "bpf_skb_under_cgroup",
            "bpf_current_task_under_cgroup",
            "bpf_get_local_storage",
            "bpf_get_stackid",
            "bpf_task_storage_get",
            "bpf_task_storage_delete",
            "bpf_cgrp_storage_get",
            "bpf_cgrp_storage_delete",
        ],
    ),
    (
        "memory of the kernel: its objects and variables",
        &[
            "bpf_probe_read",
            "bpf_probe_read_str",
            "bpf_probe_read_kernel",
            "bpf_probe_read_kernel_str",
            "bpf_get_current_task",
            "bpf_get_current_task_btf",
            "bpf_task_pt_regs",
            "bpf_get_task_stack",
            "bpf_get_stack",
            "bpf_copy_from_user_task",
            "bpf_per_cpu_ptr",
            "bpf_this_cpu_ptr",
            "bpf_d_path",
            "bpf_snprintf_btf",
            "bpf_skb_output",
            "bpf_xdp_output",
            "bpf_get_func_ip",
            "bpf_get_attach_cookie",
        ],
    ),
    (
        "bpf(2) for programs",
        &["bpf_sys_bpf", "bpf_btf_find_by_name_kind"],
    ),
];
