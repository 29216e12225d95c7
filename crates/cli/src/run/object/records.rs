//! Records of ring buffers and perf buffers, shown by their types.
//!
//! BTF does not say what these records are. `--records MAP=TYPE` does; without
//! it a record has the type to which a variable of the object points
//! (`struct event *unused_event`), if exactly one such type has its size.

use beebox::btf::{Btf, Kind, Shape, TypeId};
use beebox::object::Object;
use beebox::run::{LoadedObject, RunRecord};
use report::value::{Ordered, bytes_from_json, bytes_to_json, from_json, to_json};
use serde_json::Value;

use super::maps;
use crate::answer::Failure;

/// Types of records.
pub(super) struct RecordTypes<'a> {
    types: Option<&'a Btf<'a>>,
    /// Types that were given, by map.
    given: Vec<(String, TypeId)>,
    /// Types to which variables point, with their sizes.
    pointed: Vec<(u64, TypeId)>,
}

impl<'a> RecordTypes<'a> {
    /// The types of an object's records; `given` are `MAP=TYPE`.
    pub(super) fn of(
        object: &'a Object<'_>,
        loaded: &LoadedObject,
        given: &[String],
    ) -> Result<RecordTypes<'a>, Failure> {
        let types = object.btf();
        let mut found = RecordTypes {
            types,
            given: Vec::new(),
            pointed: Vec::new(),
        };
        for given in given {
            let wrong = |what: String| Failure::new(format_args!("--records {given}: {what}"));
            let (map, name) = given
                .split_once('=')
                .ok_or_else(|| wrong("it is no MAP=TYPE".to_owned()))?;
            let (map, name) = (map.trim(), name.trim());
            maps::find(loaded, map).map_err(&wrong)?;
            let of_types = types.ok_or_else(|| wrong("the object has no types".to_owned()))?;
            let kinds = [
                Kind::Struct,
                Kind::Union,
                Kind::Typedef,
                Kind::Int,
                Kind::Enum,
            ];
            let id = kinds.iter().find_map(|kind| of_types.find(*kind, name));
            let id = id
                .ok_or_else(|| wrong(format!("the object has no type {name}")))?
                .id();
            found.given.push((map.to_owned(), id));
        }
        for global in types.iter().flat_map(|_| object.globals()) {
            let target = types.and_then(|types| pointee(types, global.ty));
            if let Some(target) = target
                && !found.pointed.contains(&target)
            {
                found.pointed.push(target);
            }
        }
        Ok(found)
    }

    /// True if a record is shown by its type.
    pub(super) fn is_typed(&self, record: &RunRecord) -> bool {
        self.types.is_some() && self.type_of(record).is_some()
    }

    /// The type of a record, if it is known.
    fn type_of(&self, record: &RunRecord) -> Option<TypeId> {
        let size = record.bytes.len() as u64;
        let given = self.given.iter().find(|(map, _)| *map == record.map);
        let mut fitting = self.pointed.iter().filter(|(of, _)| *of == size);
        match (given, fitting.next(), fitting.next()) {
            (Some((_, ty)), ..) => Some(*ty),
            (None, Some((_, ty)), None) => Some(*ty),
            _ => None,
        }
    }

    /// Writes a value over a record: members that are not named keep theirs.
    pub(super) fn read_into(
        &self,
        record: &RunRecord,
        value: &Value,
        bytes: &mut [u8],
    ) -> Result<(), String> {
        let read = match self.types.zip(self.type_of(record)) {
            Some((types, ty)) => from_json(types, ty, value, bytes),
            None => bytes_from_json(value, bytes),
        };
        read.map_err(|error| format!("record of {}: {error}", record.map))
    }

    /// Members that a value for a record leaves out.
    pub(super) fn left_out(&self, record: &RunRecord, value: &Value) -> Vec<String> {
        let ty = self.type_of(record).unwrap_or(TypeId::VOID);
        maps::left_out(self.types, ty, value, record.bytes.len())
    }

    /// A record by its type, or its bytes.
    pub(super) fn show(&self, record: &RunRecord) -> Ordered {
        match self.types.zip(self.type_of(record)) {
            Some((types, ty)) => to_json(types, ty, &record.bytes),
            None => bytes_to_json(&record.bytes),
        }
    }
}

/// Size and id of the structure that a type points to.
fn pointee(types: &Btf<'_>, ty: TypeId) -> Option<(u64, TypeId)> {
    let ty = types.get(types.skip_modifiers(ty)?)?;
    let Shape::Ptr(target) = ty.shape() else {
        return None;
    };
    let target = types.skip_modifiers(target)?;
    let is_composite = matches!(
        types.get(target)?.shape(),
        Shape::Struct(_) | Shape::Union(_)
    );
    is_composite.then(|| Some((u64::from(types.size_of(target)?), target)))?
}
