//! Hashes and tries, whose entries are added and removed.

use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use spec::Errno;
use spec::maps::{MapFlags, MapKind};
use vm::{CellSlice, Cursor};

use super::super::super::flags::{EXIST, NOEXIST};
use super::super::super::{Map, RunGuard, ValueLayout};
use super::super::entry;
use super::{CPUS, Random, THREADS, in_threads, map, rounds};

/// Maps that take no more entries when they are full.
const CHANGING: [(MapKind, MapFlags); 5] = [
    (MapKind::Hash, MapFlags(0)),
    (MapKind::Hash, MapFlags::NO_PREALLOC),
    (MapKind::PercpuHash, MapFlags(0)),
    (MapKind::PercpuHash, MapFlags::NO_PREALLOC),
    (MapKind::LpmTrie, MapFlags::NO_PREALLOC),
];

/// Number of different keys.
const KEYS: u32 = 24;

/// A map with keys of 8 bytes and values of 12, with room for so many entries.
fn changing(kind: MapKind, flags: MapFlags, entries: u32) -> Map {
    map(kind, 8, ValueLayout::plain(12), entries, flags)
}

/// The key of a number; of a trie prefixes of several lengths, one inside the other.
fn key_of(kind: MapKind, number: u32) -> [u8; 8] {
    let mut key = entry(number).0;
    if kind == MapKind::LpmTrie {
        let len = [8u32, 16, 24, 32][number as usize % 4];
        let address = (number / 4) << 24;
        key[..4].copy_from_slice(&len.to_le_bytes());
        key[4..].copy_from_slice(&address.to_be_bytes());
    }
    key
}

/// The number of a key.
fn number_of(kind: MapKind, key: &[u8]) -> u32 {
    (0..KEYS)
        .find(|number| key_of(kind, *number) == *key)
        .unwrap_or_else(|| panic!("{kind:?} has the key {key:?}, which no thread added"))
}

/// The value of a number, as the system call takes it.
fn host_value(map: &Map, number: u32) -> Vec<u8> {
    let value = entry(number).1;
    match map.value_len() {
        12 => value.to_vec(),
        len => [&value[..], &[0; 4]].concat().repeat(len / 16),
    }
}

/// The keys of a map in the order of iteration, which begins again behind a key that is
/// removed meanwhile.
fn keys(map: &Map) -> Vec<u32> {
    let mut keys = Vec::new();
    let mut last: Option<[u8; 8]> = None;
    let mut key = [0; 8];
    while map
        .next_key(last.as_ref().map(|key| &key[..]), &mut key)
        .is_ok()
    {
        keys.push(number_of(map.kind(), &key));
        last = Some(key);
    }
    keys
}

#[test]
fn additions_and_removals_balance() {
    for (kind, flags) in CHANGING {
        for threads in THREADS {
            let map = changing(kind, flags, 4 * KEYS);
            let counts: Vec<AtomicI32> = (0..KEYS).map(|_| AtomicI32::new(0)).collect();
            in_threads(threads, |cpu, mut random| {
                for _ in 0..rounds(4_000) {
                    change(&map, cpu, &mut random, &counts);
                }
            });
            let mut left = keys(&map);
            left.sort_unstable();
            let counts = (0..).zip(&counts);
            let added = counts.filter_map(|(number, count)| match count.load(Relaxed) {
                0 => None,
                1 => Some(number),
                count => panic!("{kind:?}: key {number} was added {count} times more"),
            });
            let added: Vec<u32> = added.collect();
            assert_eq!(left, added, "{kind:?} {flags:?}, {threads} threads");
            for number in added {
                let mut value = vec![0; map.value_len()];
                map.lookup(&key_of(kind, number), &mut value, 0).unwrap();
                assert_is_value(&map, &value, number);
            }
        }
    }
}

/// One operation on a random key; `counts` has the additions less the removals of each.
fn change(map: &Map, cpu: u32, random: &mut Random, counts: &[AtomicI32]) {
    let kind = map.kind();
    let number = random.below(KEYS);
    let (key, value) = (key_of(kind, number), entry(number).1);
    let count = &counts[number as usize];
    let guard = RunGuard::new();
    let program = map.operations();
    let has_removing_lookups = kind != MapKind::LpmTrie;
    match random.below(12) {
        0 | 1 => match program.update(cpu, &key, &value, NOEXIST) {
            Ok(()) => drop(count.fetch_add(1, Relaxed)),
            Err(errno) => assert_eq!(errno, Errno::EEXIST, "{kind:?}"),
        },
        2 => match map.update(&key, &host_value(map, number), NOEXIST) {
            Ok(()) => drop(count.fetch_add(1, Relaxed)),
            Err(errno) => assert_eq!(errno, Errno::EEXIST, "{kind:?}"),
        },
        3 | 4 => match program.update(cpu, &key, &value, EXIST) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => panic!("{kind:?}: {errno:?}"),
        },
        5 | 6 => match program.delete(cpu, &key) {
            Ok(()) => drop(count.fetch_sub(1, Relaxed)),
            Err(errno) => assert_eq!(errno, Errno::ENOENT, "{kind:?}"),
        },
        7 if has_removing_lookups => {
            let mut value = vec![0; map.value_len()];
            match map.lookup_and_delete(&key, &mut value, 0) {
                Ok(()) => {
                    count.fetch_sub(1, Relaxed);
                    assert_is_value(map, &value, number);
                }
                Err(errno) => assert_eq!(errno, Errno::ENOENT, "{kind:?}"),
            }
        }
        8 if has_removing_lookups && random.below(16) == 0 => {
            let (mut keys, mut values) = (vec![0; 8 * 8], vec![0; 8 * map.value_len()]);
            let read = map.lookup_batch(None, &mut keys, &mut values, 0, true);
            let pairs = keys.chunks(8).zip(values.chunks(map.value_len()));
            for (key, value) in pairs.take(read.unwrap().count) {
                let number = number_of(kind, key);
                counts[number as usize].fetch_sub(1, Relaxed);
                assert_is_value(map, value, number);
            }
        }
        9 => {
            let mut next = [0; 8];
            if map.next_key(Some(&key), &mut next).is_ok() {
                number_of(kind, &next);
            }
        }
        10 if kind == MapKind::Hash => {
            let found = program.lookup(&guard, cpu, &key).and_then(|value| {
                let address = value.address().addr() as u64;
                program.entry_at(&guard, address)
            });
            // Its element may be another key's by now.
            if let Some([key, _]) = found {
                number_of(kind, &key.to_vec());
            }
        }
        _ => drop(program.lookup(&guard, cpu, &key).map(CellSlice::to_vec)),
    }
}

/// Checks a value that was read while no thread changed it: where there is one for each CPU,
/// each of them is the number's or zero.
fn assert_is_value(map: &Map, value: &[u8], number: u32) {
    let is_percpu = map.value_len() != 12;
    let part = if is_percpu { 16 } else { 12 };
    for value in value.chunks(part) {
        let value = &value[..12];
        let is_whole = *value == entry(number).1 || is_percpu && *value == [0; 12];
        assert!(is_whole, "{:?}: {number} has {value:?}", map.kind());
    }
}

#[test]
fn what_stays_is_found_and_visited() {
    for (kind, flags) in CHANGING {
        for threads in THREADS {
            let map = changing(kind, flags, 4 * KEYS);
            for number in 0..STAYING {
                let value = host_value(&map, number);
                map.update(&key_of(kind, number), &value, 0).unwrap();
            }
            in_threads(threads, |cpu, mut random| {
                let is_writer = cpu % 2 == 0;
                for _ in 0..rounds(if is_writer { 4_000 } else { 1_000 }) {
                    match is_writer {
                        true => change_others(&map, cpu, &mut random),
                        false => find_all(&map, cpu),
                    }
                }
            });
        }
    }
}

/// Entries that stay; the first ones are not even updated.
const STAYING: u32 = 8;
const UNCHANGED: u32 = 4;

/// Changes an entry, but removes none of those that stay.
fn change_others(map: &Map, cpu: u32, random: &mut Random) {
    let number = UNCHANGED + random.below(KEYS - UNCHANGED);
    let (key, value) = (key_of(map.kind(), number), entry(number).1);
    let program = map.operations();
    match number < STAYING || random.below(2) == 0 {
        true => program.update(cpu, &key, &value, 0).unwrap(),
        false => drop(program.delete(cpu, &key)),
    }
}

/// Finds the entries that stay by lookups, by keys and by a program's iteration.
fn find_all(map: &Map, cpu: u32) {
    let kind = map.kind();
    let program = map.operations();
    let guard = RunGuard::new();
    for number in 0..STAYING {
        let found = program.lookup(&guard, cpu, &key_of(kind, number));
        assert!(found.is_some(), "{kind:?}: key {number} is gone");
    }
    let assert_all = |seen: &[u32], count: u32, how: &str| {
        for number in 0..count {
            assert!(seen.contains(&number), "{kind:?}: {number}, {how}");
        }
    };
    // Programs do not visit tries, and an iteration by keys may leave out those beside a
    // node that is replaced meanwhile, as in Linux.
    if kind == MapKind::LpmTrie {
        return drop(keys(map));
    }
    assert_all(&keys(map), STAYING, "by keys");
    let mut cursor = Cursor::default();
    let mut seen = Vec::new();
    while let Some([key, _]) = program.next_entry(&guard, cpu, &mut cursor) {
        seen.push(number_of(kind, &key.to_vec()));
    }
    // An update gives an entry another element, which a visit may miss, as in Linux.
    assert_all(&seen, UNCHANGED, "by a program");
}

#[test]
fn maps_that_evict_keep_their_limit_and_lose_no_element() {
    const ENTRIES: u32 = 64;
    for (kind, flags) in [
        (MapKind::LruHash, MapFlags(0)),
        (MapKind::LruHash, MapFlags::NO_COMMON_LRU),
        (MapKind::LruPercpuHash, MapFlags(0)),
        (MapKind::LruPercpuHash, MapFlags::NO_COMMON_LRU),
    ] {
        for threads in THREADS {
            let map = changing(kind, flags, ENTRIES);
            in_threads(threads, |cpu, mut random| {
                let program = map.operations();
                for _ in 0..rounds(10_000) {
                    let guard = RunGuard::new();
                    let number = random.below(4 * ENTRIES);
                    let (key, value) = entry(number);
                    match random.below(8) {
                        0..4 => match program.update(cpu, &key, &value, 0) {
                            // Others may hold all that could be evicted.
                            Ok(()) | Err(Errno::ENOMEM) => {}
                            Err(errno) => panic!("{kind:?}: {errno:?}"),
                        },
                        4 => drop(program.delete(cpu, &key)),
                        5 => drop(map.update(&key, &host_value(&map, number), 0)),
                        _ => drop(program.lookup(&guard, cpu, &key).map(CellSlice::to_vec)),
                    }
                }
            });
            let left = empty(&map);
            assert!(left <= ENTRIES, "{kind:?}: {left} entries");
            // Each CPU takes its part of the free elements; what others took in batches stays
            // with them.
            for number in 0..4 * ENTRIES {
                let (key, value) = entry(number);
                let updated = map
                    .operations()
                    .update(number % CPUS, &key, &value, NOEXIST);
                assert_eq!(updated, Ok(()));
            }
            let left = empty(&map);
            assert!(left >= ENTRIES / 2, "{kind:?}: {left} entries");
        }
    }
}

/// An update that gets no element is ENOMEM, as in Linux (of 400,000 updates of a map of one entry by
/// two CPUs of 6.18 some hundred are); no thread waits for the element of another one.
#[test]
fn maps_with_fewer_elements_than_threads_evict_or_refuse() {
    for kind in [MapKind::LruHash, MapKind::LruPercpuHash] {
        for (entries, threads) in [(1, 2), (1, 8), (2, 8), (3, 8)] {
            let map = changing(kind, MapFlags(0), entries);
            in_threads(threads, |cpu, mut random| {
                let program = map.operations();
                for _ in 0..rounds(5_000) {
                    let (key, value) = entry(random.below(4));
                    match random.below(8) {
                        0 => drop(program.delete(cpu, &key)),
                        _ => match program.update(cpu, &key, &value, 0) {
                            Ok(()) | Err(Errno::ENOMEM) => {}
                            Err(errno) => panic!("{kind:?}: {errno:?}"),
                        },
                    }
                }
            });
            let (guard, program) = (RunGuard::new(), map.operations());
            for cpu in 0..CPUS {
                let (key, value) = entry(100 + cpu);
                assert_eq!(program.update(cpu, &key, &value, NOEXIST), Ok(()));
                assert!(program.lookup(&guard, cpu, &key).is_some(), "{kind:?}");
            }
            drop(guard);
            let left = empty(&map);
            assert!((1..=entries).contains(&left), "{kind:?}: {left} entries");
        }
    }
}

/// Removes all entries of a map whose keys and values are those of [`entry`]; their number.
fn empty(map: &Map) -> u32 {
    let mut removed = 0;
    let mut key = [0; 8];
    while map.next_key(None, &mut key).is_ok() {
        let number = u32::from_le_bytes(*key.first_chunk().unwrap());
        let mut value = vec![0; map.value_len()];
        map.lookup_and_delete(&key, &mut value, 0).unwrap();
        assert_is_value(map, &value, number);
        removed += 1;
    }
    removed
}

#[test]
fn a_map_has_room_for_as_many_as_it_should_after_all_changes() {
    for (kind, flags) in CHANGING {
        // A trie has no such keys; its nodes are counted in the test of balance.
        if kind == MapKind::LpmTrie {
            continue;
        }
        for threads in THREADS {
            let map = changing(kind, flags, KEYS);
            let program = map.operations();
            in_threads(threads, |cpu, mut random| {
                for _ in 0..rounds(10_000) {
                    let (key, value) = entry(random.below(2 * KEYS));
                    match random.below(2) {
                        0 => match program.update(cpu, &key, &value, 0) {
                            Ok(()) | Err(Errno::E2BIG) => {}
                            Err(errno) => panic!("{kind:?}: {errno:?}"),
                        },
                        _ => drop(program.delete(cpu, &key)),
                    }
                }
            });
            assert!(empty(&map) <= KEYS, "{kind:?} {flags:?}");
            for number in 0..=KEYS {
                let (key, value) = entry(number);
                let expected = Errno::E2BIG.when(number >= KEYS);
                let updated = program.update(CPUS - 1, &key, &value, NOEXIST);
                assert_eq!(updated, expected, "{kind:?} {flags:?}");
            }
        }
    }
}
