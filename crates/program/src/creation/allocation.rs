//! Memory that Linux takes when it creates a map, and the numbers of entries whose memory it
//! does not count in 64 bits.
//!
//! Linux refuses what is larger than the memory of the machine (ENOMEM). The machine is a model
//! with a stated memory, so that the answer is the same everywhere; what other maps and programs
//! take is not counted.

use spec::Errno;
use spec::maps::{MapFlags, MapKind};

use super::Machine;
use super::attributes::HASH_ELEMENT;
use super::fault::{EntriesRule, MapFault, MapRefusal};
use crate::map_def::{MapParams, PAGE_SIZE};

/// Most buckets of a hash table or a `sockhash`: the kernel counts their memory, 16 bytes each,
/// in 32 bits.
const MOST_BUCKETS: u32 = 1 << 27;
const BUCKET: u64 = 16;

/// Bytes of a pointer.
const POINTER: u64 = 8;

/// Bytes of the kernel in front of the frames of a stack trace (`struct stack_map_bucket`).
const STACK_BUCKET: u64 = 16;

/// Hash functions of a Bloom filter that states none.
const BLOOM_HASHES: u32 = 5;

/// Checks the memory of a map whose sizes are valid; its bytes.
///
/// # Errors
/// E2BIG or EINVAL for more entries than the kernel counts, ENOMEM for more memory than the
/// machine has.
pub(super) fn check_memory(
    kind: MapKind,
    params: &MapParams,
    machine: &Machine,
) -> Result<u64, MapRefusal> {
    let most = if kind.has_buckets() {
        let errno = match kind.holds_sockets() {
            true => Errno::EINVAL,
            false => Errno::E2BIG,
        };
        Some((errno, MOST_BUCKETS))
    } else {
        let is_rounded = kind.is_array() && machine.rounds_arrays;
        is_rounded.then_some((Errno::E2BIG, 1 << 31))
    };
    let entries = params.max_entries;
    if let Some((errno, most)) = most.filter(|(_, most)| entries > *most) {
        let rule = EntriesRule::AtMost(most);
        let fault = MapFault::Entries {
            kind,
            entries,
            rule,
        };
        return Err(fault.with(errno));
    }
    let bytes = bytes(kind, params, machine);
    let memory = machine.memory;
    match bytes > memory {
        true => Err(MapFault::Memory { bytes, memory }.with(Errno::ENOMEM)),
        false => Ok(bytes),
    }
}

/// Bytes of memory that a map takes when it is created.
fn bytes(kind: MapKind, params: &MapParams, machine: &Machine) -> u64 {
    use MapKind as K;
    let entries = u64::from(params.max_entries);
    let value = u64::from(params.value_size).next_multiple_of(8);
    let elements = match machine.rounds_arrays {
        true => entries.next_power_of_two(),
        false => entries,
    };
    match kind {
        K::Array => match params.flags.has(MapFlags::MMAPABLE) {
            true => (elements.saturating_mul(value)).next_multiple_of(PAGE_SIZE.into()),
            false => elements.saturating_mul(value),
        },
        K::PercpuArray => {
            let values = value * u64::from(machine.cpus);
            elements.saturating_mul(POINTER + values)
        }
        K::ProgArray | K::PerfEventArray | K::CgroupArray | K::ArrayOfMaps => elements * POINTER,
        K::Hash | K::PercpuHash | K::LruHash | K::LruPercpuHash | K::HashOfMaps => {
            hash(kind, params, machine, value)
        }
        K::Queue | K::Stack => (entries + 1).saturating_mul(params.value_size.into()),
        K::Devmap | K::Cpumap | K::Xskmap | K::Sockmap | K::ReuseportSockarray => entries * POINTER,
        K::DevmapHash => entries.next_power_of_two() * POINTER,
        K::Sockhash => entries.next_power_of_two() * BUCKET,
        K::StackTrace => {
            let traces = entries.saturating_mul(STACK_BUCKET + u64::from(params.value_size));
            traces.saturating_add(entries.next_power_of_two() * POINTER)
        }
        K::Ringbuf | K::UserRingbuf => entries,
        K::BloomFilter => u64::from(bloom_mask(params)) / 8 + 1,
        // Elements are allocated on insertion, pages when they are touched.
        K::LpmTrie
        | K::Arena
        | K::CgroupStorage
        | K::PercpuCgroupStorage
        | K::SkStorage
        | K::InodeStorage
        | K::TaskStorage
        | K::CgrpStorage
        | K::StructOps
        | K::InsnArray
        | K::Rhash => 0,
    }
}

/// Buckets, and the elements if they are preallocated.
fn hash(kind: MapKind, params: &MapParams, machine: &Machine, value: u64) -> u64 {
    let entries = u64::from(params.max_entries);
    let buckets = entries.next_power_of_two() * BUCKET;
    if params.flags.has(MapFlags::NO_PREALLOC) {
        return buckets;
    }
    let cpus = u64::from(machine.cpus);
    let key = u64::from(params.key_size).next_multiple_of(8);
    let element = u64::from(HASH_ELEMENT) + key;
    let elements = match kind.is_percpu() {
        true => entries.saturating_mul(element + POINTER + value * cpus),
        // Each CPU has an element for updates.
        false if !kind.is_lru() => (entries + cpus).saturating_mul(element + value),
        false => entries.saturating_mul(element + value),
    };
    buckets.saturating_add(elements)
}

/// Number of bits of a Bloom filter less one: entries × hash functions ÷ ln 2, rounded up to a
/// power of two.
pub fn bloom_mask(params: &MapParams) -> u32 {
    let bits = (params.max_entries.checked_mul(bloom_hashes(params)))
        .and_then(|bits| (bits / 5).checked_mul(7))
        .filter(|bits| *bits <= 1 << 31);
    match bits {
        None => u32::MAX,
        Some(bits) => bits.max(64).next_power_of_two() - 1,
    }
}

/// Number of hash functions of a Bloom filter.
pub fn bloom_hashes(params: &MapParams) -> u32 {
    match params.extra {
        0 => BLOOM_HASHES,
        hashes => hashes as u32,
    }
}
