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
    let host = Host::new(CPUS, 1);
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

/// Runs a function in so many threads, by their numbers, and joins each of them:
/// ThreadSanitizer sees that, not the end of a scope.
fn in_threads(count: u32, run: impl Fn(u32) + Sync) {
    thread::scope(|scope| {
        let run = &run;
        let spawn = |number| scope.spawn(move || run(number));
        let threads: Vec<_> = (0..count).map(spawn).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
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
        in_threads(CPUS, |cpu| {
            let map = map.operations();
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
fn threads_find_what_is_always_there() {
    const ALWAYS: u32 = 8;
    const ENTRIES: u32 = 64;
    for (kind, flags) in [
        (MapKind::Hash, MapFlags(0)),
        (MapKind::Hash, MapFlags::NO_PREALLOC),
        (MapKind::PercpuHash, MapFlags(0)),
    ] {
        for threads in [2, 8] {
            let map = map(kind, 8, ENTRIES, flags);
            let map = map.operations();
            for number in 0..ALWAYS {
                let (key, value) = entry(number);
                map.update(0, &key, &value, 0).unwrap();
            }
            in_threads(threads, |number| {
                let is_writer = number % 2 == 0;
                let mut state: u32 = number + 1;
                for _ in 0..30_000 {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let always = entry(state >> 8 & (ALWAYS - 1));
                    let other = entry(ALWAYS + (state >> 16 & (ENTRIES - 1)));
                    let guard = RunGuard::new();
                    match state >> 29 {
                        0..4 if is_writer => {
                            map.update(number, &always.0, &always.1, 0).unwrap();
                        }
                        4 | 5 if is_writer => {
                            // The map may be full.
                            let _ = map.update(number, &other.0, &other.1, 0);
                        }
                        6 | 7 if is_writer => drop(map.delete(number, &other.0)),
                        _ => {
                            let found = map.lookup(&guard, number, &always.0);
                            assert!(found.is_some(), "{kind:?}, {threads} threads");
                        }
                    }
                }
            });
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

fn ring(bytes: u32) -> Map {
    let params = MapParams {
        map_type: MapKind::Ringbuf as u32,
        max_entries: bytes,
        ..MapParams::default()
    };
    Map::create(&params, ValueLayout::plain(0), &Host::default()).unwrap()
}

#[test]
fn a_ring_gives_records_in_the_order_of_their_reservation() {
    let map = ring(4096);
    let ring = map.operations().ring().unwrap();
    let first = ring.reserve(5, 0).unwrap();
    ring.output(b"second", 0).unwrap();
    assert_eq!(ring.consume(), None);
    first.bytes.write(0, b"first");
    ring.submit(first.position, false);
    let third = ring.reserve(9, 0).unwrap();
    ring.submit(third.position, true);
    ring.output(b"fourth", 0).unwrap();
    let read: Vec<_> = std::iter::from_fn(|| ring.consume()).collect();
    assert_eq!(
        read,
        [b"first".to_vec(), b"second".to_vec(), b"fourth".to_vec()]
    );
    assert_eq!(ring.query(0), 0);
    assert_eq!(ring.query(2), 16 + 16 + 24 + 16);
}

#[test]
fn records_cross_the_end_of_a_ring_and_a_full_one_refuses() {
    let map = ring(4096);
    let ring = map.operations().ring().unwrap();
    for number in 0..100u8 {
        let record = vec![number; 1000];
        ring.output(&record, 0).unwrap();
        ring.output(&record[..900], 0).unwrap();
        assert_eq!(ring.output(&[0; 2200], 0), Err(Errno::EAGAIN));
        assert_eq!(ring.consume().unwrap(), record);
        assert_eq!(ring.consume().unwrap(), record[..900]);
    }
    // One byte less than the size is the most that waits.
    assert!(ring.reserve(4096 - 8, 0).is_none());
    assert!(ring.reserve(4096 - 16, 0).is_some());
    assert!(ring.reserve(u64::MAX, 0).is_none());
    assert!(ring.reserve(8, 1).is_none());
    assert_eq!(ring.output(b"", 4), Err(Errno::EINVAL));
    // Positions that no record has are of no effect.
    ring.submit(u64::MAX - 7, false);
    assert_eq!(ring.consume(), None);
}

#[test]
fn threads_write_whole_records() {
    let map = ring(1 << 16);
    let ring = map.operations().ring().unwrap();
    let mut counts = [0; 4];
    thread::scope(|scope| {
        let write = |number: u8| {
            scope.spawn(move || {
                let mut left = 2000;
                while left > 0 {
                    let record = vec![number; 1 + left % 50];
                    match ring.output(&record, 0) {
                        Ok(()) => left -= 1,
                        Err(_) => thread::yield_now(),
                    }
                }
            })
        };
        let threads = [0, 1, 2, 3].map(write);
        while counts != [2000; 4] {
            let Some(record) = ring.consume() else {
                thread::yield_now();
                continue;
            };
            assert!(record.iter().all(|byte| *byte == record[0]));
            counts[record[0] as usize] += 1;
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
