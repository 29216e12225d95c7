//! Maps of objects: maps, programs, sockets, control groups, interfaces, CPUs.

use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;
use spec::{Errno, Result};

use super::super::super::flags::NOEXIST;
use super::super::super::{
    Cgroup, Host, Map, ProgramClass, Resources, RunGuard, Socket, SocketKind, StoredMap,
    StoredProgram, ValueLayout,
};
use super::{CPUS, Random, THREADS, in_threads, map, rounds};

/// Objects of each kind by descriptor from 1 on, which is what they know of themselves.
struct Objects {
    maps: Vec<Arc<StoredMap>>,
    programs: Vec<Arc<StoredProgram>>,
    sockets: Vec<Arc<Socket>>,
    cgroups: Vec<Arc<Cgroup>>,
}

/// Number of objects of each kind.
const OBJECTS: u32 = 4;

impl Objects {
    fn new() -> Objects {
        let class = ProgramClass {
            program_type: ProgramType::Xdp,
            attach_type: 0,
            has_frags: false,
            is_native: false,
            is_device_bound: false,
            cgroup_storage: [0; 2],
        };
        let map = |id| {
            let map = inner();
            let number = u64::from(id).to_le_bytes();
            map.update(&[0; 4], &number, 0).unwrap();
            Arc::new(StoredMap::new(id, Arc::new(map)))
        };
        let program = |id| {
            let target = None;
            Arc::new(StoredProgram { id, class, target })
        };
        let socket = |id: u32| Arc::new(Socket::new(id.into(), SocketKind::Udp, true));
        let cgroup = |id: u32| Arc::new(Cgroup { id: id.into() });
        Objects {
            maps: (1..=OBJECTS).map(map).collect(),
            programs: (1..=OBJECTS).map(program).collect(),
            sockets: (1..=OBJECTS).map(socket).collect(),
            cgroups: (1..=OBJECTS).map(cgroup).collect(),
        }
    }
}

/// An inner map: an array with a number of 8 bytes.
fn inner() -> Map {
    map(MapKind::Array, 4, ValueLayout::plain(8), 1, MapFlags(0))
}

fn nth<T>(objects: &[Arc<T>], descriptor: u32) -> Option<Arc<T>> {
    let index = (descriptor as usize).checked_sub(1)?;
    objects.get(index).cloned()
}

impl Resources for Objects {
    fn program(&self, descriptor: u32) -> Option<Arc<StoredProgram>> {
        nth(&self.programs, descriptor)
    }

    fn map(&self, descriptor: u32) -> Option<Arc<StoredMap>> {
        nth(&self.maps, descriptor)
    }

    fn socket(&self, descriptor: u32) -> Option<Arc<Socket>> {
        nth(&self.sockets, descriptor)
    }

    fn cgroup(&self, descriptor: u32) -> Option<Arc<Cgroup>> {
        nth(&self.cgroups, descriptor)
    }

    fn has_interface(&self, index: u32) -> bool {
        (1..=OBJECTS).contains(&index)
    }
}

/// A map of objects by keys and values of 4 bytes. There is room for more elements than keys,
/// as one that is removed is free a moment later.
fn map_of(kind: MapKind) -> Map {
    let value_size = match kind {
        MapKind::Sockmap | MapKind::Sockhash | MapKind::ReuseportSockarray => 8,
        _ => 4,
    };
    let params = MapParams {
        map_type: kind as u32,
        key_size: 4,
        value_size,
        max_entries: OBJECTS + CPUS,
        ..MapParams::default()
    };
    let value = ValueLayout::plain(value_size as usize);
    let host = Host::new(CPUS, 1);
    Map::create_with(&params, value, &host, Some(&inner())).unwrap()
}

/// Keys of all maps here.
fn key_of(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// Updates the value of a key with a descriptor.
fn update(map: &Map, key: u32, object: u32, flags: u64, objects: &Objects) -> Result {
    let mut value = object.to_le_bytes().to_vec();
    value.resize(map.value_len(), 0);
    map.update_with(&key_of(key), &value, flags, objects)
}

/// The object that a program finds at a key, by its own number.
fn found(map: &Map, key: u32) -> Option<u64> {
    let operations = map.operations();
    let guard = RunGuard::new();
    match map.kind() {
        MapKind::ArrayOfMaps | MapKind::HashOfMaps => {
            let address = operations.inner(&guard, &key_of(key))?;
            let mut inner = operations.inner_maps().into_iter();
            let inner = inner.find(|inner| inner.map.handle().address() == address)?;
            let mut number = [0; 8];
            inner.map.lookup(&[0; 4], &mut number, 0).unwrap();
            assert_eq!(
                u64::from_le_bytes(number),
                u64::from(inner.id),
                "another map"
            );
            Some(inner.id.into())
        }
        MapKind::ProgArray => Some(operations.program(key)?.id.into()),
        MapKind::CgroupArray => operations.cgroup(key).ok(),
        MapKind::Sockmap | MapKind::Sockhash | MapKind::ReuseportSockarray => {
            operations.socket(&key_of(key))
        }
        _ => {
            let value = operations.lookup(&guard, 0, &key_of(key))?;
            let mut number = [0; 4];
            value.read(0, &mut number);
            Some(u32::from_le_bytes(number).into())
        }
    }
}

#[test]
fn programs_find_objects_that_were_stored() {
    use MapKind::{
        ArrayOfMaps, CgroupArray, Cpumap, Devmap, DevmapHash, HashOfMaps, ProgArray, Sockhash,
        Sockmap,
    };
    let kinds = [
        ArrayOfMaps,
        CgroupArray,
        Cpumap,
        Devmap,
        DevmapHash,
        HashOfMaps,
        ProgArray,
        Sockhash,
        Sockmap,
    ];
    for kind in kinds {
        for threads in THREADS {
            let (map, objects) = (map_of(kind), Objects::new());
            in_threads(threads, |_, mut random| {
                for _ in 0..rounds(2_000) {
                    let (key, object) = (random.below(OBJECTS), 1 + random.below(OBJECTS));
                    match random.below(4) {
                        0 => assert_eq!(update(&map, key, object, 0, &objects), Ok(())),
                        1 => drop(map.delete_with(&key_of(key), &objects)),
                        _ => {
                            let found = found(&map, key);
                            let is_stored = found.is_none_or(|it| (1..=4).contains(&it));
                            // A program may find an element when it is emptied.
                            let is_empty =
                                found == Some(0) && matches!(kind, Cpumap | Devmap | DevmapHash);
                            assert!(is_stored || is_empty, "{kind:?}: {found:?}");
                        }
                    }
                }
            });
            for key in 0..OBJECTS {
                update(&map, key, key + 1, 0, &objects).unwrap();
                assert_eq!(found(&map, key), Some(u64::from(key) + 1), "{kind:?}");
            }
        }
    }
}

#[test]
fn of_those_who_add_an_object_one_succeeds() {
    for kind in [
        MapKind::Sockmap,
        MapKind::Sockhash,
        MapKind::HashOfMaps,
        MapKind::DevmapHash,
    ] {
        for threads in THREADS {
            let (map, objects) = (map_of(kind), Objects::new());
            let counts: Vec<AtomicI32> = (0..OBJECTS).map(|_| AtomicI32::new(0)).collect();
            in_threads(threads, |_, mut random| {
                for _ in 0..rounds(4_000) {
                    add_or_remove(&map, &mut random, &objects, &counts);
                }
            });
            for (key, count) in (0..).zip(&counts) {
                let found = found(&map, key).is_some();
                assert_eq!(count.load(Relaxed), i32::from(found), "{kind:?}: key {key}");
            }
        }
    }
}

/// Adds an object at a key where none is, or removes the one that is there; `counts` has the
/// additions less the removals of each key.
fn add_or_remove(map: &Map, random: &mut Random, objects: &Objects, counts: &[AtomicI32]) {
    let (key, object) = (random.below(OBJECTS), 1 + random.below(OBJECTS));
    let count = &counts[key as usize];
    match random.below(2) {
        0 if update(map, key, object, NOEXIST, objects).is_ok() => {
            count.fetch_add(1, Relaxed);
        }
        1 if map.delete_with(&key_of(key), objects).is_ok() => {
            count.fetch_sub(1, Relaxed);
        }
        _ => {}
    }
}

#[test]
fn a_socket_is_in_one_place_of_an_array() {
    for threads in THREADS {
        let (map, objects) = (map_of(MapKind::ReuseportSockarray), Objects::new());
        in_threads(threads, |_, mut random| {
            for _ in 0..rounds(4_000) {
                let (key, object) = (random.below(OBJECTS), 1 + random.below(OBJECTS));
                let flags = random.below(3).into();
                match random.below(2) {
                    0 => match update(&map, key, object, flags, &objects) {
                        Ok(()) | Err(Errno::EBUSY | Errno::EEXIST | Errno::ENOENT) => {}
                        Err(errno) => panic!("{errno:?}"),
                    },
                    _ => drop(map.delete_with(&key_of(key), &objects)),
                }
            }
        });
        let mut left: Vec<u64> = (0..OBJECTS).filter_map(|key| found(&map, key)).collect();
        left.sort_unstable();
        let places = left.len();
        left.dedup();
        assert_eq!(left.len(), places, "a socket is in two places");
        for key in 0..OBJECTS {
            let _ = map.delete_with(&key_of(key), &objects);
        }
        for key in 0..OBJECTS {
            let updated = update(&map, key, key + 1, NOEXIST, &objects);
            assert_eq!(updated, Ok(()), "a removed socket is as before");
        }
    }
}
