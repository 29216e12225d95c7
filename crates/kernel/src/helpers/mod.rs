//! Helpers, by number.

mod csum_diff;
mod map;
mod packet;
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
    map::MAP_LOOKUP_PERCPU_ELEM => map::map_lookup_percpu_elem,
    world::KTIME_GET_NS | world::KTIME_GET_BOOT_NS | world::KTIME_GET_COARSE_NS
        => world::ktime_get_ns,
    world::GET_PRANDOM_U32 => world::get_prandom_u32,
    world::GET_SMP_PROCESSOR_ID => world::get_smp_processor_id,
    packet::SKB_LOAD_BYTES => packet::skb_load_bytes,
    csum_diff::NUMBER => csum_diff::csum_diff,
}

/// Numbers of the helpers that [`find`] has, ascending.
pub const NUMBERS: &[i32] = &[
    map::MAP_LOOKUP_ELEM,
    map::MAP_UPDATE_ELEM,
    map::MAP_DELETE_ELEM,
    world::KTIME_GET_NS,
    world::GET_PRANDOM_U32,
    world::GET_SMP_PROCESSOR_ID,
    packet::SKB_LOAD_BYTES,
    csum_diff::NUMBER,
    world::KTIME_GET_BOOT_NS,
    world::KTIME_GET_COARSE_NS,
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
