//! Records of ring buffers and perf buffers, shown by their types.
//!
//! BTF does not say what these records are. [`RecordTypes::set`] does; without it a record has the
//! type to which a variable of the object points (`struct event *unused_event`), if exactly one
//! such type has its size.

use std::error::Error;
use std::fmt;

use btf::{Btf, Kind, Shape, TypeId};
use object::Object;
use report::value::{Formats, Ordered, bytes_to_json_as, to_json_as};
use serde_json::Value;
use spec::maps::MapKind;

use super::formats::{self, FieldFormat};
use super::{MapsJsonFault, find, left_out, read};
use crate::internal::run::{LoadedObject, RunRecord};

/// Types of the records of ring buffers and perf buffers of an object.
pub struct RecordTypes<'a> {
    types: Option<&'a Btf<'a>>,
    /// Types that were given, by map.
    given: Vec<(String, TypeId)>,
    /// Types to which variables point, with their sizes.
    pointed: Vec<(u64, TypeId)>,
    /// Chosen forms, by map.
    formats: Vec<(String, Formats)>,
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

impl<'a> RecordTypes<'a> {
    /// The types of an object's records, as far as its variables say.
    pub fn new(object: &'a Object<'_>) -> RecordTypes<'a> {
        let types = object.btf();
        let mut pointed = Vec::new();
        for global in types.iter().flat_map(|_| object.globals()) {
            let target = types.and_then(|types| pointee(types, global.ty));
            if let Some(target) = target
                && !pointed.contains(&target)
            {
                pointed.push(target);
            }
        }
        RecordTypes {
            types,
            given: Vec::new(),
            pointed,
            formats: Vec::new(),
        }
    }

    /// The types to which variables of the object point, with their sizes.
    pub fn pointed(&self) -> &[(u64, TypeId)] {
        &self.pointed
    }

    /// Chooses the forms of fields of records, behind the types; those of other maps have no effect
    /// here.
    ///
    /// # Errors
    /// If no loaded program uses a map, no type of its records has such a field, the form has another
    /// size, or a field gets two forms.
    pub fn set_formats(
        &mut self,
        loaded: &LoadedObject,
        object: &Object<'_>,
        formats: &[FieldFormat],
    ) -> Result<(), MapsJsonFault> {
        let types_of = |map: &str| -> Vec<TypeId> {
            let given = self.given.iter().find(|(of, _)| of == map);
            match given {
                Some((_, ty)) => vec![*ty],
                None => self.pointed.iter().map(|(_, ty)| *ty).collect(),
            }
        };
        self.formats = formats::of_records(loaded, object, formats, types_of)?;
        Ok(())
    }

    fn formats_of(&self, record: &RunRecord) -> &Formats {
        let found = self.formats.iter().find(|(map, _)| *map == record.map);
        found.map_or(Formats::NONE, |(_, formats)| formats)
    }

    /// Sets the type of the records of a map: the name of a structure, union, typedef, integer or
    /// enumeration of the object, also as C writes it (`struct event`).
    ///
    /// # Errors
    /// If no loaded program uses the map, it has no records, or the object does not have the type.
    pub fn set(
        &mut self,
        loaded: &LoadedObject,
        map: &str,
        name: &str,
    ) -> Result<(), RecordTypeError> {
        let found = find(loaded, map).map_err(RecordTypeError::Map)?;
        if !found.def.kind().is_some_and(MapKind::has_records) {
            return Err(RecordTypeError::NoRecords(map.to_owned()));
        }
        let types = self.types.ok_or(RecordTypeError::NoTypes)?;
        let (kinds, tag): (&[Kind], _) = match name.split_once(' ') {
            Some(("struct", tag)) => (&[Kind::Struct], tag),
            Some(("union", tag)) => (&[Kind::Union], tag),
            Some(("enum", tag)) => (&[Kind::Enum, Kind::Enum64], tag),
            _ => (&KINDS, name),
        };
        let found = kinds.iter().find_map(|kind| types.find(*kind, tag.trim()));
        let found = found.ok_or_else(|| RecordTypeError::NoType(name.to_owned()))?;
        self.given.push((map.to_owned(), found.id()));
        Ok(())
    }

    /// True if a record is shown by its type, or in a chosen form.
    pub fn is_typed(&self, record: &RunRecord) -> bool {
        let has_type = self.types.is_some() && self.type_of(record).is_some();
        has_type || self.formats_of(record) != Formats::NONE
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
    pub(crate) fn read_into(
        &self,
        record: &RunRecord,
        value: &Value,
        bytes: &mut [u8],
    ) -> Result<(), String> {
        let formats = self.formats_of(record);
        let Some(ty) = self
            .type_of(record)
            .or((!value.is_object()).then_some(TypeId::VOID))
        else {
            let (map, len) = (&record.map, record.bytes.len());
            let count = self
                .pointed
                .iter()
                .filter(|(size, _)| *size == len as u64)
                .count();
            let what = match count {
                0 => "no type",
                _ => "several types",
            };
            return Err(format!(
                "record of {map}: {what} of {len} bytes: a variable that points to its structure names it, as \
                 struct event *unused_event __attribute__((unused))"
            ));
        };
        let read = read(self.types, ty, value, bytes, formats);
        read.map_err(|error| format!("record of {}: {error}", record.map))
    }

    /// Members that a value for a record leaves out.
    pub(crate) fn left_out(&self, record: &RunRecord, value: &Value) -> Vec<String> {
        let ty = self.type_of(record).unwrap_or(TypeId::VOID);
        let formats = self.formats_of(record);
        left_out(self.types, ty, value, record.bytes.len(), formats)
    }

    /// A record by its type, or its bytes.
    pub fn show(&self, record: &RunRecord) -> Ordered {
        let formats = self.formats_of(record);
        match self.types.zip(self.type_of(record)) {
            Some((types, ty)) => to_json_as(types, ty, &record.bytes, formats),
            None => bytes_to_json_as(&record.bytes, formats),
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
    types.get(target)?.as_composite()?;
    Some((types.size_of(target)?.into(), target))
}

/// Reason why the records of a map do not get a type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordTypeError {
    /// No loaded program uses the map.
    Map(MapsJsonFault),
    /// The map is no ring buffer and no perf buffer.
    NoRecords(String),
    /// The object has no types.
    NoTypes,
    /// The object has no type of this name.
    NoType(String),
}

impl fmt::Display for RecordTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordTypeError::Map(fault) => fault.fmt(f),
            RecordTypeError::NoRecords(map) => {
                write!(f, "map {map} is no ring buffer and no perf buffer")
            }
            RecordTypeError::NoTypes => write!(f, "the object has no types"),
            RecordTypeError::NoType(name) => write!(f, "the object has no type {name}"),
        }
    }
}

impl Error for RecordTypeError {}
