//! Forms of fields that are chosen: `MAP.key=ipv4`, `MAP.value.peer.addr=ipv6`, `VARIABLE.addr=ipv4`.

use std::fmt;
use std::str::FromStr;

use btf::TypeId;
use object::Object;
use report::value::{Format, Formats};
use spec::maps::MapKind;

use super::{MapsJsonFault, Part, find};
use crate::internal::run::{LoadedObject, ObjectMap};

/// Forms of the fields of a map's keys and values.
#[derive(Clone, Debug, Default)]
pub struct MapFormats {
    key: Formats,
    value: Formats,
}

impl MapFormats {
    pub(super) fn of(&self, part: Part) -> &Formats {
        match part {
            Part::Key => &self.key,
            Part::Value => &self.value,
        }
    }
}

/// The form of a field of a map's keys or values, of the records of a ring buffer or perf buffer, or
/// of a global variable, in all text and JSON: `MAP.key[.FIELD…]=FORM`, `MAP.value[.FIELD…]=FORM`
/// or `VARIABLE[.FIELD…]=FORM`, where FORM is ipv4, ipv6, mac, port, hex, u8, u16, u32 or u64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFormat {
    /// The parts of the place between dots, which names of maps and variables may have too.
    names: Vec<String>,
    format: Format,
}

/// The field of a map that a place means.
struct Field<'l> {
    map: &'l ObjectMap,
    part: Part,
    /// Names of members from the key or value on.
    path: Vec<String>,
}

impl FromStr for FieldFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldFormat, String> {
        let form = || {
            format!(
                "{text:?} is no MAP.key.FIELD=FORM, MAP.value.FIELD=FORM or VARIABLE.FIELD=FORM"
            )
        };
        let (place, format) = text.split_once('=').ok_or_else(form)?;
        let names: Vec<String> = place.trim().split('.').map(str::to_owned).collect();
        if place.trim().is_empty() {
            return Err(form());
        }
        Ok(FieldFormat {
            names,
            format: format.trim().parse()?,
        })
    }
}

impl fmt::Display for FieldFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.names.join("."), self.format.name())
    }
}

impl FieldFormat {
    /// True if the field is one of a map of this name.
    pub fn is_of_map(&self, name: &str, loaded: &LoadedObject, object: &Object<'_>) -> bool {
        let field = self.find(loaded, object);
        field.is_ok_and(|field| field.map.def.name == name)
    }

    /// The field that the place means: one of a map, or of the variable of the longest name.
    fn find<'l>(
        &self,
        loaded: &'l LoadedObject,
        object: &Object<'_>,
    ) -> Result<Field<'l>, MapsJsonFault> {
        let part_of = |name: &String| match name.as_str() {
            "key" => Some(Part::Key),
            "value" => Some(Part::Value),
            _ => None,
        };
        let parts = self.names.iter().enumerate().skip(1);
        let split = parts
            .filter_map(|(at, name)| Some((at, part_of(name)?)))
            .next();
        let of_map = split.map(|(at, part)| {
            Ok(Field {
                map: find(loaded, &self.names[..at].join("."))?,
                part,
                path: self.names[at + 1..].to_vec(),
            })
        });
        if let Some(Ok(field)) = of_map {
            return Ok(field);
        }
        let mut lengths = (1..=self.names.len()).rev();
        let of_variable = lengths.find_map(|len| {
            let name = self.names[..len].join(".");
            let map = object.maps().get(object.global(&name)?.map)?.name();
            let path = [&[name][..], &self.names[len..]].concat();
            Some((find(loaded, map), path))
        });
        match (of_variable, of_map) {
            (Some((map, path)), _) => Ok(Field {
                map: map?,
                part: Part::Value,
                path,
            }),
            (None, Some(Err(fault))) => Err(fault),
            (None, _) => Err(MapsJsonFault::NoPlace {
                place: self.names.join("."),
                variables: object.globals().map(|global| global.name).collect(),
            }),
        }
    }
}

fn fault(map: &ObjectMap, what: String) -> MapsJsonFault {
    MapsJsonFault::Format {
        map: map.def.name.clone(),
        what,
    }
}

fn has_records(map: &ObjectMap) -> bool {
    map.def.kind().is_some_and(MapKind::has_records)
}

/// The forms of the records of ring buffers and perf buffers, by map. `types_of` are the types that
/// the records of a map may have.
///
/// # Errors
/// If no loaded program uses a map, no type has such a field, or the form has another size.
pub(super) fn of_records(
    loaded: &LoadedObject,
    object: &Object<'_>,
    formats: &[FieldFormat],
    types_of: impl Fn(&str) -> Vec<TypeId>,
) -> Result<Vec<(String, Formats)>, MapsJsonFault> {
    let mut all: Vec<(String, Formats)> = Vec::new();
    for chosen in formats {
        let Field { map, path, .. } = chosen.find(loaded, object)?;
        if !has_records(map) {
            continue;
        }
        let name = &map.def.name;
        let at = match all.iter().position(|(of, _)| of == name) {
            Some(at) => at,
            None => {
                all.push((name.clone(), Formats::default()));
                all.len() - 1
            }
        };
        let of_map = &mut all[at].1;
        let types = types_of(name);
        // Records without a type are shown in any form that fits their size.
        let untyped = (TypeId::VOID, chosen.format.size().unwrap_or(0));
        let mut tried = types
            .iter()
            .map(|ty| (*ty, 0))
            .chain(types.is_empty().then_some(untyped))
            .map(|of| of_map.set(object.btf(), of, path.clone(), chosen.format));
        let first = tried.next().unwrap_or(Ok(()));
        if first.is_err() && !tried.any(|set| set.is_ok()) {
            return first.map(|()| all).map_err(|what| fault(map, what));
        }
    }
    Ok(all)
}

impl LoadedObject {
    /// Chooses the forms of fields of maps and variables, once for a loaded object; those of records
    /// are for [`RecordTypes::set_formats`](super::RecordTypes::set_formats).
    ///
    /// # Errors
    /// If no loaded program uses a map, it has no such field, the form has another size, or a field
    /// gets two forms.
    pub fn set_formats(
        &mut self,
        object: &Object<'_>,
        formats: &[FieldFormat],
    ) -> Result<(), MapsJsonFault> {
        for chosen in formats {
            let Field { map, part, path } = chosen.find(self, object)?;
            let params = &map.def.params;
            if has_records(map) {
                match part {
                    Part::Value => continue,
                    Part::Key => return Err(fault(map, "records have no keys".to_owned())),
                }
            }
            let mut maps = object.maps().iter().map(|(_, map)| map);
            let declared = maps.find(|declared| declared.name() == map.def.name);
            let declared = declared.map_or(TypeId::VOID, |map| map.params().value_type);
            let (ty, size) = match part {
                Part::Key => (params.key_type, params.key_size),
                Part::Value if params.value_type == TypeId::VOID => (declared, params.value_size),
                Part::Value => (params.value_type, params.value_size),
            };
            let mut all = map.formats().clone();
            let of_part = match part {
                Part::Key => &mut all.key,
                Part::Value => &mut all.value,
            };
            let set = of_part.set(object.btf(), (ty, size as usize), path, chosen.format);
            set.map_err(|what| fault(map, what))?;
            let name = map.def.name.clone();
            self.set_map_formats(&name, all);
        }
        Ok(())
    }

    /// The forms of a variable's fields.
    pub(crate) fn formats_of_variable(&self, object: &Object<'_>, name: &str) -> Formats {
        let global = object.global(name);
        let map = global.and_then(|global| object.maps().get(global.map));
        let map = map.and_then(|map| find(self, map.name()).ok());
        map.map_or_else(Formats::default, |map| {
            map.formats().of(Part::Value).below(name)
        })
    }
}
