//! Lines of map kinds: `map KIND helpers=NUMBER,… direct sleepable fields=FIELDS`.

use std::fmt::{self, Write as _};

use super::words::{Words, hex};
use crate::maps::MapKind;
use crate::registry::MapTraits;

/// Reads a map kind.
pub(super) fn read_map(mut words: Words<'_>) -> Option<MapTraits> {
    let name = words.next()?;
    let kind = MapKind::ALL.iter().find(|kind| kind.name() == name)?;
    let mut traits = MapTraits {
        kind: *kind,
        helpers: Box::default(),
        has_direct_value: false,
        in_sleepable: false,
        special_fields: 0,
    };
    for word in words {
        match word.split_once('=') {
            Some(("helpers", list)) => {
                let numbers = list.split(',').map(|number| number.parse().ok());
                traits.helpers = numbers.collect::<Option<_>>()?;
            }
            Some(("fields", bits)) => {
                traits.special_fields = u32::try_from(hex(bits)?).ok()?;
            }
            None if word == "direct" => traits.has_direct_value = true,
            None if word == "sleepable" => traits.in_sleepable = true,
            _ => return None,
        }
    }
    Some(traits)
}

/// Writes a map kind.
pub(super) fn write_map(traits: &MapTraits, out: &mut String) -> fmt::Result {
    write!(out, "map {}", traits.kind.name())?;
    let helpers: Vec<String> = traits.helpers.iter().map(u32::to_string).collect();
    if !helpers.is_empty() {
        write!(out, " helpers={}", helpers.join(","))?;
    }
    out.push_str(if traits.has_direct_value {
        " direct"
    } else {
        ""
    });
    out.push_str(if traits.in_sleepable {
        " sleepable"
    } else {
        ""
    });
    if traits.special_fields != 0 {
        write!(out, " fields={:#x}", traits.special_fields)?;
    }
    out.push('\n');
    Ok(())
}
