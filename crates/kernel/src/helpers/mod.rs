//! Helpers, by number.

mod csum_diff;
mod csum_replace;
mod map;
mod output;
mod packet;
mod snprintf;
mod strncmp;
mod strtox;
mod world;

use vm::{Call, Helper, MemoryPort, direct_call};

/// The result of a helper that fails with `EFAULT`.
const EFAULT: u64 = -14i64 as u64;

macro_rules! table {
    ($($($number:path)|+ => $helper:path,)*) => {
        /// The helper of that number, for the memory of an engine; `None` if it is not
        /// built.
        pub fn find<M: MemoryPort>(number: i32) -> Option<Helper<M>> {
            Some(match number {
                $($($number)|+ => $helper,)*
                _ => return None,
            })
        }

        /// The function of a helper that code of verified programs calls; `None` if it is
        /// not built.
        pub fn find_call(number: i32) -> Option<Call> {
            Some(match number {
                $($($number)|+ => direct_call($helper),)*
                _ => return None,
            })
        }
    };
}

table! {
    map::MAP_LOOKUP_ELEM => map::map_lookup_elem,
    map::MAP_UPDATE_ELEM => map::map_update_elem,
    map::MAP_DELETE_ELEM => map::map_delete_elem,
    map::MAP_PUSH_ELEM => map::map_push_elem,
    map::MAP_POP_ELEM => map::map_pop_elem,
    map::MAP_PEEK_ELEM => map::map_peek_elem,
    output::RINGBUF_OUTPUT => output::ringbuf_output,
    output::RINGBUF_QUERY => output::ringbuf_query,
    map::MAP_LOOKUP_PERCPU_ELEM => map::map_lookup_percpu_elem,
    world::KTIME_GET_NS | world::KTIME_GET_BOOT_NS | world::KTIME_GET_COARSE_NS
        => world::ktime_get_ns,
    world::GET_PRANDOM_U32 => world::get_prandom_u32,
    world::GET_SMP_PROCESSOR_ID => world::get_smp_processor_id,
    packet::SKB_LOAD_BYTES => packet::skb_load_bytes,
    csum_diff::NUMBER => csum_diff::csum_diff,
    packet::SKB_LOAD_BYTES_RELATIVE => packet::skb_load_bytes_relative,
    packet::SKB_STORE_BYTES => packet::skb_store_bytes,
    csum_replace::L3_CSUM_REPLACE => csum_replace::l3_csum_replace,
    csum_replace::L4_CSUM_REPLACE => csum_replace::l4_csum_replace,
    strtox::STRTOL => strtox::strtol,
    strtox::STRTOUL => strtox::strtoul,
    snprintf::NUMBER => snprintf::snprintf,
    strncmp::NUMBER => strncmp::strncmp,
}

/// Numbers of the helpers that [`find`] has, ascending.
pub const NUMBERS: &[i32] = &[
    map::MAP_LOOKUP_ELEM,
    map::MAP_UPDATE_ELEM,
    map::MAP_DELETE_ELEM,
    world::KTIME_GET_NS,
    world::GET_PRANDOM_U32,
    world::GET_SMP_PROCESSOR_ID,
    packet::SKB_STORE_BYTES,
    csum_replace::L3_CSUM_REPLACE,
    csum_replace::L4_CSUM_REPLACE,
    packet::SKB_LOAD_BYTES,
    csum_diff::NUMBER,
    packet::SKB_LOAD_BYTES_RELATIVE,
    map::MAP_PUSH_ELEM,
    map::MAP_POP_ELEM,
    map::MAP_PEEK_ELEM,
    strtox::STRTOL,
    strtox::STRTOUL,
    world::KTIME_GET_BOOT_NS,
    output::RINGBUF_OUTPUT,
    output::RINGBUF_QUERY,
    world::KTIME_GET_COARSE_NS,
    snprintf::NUMBER,
    strncmp::NUMBER,
    map::MAP_LOOKUP_PERCPU_ELEM,
];

/// The number of a helper; a wrong name does not compile.
const fn number(name: &str) -> i32 {
    match spec::helpers::number(name) {
        Some(number) => number,
        None => panic!("no helper has this name"),
    }
}

#[cfg(test)]
mod tests;
