//! Maps and records as JSON and back ([`MapsJson`] describes the form).

mod arena;
mod dump;
mod element;
mod error;
mod fill;
mod formats;
mod records;
mod storage;

pub use dump::MapsDump;
pub(crate) use element::{Element, KeyNames};
pub use error::{LeftOut, MapsJsonError, MapsJsonFault};
pub use fill::MapsJson;
pub use formats::{FieldFormat, MapFormats};
pub use records::{RecordTypeError, RecordTypes};
pub use report::value::Ordered;

use btf::{Btf, TypeId};
use object::Object;
use report::value::{
    Formats, bytes_from_json_as, bytes_to_json_as, fill_from_json_as, from_json_as, to_json_as,
};
use serde_json::Value;

use crate::internal::run::{LoadedObject, ObjectMap};

/// Form of the entries of maps.
const FORM: &str = r#"{"MAP": [{"key": KEY, "value": VALUE}]}, as in dumps of maps"#;

/// A key or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Key,
    Value,
}

/// The types of keys and values, and the forms of their fields.
struct Types<'a> {
    types: Option<&'a Btf<'a>>,
    key: TypeId,
    value: TypeId,
    formats: &'a MapFormats,
}

impl<'a> Types<'a> {
    fn of(map: &'a ObjectMap, types: Option<&'a Btf<'a>>) -> Types<'a> {
        let params = &map.def.params;
        Types {
            types: types.filter(|_| map.def.has_btf),
            key: params.key_type,
            value: params.value_type,
            formats: map.formats(),
        }
    }

    /// The types that an object declares for a map: of maps without keys the kernel keeps none.
    fn declared(map: &'a ObjectMap, object: &'a Object<'_>) -> Types<'a> {
        let mut maps = object.maps().iter().map(|(_, map)| map);
        let declared = maps.find(|declared| declared.name() == map.def.name);
        Types {
            types: object.btf(),
            key: TypeId::VOID,
            value: declared.map_or(TypeId::VOID, |map| map.params().value_type),
            formats: map.formats(),
        }
    }

    fn of_part(&self, part: Part) -> (Option<(&'a Btf<'a>, TypeId)>, &'a Formats) {
        let ty = match part {
            Part::Key => self.key,
            Part::Value => self.value,
        };
        let types = self.types.filter(|_| ty != TypeId::VOID);
        (types.map(|types| (types, ty)), self.formats.of(part))
    }

    /// True if parts are shown by a type.
    fn is_known(&self, part: Part) -> bool {
        self.of_part(part).0.is_some()
    }

    fn show(&self, part: Part, bytes: &[u8]) -> Ordered {
        match self.of_part(part) {
            (Some((types, ty)), formats) => to_json_as(types, ty, bytes, formats),
            (None, formats) => bytes_to_json_as(bytes, formats),
        }
    }

    /// Reads a whole part into zeros; the members that it leaves out.
    fn fill(&self, part: Part, value: &Value, into: &mut [u8]) -> Result<Vec<String>, String> {
        match self.of_part(part) {
            (Some((types, ty)), formats) => fill_from_json_as(types, ty, value, into, formats),
            (None, formats) => bytes_from_json_as(value, into, formats).map(|()| Vec::new()),
        }
    }

    /// Reads a part over another one.
    fn read(&self, part: Part, value: &Value, into: &mut [u8]) -> Result<(), String> {
        match self.of_part(part) {
            (Some((types, ty)), formats) => from_json_as(types, ty, value, into, formats),
            (None, formats) => bytes_from_json_as(value, into, formats),
        }
    }

    /// Members that a part of so many bytes leaves out; none if it does not fit its type.
    fn left_out(&self, part: Part, value: &Value, size: usize) -> Vec<String> {
        let (Some((types, ty)), formats) = self.of_part(part) else {
            return Vec::new();
        };
        fill_from_json_as(types, ty, value, &mut vec![0; size], formats).unwrap_or_default()
    }
}

/// A key or value of a map by its type.
#[cfg(any(feature = "trace", feature = "fuzz"))]
pub(crate) fn show_part(
    map: &ObjectMap,
    types: Option<&Btf<'_>>,
    bytes: &[u8],
    is_key: bool,
) -> Ordered {
    let part = if is_key { Part::Key } else { Part::Value };
    Types::of(map, types).show(part, bytes)
}

fn is_percpu(map: &ObjectMap) -> bool {
    map.map.kind().is_percpu() && !map.map.kind().is_cgroup_storage()
}

/// The map of a name.
pub(crate) fn find<'l>(
    loaded: &'l LoadedObject,
    name: &str,
) -> Result<&'l ObjectMap, MapsJsonFault> {
    let found = loaded.maps().find(|map| map.def.name == name);
    found.ok_or_else(|| MapsJsonFault::NoMap {
        name: name.to_owned(),
        known: loaded.maps().map(|map| map.def.name.clone()).collect(),
    })
}

/// Reads a value of a type of the object.
pub(crate) fn read(
    types: Option<&Btf<'_>>,
    ty: TypeId,
    value: &Value,
    into: &mut [u8],
    formats: &Formats,
) -> Result<(), String> {
    match types.filter(|_| ty != TypeId::VOID) {
        Some(types) => from_json_as(types, ty, value, into, formats),
        None => bytes_from_json_as(value, into, formats),
    }
}

/// Members that a value of so many bytes leaves out; none if it does not fit its type.
pub(crate) fn left_out(
    types: Option<&Btf<'_>>,
    ty: TypeId,
    value: &Value,
    size: usize,
    formats: &Formats,
) -> Vec<String> {
    let types = types.filter(|_| ty != TypeId::VOID);
    let filled =
        types.map(|types| fill_from_json_as(types, ty, value, &mut vec![0; size], formats));
    filled.and_then(Result::ok).unwrap_or_default()
}

/// A value of a type of the object, in one line.
pub(crate) fn show(types: Option<&Btf<'_>>, ty: TypeId, bytes: &[u8], formats: &Formats) -> String {
    let value = match types {
        Some(types) => to_json_as(types, ty, bytes, formats),
        None => bytes_to_json_as(bytes, formats),
    };
    compact(&value)
}

fn compact(value: &Ordered) -> String {
    serde_json::to_string(value).expect("keys are strings")
}
