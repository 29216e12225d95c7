//! Helpers that are not built, and what they wait for.

/// What a helper that is not built waits for; `None` for those that are built and for names
/// that no helper has.
pub fn why_waiting(name: &str) -> Option<&'static str> {
    let is_listed = |(_, names): &&(&str, &[&str])| names.contains(&name);
    WAITING.iter().find(is_listed).map(|(why, _)| *why)
}

/// Helpers by what they wait for.
const WAITING: &[(&str, &[&str])] = &[
    ("tail calls", &["bpf_tail_call"]),
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
        "model objects and variables of the kernel",
        &["bpf_task_pt_regs", "bpf_per_cpu_ptr", "bpf_this_cpu_ptr"],
    ),
    (
        "types of the kernel in a run",
        &["bpf_snprintf_btf", "bpf_btf_find_by_name_kind"],
    ),
];
