//! Forms of fields of maps that are chosen: `MAP.key=ipv4`, `MAP.value.peer.addr=ipv6`.

use std::str::FromStr;

use btf::TypeId;
use object::Object;
use report::value::{Format, Formats};

use super::{MapsJsonFault, Part, find};
use crate::internal::run::LoadedObject;

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

/// The form of a field of a map's keys or values, in all text and JSON: `MAP.key[.FIELD…]=FORM` or
/// `MAP.value[.FIELD…]=FORM`, where FORM is ipv4, ipv6, mac, port, hex, u8, u16, u32 or u64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFormat {
    map: String,
    part: Part,
    /// Names of members from the key or value on.
    path: Vec<String>,
    format: Format,
}

impl FromStr for FieldFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldFormat, String> {
        let form = || format!("{text:?} is no MAP.key.FIELD=FORM or MAP.value.FIELD=FORM");
        let (place, format) = text.split_once('=').ok_or_else(form)?;
        let names: Vec<&str> = place.trim().split('.').collect();
        // Names of maps may have dots.
        let part_of = |name: &str| match name {
            "key" => Some(Part::Key),
            "value" => Some(Part::Value),
            _ => None,
        };
        let parts = names.iter().enumerate().skip(1);
        let found = parts
            .filter_map(|(at, name)| Some((at, part_of(name)?)))
            .next();
        let (at, part) = found.ok_or_else(form)?;
        Ok(FieldFormat {
            map: names[..at].join("."),
            part,
            path: names[at + 1..]
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
            format: format.trim().parse()?,
        })
    }
}

impl LoadedObject {
    /// Chooses the forms of fields of maps, once for a loaded object.
    ///
    /// # Errors
    /// If no loaded program uses a map, it has no such field, or the form has another size.
    pub fn set_formats(
        &mut self,
        object: &Object<'_>,
        formats: &[FieldFormat],
    ) -> Result<(), MapsJsonFault> {
        for chosen in formats {
            let map = find(self, &chosen.map)?;
            let params = &map.def.params;
            let mut maps = object.maps().iter().map(|(_, map)| map);
            let declared = maps.find(|declared| declared.name() == map.def.name);
            let declared = declared.map_or(TypeId::VOID, |map| map.params().value_type);
            let (ty, size) = match chosen.part {
                Part::Key => (params.key_type, params.key_size),
                Part::Value if params.value_type == TypeId::VOID => (declared, params.value_size),
                Part::Value => (params.value_type, params.value_size),
            };
            let mut all = map.formats().clone();
            let of_part = match chosen.part {
                Part::Key => &mut all.key,
                Part::Value => &mut all.value,
            };
            let path = chosen.path.clone();
            let set = of_part.set(object.btf(), (ty, size as usize), path, chosen.format);
            set.map_err(|what| MapsJsonFault::Format {
                map: chosen.map.clone(),
                what,
            })?;
            self.set_map_formats(&chosen.map, all);
        }
        Ok(())
    }
}
