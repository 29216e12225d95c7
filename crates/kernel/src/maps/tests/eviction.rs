//! Keys that LRU maps keep, beside those that Linux keeps: lists of operations with the results
//! of Linux 6.18 on machines with 1, 2, 4 and 8 possible CPUs. `testkit` compares random lists
//! with the running kernel.
//!
//! A line is a case: kind, entries, whether CPUs share lists, and number of CPUs; steps; a digest
//! of the results; the keys that are left. A step is who (`p1`: a program on CPU 1; `s`: bpf(2)),
//! what, the first key, a count, and the distance of keys.

use std::collections::BTreeSet;

use super::super::{Host, Map, RunGuard, ValueLayout};
use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, Result};

const CASES: &str = include_str!("eviction/linux-6.18.txt");

/// A map of a case.
fn map(header: &str) -> Map {
    let words: Vec<&str> = header.split_whitespace().collect();
    let [kind, entries, lists, cpus] = words[..] else {
        panic!("{header}");
    };
    let kind = [MapKind::LruHash, MapKind::LruPercpuHash]
        .into_iter()
        .find(|known| known.name() == kind)
        .expect("a kind that evicts");
    let params = MapParams {
        map_type: kind.number(),
        key_size: 4,
        value_size: 8,
        max_entries: entries.parse().unwrap(),
        flags: match lists {
            "common" => MapFlags(0),
            _ => MapFlags::NO_COMMON_LRU,
        },
        ..MapParams::default()
    };
    let host = Host::new(cpus.parse().unwrap(), 7);
    Map::create(&params, ValueLayout::plain(8), &host).unwrap()
}

/// Executes a step; the digest of its results and of those before.
fn execute(map: &Map, step: &str, digest: u64) -> u64 {
    let words: Vec<&str> = step.split_whitespace().collect();
    let [user, operation, numbers @ ..] = &words[..] else {
        panic!("{step}");
    };
    let numbers: Vec<u32> = numbers.iter().map(|word| word.parse().unwrap()).collect();
    let keys = (0..numbers[1]).map(|at| numbers[0] + at * numbers[2]);
    let cpu: Option<u32> = user.strip_prefix('p').map(|cpu| cpu.parse().unwrap());
    keys.fold(digest, |digest, key| {
        let result = apply(map, cpu, operation, &key.to_le_bytes());
        let number = match result {
            Ok(found) => u64::from(found),
            Err(Errno(errno)) => i64::from(-errno) as u64,
        };
        digest.wrapping_mul(31).wrapping_add(number)
    })
}

/// One operation of a program on a CPU or of bpf(2); true for a key that a program found.
fn apply(map: &Map, cpu: Option<u32>, operation: &str, key: &[u8]) -> Result<bool> {
    let mut value = vec![7; map.value_len()];
    let (operation, flags) = match operation.strip_prefix("update") {
        Some(flags) => ("update", flags.parse().unwrap()),
        None => (operation, 0),
    };
    let program = map.operations();
    let done = match (cpu, operation) {
        (Some(cpu), "lookup") => {
            return Ok(program.lookup(&RunGuard::new(), cpu, key).is_some());
        }
        (Some(cpu), "update") => program.update(cpu, key, &value[..8], flags),
        (Some(cpu), _) => program.delete(cpu, key),
        (None, "lookup") => map.lookup(key, &mut value, 0),
        (None, "update") => map.update(key, &value, flags),
        (None, "delete") => map.delete(key),
        (None, _) => map.lookup_and_delete(key, &mut value, 0),
    };
    done.map(|()| false)
}

fn keys_of(map: &Map) -> BTreeSet<u32> {
    let mut keys = BTreeSet::new();
    let mut last: Option<[u8; 4]> = None;
    let mut key = [0; 4];
    while map
        .next_key(last.as_ref().map(|key| &key[..]), &mut key)
        .is_ok()
    {
        assert!(keys.insert(u32::from_le_bytes(key)), "a key comes twice");
        last = Some(key);
    }
    keys
}

/// The keys of a list of ranges.
fn ranges(text: &str) -> BTreeSet<u32> {
    let range = |word: &str| match word.split_once('-') {
        Some((first, last)) => first.parse().unwrap()..=last.parse().unwrap(),
        None => word.parse().unwrap()..=word.parse().unwrap(),
    };
    text.split_whitespace().flat_map(range).collect()
}

#[test]
fn lru_maps_keep_the_keys_that_linux_keeps() {
    // Miri takes a thousand times as long.
    let cases = if cfg!(miri) { 2 } else { usize::MAX };
    for case in CASES.lines().take(cases) {
        let parts: Vec<&str> = case.split('|').collect();
        let [header, steps, digest, keys] = parts[..] else {
            panic!("{case}");
        };
        let map = map(header);
        let digest_here = steps
            .split(';')
            .fold(0, |digest, step| execute(&map, step, digest));
        assert_eq!(keys_of(&map), ranges(keys), "keys of {case}");
        assert_eq!(format!("{digest_here:016x}"), digest.trim(), "{case}");
    }
}

#[test]
fn maps_with_lists_for_each_cpu_have_as_many_entries_for_each() {
    let entries = |cpus: u32, entries: u32| {
        map(&format!("lru_hash {entries} own {cpus}"))
            .params()
            .max_entries
    };
    // The kernel's answers on machines with 2 and 8 CPUs.
    assert_eq!(
        [1, 2, 5, 20, 21].map(|size| entries(2, size)),
        [2, 2, 6, 20, 22]
    );
    assert_eq!([1, 8, 9].map(|size| entries(8, size)), [8, 8, 16]);
}
