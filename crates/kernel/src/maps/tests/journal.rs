//! Maps with a journal are as they were marked, whatever was done to them.

use program::MapParams;
use spec::SplitMix;
use spec::maps::{MapFlags, MapKind};
use vm::Cursor;

use super::{CPUS, Host, Map, RunGuard, ValueLayout};
use crate::maps::Journal;

const VALUE: u32 = 12;

fn map(kind: MapKind, key_size: u32, max_entries: u32, flags: MapFlags) -> Map {
    let params = MapParams {
        map_type: kind as u32,
        key_size,
        value_size: VALUE,
        max_entries,
        flags,
        ..MapParams::default()
    };
    let host = Host {
        journals: true,
        ..Host::new(CPUS, 1)
    };
    Map::create(&params, ValueLayout::plain(VALUE as usize), &host).unwrap()
}

/// All entries, in the order of their keys; of queues the values.
fn contents(map: &Map) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut value = vec![0; map.value_len()];
    if map.params().key_size == 0 {
        while map.operations().pop(&mut value).is_ok() {
            all.push((Vec::new(), value.clone()));
        }
        let mut values = all.clone();
        if map.kind() == MapKind::Stack {
            values.reverse();
        }
        for (_, value) in values {
            map.operations().push(&value, 0).unwrap();
        }
        return all;
    }
    let mut key = vec![0; map.params().key_size as usize];
    let mut last: Option<Vec<u8>> = None;
    while map.next_key(last.as_deref(), &mut key).is_ok() {
        map.lookup(&key, &mut value, 0).unwrap();
        all.push((key.clone(), value.clone()));
        last = Some(key.clone());
    }
    all.sort();
    all
}

/// A random key: of an LPM trie a prefix of few bits.
fn key(kind: MapKind, size: u32, random: &mut SplitMix) -> Vec<u8> {
    let number = (random.next_u64() % 12) as u32;
    match (size, kind == MapKind::LpmTrie) {
        (0, _) => Vec::new(),
        (4, _) => number.to_le_bytes().to_vec(),
        (_, true) => {
            let len = (random.next_u64() % 33) as u32;
            let address = (number << 28) | random.next_u64() as u32 & 0xff;
            [len.to_le_bytes(), address.to_be_bytes()].concat()
        }
        (_, false) => [number.to_le_bytes(); 2].concat(),
    }
}

/// Does something that programs do.
fn act(map: &Map, random: &mut SplitMix, guard: &RunGuard) {
    let size = map.params().key_size;
    let operations = map.operations();
    let key = key(map.kind(), size, random);
    let value = [random.next_u64() as u8; VALUE as usize];
    let mut out = [0; VALUE as usize];
    if size == 0 {
        let _ = match random.next_u64() % 2 {
            0 => operations.push(&value, random.next_u64() % 3),
            _ => operations.pop(&mut out),
        };
        return;
    }
    match random.next_u64() % 8 {
        0..=2 => {
            if let Some(found) = operations.lookup(guard, 1, &key) {
                found.write(0, &value[..3]);
            }
        }
        3..=5 => drop(operations.update(1, &key, &value, 0)),
        6 => drop(operations.delete(1, &key)),
        _ => {
            let mut cursor = Cursor::default();
            if let Some([_, found]) = operations.next_entry(guard, 1, &mut cursor) {
                found.write(4, &value[..3]);
            }
            if let Some(cell) = cursor.key_cell.take() {
                guard.release_key_cell(cell);
            }
        }
    }
}

#[test]
fn a_reset_map_is_as_it_was_marked() {
    let plain = MapFlags(0);
    let kinds = [
        (MapKind::Array, 4, 9, plain),
        (MapKind::PercpuArray, 4, 9, plain),
        (MapKind::Hash, 8, 9, plain),
        (MapKind::Hash, 8, 9, MapFlags::NO_PREALLOC),
        (MapKind::PercpuHash, 8, 9, plain),
        (MapKind::LruHash, 8, 64, plain),
        (MapKind::LruHash, 8, 2000, plain),
        (MapKind::LruPercpuHash, 8, 64, plain),
        (MapKind::LpmTrie, 8, 9, MapFlags::NO_PREALLOC),
        (MapKind::Queue, 0, 9, plain),
        (MapKind::Stack, 0, 9, plain),
    ];
    let rounds = if cfg!(miri) { 3 } else { 300 };
    for (kind, key_size, max_entries, flags) in kinds {
        let mut random = SplitMix::new(7);
        let map = map(kind, key_size, max_entries, flags);
        let journal: &Journal = map.of_kind().unwrap();
        for round in 0..rounds {
            // The state changes from mark to mark, too.
            for _ in 0..random.next_u64() % 3 {
                act(&map, &mut random, &RunGuard::new());
            }
            let marked = contents(&map);
            journal.mark();
            for _ in 0..3 {
                for _ in 0..random.next_u64() % 10 {
                    act(&map, &mut random, &RunGuard::new());
                }
                journal.reset();
                assert_eq!(contents(&map), marked, "{kind:?}, round {round}");
                journal.reset();
            }
        }
    }
}
