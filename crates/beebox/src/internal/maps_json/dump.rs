//! Contents of maps as JSON.

use std::io::{self, Write};

use btf::Btf;
use report::value::Ordered;
use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};
use spec::maps::MapKind;

use super::{Part, Types, arena, is_percpu, storage};
use crate::internal::run::{DataError, LoadedObject, ObjectMap};

/// True if the elements of a map have keys, by which they can be read, as the pages of an arena have
/// addresses.
fn has_keys(map: &ObjectMap) -> bool {
    let kind = map.map.kind();
    kind == MapKind::Arena || map.def.params.key_size != 0 && !kind.has_records()
}

/// The entries of all maps that have keys and the pages of arenas, by name, as they are when this
/// is written: one after the other, so that large maps take no memory.
pub struct MapsDump<'a> {
    loaded: &'a LoadedObject,
    types: Option<&'a Btf<'a>>,
}

impl<'a> MapsDump<'a> {
    /// The maps of a loaded object, with the types of the object.
    ///
    /// # Errors
    /// If the entries of a map cannot be read.
    pub fn new(
        loaded: &'a LoadedObject,
        types: Option<&'a Btf<'a>>,
    ) -> Result<MapsDump<'a>, DataError> {
        let dump = MapsDump { loaded, types };
        for map in dump.maps() {
            if loaded.arena(&map.def.name).is_none()
                && !map.map.kind().is_storage()
                && let Some(Err(errno)) = map.iter_entries().next()
            {
                let name = map.def.name.clone();
                return Err(DataError::Map { name, errno });
            }
        }
        Ok(dump)
    }

    fn maps(&self) -> impl Iterator<Item = &'a ObjectMap> {
        self.loaded.maps().filter(|map| has_keys(map))
    }

    fn entries(&self, map: &'a ObjectMap) -> Entries<'a> {
        Entries {
            loaded: self.loaded,
            map,
            types: Types::of(map, self.types),
        }
    }

    /// Writes them as text, `map NAME: ` and JSON in lines for each.
    ///
    /// # Errors
    /// Those of the output, and of maps that cannot be read.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        for map in self.maps() {
            write!(out, "map {}: ", map.def.name)?;
            report::json::write_pretty(out, &self.entries(map))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

impl Serialize for MapsDump<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let maps = self.maps().map(|map| (&map.def.name, self.entries(map)));
        serializer.collect_map(maps)
    }
}

/// The entries of a map, or the pages of an arena.
struct Entries<'a> {
    loaded: &'a LoadedObject,
    map: &'a ObjectMap,
    types: Types<'a>,
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(arena) = self.loaded.arena(&self.map.def.name) {
            return serializer.collect_seq(arena::pages(arena));
        }
        if self.map.map.kind().is_storage() {
            return serializer.collect_seq(storage::values(self.map, &self.types));
        }
        let mut list = serializer.serialize_seq(None)?;
        for entry in self.map.iter_entries() {
            let (key, value) = entry.map_err(S::Error::custom)?;
            list.serialize_element(&self.entry(&key, &value))?;
        }
        list.end()
    }
}

impl Entries<'_> {
    fn entry(&self, key: &[u8], value: &[u8]) -> Ordered {
        let (map, of) = (self.map, &self.types);
        let size = map.def.params.value_size as usize;
        let is_data = map.def.initial_value().is_some();
        let mut members = Vec::new();
        let index = <[u8; 4]>::try_from(key).map(u32::from_le_bytes);
        match index {
            _ if is_data && of.is_known(Part::Value) => {}
            Ok(index) if map.map.kind() == MapKind::ProgArray => {
                members.push(("key".to_owned(), Ordered::Scalar(index.into())));
            }
            _ => members.push(("key".to_owned(), of.show(Part::Key, key))),
        }
        if is_percpu(map) {
            let values = value.chunks(size.next_multiple_of(8)).enumerate();
            let values = values.map(|(cpu, value)| {
                Ordered::Object(vec![
                    ("cpu".to_owned(), Ordered::Scalar(cpu.into())),
                    ("value".to_owned(), of.show(Part::Value, &value[..size])),
                ])
            });
            members.push(("values".to_owned(), Ordered::List(values.collect())));
        } else if let Some(program) = program_at(self.loaded, map, key) {
            members.push(("value".to_owned(), Ordered::Scalar(program.into())));
        } else if let Some(cookie) = self.loaded.socket_at(map, key) {
            members.push(("value".to_owned(), Ordered::Scalar(cookie.into())));
        } else {
            members.push(("value".to_owned(), of.show(Part::Value, value)));
        }
        Ordered::Object(members)
    }
}

/// Name of the program that a program array has for a key.
fn program_at<'l>(loaded: &'l LoadedObject, map: &ObjectMap, key: &[u8]) -> Option<&'l str> {
    let index = u32::from_le_bytes(key.try_into().ok()?);
    loaded.program_at(&map.map, index)
}
