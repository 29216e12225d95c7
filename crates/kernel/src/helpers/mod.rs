//! Helpers, by number.

mod absence;
mod bytes;
mod callbacks;
mod csum_diff;
mod csum_replace;
mod dynptr;
mod encap;
mod fib;
mod map;
mod mtu;
mod packet;
mod perf;
mod probe;
mod process;
mod redirect;
mod ringbuf;
mod room;
mod run_context;
mod skb;
mod snprintf;
mod socket;
mod socket_assign;
mod socket_lookup;
mod socket_parts;
mod spin_lock;
mod stack;
mod storage;
mod strncmp;
mod strtox;
mod syncookie;
mod system_calls;
mod timer;
mod trace_printk;
mod tunnel;
mod types;
mod variables;
mod vlan;
mod xdp;

use vm::{Call, Helper, MemoryPort, direct_call};

pub(crate) use bytes::Bytes;
pub(crate) use packet::store_bytes;
pub(crate) use probe::why_unreadable;
pub(crate) use snprintf::{arguments as format_arguments, text as format_text};

/// The result of a helper that fails with `EFAULT`.
const EFAULT: u64 = -14i64 as u64;

/// The name of a helper: that of its function behind `bpf_`, or the one that is given.
macro_rules! name {
    ($name:ident) => {
        concat!("bpf_", stringify!($name))
    };
    ($name:ident $given:literal) => {
        $given
    };
}

/// Defines the lookups from the paths of the helpers' functions, which are named as the
/// helpers without `bpf_`; a wrong name does not compile.
macro_rules! table {
    ($($module:ident::$name:ident $(= $given:literal)?,)*) => {
        #[allow(non_upper_case_globals)]
        mod numbers {
            $(pub(super) const $name: i32 = super::number(name!($name $($given)?));)*
        }

        /// The helper of that number, for the memory of an engine; `None` if it is not
        /// built.
        pub fn find<M: MemoryPort>(number: i32) -> Option<Helper<M>> {
            Some(match number {
                $(numbers::$name => $module::$name,)*
                _ => return None,
            })
        }

        /// The function of a helper that code of verified programs calls; `None` if it is
        /// not built, or returns the model task or variables of the kernel, which only the checked
        /// engine's memory has.
        pub fn find_call(number: i32) -> Option<Call> {
            if let numbers::get_current_task
            | numbers::get_current_task_btf
            | numbers::task_pt_regs
            | numbers::per_cpu_ptr
            | numbers::this_cpu_ptr = number
            {
                return None;
            }
            Some(match number {
                $(numbers::$name => direct_call($module::$name),)*
                _ => return None,
            })
        }

        /// Numbers of the helpers that [`find`] has, ascending.
        pub const NUMBERS: &[i32] = &[$(numbers::$name,)*];

        /// True for helpers about what does not exist here: they return what the kernel
        /// returns where it does not exist.
        pub fn is_about_absent(number: i32) -> bool {
            match number {
                $(numbers::$name => stringify!($module) == "absence",)*
                _ => false,
            }
        }
    };
}

table! {
    map::map_lookup_elem,
    map::map_update_elem,
    map::map_delete_elem,
    probe::probe_read,
    run_context::ktime_get_ns,
    trace_printk::trace_printk,
    run_context::get_prandom_u32,
    run_context::get_smp_processor_id,
    packet::skb_store_bytes,
    csum_replace::l3_csum_replace,
    csum_replace::l4_csum_replace,
    redirect::clone_redirect,
    process::get_current_pid_tgid,
    process::get_current_uid_gid,
    process::get_current_comm,
    absence::get_cgroup_classid,
    vlan::skb_vlan_push,
    vlan::skb_vlan_pop,
    tunnel::skb_get_tunnel_key,
    tunnel::skb_set_tunnel_key,
    absence::perf_event_read,
    redirect::redirect,
    absence::get_route_realm,
    perf::perf_event_output,
    packet::skb_load_bytes,
    stack::get_stackid,
    csum_diff::csum_diff,
    tunnel::skb_get_tunnel_opt,
    tunnel::skb_set_tunnel_opt,
    room::skb_change_proto,
    skb::skb_change_type,
    storage::skb_under_cgroup,
    skb::get_hash_recalc,
    storage::get_current_task,
    storage::current_task_under_cgroup,
    room::skb_change_tail,
    skb::skb_pull_data,
    skb::csum_update,
    skb::set_hash_invalid,
    run_context::get_numa_node_id,
    room::skb_change_head,
    xdp::xdp_adjust_head,
    probe::probe_read_str,
    socket::get_socket_cookie,
    socket::get_socket_uid,
    skb::set_hash,
    room::skb_adjust_room,
    redirect::redirect_map,
    xdp::xdp_adjust_meta,
    absence::perf_event_read_value,
    xdp::xdp_adjust_tail,
    absence::skb_get_xfrm_state,
    stack::get_stack,
    packet::skb_load_bytes_relative,
    fib::fib_lookup,
    encap::lwt_push_encap,
    socket::skb_cgroup_id,
    process::get_current_cgroup_id,
    storage::get_local_storage,
    socket::skb_ancestor_cgroup_id,
    socket_lookup::sk_lookup_tcp,
    socket_lookup::sk_lookup_udp,
    socket_lookup::sk_release,
    map::map_push_elem,
    map::map_pop_elem,
    map::map_peek_elem,
    spin_lock::spin_lock,
    spin_lock::spin_unlock,
    socket_parts::sk_fullsock,
    socket_parts::tcp_sock,
    skb::skb_ecn_set_ce,
    socket_parts::get_listener_sock,
    socket_lookup::skc_lookup_tcp,
    syncookie::tcp_check_syncookie,
    strtox::strtol,
    strtox::strtoul,
    storage::sk_storage_get,
    storage::sk_storage_delete,
    absence::send_signal,
    syncookie::tcp_gen_syncookie,
    absence::skb_output,
    absence::probe_read_user,
    probe::probe_read_kernel,
    absence::probe_read_user_str,
    probe::probe_read_kernel_str,
    absence::send_signal_thread,
    run_context::jiffies64,
    process::get_ns_current_pid_tgid,
    absence::xdp_output,
    socket::get_netns_cookie,
    process::get_current_ancestor_cgroup_id,
    socket_assign::sk_assign,
    run_context::ktime_get_boot_ns,
    socket::sk_cgroup_id,
    socket::sk_ancestor_cgroup_id,
    ringbuf::ringbuf_output,
    ringbuf::ringbuf_reserve,
    ringbuf::ringbuf_submit,
    ringbuf::ringbuf_discard,
    ringbuf::ringbuf_query,
    skb::csum_level,
    socket_parts::skc_to_tcp6_sock,
    socket_parts::skc_to_tcp_sock,
    socket_parts::skc_to_tcp_timewait_sock,
    socket_parts::skc_to_tcp_request_sock,
    socket_parts::skc_to_udp6_sock,
    stack::get_task_stack,
    absence::d_path,
    absence::copy_from_user,
    types::snprintf_btf,
    absence::skb_cgroup_classid,
    redirect::redirect_neigh,
    variables::per_cpu_ptr,
    variables::this_cpu_ptr,
    redirect::redirect_peer,
    storage::task_storage_get,
    storage::task_storage_delete,
    storage::get_current_task_btf,
    run_context::ktime_get_coarse_ns,
    absence::sock_from_file,
    mtu::check_mtu,
    callbacks::for_each_map_elem,
    snprintf::snprintf,
    system_calls::sys_bpf,
    types::btf_find_by_name_kind,
    system_calls::sys_close,
    timer::timer_init,
    timer::timer_set_callback,
    timer::timer_start,
    timer::timer_cancel,
    absence::get_func_ip,
    absence::get_attach_cookie,
    storage::task_pt_regs,
    absence::get_branch_snapshot,
    trace_printk::trace_vprintk,
    socket_parts::skc_to_unix_sock,
    absence::kallsyms_lookup_name,
    absence::find_vma,
    callbacks::r#loop = "bpf_loop",
    strncmp::strncmp,
    xdp::xdp_get_buff_len,
    xdp::xdp_load_bytes,
    xdp::xdp_store_bytes,
    absence::copy_from_user_task,
    skb::skb_set_tstamp,
    storage::kptr_xchg,
    map::map_lookup_percpu_elem,
    socket_parts::skc_to_mptcp_sock,
    dynptr::dynptr_from_mem,
    dynptr::ringbuf_reserve_dynptr,
    dynptr::ringbuf_submit_dynptr,
    dynptr::ringbuf_discard_dynptr,
    dynptr::dynptr_read,
    dynptr::dynptr_write,
    dynptr::dynptr_data,
    syncookie::tcp_raw_gen_syncookie_ipv4,
    syncookie::tcp_raw_gen_syncookie_ipv6,
    syncookie::tcp_raw_check_syncookie_ipv4,
    syncookie::tcp_raw_check_syncookie_ipv6,
    run_context::ktime_get_tai_ns,
    callbacks::user_ringbuf_drain,
    storage::cgrp_storage_get,
    storage::cgrp_storage_delete,
}

/// The number of a helper; a wrong name does not compile.
const fn number(name: &str) -> i32 {
    match spec::helpers::number(name) {
        Some(number) => number,
        None => panic!("no helper has this name"),
    }
}

#[cfg(test)]
mod tests;
