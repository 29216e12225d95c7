//! The maps of generated programs: definitions, creation, contents.

use std::sync::Arc;

use kernel::maps::{Host, Map, ValueLayout};
use program::{Image, InitialContents, MapDef, MapParams, Program};
use spec::maps::{MapFlags, MapKind};

// Indices in `definitions`.
pub(super) const ARRAY: u32 = 0;
pub(super) const LPM: u32 = 3;
pub(super) const CONSTANTS: u32 = 4;
pub(super) const VARIABLES: u32 = 5;

/// Maps that programs update by keys, without per-CPU maps.
pub(super) const SHARED: &[u32] = &[ARRAY, 1, 2, LPM];
/// The same with per-CPU maps.
pub(super) const ALL: &[u32] = &[ARRAY, 1, 2, LPM, 6, 7];

/// Bytes of the values that programs address directly.
pub(super) const DATA: u32 = 32;

/// Bytes of the frozen value.
pub(super) fn constants() -> [u8; DATA as usize] {
    std::array::from_fn(|at| (at as u8).wrapping_mul(37).wrapping_add(11))
}

/// Array, hash, LRU hash and LPM trie with values of 16 bytes; frozen and writable data;
/// per-CPU array and hash.
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
    let all = [
        map(MapKind::Array, 4, 5, 0),
        map(MapKind::Hash, 4, 6, 0),
        map(MapKind::LruHash, 4, 1024, 0),
        map(MapKind::LpmTrie, 8, 64, 1),
        data(true, &constants()),
        data(false, &[]),
        map(MapKind::PercpuArray, 4, 6, 0),
        map(MapKind::PercpuHash, 4, 8, 0),
    ];
    all.map(Arc::new).to_vec()
}

/// The maps of a program with their initial values.
pub(super) fn create(program: &Program) -> Vec<Arc<Map>> {
    let create = |def: &Arc<MapDef>| {
        let value = ValueLayout::plain(def.params.value_size as usize);
        let map = Map::create(&def.params, value, &Host { cpus: 4, seed: 1 });
        let map = map.expect("the definitions are valid");
        if let Some(image) = def.initial_value() {
            let stored = map.update(&[0; 4], &image.to_vec(), 0);
            stored.expect("an array has the key 0");
        }
        Arc::new(map)
    };
    program.maps().iter().map(create).collect()
}

/// Values by the keys of generated programs; `None` where there is none.
type Contents = Vec<Option<Vec<u8>>>;

/// The contents of all maps.
pub(super) fn contents(program: &Program, maps: &[Arc<Map>]) -> Vec<Option<Contents>> {
    let of = |(def, map): (&Arc<MapDef>, &Arc<Map>)| {
        let lookup = |key: &[u8]| {
            let mut value = vec![0; map.value_len()];
            map.lookup(key, &mut value, 0).is_ok().then_some(value)
        };
        Some(keys(def).iter().map(|key| lookup(key)).collect())
    };
    program.maps().iter().zip(maps).map(of).collect()
}

/// The contents of the maps in the kernel that programs share between CPUs.
pub(super) fn contents_in_kernel(
    program: &Program,
    maps: &[Option<sys::bpf::Map>],
) -> Vec<Option<Contents>> {
    let of = |(def, map): (&Arc<MapDef>, &Option<sys::bpf::Map>)| {
        let map = map.as_ref()?;
        let lookup = |key: &[u8]| {
            let mut value = vec![0; map.value_len()];
            map.lookup(key, &mut value).is_ok().then_some(value)
        };
        Some(keys(def).iter().map(|key| lookup(key)).collect())
    };
    program.maps().iter().zip(maps).map(of).collect()
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
