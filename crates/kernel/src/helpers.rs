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
mod user_memory;
mod variables;
mod vlan;
mod xdp;

use vm::{Helper, Implementation, MemoryPort, direct_call};

use crate::call::helper;

pub(crate) use bytes::Bytes;
pub(crate) use packet::store_bytes;
pub(crate) use probe::why_unreadable;
pub(crate) use snprintf::{arguments as format_arguments, text as format_text};
pub(crate) use storage::{delete as owned_delete, get as owned_get};

/// The result of a helper that fails with `EFAULT`.
const EFAULT: u64 = spec::Errno::EFAULT.negated();

/// The name of a helper: that of its function behind `bpf_`, or the one that is given.
macro_rules! name {
    ($name:ident) => {
        concat!("bpf_", stringify!($name))
    };
    ($name:ident $given:literal) => {
        $given
    };
}

/// What code of verified programs calls. A helper `in checked` returns the model task or variables
/// of the kernel, which only the checked engine's memory has.
macro_rules! implementation {
    ($function:expr, $declared:literal) => {
        Implementation {
            call: direct_call(helper!($function)),
            declared: $declared,
        }
    };
    ($function:expr, $declared:literal, checked) => {
        return None
    };
}

/// Defines the lookups from the paths of the helpers' functions, which are named as the
/// helpers without `bpf_`; a wrong name does not compile.
macro_rules! table {
    ($($module:ident::$name:ident $(= $given:literal)?: $declared:literal $(in $engine:ident)?,)*) => {
        #[allow(non_upper_case_globals)]
        mod numbers {
            $(pub(super) const $name: i32 = super::number(name!($name $($given)?));)*
        }

        /// The helper of that number, for the memory of an engine; `None` if it is not
        /// built.
        pub fn find<M: MemoryPort>(number: i32) -> Option<Helper<M>> {
            Some(match number {
                $(numbers::$name => helper!($module::$name),)*
                _ => return None,
            })
        }

        /// The function of a helper that code of verified programs calls; `None` if it is
        /// not built, or is `in checked`.
        pub fn find_call(number: i32) -> Option<Implementation> {
            Some(match number {
                $(numbers::$name => implementation!($module::$name, $declared $(, $engine)?),)*
                _ => return None,
            })
        }

        /// What the helper of that number declares; see [`Implementation::declared`].
        pub fn declared(number: i32) -> Option<&'static str> {
            Some(match number {
                $(numbers::$name => $declared,)*
                _ => return None,
            })
        }

        /// Numbers of the helpers that [`find`] has, ascending.
        pub const NUMBERS: &[i32] = &[$(numbers::$name,)*];

        /// True for helpers about what does not exist here: they return what the kernel
        /// returns where it does not exist.
        pub fn is_about_absent(number: i32) -> bool {
            match number {
                $(numbers::$name => matches!(stringify!($module), "absence" | "user_memory"),)*
                _ => false,
            }
        }

        /// True for helpers that read memory of the process, which there is where a test gives it.
        pub fn is_about_user_memory(number: i32) -> bool {
            match number {
                $(numbers::$name => stringify!($module) == "user_memory",)*
                _ => false,
            }
        }
    };
}

table! {
    map::map_lookup_elem: "map map_key -> map_value?",
    map::map_update_elem: "map map_key map_value any -> int",
    map::map_delete_elem: "map map_key -> int",
    probe::probe_read: "mem:w size0 any@ -> int",
    run_context::ktime_get_ns: "-> int",
    trace_printk::trace_printk: "mem:r@ size -> int",
    run_context::get_prandom_u32: "-> int",
    run_context::get_smp_processor_id: "-> int",
    packet::skb_store_bytes: "ctx any mem:r size any -> int",
    csum_replace::l3_csum_replace: "ctx any any any any -> int",
    csum_replace::l4_csum_replace: "ctx any any any any -> int",
    redirect::clone_redirect: "ctx any any -> int",
    process::get_current_pid_tgid: "-> int",
    process::get_current_uid_gid: "-> int",
    process::get_current_comm: "mem:w size -> int",
    absence::get_cgroup_classid: "-> int or ctx -> int",
    vlan::skb_vlan_push: "ctx any any -> int",
    vlan::skb_vlan_pop: "ctx -> int",
    tunnel::skb_get_tunnel_key: "ctx mem:w size any -> int",
    tunnel::skb_set_tunnel_key: "ctx mem:r size any -> int",
    absence::perf_event_read: "map any -> int",
    redirect::redirect: "any any -> int",
    absence::get_route_realm: "ctx -> int",
    perf::perf_event_output: "ctx map any mem:r size0 -> int",
    packet::skb_load_bytes: "ctx any mem:w size -> int",
    stack::get_stackid: "ctx map any -> int",
    csum_diff::csum_diff: "mem?:r size0 mem?:r size0 any -> int",
    tunnel::skb_get_tunnel_opt: "ctx mem:w size -> int",
    tunnel::skb_set_tunnel_opt: "ctx mem:r size -> int",
    room::skb_change_proto: "ctx any any -> int",
    skb::skb_change_type: "ctx any -> int",
    storage::skb_under_cgroup: "ctx map any -> int",
    skb::get_hash_recalc: "ctx -> int",
    storage::get_current_task: "-> int" in checked,
    absence::probe_write_user: "any mem:r size -> int",
    storage::current_task_under_cgroup: "map any -> int",
    room::skb_change_tail: "ctx any any -> int",
    skb::skb_pull_data: "ctx any -> int",
    skb::csum_update: "ctx any -> int",
    skb::set_hash_invalid: "ctx -> int",
    run_context::get_numa_node_id: "-> int",
    room::skb_change_head: "ctx any any -> int",
    xdp::xdp_adjust_head: "ctx any -> int",
    probe::probe_read_str: "mem:w size0 any@ -> int",
    socket::get_socket_cookie: "btf_id_sock_common? -> int or ctx -> int",
    socket::get_socket_uid: "ctx -> int",
    skb::set_hash: "ctx any -> int",
    room::skb_adjust_room: "ctx any any any -> int",
    redirect::redirect_map: "map any any -> int",
    xdp::xdp_adjust_meta: "ctx any -> int",
    absence::perf_event_read_value: "map any mem:w size -> int",
    xdp::xdp_adjust_tail: "ctx any -> int",
    absence::skb_get_xfrm_state: "ctx any mem:w size any -> int",
    stack::get_stack: "ctx mem:w size0 any -> int",
    packet::skb_load_bytes_relative: "ctx any mem:w size any -> int",
    fib::fib_lookup: "ctx mem:w size any -> int",
    encap::lwt_push_encap: "ctx any mem:r size -> int",
    socket::skb_cgroup_id: "ctx -> int",
    process::get_current_cgroup_id: "-> int",
    storage::get_local_storage: "map any -> map_value",
    socket::skb_ancestor_cgroup_id: "ctx any -> int",
    socket_lookup::sk_lookup_tcp: "ctx mem:r size0 any any -> socket?",
    socket_lookup::sk_lookup_udp: "ctx mem:r size0 any any -> socket?",
    socket_lookup::sk_release: "btf_id_sock_common:release -> int",
    map::map_push_elem: "map map_value any -> int",
    map::map_pop_elem: "map map_value:w -> int",
    map::map_peek_elem: "map map_value:w -> int",
    spin_lock::spin_lock: "spin_lock -> void",
    spin_lock::spin_unlock: "spin_lock -> void",
    socket_parts::sk_fullsock: "sock_common -> socket?",
    socket_parts::tcp_sock: "sock_common -> tcp_sock?",
    skb::skb_ecn_set_ce: "ctx -> int",
    socket_parts::get_listener_sock: "sock_common -> socket?",
    socket_lookup::skc_lookup_tcp: "ctx mem:r size0 any any -> sock_common?",
    syncookie::tcp_check_syncookie: "btf_id_sock_common mem:r size mem:r size -> int",
    strtox::strtol: "mem:r size any mem:w:8 -> int",
    strtox::strtoul: "mem:r size any mem:w:8 -> int",
    storage::sk_storage_get:
        "map btf_id?=sock_common map_value? any -> map_value? or map btf_id_sock_common map_value? any -> map_value? or map ctx map_value? any -> map_value?",
    storage::sk_storage_delete: "map btf_id?=sock_common -> int or map btf_id_sock_common -> int",
    absence::send_signal: "any -> int",
    syncookie::tcp_gen_syncookie: "btf_id_sock_common mem:r size mem:r size -> int",
    absence::skb_output: "btf_id=sk_buff map any mem:r size0 -> int",
    user_memory::probe_read_user: "mem:w size0 any -> int",
    probe::probe_read_kernel: "mem:w size0 any@ -> int",
    user_memory::probe_read_user_str: "mem:w size0 any -> int",
    probe::probe_read_kernel_str: "mem:w size0 any@ -> int",
    absence::send_signal_thread: "any -> int",
    run_context::jiffies64: "-> int",
    process::get_ns_current_pid_tgid: "any any mem:w size -> int",
    absence::xdp_output: "btf_id=xdp_buff map any mem:r size0 -> int",
    socket::get_netns_cookie: "ctx? -> int",
    process::get_current_ancestor_cgroup_id: "any -> int",
    socket_assign::sk_assign: "ctx btf_id_sock_common any -> int or ctx socket? any -> int",
    run_context::ktime_get_boot_ns: "-> int",
    socket::sk_cgroup_id: "btf_id_sock_common -> int",
    socket::sk_ancestor_cgroup_id: "btf_id_sock_common any -> int",
    ringbuf::ringbuf_output: "map mem:r size0 any -> int",
    ringbuf::ringbuf_reserve: "map const_alloc_size_or_zero any -> mem?:ringbuf",
    ringbuf::ringbuf_submit: "ringbuf_mem:release any -> void",
    ringbuf::ringbuf_discard: "ringbuf_mem:release any -> void",
    ringbuf::ringbuf_query: "map any -> int",
    skb::csum_level: "ctx any -> int",
    socket_parts::skc_to_tcp6_sock: "btf_id_sock_common -> btf_id?=tcp6_sock",
    socket_parts::skc_to_tcp_sock: "btf_id_sock_common -> btf_id?=tcp_sock",
    socket_parts::skc_to_tcp_timewait_sock: "btf_id_sock_common -> btf_id?=tcp_timewait_sock",
    socket_parts::skc_to_tcp_request_sock: "btf_id_sock_common -> btf_id?=tcp_request_sock",
    socket_parts::skc_to_udp6_sock: "btf_id_sock_common -> btf_id?=udp6_sock",
    stack::get_task_stack: "btf_id=task_struct mem:w size0 any -> int",
    absence::d_path: "btf_id=path mem:w size0 -> int",
    user_memory::copy_from_user: "mem:w size0 any -> int",
    types::snprintf_btf: "mem:w size mem:r@ size any -> int",
    absence::skb_cgroup_classid: "ctx -> int",
    redirect::redirect_neigh: "any mem?:r size0 any -> int",
    variables::per_cpu_ptr: "percpu_btf_id any -> mem_or_btf_id?:r" in checked,
    variables::this_cpu_ptr: "percpu_btf_id -> mem_or_btf_id:r" in checked,
    redirect::redirect_peer: "any any -> int",
    storage::task_storage_get: "map btf_id?=task_struct map_value? any -> map_value?",
    storage::task_storage_delete: "map btf_id?=task_struct -> int",
    storage::get_current_task_btf: "-> btf_id=task_struct" in checked,
    run_context::ktime_get_coarse_ns: "-> int",
    absence::sock_from_file: "btf_id=file -> btf_id?=socket",
    mtu::check_mtu: "ctx any mem:w:4 any any -> int",
    callbacks::for_each_map_elem: "map func stack? any -> int",
    snprintf::snprintf: "mem?:w size0 const_str mem?:r@ size0 -> int",
    system_calls::sys_bpf: "any mem:r@ size -> int",
    types::btf_find_by_name_kind: "mem:r size any any -> int",
    system_calls::sys_close: "any -> int",
    timer::timer_init: "timer map any -> int",
    timer::timer_set_callback: "timer func -> int",
    timer::timer_start: "timer any any -> int",
    timer::timer_cancel: "timer -> int",
    absence::get_func_ip: "ctx -> int",
    absence::get_attach_cookie: "ctx -> int",
    storage::task_pt_regs: "btf_id=task_struct -> btf_id=pt_regs" in checked,
    absence::get_branch_snapshot: "mem:w size0 -> int",
    trace_printk::trace_vprintk: "mem:r size mem?:r@ size0 -> int",
    socket_parts::skc_to_unix_sock: "btf_id_sock_common -> btf_id?=unix_sock",
    absence::kallsyms_lookup_name: "mem:r size0 any mem:w:8 -> int",
    absence::find_vma: "btf_id=task_struct any func stack? any -> int",
    callbacks::r#loop = "bpf_loop": "any func stack? any -> int",
    strncmp::strncmp: "mem:r size const_str -> int",
    xdp::xdp_get_buff_len: "btf_id=xdp_buff -> int or ctx -> int",
    xdp::xdp_load_bytes: "ctx any mem:w size -> int",
    xdp::xdp_store_bytes: "ctx any mem:r size -> int",
    user_memory::copy_from_user_task: "mem:w size0 any btf_id=task_struct any -> int",
    skb::skb_set_tstamp: "ctx any any -> int",
    storage::kptr_xchg: "kptr_xchg_dest btf_id?:release -> btf_id?",
    map::map_lookup_percpu_elem: "map map_key any -> map_value?",
    socket_parts::skc_to_mptcp_sock: "sock_common -> btf_id?=mptcp_sock",
    dynptr::dynptr_from_mem: "mem:w size0 any dynptr:w:local -> int",
    dynptr::ringbuf_reserve_dynptr: "map any any dynptr:w:record -> int",
    dynptr::ringbuf_submit_dynptr: "dynptr:release:record any -> void",
    dynptr::ringbuf_discard_dynptr: "dynptr:release:record any -> void",
    dynptr::dynptr_read: "mem:w size0 dynptr:r any any -> int",
    dynptr::dynptr_write: "dynptr:r any mem:r size0 any -> int",
    dynptr::dynptr_data: "dynptr:r any const_alloc_size_or_zero -> mem?",
    syncookie::tcp_raw_gen_syncookie_ipv4: "mem:r:20 mem:r size0 -> int",
    syncookie::tcp_raw_gen_syncookie_ipv6: "mem:r:40 mem:r size0 -> int",
    syncookie::tcp_raw_check_syncookie_ipv4: "mem:r:20 mem:r:20 -> int",
    syncookie::tcp_raw_check_syncookie_ipv6: "mem:r:40 mem:r:20 -> int",
    run_context::ktime_get_tai_ns: "-> int",
    callbacks::user_ringbuf_drain: "map func stack? any -> int",
    storage::cgrp_storage_get: "map btf_id?=cgroup map_value? any -> map_value?",
    storage::cgrp_storage_delete: "map btf_id?=cgroup -> int",
}

/// The number of a helper; a wrong name does not compile.
const fn number(name: &str) -> i32 {
    match spec::helpers::number(name) {
        Some(number) => number,
        None => panic!("no helper has this name"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
