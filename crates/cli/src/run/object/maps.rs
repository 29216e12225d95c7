//! Maps of a run as JSON, in the form of bpftool's dumps.

use std::path::Path;

use beebox::program::MapKind;
use beebox::run::{LoadedObject, ObjectMap};
use btf::{Btf, TypeId};
use report::value::{Ordered, bytes_from_json, bytes_to_json, from_json, to_json};
use serde_json::Value;

use crate::answer::Failure;
use crate::program_input::{name, read_at_most};

/// Bytes of the largest file of map contents.
const LARGEST: u64 = 64 << 20;

/// The types of keys and values.
struct Types<'a> {
    types: Option<&'a Btf<'a>>,
    key: TypeId,
    value: TypeId,
}

impl<'a> Types<'a> {
    fn of(map: &ObjectMap, types: Option<&'a Btf<'a>>) -> Types<'a> {
        let params = &map.def.params;
        Types {
            types: types.filter(|_| map.def.has_btf),
            key: params.key_type,
            value: params.value_type,
        }
    }

    fn show(&self, ty: TypeId, bytes: &[u8]) -> Ordered {
        match self.types.filter(|_| ty != TypeId::VOID) {
            Some(types) => to_json(types, ty, bytes),
            None => bytes_to_json(bytes),
        }
    }

    fn read(&self, ty: TypeId, value: &Value, into: &mut [u8]) -> Result<(), String> {
        match self.types.filter(|_| ty != TypeId::VOID) {
            Some(types) => from_json(types, ty, value, into),
            None => bytes_from_json(value, into),
        }
    }
}

fn is_percpu(map: &ObjectMap) -> bool {
    matches!(
        map.map.kind(),
        MapKind::PercpuArray | MapKind::PercpuHash | MapKind::LruPercpuHash
    )
}

/// The entries of all maps, by name.
pub(super) fn dump(loaded: &LoadedObject, types: Option<&Btf<'_>>) -> Result<Ordered, Failure> {
    let mut maps = Vec::new();
    for map in loaded.maps() {
        let entries = entries(map, types);
        let entries = entries.map_err(|error| error.within(format_args!("map {}", map.def.name)));
        maps.push((map.def.name.clone(), entries?));
    }
    Ok(Ordered::Object(maps))
}

fn entries(map: &ObjectMap, types: Option<&Btf<'_>>) -> Result<Ordered, Failure> {
    let of = Types::of(map, types);
    let size = map.def.params.value_size as usize;
    let is_data = map.def.initial_value().is_some();
    let entries = map.entries().map_err(Failure::new)?;
    let entries = entries.iter().map(|(key, value)| {
        let mut members = Vec::new();
        if !is_data {
            members.push(("key".to_owned(), of.show(of.key, key)));
        }
        if is_percpu(map) {
            let values = value.chunks(size.next_multiple_of(8)).enumerate();
            let values = values.map(|(cpu, value)| {
                Ordered::Object(vec![
                    ("cpu".to_owned(), Ordered::Scalar(cpu.into())),
                    ("value".to_owned(), of.show(of.value, &value[..size])),
                ])
            });
            members.push(("values".to_owned(), Ordered::List(values.collect())));
        } else {
            members.push(("value".to_owned(), of.show(of.value, value)));
        }
        Ordered::Object(members)
    });
    Ok(Ordered::List(entries.collect()))
}

/// Fills maps from a file: an object of lists of entries, by map.
pub(super) fn fill(
    loaded: &LoadedObject,
    types: Option<&Btf<'_>>,
    path: &Path,
) -> Result<(), Failure> {
    let file = read_at_most(path, LARGEST)?;
    let parsed: Result<Value, _> = serde_json::from_slice(&file);
    let wrong = |what: String| {
        Failure::new(format_args!("{}: {what}", name(path)))
            .hint(r#"{"MAP": [{"key": KEY, "value": VALUE}]}, as --dump-maps prints it"#)
    };
    let contents = parsed.map_err(|error| wrong(format!("no JSON: {error}")))?;
    // A whole answer of --dump-maps --format json is good too.
    let contents = contents.get("maps").unwrap_or(&contents);
    let contents = contents.as_object();
    let contents = contents.ok_or_else(|| wrong("no object with maps by name".to_owned()))?;
    for (map_name, entries) in contents {
        let map = loaded.maps().find(|map| map.def.name == *map_name);
        let Some(map) = map else {
            let names: Vec<&str> = loaded.maps().map(|map| map.def.name.as_str()).collect();
            return Err(wrong(format!(
                "the program uses no map {map_name:?}; it uses {}",
                names.join(", ")
            )));
        };
        if map.def.initial_value().is_some() {
            return Err(Failure::new(format_args!(
                "{}: map {map_name} holds global variables",
                name(path)
            ))
            .hint("--set NAME=VALUE"));
        }
        let entries = entries.as_array();
        let entries =
            entries.ok_or_else(|| wrong(format!("map {map_name}: no list of entries")))?;
        for (at, entry) in entries.iter().enumerate() {
            let put = put(map, &Types::of(map, types), entry);
            put.map_err(|error| wrong(format!("map {map_name}: entry {at}: {error}")))?;
        }
    }
    Ok(())
}

fn put(map: &ObjectMap, of: &Types<'_>, entry: &Value) -> Result<(), String> {
    let member = |name: &str| entry.get(name).ok_or_else(|| format!("it has no {name}"));
    let mut key = vec![0; map.def.params.key_size as usize];
    of.read(of.key, member("key")?, &mut key)
        .map_err(|error| format!("key: {error}"))?;
    let mut value = vec![0; map.map.value_len()];
    let size = map.def.params.value_size as usize;
    if is_percpu(map) {
        let values = member("values")?.as_array().ok_or("values: no list")?;
        for (cpu, given) in values.iter().enumerate() {
            let start = cpu * size.next_multiple_of(8);
            let place = value.get_mut(start..start + size);
            let place = place.ok_or("values: more than there are CPUs")?;
            let given = given.get("value").ok_or("values: one has no value")?;
            of.read(of.value, given, place)
                .map_err(|error| format!("values: {error}"))?;
        }
    } else {
        of.read(of.value, member("value")?, &mut value[..size])
            .map_err(|error| format!("value: {error}"))?;
    }
    let updated = map.map.update(&key, &value, 0);
    updated.map_err(|errno| format!("the map does not take it: {errno}"))
}
