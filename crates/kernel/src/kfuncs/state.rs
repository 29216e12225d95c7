//! Support state of each kfunc.

use spec::kfuncs::CallState;

use super::built;

/// Support state of a kfunc of Linux; `None` for names that are not listed.
pub fn state(name: &str) -> Option<CallState> {
    let is_listed = |(_, names): &&(CallState, &[&str])| {
        let fits = |listed: &&str| match listed.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *listed == name,
        };
        names.iter().any(fits)
    };
    let listed = || OTHERS.iter().find(is_listed).map(|(state, _)| *state);
    built(name).or_else(listed)
}

/// Kfuncs that are not built, by name or by how their names begin.
const OTHERS: &[(CallState, &[&str])] = &[
    (
        CallState::Refused("the verifier refuses every call that it reaches, as Linux's does"),
        &["__bpf_trap"],
    ),
    (
        CallState::Refused("struct_ops programs of TCP congestion control run in models"),
        &["bbr_*", "cubictcp_*", "tcp_*"],
    ),
    (
        CallState::Refused("struct_ops programs of schedulers run in models"),
        &["scx_bpf_*", "bpf_iter_scx_dsq_*"],
    ),
    (
        CallState::Refused("struct_ops programs of queueing disciplines run in models"),
        &["bpf_qdisc_*", "bpf_kfree_skb", "bpf_skb_get_hash"],
    ),
    (
        CallState::Refused("programs at functions and hooks of the kernel run in models"),
        &[
            "bpf_get_fsverity_digest",
            "bpf_get_task_exe_file",
            "bpf_path_d_path",
            "bpf_put_file",
            "bpf_verify_pkcs7_signature",
            "crash_kexec",
            "bpf_fentry_test1",
            "bpf_kfunc_call_memb_release",
            "bpf_kfunc_call_test_release",
            "bpf_modify_return_test*",
            "bpf_session_cookie",
            "bpf_session_is_return",
            "bpf_get_dentry_xattr",
            "bpf_get_file_xattr",
            "bpf_remove_dentry_xattr",
            "bpf_set_dentry_xattr",
            "bpf_sock_destroy",
            "css_rstat_flush",
            "css_rstat_updated",
        ],
    ),
    (
        CallState::Refused("programs at operations of sockets run in models"),
        &[
            "bpf_sock_addr_set_sun_path",
            "bpf_sock_ops_enable_tx_tstamp",
        ],
    ),
    (
        CallState::Refused(
            "no packet of a run comes from a network device that a program is bound to",
        ),
        &["bpf_xdp_metadata_rx_*"],
    ),
    (
        CallState::Unsupported("model tunnels, IPsec interfaces and flow tables"),
        &[
            "bpf_skb_get_fou_encap",
            "bpf_skb_get_xfrm_info",
            "bpf_skb_set_fou_encap",
            "bpf_skb_set_xfrm_info",
            "bpf_xdp_flow_lookup",
        ],
    ),
    (
        CallState::Unsupported("model ciphers"),
        &["bpf_crypto_decrypt", "bpf_crypto_encrypt"],
    ),
    (
        CallState::Unsupported("model tasks and control groups"),
        &["bpf_iter_*", "bpf_cgroup_read_xattr"],
    ),
    (CallState::Unsupported("task work"), &["bpf_task_work_*"]),
    (
        CallState::Unsupported("sockets that a program makes"),
        &["bpf_sk_assign_tcp_reqsk"],
    ),
    (
        CallState::Unsupported("entries of connection tracking"),
        &[
            "bpf_skb_ct_alloc",
            "bpf_xdp_ct_alloc",
            "bpf_ct_insert_entry",
            "bpf_ct_set_nat_info",
            "bpf_ct_set_status",
            "bpf_ct_set_timeout",
        ],
    ),
];
