//! Helper functions of Linux: numbers, names and first releases.
//!
//! One row for each helper, by number. `enum bpf_func_id` (`include/uapi/linux/bpf.h`)
//! only grows at its end, so numbers are in order of introduction. Linux 7.2 has the
//! same helpers as 6.2; newer functions are kfuncs ([`crate::since::kfunc`]).

use crate::since::{IntroducedBy, Release, Since};

/// A helper: a function of the kernel that programs call by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Helper {
    /// Name, with the prefix `bpf_`.
    pub name: &'static str,
    /// Release that introduced the helper.
    pub since: Since,
}

/// Helper with this number; number 0 is no helper.
pub const fn helper(number: i32) -> Option<&'static Helper> {
    if number >= 1 && (number as usize) <= HELPERS.len() {
        Some(&HELPERS[number as usize - 1])
    } else {
        None
    }
}

/// Number of the helper with this name; evaluated at compile time for constants.
pub const fn number(name: &str) -> Option<i32> {
    let mut at = 0;
    while at < HELPERS.len() {
        if is_same(HELPERS[at].name, name) {
            return Some(at as i32 + 1);
        }
        at += 1;
    }
    None
}

/// Every helper with its number, starting with 1.
pub fn all() -> impl Iterator<Item = (i32, &'static Helper)> {
    (1..).zip(&HELPERS)
}

/// True if two names are equal; for constants.
pub(crate) const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

const fn row(name: &'static str, major: u8, minor: u8, commit: &'static str) -> Helper {
    let since = Since {
        release: Release { major, minor },
        source: IntroducedBy::Commit(commit),
    };
    Helper { name, since }
}

// Name, release, and the commit that brought it.
#[rustfmt::skip]
const HELPERS: [Helper; 211] = [
    row("bpf_map_lookup_elem", 3, 19, "d0003ec01c66"),
    row("bpf_map_update_elem", 3, 19, "d0003ec01c66"),
    row("bpf_map_delete_elem", 3, 19, "d0003ec01c66"),
    row("bpf_probe_read", 4, 1, "2541517c32be"),
    row("bpf_ktime_get_ns", 4, 1, "d9847d310ab4"),
    row("bpf_trace_printk", 4, 1, "9c959c863f82"),
    row("bpf_get_prandom_u32", 4, 1, "03e69b508b6f"),
    row("bpf_get_smp_processor_id", 4, 1, "c04167ce2ca0"),
    row("bpf_skb_store_bytes", 4, 1, "608cd71a9c7c"),
    row("bpf_l3_csum_replace", 4, 1, "91bc4822c3d6"),
    row("bpf_l4_csum_replace", 4, 1, "91bc4822c3d6"),
    row("bpf_tail_call", 4, 2, "04fd61ab36ec"),
    row("bpf_clone_redirect", 4, 2, "3896d655f4d4"),
    row("bpf_get_current_pid_tgid", 4, 2, "ffeedafbf023"),
    row("bpf_get_current_uid_gid", 4, 2, "ffeedafbf023"),
    row("bpf_get_current_comm", 4, 2, "ffeedafbf023"),
    row("bpf_get_cgroup_classid", 4, 3, "8d20aabe1c76"),
    row("bpf_skb_vlan_push", 4, 3, "4e10df9a60d9"),
    row("bpf_skb_vlan_pop", 4, 3, "4e10df9a60d9"),
    row("bpf_skb_get_tunnel_key", 4, 3, "d3aa45ce6b94"),
    row("bpf_skb_set_tunnel_key", 4, 3, "d3aa45ce6b94"),
    row("bpf_perf_event_read", 4, 3, "35578d798400"),
    row("bpf_redirect", 4, 4, "27b29f63058d"),
    row("bpf_get_route_realm", 4, 4, "c46646d0484f"),
    row("bpf_perf_event_output", 4, 4, "a43eec304259"),
    row("bpf_skb_load_bytes", 4, 5, "05c74e5e53f6"),
    row("bpf_get_stackid", 4, 6, "d5a3b1f69186"),
    row("bpf_csum_diff", 4, 6, "7d672345ed29"),
    row("bpf_skb_get_tunnel_opt", 4, 6, "14ca0751c96f"),
    row("bpf_skb_set_tunnel_opt", 4, 6, "14ca0751c96f"),
    row("bpf_skb_change_proto", 4, 8, "6578171a7ff0"),
    row("bpf_skb_change_type", 4, 8, "d2485c4242a8"),
    row("bpf_skb_under_cgroup", 4, 8, "4a482f34afcc"),
    row("bpf_get_hash_recalc", 4, 8, "13c5c240f789"),
    row("bpf_get_current_task", 4, 8, "606274c5abd8"),
    row("bpf_probe_write_user", 4, 8, "96ae52279594"),
    row("bpf_current_task_under_cgroup", 4, 9, "60d20f9195b2"),
    row("bpf_skb_change_tail", 4, 9, "5293efe62df8"),
    row("bpf_skb_pull_data", 4, 9, "36bbef52c7eb"),
    row("bpf_csum_update", 4, 9, "36bbef52c7eb"),
    row("bpf_set_hash_invalid", 4, 9, "7a4b28c6cc9f"),
    row("bpf_get_numa_node_id", 4, 10, "2d0e30c30f84"),
    row("bpf_skb_change_head", 4, 10, "3a0af8fd61f9"),
    row("bpf_xdp_adjust_head", 4, 10, "17bedab27231"),
    row("bpf_probe_read_str", 4, 11, "a5e8c07059d0"),
    row("bpf_get_socket_cookie", 4, 12, "91b8270f2a4d"),
    row("bpf_get_socket_uid", 4, 12, "6acc5c291068"),
    row("bpf_set_hash", 4, 13, "ded092cd73c2"),
    row("bpf_setsockopt", 4, 13, "8c4b4c7e9ff0"),
    row("bpf_skb_adjust_room", 4, 13, "2be7e212d541"),
    row("bpf_redirect_map", 4, 14, "97f91a7cf04f"),
    row("bpf_sk_redirect_map", 4, 14, "174a79ff9515"),
    row("bpf_sock_map_update", 4, 14, "174a79ff9515"),
    row("bpf_xdp_adjust_meta", 4, 15, "de8f3a83b0a0"),
    row("bpf_perf_event_read_value", 4, 15, "908432ca84fc"),
    row("bpf_perf_prog_read_value", 4, 15, "4bebdc7a85aa"),
    row("bpf_getsockopt", 4, 15, "cd86d1fd2102"),
    row("bpf_override_return", 4, 16, "9802d86585db"),
    row("bpf_sock_ops_cb_flags_set", 4, 16, "b13d88072172"),
    row("bpf_msg_redirect_map", 4, 17, "4f738adba30a"),
    row("bpf_msg_apply_bytes", 4, 17, "2a100317c9eb"),
    row("bpf_msg_cork_bytes", 4, 17, "91843d540a13"),
    row("bpf_msg_pull_data", 4, 17, "015632bb30da"),
    row("bpf_bind", 4, 17, "d74bad4e74ee"),
    row("bpf_xdp_adjust_tail", 4, 18, "b32cc5b9a346"),
    row("bpf_skb_get_xfrm_state", 4, 18, "12bed760a78d"),
    row("bpf_get_stack", 4, 18, "c195651e565a"),
    row("bpf_skb_load_bytes_relative", 4, 18, "4e1ec56cdc59"),
    row("bpf_fib_lookup", 4, 18, "87f5fc7e48dd"),
    row("bpf_sock_hash_update", 4, 18, "81110384441a"),
    row("bpf_msg_redirect_hash", 4, 18, "81110384441a"),
    row("bpf_sk_redirect_hash", 4, 18, "81110384441a"),
    row("bpf_lwt_push_encap", 4, 18, "fe94cc290f53"),
    row("bpf_lwt_seg6_store_bytes", 4, 18, "fe94cc290f53"),
    row("bpf_lwt_seg6_adjust_srh", 4, 18, "fe94cc290f53"),
    row("bpf_lwt_seg6_action", 4, 18, "fe94cc290f53"),
    row("bpf_rc_repeat", 4, 18, "f4364dcfc86d"),
    row("bpf_rc_keydown", 4, 18, "f4364dcfc86d"),
    row("bpf_skb_cgroup_id", 4, 18, "cb20b08ead40"),
    row("bpf_get_current_cgroup_id", 4, 18, "bf6fa2c893c5"),
    row("bpf_get_local_storage", 4, 19, "cd3394317653"),
    row("bpf_sk_select_reuseport", 4, 19, "2dbb9b9e6df6"),
    row("bpf_skb_ancestor_cgroup_id", 4, 19, "7723628101aa"),
    row("bpf_sk_lookup_tcp", 4, 20, "6acc9b432e67"),
    row("bpf_sk_lookup_udp", 4, 20, "6acc9b432e67"),
    row("bpf_sk_release", 4, 20, "6acc9b432e67"),
    row("bpf_map_push_elem", 4, 20, "f1a2e44a3aec"),
    row("bpf_map_pop_elem", 4, 20, "f1a2e44a3aec"),
    row("bpf_map_peek_elem", 4, 20, "f1a2e44a3aec"),
    row("bpf_msg_push_data", 4, 20, "6fff607e2f14"),
    row("bpf_msg_pop_data", 5, 0, "7246d8ed4dcc"),
    row("bpf_rc_pointer_rel", 5, 0, "01d3240a04f4"),
    row("bpf_spin_lock", 5, 1, "d83525ca62cf"),
    row("bpf_spin_unlock", 5, 1, "d83525ca62cf"),
    row("bpf_sk_fullsock", 5, 1, "46f8bc92758c"),
    row("bpf_tcp_sock", 5, 1, "655a51e536c0"),
    row("bpf_skb_ecn_set_ce", 5, 1, "f7c917ba11a6"),
    row("bpf_get_listener_sock", 5, 1, "dbafd7ddd623"),
    row("bpf_skc_lookup_tcp", 5, 2, "edbf8c01de5a"),
    row("bpf_tcp_check_syncookie", 5, 2, "399040847084"),
    row("bpf_sysctl_get_name", 5, 2, "808649fb787d"),
    row("bpf_sysctl_get_current_value", 5, 2, "1d11b3016cec"),
    row("bpf_sysctl_get_new_value", 5, 2, "4e63acdff864"),
    row("bpf_sysctl_set_new_value", 5, 2, "4e63acdff864"),
    row("bpf_strtol", 5, 2, "d7a4cb9b6705"),
    row("bpf_strtoul", 5, 2, "d7a4cb9b6705"),
    row("bpf_sk_storage_get", 5, 2, "6ac99e8f23d4"),
    row("bpf_sk_storage_delete", 5, 2, "6ac99e8f23d4"),
    row("bpf_send_signal", 5, 3, "8b401f9ed244"),
    row("bpf_tcp_gen_syncookie", 5, 4, "70d66244317e"),
    row("bpf_skb_output", 5, 5, "a7658e1a4164"),
    row("bpf_probe_read_user", 5, 5, "6ae08ae3dea2"),
    row("bpf_probe_read_kernel", 5, 5, "6ae08ae3dea2"),
    row("bpf_probe_read_user_str", 5, 5, "6ae08ae3dea2"),
    row("bpf_probe_read_kernel_str", 5, 5, "6ae08ae3dea2"),
    row("bpf_tcp_send_ack", 5, 6, "206057fe020a"),
    row("bpf_send_signal_thread", 5, 6, "8482941f0906"),
    row("bpf_jiffies64", 5, 6, "5576b991e9c1"),
    row("bpf_read_branch_records", 5, 7, "fff7b64355ea"),
    row("bpf_get_ns_current_pid_tgid", 5, 7, "b4490c5c4e02"),
    row("bpf_xdp_output", 5, 7, "d831ee84bfc9"),
    row("bpf_get_netns_cookie", 5, 7, "f318903c0bf4"),
    row("bpf_get_current_ancestor_cgroup_id", 5, 7, "0f09abd105da"),
    row("bpf_sk_assign", 5, 7, "cf7fbe660f2d"),
    row("bpf_ktime_get_boot_ns", 5, 8, "71d19214776e"),
    row("bpf_seq_printf", 5, 8, "492e639f0c22"),
    row("bpf_seq_write", 5, 8, "492e639f0c22"),
    row("bpf_sk_cgroup_id", 5, 8, "f307fa2cb4c9"),
    row("bpf_sk_ancestor_cgroup_id", 5, 8, "f307fa2cb4c9"),
    row("bpf_ringbuf_output", 5, 8, "457f44363a88"),
    row("bpf_ringbuf_reserve", 5, 8, "457f44363a88"),
    row("bpf_ringbuf_submit", 5, 8, "457f44363a88"),
    row("bpf_ringbuf_discard", 5, 8, "457f44363a88"),
    row("bpf_ringbuf_query", 5, 8, "457f44363a88"),
    row("bpf_csum_level", 5, 8, "7cdec54f9713"),
    row("bpf_skc_to_tcp6_sock", 5, 9, "af7ec1383361"),
    row("bpf_skc_to_tcp_sock", 5, 9, "478cfbdf5f13"),
    row("bpf_skc_to_tcp_timewait_sock", 5, 9, "478cfbdf5f13"),
    row("bpf_skc_to_tcp_request_sock", 5, 9, "478cfbdf5f13"),
    row("bpf_skc_to_udp6_sock", 5, 9, "0d4fad3e57df"),
    row("bpf_get_task_stack", 5, 9, "fa28dcb82a38"),
    row("bpf_load_hdr_opt", 5, 10, "0813a841566f"),
    row("bpf_store_hdr_opt", 5, 10, "0813a841566f"),
    row("bpf_reserve_hdr_opt", 5, 10, "0813a841566f"),
    row("bpf_inode_storage_get", 5, 10, "8ea636848aca"),
    row("bpf_inode_storage_delete", 5, 10, "8ea636848aca"),
    row("bpf_d_path", 5, 10, "6e22ab9da793"),
    row("bpf_copy_from_user", 5, 10, "07be4c4a3e7a"),
    row("bpf_snprintf_btf", 5, 10, "c4d0bfb45068"),
    row("bpf_seq_printf_btf", 5, 10, "eb411377aed9"),
    row("bpf_skb_cgroup_classid", 5, 10, "b426ce83baa7"),
    row("bpf_redirect_neigh", 5, 10, "b4ab31414970"),
    row("bpf_per_cpu_ptr", 5, 10, "eaa6bcb71ef6"),
    row("bpf_this_cpu_ptr", 5, 10, "63d9b80dcf2c"),
    row("bpf_redirect_peer", 5, 10, "9aa1206e8f48"),
    row("bpf_task_storage_get", 5, 11, "4cf1bc1f1045"),
    row("bpf_task_storage_delete", 5, 11, "4cf1bc1f1045"),
    row("bpf_get_current_task_btf", 5, 11, "3ca1032ab7ab"),
    row("bpf_bprm_opts_set", 5, 11, "3f6719c7b62f"),
    row("bpf_ktime_get_coarse_ns", 5, 11, "d05512618056"),
    row("bpf_ima_inode_hash", 5, 11, "27672f0d280a"),
    row("bpf_sock_from_file", 5, 11, "4f19cab76136"),
    row("bpf_check_mtu", 5, 12, "34b2021cc616"),
    row("bpf_for_each_map_elem", 5, 13, "69c087ba6225"),
    row("bpf_snprintf", 5, 13, "7b15523a989b"),
    row("bpf_sys_bpf", 5, 14, "79a7f8bdb159"),
    row("bpf_btf_find_by_name_kind", 5, 14, "3d78417b60fb"),
    row("bpf_sys_close", 5, 14, "3abea089246f"),
    row("bpf_timer_init", 5, 15, "b00628b1c7d5"),
    row("bpf_timer_set_callback", 5, 15, "b00628b1c7d5"),
    row("bpf_timer_start", 5, 15, "b00628b1c7d5"),
    row("bpf_timer_cancel", 5, 15, "b00628b1c7d5"),
    row("bpf_get_func_ip", 5, 15, "9b99edcae5c8"),
    row("bpf_get_attach_cookie", 5, 15, "7adfc6c9b315"),
    row("bpf_task_pt_regs", 5, 15, "dd6e10fbd9fb"),
    row("bpf_get_branch_snapshot", 5, 16, "856c02dbce4f"),
    row("bpf_trace_vprintk", 5, 16, "10aceb629e19"),
    row("bpf_skc_to_unix_sock", 5, 16, "9eeb3aa33ae0"),
    row("bpf_kallsyms_lookup_name", 5, 16, "d6aef08a872b"),
    row("bpf_find_vma", 5, 17, "7c7e3d31e785"),
    row("bpf_loop", 5, 17, "e6f2dd0f8067"),
    row("bpf_strncmp", 5, 17, "c5fb19937455"),
    row("bpf_get_func_arg", 5, 17, "f92c1e183604"),
    row("bpf_get_func_ret", 5, 17, "f92c1e183604"),
    row("bpf_get_func_arg_cnt", 5, 17, "f92c1e183604"),
    row("bpf_get_retval", 5, 18, "b44123b4a3dc"),
    row("bpf_set_retval", 5, 18, "b44123b4a3dc"),
    row("bpf_xdp_get_buff_len", 5, 18, "0165cc817075"),
    row("bpf_xdp_load_bytes", 5, 18, "3f364222d032"),
    row("bpf_xdp_store_bytes", 5, 18, "3f364222d032"),
    row("bpf_copy_from_user_task", 5, 18, "376040e47334"),
    row("bpf_skb_set_tstamp", 5, 18, "9bb984f28d5b"),
    row("bpf_ima_file_hash", 5, 18, "174b16946e39"),
    row("bpf_kptr_xchg", 5, 19, "c0a5a21c25f3"),
    row("bpf_map_lookup_percpu_elem", 5, 19, "07343110b293"),
    row("bpf_skc_to_mptcp_sock", 5, 19, "3bc253c2e652"),
    row("bpf_dynptr_from_mem", 5, 19, "263ae152e962"),
    row("bpf_ringbuf_reserve_dynptr", 5, 19, "bc34dee65a65"),
    row("bpf_ringbuf_submit_dynptr", 5, 19, "bc34dee65a65"),
    row("bpf_ringbuf_discard_dynptr", 5, 19, "bc34dee65a65"),
    row("bpf_dynptr_read", 5, 19, "13bbbfbea759"),
    row("bpf_dynptr_write", 5, 19, "13bbbfbea759"),
    row("bpf_dynptr_data", 5, 19, "34d4ef5775f7"),
    row("bpf_tcp_raw_gen_syncookie_ipv4", 6, 0, "33bf9885040c"),
    row("bpf_tcp_raw_gen_syncookie_ipv6", 6, 0, "33bf9885040c"),
    row("bpf_tcp_raw_check_syncookie_ipv4", 6, 0, "33bf9885040c"),
    row("bpf_tcp_raw_check_syncookie_ipv6", 6, 0, "33bf9885040c"),
    row("bpf_ktime_get_tai_ns", 6, 1, "c8996c98f703"),
    row("bpf_user_ringbuf_drain", 6, 1, "205715673844"),
    row("bpf_cgrp_storage_get", 6, 2, "c4bcfb38a95e"),
    row("bpf_cgrp_storage_delete", 6, 2, "c4bcfb38a95e"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_inverse() {
        for (at, helper) in all() {
            assert_eq!(number(helper.name), Some(at));
            assert_eq!(self::helper(at), Some(helper));
            assert!(helper.name.starts_with("bpf_"));
        }
        assert_eq!(helper(0), None);
        assert_eq!(helper(212), None);
        assert_eq!(helper(i32::MIN), None);
        assert_eq!(number("bpf_unspec"), None);
    }

    #[test]
    fn a_later_number_never_has_an_earlier_release() {
        let releases: Vec<Release> = all().map(|(_, helper)| helper.since.release).collect();
        assert!(releases.is_sorted());
    }

    #[test]
    fn well_known_numbers() {
        let known = [
            (1, "bpf_map_lookup_elem"),
            (5, "bpf_ktime_get_ns"),
            (12, "bpf_tail_call"),
            (51, "bpf_redirect_map"),
            (113, "bpf_probe_read_kernel"),
            (131, "bpf_ringbuf_reserve"),
            (181, "bpf_loop"),
            (211, "bpf_cgrp_storage_delete"),
        ];
        for (number, name) in known {
            assert_eq!(helper(number).map(|helper| helper.name), Some(name));
        }
    }
}
