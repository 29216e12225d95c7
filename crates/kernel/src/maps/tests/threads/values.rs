//! Values that threads change in place: under their lock, by atomic additions, by CPU, in
//! local storage; batches.

use btf::TypeId;
use program::MapParams;
use spec::Errno;
use spec::maps::{MapFlags, MapKind};
use vm::{CellSlice, LockedValue, ValueOf};

use super::super::super::flags::{EXIST, LOCK};
use super::super::super::{Host, LocalStorage, Map, NoResources, RunGuard, ValueLayout};
use super::{CPUS, Random, THREADS, in_threads, map, rounds};

/// A lock, and two numbers that are equal while it is free.
fn locked_layout() -> ValueLayout {
    ValueLayout {
        special: std::iter::once(0..4).collect(),
        lock: Some(0),
        ..ValueLayout::plain(24)
    }
}

/// The two numbers of a value.
fn pair(value: CellSlice<'_>) -> [u64; 2] {
    [8, 16].map(|at| {
        let mut number = [0; 8];
        value.read(at, &mut number);
        u64::from_le_bytes(number)
    })
}

#[test]
fn values_under_their_lock_are_whole_and_lose_no_count() {
    for kind in [MapKind::Array, MapKind::Hash] {
        for threads in THREADS {
            for host_writes in [false, true] {
                let map = map(kind, 4, locked_layout(), 2, MapFlags(0));
                let key = 1u32.to_le_bytes();
                map.update(&key, &[0; 24], 0).unwrap();
                in_threads(threads, |cpu, mut random| {
                    for round in 0..rounds(2_000) {
                        match cpu % 2 == 0 {
                            true => count(&map, &key),
                            false => {
                                let writes = host_writes && random.below(4) == 0;
                                exchange(&map, &key, writes.then_some(cpu << 20 | round));
                            }
                        }
                    }
                });
                if !host_writes {
                    let guard = RunGuard::new();
                    let value = map.operations().lookup(&guard, 0, &key).unwrap();
                    let expected = u64::from(threads / 2 * rounds(2_000));
                    assert_eq!(pair(value), [expected; 2], "{kind:?}");
                }
            }
        }
    }
}

/// A program that adds 1 to both numbers under the lock.
fn count(map: &Map, key: &[u8]) {
    let guard = RunGuard::new();
    let value = map.operations().lookup(&guard, 0, key).unwrap();
    let _locked = LockedValue::lock(value, 0).expect("it is freed soon");
    let [first, second] = pair(value);
    assert_eq!(first, second, "{:?}: a torn value", map.kind());
    value.write(8, &(first + 1).to_le_bytes());
    value.write(16, &(first + 1).to_le_bytes());
}

/// The host reads the value under its lock, and writes both numbers.
fn exchange(map: &Map, key: &[u8], number: Option<u32>) {
    let mut value = [0; 24];
    map.lookup(key, &mut value, LOCK).unwrap();
    assert_eq!(value[8..16], value[16..], "{:?}: a torn value", map.kind());
    if let Some(number) = number {
        let number = u64::from(number).to_le_bytes();
        let value = [[0; 8], number, number].concat();
        map.update(key, &value, LOCK | EXIST).unwrap();
    }
}

#[test]
fn atomic_additions_are_all_there() {
    for (kind, flags) in [
        (MapKind::Array, MapFlags(0)),
        (MapKind::Hash, MapFlags(0)),
        (MapKind::LruHash, MapFlags(0)),
        (MapKind::LpmTrie, MapFlags::NO_PREALLOC),
    ] {
        for threads in THREADS {
            let (key, rest) = match kind {
                MapKind::LpmTrie => (32u32, vec![1, 2, 3, 4]),
                _ => (3, Vec::new()),
            };
            let key = [&key.to_le_bytes()[..], &rest].concat();
            let map = map(kind, key.len() as u32, ValueLayout::plain(16), 8, flags);
            map.update(&key, &[0; 16], 0).unwrap();
            in_threads(threads, |cpu, _| {
                for _ in 0..rounds(4_000) {
                    let guard = RunGuard::new();
                    let value = map.operations().lookup(&guard, cpu, &key).unwrap();
                    value.update::<8>(8, |old| old + 1);
                    value.update::<4>(4, |old| old + 2);
                }
            });
            let mut out = [0; 16];
            map.lookup(&key, &mut out, 0).unwrap();
            let count = threads * rounds(4_000);
            let expected = [0, 2 * count, count, 0].map(u32::to_le_bytes).concat();
            assert_eq!(out[..], expected, "{kind:?}");
        }
    }
}

#[test]
fn values_of_a_cpu_are_its_programs_own() {
    use MapKind::{LruPercpuHash, PercpuArray, PercpuHash};
    for kind in [PercpuArray, PercpuHash, LruPercpuHash] {
        for threads in THREADS {
            let map = map(kind, 4, ValueLayout::plain(8), 4, MapFlags(0));
            let key = 2u32.to_le_bytes();
            map.update(&key, &[0; 8 * CPUS as usize], 0).unwrap();
            in_threads(threads, |cpu, _| {
                for round in 0..u64::from(rounds(4_000)) {
                    let guard = RunGuard::new();
                    let value = map.operations().lookup(&guard, cpu, &key).unwrap();
                    let mut count = [0; 8];
                    value.read(0, &mut count);
                    assert_eq!(u64::from_le_bytes(count), round, "{kind:?}");
                    value.write(0, &(round + 1).to_le_bytes());
                }
            });
            let mut out = [0; 8 * CPUS as usize];
            map.lookup(&key, &mut out, 0).unwrap();
            let counts = (0..CPUS).map(|cpu| match cpu < threads {
                true => u64::from(rounds(4_000)).to_le_bytes(),
                false => [0; 8],
            });
            let found = out.as_chunks().0.iter().copied();
            assert!(found.eq(counts), "{kind:?}: {out:?}");
        }
    }
}

#[test]
fn an_object_has_one_value_in_local_storage() {
    use MapKind::{CgrpStorage, InodeStorage, SkStorage, TaskStorage};
    for kind in [SkStorage, TaskStorage, InodeStorage, CgrpStorage] {
        for threads in THREADS {
            let params = MapParams {
                map_type: kind as u32,
                key_size: 4,
                value_size: 8,
                flags: MapFlags::NO_PREALLOC,
                key_type: TypeId(1),
                value_type: TypeId(1),
                ..MapParams::default()
            };
            let value = ValueLayout::plain(8);
            let map = Map::create(&params, value, &Host::new(CPUS, 1)).unwrap();
            in_threads(threads, |_, mut random| {
                for round in 0..rounds(2_000) {
                    visit_owner(&map, random.below(2 * STAYING).into(), round);
                }
            });
            let storage = map.of_kind::<LocalStorage>().unwrap();
            let count = |owner| {
                let cells = storage.get(owner)?;
                Some(u64::from_le_bytes(*cells.slice(0, 8).to_vec().as_array()?))
            };
            let visits = (0..threads).flat_map(|number| {
                let mut random = Random::of(number);
                (0..rounds(2_000)).map(move |_| random.below(2 * STAYING))
            });
            let expected = visits.filter(|owner| *owner < STAYING).count() as u64;
            let found: u64 = (0..STAYING.into()).filter_map(count).sum();
            assert_eq!(found, expected, "{kind:?}");
        }
    }
}

/// Owners of local storage that keep their value.
const STAYING: u32 = 4;

/// A program counts in the value of an owner that stays; that of another one it writes,
/// removes at times, and reads.
fn visit_owner(map: &Map, owner: u64, round: u32) {
    let guard = RunGuard::new();
    let what = ValueOf::Owner(owner, Some(&[0; 8]));
    let Some(value) = map.operations().find(&guard, what) else {
        // Another thread made and removed it meanwhile.
        assert!(owner >= STAYING.into(), "a value that stays is gone");
        return;
    };
    if owner < STAYING.into() {
        value.update::<8>(0, |old| old + 1);
        return;
    }
    value.write(0, &owner.to_le_bytes());
    if round.is_multiple_of(4) {
        // Another thread may have been first.
        let _ = map.of_kind::<LocalStorage>().unwrap().remove(owner);
    }
    assert_eq!(value.to_vec(), owner.to_le_bytes(), "freed in a run");
}

#[test]
fn batches_and_freezing_meet_updates() {
    for threads in THREADS {
        let map = map(MapKind::Array, 4, ValueLayout::plain(8), 16, MapFlags(0));
        in_threads(threads, |cpu, mut random| {
            for round in 0..rounds(1_000) {
                if cpu == 0 && round == rounds(1_000) / 2 {
                    assert_eq!(map.freeze(), Ok(()));
                }
                let first = random.below(13);
                let keys: Vec<u8> = (first..first + 4).flat_map(u32::to_le_bytes).collect();
                let values = u64::from(cpu).to_le_bytes().repeat(4);
                match map.update_batch(&keys, &values, 0, &NoResources) {
                    Ok(batch) => assert_eq!(batch.count, 4),
                    Err(errno) => assert_eq!(errno, Errno::EPERM),
                }
                let (mut keys, mut values) = ([0; 64], [0; 128]);
                let read = map.lookup_batch(None, &mut keys, &mut values, 0, false);
                assert_eq!(read.unwrap().count, 16);
                let mut numbers = values.as_chunks().0.iter();
                assert!(numbers.all(|number| u64::from_le_bytes(*number) < threads.into()));
            }
        });
        assert_eq!(map.freeze(), Err(Errno::EPERM));
    }
}
