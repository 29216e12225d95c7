//! Rules of map creation, with answers of Linux 6.18.44 to bpf(2) for requests without types.

use beebox_program::MapParams;
use beebox_program::creation::{Machine, MapRefusal, check_numbers};
use spec::Errno;
use spec::maps::{MapFlags, MapKind};

/// A machine with two CPUs and 16 GiB.
const MACHINE: Machine = Machine {
    cpus: 2,
    memory: 16 << 30,
    rounds_arrays: false,
    most_cpus: 256,
};

fn params(kind: MapKind, numbers: [u32; 4]) -> MapParams {
    let [key_size, value_size, max_entries, flags] = numbers;
    MapParams {
        map_type: kind.number(),
        key_size,
        value_size,
        max_entries,
        flags: MapFlags(flags),
        ..MapParams::default()
    }
}

fn refusal(kind: MapKind, numbers: [u32; 4]) -> Option<MapRefusal> {
    check_numbers(&params(kind, numbers), &MACHINE).err()
}

#[test]
fn requests_are_answered_as_by_linux() {
    use MapKind as K;
    const MAX: u32 = u32::MAX;
    let answers = [
        (K::Hash, [4, 8, 4, 0], None),
        (K::Hash, [4, 0, 4, 0], Some(Errno::EINVAL)),
        (K::Hash, [4, 8, 4, 1 << 10], Some(Errno::EINVAL)),
        (K::Hash, [4, 5 << 20, 4, 0], Some(Errno::E2BIG)),
        (K::Hash, [4, 8, 1 << 27, 1], None),
        (K::Hash, [4, 8, (1 << 27) + 1, 1], Some(Errno::E2BIG)),
        (K::PercpuHash, [4, 8, 4, 4], Some(Errno::EINVAL)),
        (K::PercpuHash, [4, 40_000, 4, 0], Some(Errno::E2BIG)),
        (K::LruHash, [4, 8, 4, 1], Some(Errno::ENOTSUPP)),
        (K::LruHash, [4, 8, 4, 2], None),
        (K::Array, [8, 8, 4, 0], Some(Errno::EINVAL)),
        (K::Array, [4, 8, 4, 1 << 10], None),
        (K::Array, [4, 8, 4, 0x180], Some(Errno::EINVAL)),
        (K::Array, [4, 1 << 31, 4, 0], Some(Errno::E2BIG)),
        (K::Array, [4, 8, MAX, 0], Some(Errno::ENOMEM)),
        (K::PercpuArray, [4, 32_768, 4, 0], None),
        (K::PercpuArray, [4, 32_769, 4, 0], Some(Errno::E2BIG)),
        (K::ProgArray, [4, 8, 4, 0], Some(Errno::EINVAL)),
        (K::ProgArray, [4, 4, MAX, 0], Some(Errno::ENOMEM)),
        (K::PerfEventArray, [4, 4, 4, 1 << 11], None),
        (K::CgroupArray, [4, 4, 4, 1 << 11], Some(Errno::EINVAL)),
        (K::Devmap, [4, 16, 4, 0], Some(Errno::EINVAL)),
        (K::DevmapHash, [4, 4, (1 << 31) + 1, 0], Some(Errno::EINVAL)),
        (K::Xskmap, [4, 8, 4, 0], Some(Errno::EINVAL)),
        (K::Cpumap, [4, 4, 257, 0], Some(Errno::E2BIG)),
        (K::Sockhash, [513, 4, 4, 0], Some(Errno::E2BIG)),
        (K::Sockhash, [4, 4, (1 << 27) + 1, 0], Some(Errno::EINVAL)),
        (K::LpmTrie, [8, 8, 4, 0], Some(Errno::EINVAL)),
        (K::LpmTrie, [4, 8, 4, 1], Some(Errno::EINVAL)),
        (K::LpmTrie, [8, 8, MAX, 1], None),
        (K::StackTrace, [4, 1016, 4, 0], None),
        (K::StackTrace, [4, 1024, 4, 0], Some(Errno::EINVAL)),
        (K::StackTrace, [4, 0, 4, 0], Some(Errno::EINVAL)),
        (K::StackTrace, [4, 8, MAX, 0], Some(Errno::E2BIG)),
        (K::Queue, [4, 4, 4, 0], Some(Errno::EINVAL)),
        (K::Queue, [0, 16, MAX, 0], Some(Errno::ENOMEM)),
        (K::BloomFilter, [0, 8, MAX, 0], None),
        (K::BloomFilter, [4, 8, 4, 0], Some(Errno::EINVAL)),
        (K::Ringbuf, [0, 0, 4096, 0], None),
        (K::Ringbuf, [0, 0, 5000, 0], Some(Errno::EINVAL)),
        (K::Ringbuf, [4, 4, 4096, 0], Some(Errno::EINVAL)),
        (K::Arena, [0, 0, 1, 1 << 10], None),
        (K::Arena, [0, 0, 1, 0], Some(Errno::EINVAL)),
        (K::Arena, [0, 0, (1 << 20) + 1, 1 << 10], Some(Errno::E2BIG)),
        (K::CgroupStorage, [16, 8, 0, 0], None),
        (K::CgroupStorage, [16, 8, 1, 0], Some(Errno::EINVAL)),
        (K::CgroupStorage, [16, 0xff80, 0, 0], Some(Errno::E2BIG)),
        (K::TaskStorage, [4, 8, 0, 1], Some(Errno::EINVAL)),
        (K::InsnArray, [4, 16, 4, 0], Some(Errno::EINVAL)),
    ];
    for (kind, numbers, errno) in answers {
        let found = refusal(kind, numbers);
        assert_eq!(
            found.as_ref().map(|refusal| refusal.errno),
            errno,
            "{kind:?} {numbers:?}: {found:?}"
        );
    }
}

#[test]
fn a_rule_is_said_in_words() {
    use MapKind as K;
    let words = [
        (
            K::LpmTrie,
            [8, 8, 4, 0],
            "an LPM trie needs BPF_F_NO_PREALLOC (EINVAL)",
        ),
        (
            K::Array,
            [8, 8, 4, 0],
            "keys of arrays have 4 bytes, not 8 (EINVAL)",
        ),
        (
            K::Hash,
            [4, 0, 4, 0],
            "values of hash maps have at least 1 byte, not 0 (EINVAL)",
        ),
        (
            K::Hash,
            [4, 8, 0, 0],
            "a hash map needs max_entries (EINVAL)",
        ),
        (
            K::Hash,
            [4, 8, 4, 1 << 10 | 1 << 25],
            "a hash map does not take BPF_F_MMAPABLE and flag 0x2000000 (EINVAL)",
        ),
        (
            K::Array,
            [4, 8, 4, 0x180],
            "BPF_F_RDONLY_PROG and BPF_F_WRONLY_PROG exclude each other (EINVAL)",
        ),
        (
            K::Ringbuf,
            [0, 8, 4096, 0],
            "ring buffers have no values, here of 8 bytes (EINVAL)",
        ),
        (
            K::Devmap,
            [4, 16, 4, 0],
            "values of devmaps have 4 or 8 bytes, not 16 (EINVAL)",
        ),
        (
            K::PercpuArray,
            [4, 40_000, 4, 0],
            "values of per-CPU arrays have at most 32768 bytes for each CPU, not 40000 (E2BIG)",
        ),
        (
            K::Ringbuf,
            [0, 0, 5000, 0],
            "max_entries of ring buffers is a power of two and a multiple of 4096, not 5000 \
             (EINVAL)",
        ),
        (
            K::Array,
            [4, 4096, i32::MAX as u32, 0],
            "the map takes 8.0 TiB when it is created, the machine has 16 GiB (ENOMEM)",
        ),
    ];
    for (kind, numbers, expected) in words {
        let found = refusal(kind, numbers).map(|refusal| refusal.to_string());
        assert_eq!(found.as_deref(), Some(expected));
    }
}
