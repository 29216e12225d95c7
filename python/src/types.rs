//! The types of an object's maps, variables and records.

use std::collections::HashMap;

use beebox::Object;
use beebox::internal::loading::ObjectLoading;
use beebox::internal::maps_json::RecordTypes;
use btf::{Btf, Kind, TypeId};
use pyo3::prelude::*;

use crate::codec::Codec;
use crate::errors::{Fault, raised};

/// The types of a loaded object, as codecs.
#[derive(Debug)]
pub(crate) struct Types {
    maps: HashMap<String, MapTypes>,
    globals: Vec<(String, Codec)>,
    /// Of records without a chosen type: the types to which variables point.
    records: Vec<Codec>,
    btf: Option<Btf<'static>>,
}

/// The types of a map's keys and values.
#[derive(Debug)]
pub(crate) struct MapTypes {
    pub(crate) key: Codec,
    pub(crate) value: Codec,
}

/// Kinds of types that records have, in the order in which a name alone is looked for.
const KINDS: [Kind; 6] = [
    Kind::Struct,
    Kind::Union,
    Kind::Typedef,
    Kind::Int,
    Kind::Enum,
    Kind::Enum64,
];

impl Types {
    pub(crate) fn new(
        py: Python<'_>,
        object: &Object,
        defines: &[(String, u64)],
    ) -> PyResult<Types> {
        let loading = ObjectLoading {
            loader: Some(object.loader()),
            defines: defines.to_vec(),
            ..ObjectLoading::default()
        };
        let opened = loading.open(object.bytes(), object.name());
        let opened = opened.map_err(|error| raised(Fault::new("object", error)))?;
        let types = opened.btf();
        let maps = opened.maps().iter().map(|(_, map)| {
            let params = map.params();
            let codec = |ty, size: u32| Codec::new(py, types, ty, size as usize);
            let types = MapTypes {
                key: codec(params.key_type, params.key_size),
                value: codec(params.value_type, params.value_size),
            };
            (map.name().to_owned(), types)
        });
        let mut globals: Vec<(String, Codec)> = Vec::new();
        let mut listed: Vec<_> = opened.globals().collect();
        // A global variable takes precedence over static ones.
        listed.sort_by_key(|global| global.is_static);
        for global in listed {
            if !globals.iter().any(|(name, _)| *name == global.name) {
                let codec = Codec::new(py, types, global.ty, global.size as usize);
                globals.push((global.name, codec));
            }
        }
        let pointed = RecordTypes::new(&opened);
        let pointed = pointed.pointed().iter();
        Ok(Types {
            maps: maps.collect(),
            globals,
            records: pointed
                .map(|(size, ty)| Codec::new(py, types, *ty, *size as usize))
                .collect(),
            btf: types.map(Btf::to_owned),
        })
    }

    pub(crate) fn of_map(&self, name: &str) -> Option<&MapTypes> {
        self.maps.get(name)
    }

    pub(crate) fn of_global(&self, name: &str) -> Option<&Codec> {
        let mut found = self.globals.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, codec)| codec)
    }

    pub(crate) fn global_names(&self) -> impl Iterator<Item = &str> {
        self.globals.iter().map(|(name, _)| name.as_str())
    }

    /// The type of a record of so many bytes, if exactly one fits.
    pub(crate) fn of_record(&self, size: usize) -> Option<&Codec> {
        let mut fitting = self.records.iter().filter(|codec| codec.size() == size);
        fitting.next().filter(|_| fitting.next().is_none())
    }

    /// The codec of a type by its name, also as C writes it (`struct event`).
    ///
    /// # Errors
    /// `NotFoundError` if the object has no such type.
    pub(crate) fn named(&self, py: Python<'_>, name: &str) -> PyResult<Codec> {
        let (kinds, tag): (&[Kind], _) = match name.split_once(' ') {
            Some(("struct", tag)) => (&[Kind::Struct], tag),
            Some(("union", tag)) => (&[Kind::Union], tag),
            Some(("enum", tag)) => (&[Kind::Enum, Kind::Enum64], tag),
            _ => (&KINDS, name),
        };
        let found = self.btf.as_ref().and_then(|types| {
            let id: TypeId = kinds
                .iter()
                .find_map(|kind| types.find(*kind, tag.trim()))?
                .id();
            let size = types.size_of(id)? as usize;
            Some(Codec::new(py, Some(types), id, size))
        });
        found.ok_or_else(|| Fault::absent(format!("the object has no type {name}")).into())
    }
}
