//! Helpers, by number.

mod csum_diff;
mod csum_replace;
mod map;
mod packet;
mod process;
mod ringbuf;
mod snprintf;
mod strncmp;
mod strtox;
mod trace_printk;
mod world;

use vm::{Call, Helper, MemoryPort, direct_call};

/// The result of a helper that fails with `EFAULT`.
const EFAULT: u64 = -14i64 as u64;

/// Defines the lookups from the paths of the helpers' functions, which are named as the
/// helpers without `bpf_`; a wrong name does not compile.
macro_rules! table {
    ($($module:ident::$name:ident,)*) => {
        #[allow(non_upper_case_globals)]
        mod numbers {
            $(pub(super) const $name: i32 = super::number(concat!("bpf_", stringify!($name)));)*
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
        /// not built.
        pub fn find_call(number: i32) -> Option<Call> {
            Some(match number {
                $(numbers::$name => direct_call($module::$name),)*
                _ => return None,
            })
        }

        /// Numbers of the helpers that [`find`] has, ascending.
        pub const NUMBERS: &[i32] = &[$(numbers::$name,)*];
    };
}

table! {
    map::map_lookup_elem,
    map::map_update_elem,
    map::map_delete_elem,
    world::ktime_get_ns,
    trace_printk::trace_printk,
    world::get_prandom_u32,
    world::get_smp_processor_id,
    packet::skb_store_bytes,
    csum_replace::l3_csum_replace,
    csum_replace::l4_csum_replace,
    process::get_current_pid_tgid,
    process::get_current_uid_gid,
    process::get_current_comm,
    packet::skb_load_bytes,
    csum_diff::csum_diff,
    world::get_numa_node_id,
    packet::skb_load_bytes_relative,
    process::get_current_cgroup_id,
    map::map_push_elem,
    map::map_pop_elem,
    map::map_peek_elem,
    strtox::strtol,
    strtox::strtoul,
    world::jiffies64,
    process::get_ns_current_pid_tgid,
    world::ktime_get_boot_ns,
    ringbuf::ringbuf_output,
    ringbuf::ringbuf_reserve,
    ringbuf::ringbuf_submit,
    ringbuf::ringbuf_discard,
    ringbuf::ringbuf_query,
    world::ktime_get_coarse_ns,
    snprintf::snprintf,
    trace_printk::trace_vprintk,
    strncmp::strncmp,
    map::map_lookup_percpu_elem,
    world::ktime_get_tai_ns,
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
