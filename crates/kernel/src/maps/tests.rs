//! Maps under threads, and what programs hold.

use std::thread;

use program::MapParams;
use spec::Errno;
use spec::maps::{MapFlags, MapKind};

use super::{Host, Map, RunGuard, ValueLayout};

const CPUS: u32 = 4;

fn map(kind: MapKind, key_size: u32, max_entries: u32, flags: MapFlags) -> Map {
    let params = MapParams {
        map_type: kind as u32,
        key_size,
        value_size: 12,
        max_entries,
        flags,
        ..MapParams::default()
    };
    let host = Host {
        cpus: CPUS,
        seed: 1,
    };
    Map::create(&params, ValueLayout::plain(12), &host).unwrap()
}

/// Key and value of a number, both of which hold nothing else.
fn entry(number: u32) -> ([u8; 8], [u8; 12]) {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&number.to_ne_bytes());
    let mut value = [0; 12];
    value.copy_from_slice(&[number.to_ne_bytes(); 3].concat());
    (key, value)
}

#[test]
fn threads_lose_and_duplicate_no_element() {
    const ENTRIES: u32 = 64;
    for (kind, flags) in [
        (MapKind::Hash, MapFlags(0)),
        (MapKind::Hash, MapFlags::NO_PREALLOC),
        (MapKind::PercpuHash, MapFlags(0)),
        (MapKind::LruHash, MapFlags(0)),
    ] {
        let map = map(kind, 8, ENTRIES, flags);
        thread::scope(|scope| {
            for cpu in 0..CPUS {
                let map = map.operations();
                scope.spawn(move || {
                    let mut state = cpu + 1;
                    for _ in 0..20_000 {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let (key, value) = entry(state >> 8 & 127);
                        let guard = RunGuard::new();
                        match state >> 28 {
                            0..6 => drop(map.update(cpu, &key, &value, 0)),
                            6..10 => drop(map.delete(cpu, &key)),
                            _ => drop(map.lookup(&guard, cpu, &key).map(|value| value.to_vec())),
                        }
                    }
                });
            }
        });
        // What is left holds its own key's value, and the map takes as many as it should.
        let mut left = 0;
        let mut key = [0; 8];
        while map.next_key(None, &mut key).is_ok() {
            let number = u32::from_ne_bytes(*key.first_chunk().unwrap());
            let guard = RunGuard::new();
            let value = (0..CPUS).find_map(|cpu| {
                let value = map.operations().lookup(&guard, cpu, &key)?.to_vec();
                (value != [0; 12]).then_some(value)
            });
            assert_eq!(value.unwrap_or(vec![0; 12]), entry(number).1, "{kind:?}");
            map.delete(&key).unwrap();
            left += 1;
        }
        assert!(left <= ENTRIES, "{kind:?} {flags:?}: {left} entries");
        for number in 0..ENTRIES {
            let (key, value) = entry(number);
            assert_eq!(
                map.operations().update(0, &key, &value, 1),
                Ok(()),
                "{kind:?}"
            );
        }
        let (key, value) = entry(ENTRIES);
        let more = map.operations().update(0, &key, &value, 0);
        match kind {
            MapKind::LruHash => assert_eq!(more, Ok(())),
            _ => assert_eq!(more, Err(Errno::E2BIG), "{kind:?} {flags:?}"),
        }
    }
}

#[test]
fn an_lru_map_keeps_what_programs_look_up() {
    let map = map(MapKind::LruHash, 8, 100, MapFlags(0));
    let operations = map.operations();
    let guard = RunGuard::new();
    let (kept, value) = entry(0);
    operations.update(0, &kept, &value, 0).unwrap();
    for number in 1..10_000 {
        let (key, value) = entry(number);
        operations.update(0, &key, &value, 0).unwrap();
        assert!(
            operations.lookup(&guard, 0, &kept).is_some(),
            "evicted at {number}"
        );
    }
}

#[test]
fn a_pointer_to_a_replaced_value_still_reads_the_old_one() {
    let map = map(MapKind::Hash, 8, 4, MapFlags(0));
    let operations = map.operations();
    let guard = RunGuard::new();
    let (key, old) = entry(1);
    operations.update(0, &key, &old, 0).unwrap();
    let held = operations.lookup(&guard, 0, &key).unwrap();
    operations.update(0, &key, &entry(2).1, 0).unwrap();
    assert_eq!(held.to_vec(), old);
    assert_eq!(
        operations.lookup(&guard, 0, &key).unwrap().to_vec(),
        entry(2).1
    );
}

#[test]
fn prefixes_that_a_run_holds_are_not_recycled() {
    let map = map(MapKind::LpmTrie, 8, 1000, MapFlags::NO_PREALLOC);
    let operations = map.operations();
    let prefix = |number: u32| [32u32.to_ne_bytes(), number.to_be_bytes()].concat();
    let guard = RunGuard::new();
    operations.update(0, &prefix(1), &entry(1).1, 0).unwrap();
    let held = operations.lookup(&guard, 0, &prefix(1)).unwrap();
    operations.delete(0, &prefix(1)).unwrap();
    for number in 2..500 {
        operations
            .update(0, &prefix(number), &entry(number).1, 0)
            .unwrap();
    }
    assert_eq!(held.to_vec(), entry(1).1);
}
