//! Values of a type as JSON, with the keys and in the order of bpftool's map dumps, and
//! back.
//!
//! Numbers are numbers, booleans `true` and `false`, enumerators their names, pointers
//! numbers; printable characters and arrays of them are strings; bit fields are strings in
//! hexadecimal. Structures keep the order of their members. Beyond bpftool's form, addresses and
//! ports have their usual text ([`Format`]), and bytes of no type are one string in hexadecimal.

mod format;
mod show;
#[cfg(test)]
mod tests;
mod write;

use btf::{Btf, Shape, TypeId};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

pub use format::{ADDRESSES, Format, Formats, HARDWARE, OTHER_BE32, PORTS};
pub use show::{bytes_to_json, bytes_to_json_as, to_json, to_json_as};
pub use write::{
    MOST_LEFT_OUT, all_bytes_from_json, bytes_from_json, bytes_from_json_as, fill_from_json,
    fill_from_json_as, from_json, from_json_as,
};

/// Depth of types within types.
const DEEPEST: u32 = 64;

/// A value as JSON whose objects keep the order of their keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Ordered {
    /// A number, string, boolean or null.
    Scalar(Value),
    /// An array.
    List(Vec<Ordered>),
    /// An object.
    Object(Vec<(String, Ordered)>),
}

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Ordered::Scalar(value) => value.serialize(serializer),
            Ordered::List(items) => items.serialize(serializer),
            Ordered::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

/// Bits of a bit field; `None` for other members.
fn field_bits(types: &Btf<'_>, ty: TypeId, stated: u32) -> Option<u32> {
    if stated != 0 {
        return Some(stated);
    }
    match types.get(types.skip_modifiers(ty)?)?.shape() {
        Shape::Int(int) if int.bits < int.size * 8 => Some(int.bits),
        _ => None,
    }
}
