//! The maps of generated programs: definitions, creation, contents.

use std::iter;
use std::sync::Arc;

use kernel::maps::{Host, Map, Resources, Ring, StoredMap, ValueLayout};
use program::creation::value_fields;
use program::{Image, InitialContents, MapDef, MapEntry, MapId, MapParams, Program};
use spec::maps::{MapFlags, MapKind};
use sys::Errno;
use sys::bpf::RingBuffer;

use crate::registry::fields::with_callback_and_lock;

// Indices in `definitions`.
pub(super) const ARRAY: u32 = 0;
const HASH: u32 = 1;
pub(super) const LPM: u32 = 3;
pub(super) const CONSTANTS: u32 = 4;
pub(super) const VARIABLES: u32 = 5;

pub(super) const QUEUE: u32 = 8;
pub(super) const STACK: u32 = 9;
pub(super) const RING: u32 = 10;
pub(super) const ARRAY_OF_MAPS: u32 = 11;
pub(super) const HASH_OF_MAPS: u32 = 12;
pub(super) const BLOOM: u32 = 13;
pub(super) const LOCKED: u32 = 14;
pub(super) const PERF: u32 = 15;
pub(super) const PERCPU_ARRAY: u32 = 6;
pub(super) const PERCPU_HASH: u32 = 7;
pub(super) const PERCPU_LRU: u32 = 16;
pub(super) const TIMED: u32 = 17;
pub(super) const PROGRAMS: u32 = 18;

/// Maps that programs update by keys and whose values are numbers.
pub(super) const ALL: &[u32] = &[ARRAY, 1, 2, LPM, PERCPU_ARRAY, PERCPU_HASH, PERCPU_LRU];

/// The programs that the program array holds, by index; nothing is at index 2.
pub(super) const TARGETS: &[(u32, usize)] = &[(0, 1), (1, 2), (3, 0)];

/// Bytes of the values that programs address directly.
pub(super) const DATA: u32 = 32;

/// Bytes of the values with timers.
const TIMED_SIZE: u32 = 32;

/// Bytes of the frozen value.
pub(super) fn constants() -> [u8; DATA as usize] {
    std::array::from_fn(|at| (at as u8).wrapping_mul(37).wrapping_add(11))
}

/// Array, hash, LRU hash and LPM trie with values of 16 bytes; frozen and writable data;
/// per-CPU array and hash; queue and stack; a ring buffer; maps of arrays and of hashes; a
/// Bloom filter; an array whose values have a spin lock; a perf event array without buffers;
/// a per-CPU LRU hash; a hash whose values have a timer; a program array.
pub(super) fn definitions() -> Vec<Arc<MapDef>> {
    let map = |kind: MapKind, key_size, max_entries, flags| {
        let params = MapParams {
            map_type: kind.number(),
            key_size,
            value_size: 16,
            max_entries,
            flags: MapFlags(flags),
            ..MapParams::default()
        };
        MapDef::new("m", params)
    };
    let data = |frozen: bool, image: &[u8]| {
        let flags = match frozen {
            true => MapFlags::RDONLY_PROG.0,
            false => 0,
        };
        let mut def = map(MapKind::Array, 4, 1, flags);
        def.params.value_size = DATA;
        def.contents = InitialContents::Value {
            image: Image::new(image, DATA).to_owned(),
            frozen,
        };
        def
    };
    let of_maps = |kind: MapKind, inner: MapDef, at: &[(u32, u32)]| {
        let mut def = map(kind, 4, 4, 0);
        def.params.value_size = 4;
        def.inner = Some(Arc::new(inner));
        let entry = |&(key, map)| (key, MapEntry::Map(MapId(map)));
        def.contents = InitialContents::Entries(at.iter().map(entry).collect());
        def
    };
    let mut ring = map(MapKind::Ringbuf, 0, 1 << 12, 0);
    ring.params.value_size = 0;
    let types = with_callback_and_lock();
    let mut locked = map(MapKind::Array, 4, 3, 0);
    locked.params.value_size = 24;
    (locked.params.key_type, locked.params.value_type) = (types.key, types.value);
    locked.has_btf = true;
    let mut perf = map(MapKind::PerfEventArray, 4, 2, 0);
    perf.params.value_size = 4;
    let mut timed = map(MapKind::Hash, 4, 5, 0);
    timed.params.value_size = TIMED_SIZE;
    (timed.params.key_type, timed.params.value_type) = (types.key, types.timed);
    timed.has_btf = true;
    let mut programs = map(MapKind::ProgArray, 4, 4, 0);
    programs.params.value_size = 4;
    let all = [
        map(MapKind::Array, 4, 5, 0),
        map(MapKind::Hash, 4, 6, 0),
        map(MapKind::LruHash, 4, 1024, 0),
        map(MapKind::LpmTrie, 8, 64, 1),
        data(true, &constants()),
        data(false, &[]),
        map(MapKind::PercpuArray, 4, 6, 0),
        map(MapKind::PercpuHash, 4, 8, 0),
        map(MapKind::Queue, 0, 5, 0),
        map(MapKind::Stack, 0, 5, 0),
        ring,
        of_maps(
            MapKind::ArrayOfMaps,
            map(MapKind::Array, 4, 5, 0),
            &[(0, ARRAY), (2, ARRAY)],
        ),
        of_maps(
            MapKind::HashOfMaps,
            map(MapKind::Hash, 4, 6, 0),
            &[(1, HASH), (5, HASH)],
        ),
        map(MapKind::BloomFilter, 0, 64, 0),
        locked,
        perf,
        map(MapKind::LruPercpuHash, 4, 1024, 0),
        timed,
        programs,
    ];
    all.map(Arc::new).to_vec()
}

/// The maps of a program with their initial values, on a machine with four CPUs.
pub fn create(program: &Program) -> Vec<Arc<Map>> {
    create_on(program, &Host::new(4, 1))
}

/// As [`create`], on this machine.
pub(super) fn create_on(program: &Program, host: &Host) -> Vec<Arc<Map>> {
    let types = program.btf().map(|types| &**types);
    let plain = |def: &MapDef, inner: Option<&Map>| {
        let described = types.filter(|_| def.has_btf);
        let fields = described.map(|types| value_fields(&def.params, types, None));
        let fields = fields.unwrap_or_default();
        let value = ValueLayout::with_fields(def.params.value_size as usize, &fields);
        let map = Map::create_with(&def.params, value, host, inner);
        map.expect("the definitions are valid")
    };
    let create = |def: &Arc<MapDef>| {
        let inner = def.inner.as_deref().map(|inner| plain(inner, None));
        let map = plain(def, inner.as_ref());
        if let Some(image) = def.initial_value() {
            let stored = map.update(&[0; 4], &image.to_vec(), 0);
            stored.expect("an array has the key 0");
        }
        Arc::new(map)
    };
    let maps = Maps(program.maps().iter().map(create).collect());
    for (def, map) in program.maps().iter().zip(&maps.0) {
        for (key, entry) in def.contents.entries() {
            let MapEntry::Map(inner) = entry else {
                panic!("{entry:?} is no map");
            };
            let (key, inner) = (key.to_ne_bytes(), inner.0.to_ne_bytes());
            let put = map.update_with(&key, &inner, 0, &maps);
            put.expect("the inner map fits");
        }
    }
    maps.0
}

/// Maps whose descriptors are their places.
struct Maps(Vec<Arc<Map>>);

impl Resources for Maps {
    fn map(&self, descriptor: u32) -> Option<Arc<StoredMap>> {
        let map = self.0.get(descriptor as usize)?;
        Some(Arc::new(StoredMap::new(descriptor + 1, Arc::clone(map))))
    }
}

/// Values by the keys of generated programs; `None` where there is none.
pub(super) type Contents = Vec<Option<Vec<u8>>>;

/// Final contents of the maps: queues and ring buffers are emptied.
pub(super) fn contents(program: &Program, maps: &[Arc<Map>]) -> Vec<Option<Contents>> {
    let of = |(def, map): (&Arc<MapDef>, &Arc<Map>)| match def.kind() {
        Some(MapKind::Ringbuf) => {
            let ring = map.of_kind::<Ring>().expect("it is a ring buffer");
            let next = || ring.consume().map(Some);
            Some(iter::from_fn(next).collect())
        }
        Some(MapKind::Queue | MapKind::Stack) => Some(emptied(def, |value| {
            map.lookup_and_delete(&[], value, 0).is_ok()
        })),
        kind if is_opaque(kind) => None,
        _ => Some(values(def, map)),
    };
    program.maps().iter().zip(maps).map(of).collect()
}

/// Contents of the map whose values have timers.
pub(super) fn timed(program: &Program, maps: &[Arc<Map>]) -> Contents {
    let at = TIMED as usize;
    values(&program.maps()[at], &maps[at])
}

fn values(def: &MapDef, map: &Map) -> Contents {
    let lookup = |key: &[u8]| {
        let mut value = vec![0; map.value_len()];
        map.lookup(key, &mut value, 0).is_ok().then_some(value)
    };
    keys(def).iter().map(|key| lookup(key)).collect()
}

/// True for maps whose values are not read.
fn is_opaque(kind: Option<MapKind>) -> bool {
    matches!(
        kind,
        Some(
            MapKind::ArrayOfMaps
                | MapKind::HashOfMaps
                | MapKind::BloomFilter
                | MapKind::PerfEventArray
                | MapKind::ProgArray
        )
    )
}

/// As [`contents`], of the maps in the kernel, those of which are absent that no program uses.
pub(super) fn contents_in_kernel<'m>(
    program: &Program,
    map: impl Fn(usize) -> Option<&'m sys::bpf::Map>,
) -> Result<Vec<Option<Contents>>, Errno> {
    let of = |(at, def): (usize, &Arc<MapDef>)| {
        let Some(map) = map(at) else { return Ok(None) };
        Ok(match def.kind() {
            Some(MapKind::Ringbuf) => {
                let mut ring = RingBuffer::open(map)?;
                Some(iter::from_fn(|| ring.next_record().map(Some)).collect())
            }
            Some(MapKind::Queue | MapKind::Stack) => Some(emptied(def, |value| {
                map.lookup_and_delete(&[], value).is_ok()
            })),
            kind if is_opaque(kind) => None,
            _ => Some(values_in_kernel(def, map)),
        })
    };
    program.maps().iter().enumerate().map(of).collect()
}

/// As [`timed`], of the map in the kernel.
pub(super) fn timed_in_kernel(program: &Program, map: &sys::bpf::Map) -> Contents {
    values_in_kernel(&program.maps()[TIMED as usize], map)
}

fn values_in_kernel(def: &MapDef, map: &sys::bpf::Map) -> Contents {
    let lookup = |key: &[u8]| {
        let mut value = vec![0; map.value_len()];
        map.lookup(key, &mut value).is_ok().then_some(value)
    };
    keys(def).iter().map(|key| lookup(key)).collect()
}

/// The values of a queue, each of which `take` removes.
fn emptied(def: &MapDef, take: impl Fn(&mut [u8]) -> bool) -> Contents {
    let mut value = vec![0; def.params.value_size as usize];
    iter::from_fn(|| take(&mut value).then(|| Some(value.clone()))).collect()
}

/// The keys that generated programs use.
fn keys(def: &MapDef) -> Vec<Vec<u8>> {
    let prefixes: &[u32] = match def.kind() {
        Some(MapKind::LpmTrie) => &[0, 8, 32],
        _ => &[u32::MAX],
    };
    let mut keys = Vec::new();
    for &prefix in prefixes {
        for number in 0..8u32 {
            let mut key = number.to_ne_bytes().to_vec();
            if prefix != u32::MAX {
                key.splice(0..0, prefix.to_ne_bytes());
            }
            keys.push(key);
        }
    }
    keys
}
