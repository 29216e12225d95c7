//! References of programs to map values, rings, and maps under threads.

mod eviction;
mod journal;
mod threads;

use program::MapParams;
use spec::Errno;
use spec::maps::{MapFlags, MapKind};
use vm::MapOperations as _;

use super::{Host, Map, Ring, RunGuard, ValueLayout};

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
    key[..4].copy_from_slice(&number.to_le_bytes());
    let mut value = [0; 12];
    value.copy_from_slice(&[number.to_le_bytes(); 3].concat());
    (key, value)
}

#[test]
fn an_lru_map_keeps_what_programs_look_up() {
    let map = map(MapKind::LruHash, 8, 100, MapFlags(0));
    let operations = map.operations();
    let guard = RunGuard::new();
    let (kept, value) = entry(0);
    operations.update(0, &kept, &value, 0).unwrap();
    // Miri takes a thousand times as long.
    for number in 1..if cfg!(miri) { 300 } else { 10_000 } {
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
    let prefix = |number: u32| [32u32.to_le_bytes(), number.to_be_bytes()].concat();
    let guard = RunGuard::new();
    operations.update(0, &prefix(1), &entry(1).1, 0).unwrap();
    let held = operations.lookup(&guard, 0, &prefix(1)).unwrap();
    operations.delete(0, &prefix(1)).unwrap();
    for number in 2..if cfg!(miri) { 100 } else { 500 } {
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
    let ring = map.of_kind::<Ring>().unwrap();
    let (first, position) = ring.reserve(5, 0).unwrap();
    ring.output(b"second", 0).unwrap();
    assert_eq!(ring.consume(), None);
    first.write(0, b"first");
    ring.submit(position, false);
    let (_, third) = ring.reserve(9, 0).unwrap();
    ring.submit(third, true);
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
    let ring = map.of_kind::<Ring>().unwrap();
    for number in 0..if cfg!(miri) { 5 } else { 100u8 } {
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
fn memory_is_charged_until_the_last_handle_goes() {
    let host = Host::new(CPUS, 1);
    let params = MapParams {
        map_type: MapKind::Array as u32,
        key_size: 4,
        value_size: 12,
        max_entries: 100,
        ..MapParams::default()
    };
    let map = Map::create(&params, ValueLayout::plain(12), &host).unwrap();
    let charged = host.memory.used();
    assert!(charged >= 1200, "{charged} bytes");
    let handle = map.handle().clone();
    drop(map);
    assert_eq!(host.memory.used(), charged);
    drop(handle);
    assert_eq!(host.memory.used(), 0);
}
