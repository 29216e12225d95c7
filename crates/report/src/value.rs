//! Values of a type as JSON, with the keys and in the order of bpftool's map dumps, and
//! back.
//!
//! Numbers are numbers, booleans `true` and `false`, enumerators their names, pointers
//! numbers; printable characters and arrays of them are strings; bit fields are strings in
//! hexadecimal. Structures keep the order of their members.

use btf::{Btf, Composite, Encoding, Int, Shape, TypeId};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

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

/// Bytes of no known type: each as a string in hexadecimal.
pub fn bytes_to_json(bytes: &[u8]) -> Ordered {
    let byte = |byte: &u8| Ordered::Scalar(format!("{byte:#04x}").into());
    Ordered::List(bytes.iter().map(byte).collect())
}

/// The value of a type; what has no JSON form, or no bytes, is null.
pub fn to_json(types: &Btf<'_>, ty: TypeId, bytes: &[u8]) -> Ordered {
    Reader { types, depth: 0 }.value(ty, bytes)
}

struct Reader<'b> {
    types: &'b Btf<'b>,
    depth: u32,
}

const NULL: Ordered = Ordered::Scalar(Value::Null);

impl Reader<'_> {
    fn value(&mut self, ty: TypeId, bytes: &[u8]) -> Ordered {
        self.depth += 1;
        let value = match self.depth > DEEPEST {
            true => None,
            false => self.shape(ty, bytes),
        };
        self.depth -= 1;
        value.unwrap_or(NULL)
    }

    fn shape(&mut self, ty: TypeId, bytes: &[u8]) -> Option<Ordered> {
        let types = self.types;
        let ty = types.skip_modifiers(ty)?;
        let name = |offset| types.string(offset).to_string();
        Some(match types.get(ty)?.shape() {
            Shape::Int(int) => Ordered::Scalar(int_to_json(int, bytes.get(..int.size as usize)?)),
            Shape::Ptr(_) => Ordered::Scalar(little(bytes.get(..8)?).into()),
            Shape::Enum(of) => {
                let raw = little(bytes.get(..of.size as usize)?);
                let raw = extend(raw, of.size * 8, of.signed);
                let found = of.values().find(|value| value.value == raw);
                Ordered::Scalar(match found {
                    Some(value) => name(value.name).into(),
                    None if of.signed => (raw as i64).into(),
                    None => raw.into(),
                })
            }
            Shape::Array(array) => {
                let size = types.size_of(array.element)? as usize;
                let all = bytes.get(..size.checked_mul(array.count as usize)?)?;
                if let Some(text) = self.text(array.element, all) {
                    return Some(Ordered::Scalar(text.into()));
                }
                let elements = all.chunks_exact(size.max(1));
                Ordered::List(
                    elements
                        .map(|bytes| self.value(array.element, bytes))
                        .collect(),
                )
            }
            Shape::Struct(of) | Shape::Union(of) => {
                let members = of.members().map(|member| {
                    let start = (member.bit_offset / 8) as usize;
                    let bits = field_bits(types, member.ty, member.bits);
                    let value = match bits {
                        Some(bits) => bit_field(bytes, member.bit_offset, bits).unwrap_or(NULL),
                        None => self.value(member.ty, bytes.get(start..).unwrap_or(&[])),
                    };
                    (name(member.name), value)
                });
                Ordered::Object(members.collect())
            }
            Shape::Datasec(section) => {
                let vars = section.vars().map(|var| {
                    let at = var.offset as usize;
                    let bytes = bytes.get(at..at + var.size as usize).unwrap_or(&[]);
                    let variable = types.at(var.var);
                    let value = match variable.shape() {
                        Shape::Var(of) => self.value(of.ty, bytes),
                        _ => NULL,
                    };
                    Ordered::Object(vec![(variable.name().to_string(), value)])
                });
                let vars = Ordered::List(vars.collect());
                Ordered::Object(vec![(types.at(ty).name().to_string(), vars)])
            }
            _ => return None,
        })
    }

    /// The text of an array of characters that ends within it.
    fn text(&self, element: TypeId, bytes: &[u8]) -> Option<String> {
        let Shape::Int(int) = self.types.get(element)?.shape() else {
            return None;
        };
        let is_char =
            int.encoding == Encoding::CHAR || &*self.types.at(element).name().to_string() == "char";
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let text = &bytes[..end];
        let is_text = int.size == 1 && is_char && text.iter().all(is_printable);
        is_text.then(|| text.iter().map(|byte| char::from(*byte)).collect())
    }
}

fn is_printable(byte: &u8) -> bool {
    (0x20..0x7f).contains(byte)
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

fn bit_field(bytes: &[u8], bit_offset: u32, bits: u32) -> Option<Ordered> {
    let start = (bit_offset / 8) as usize;
    let end = (bit_offset + bits).div_ceil(8) as usize;
    let mut wide = [0; 16];
    let bytes = bytes.get(start..end).filter(|bytes| bytes.len() <= 16)?;
    wide[..bytes.len()].copy_from_slice(bytes);
    let mask = u128::MAX >> 128u32.saturating_sub(bits).min(127);
    let value = u128::from_le_bytes(wide) >> (bit_offset % 8) & mask;
    Some(Ordered::Scalar(format!("{value:#x}").into()))
}

fn int_to_json(int: Int, bytes: &[u8]) -> Value {
    if int.size > 8 {
        let mut wide = [0; 16];
        wide[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
        return format!("{:#x}", u128::from_le_bytes(wide)).into();
    }
    let value = little(bytes);
    if int.encoding.is_bool() {
        return (value != 0).into();
    }
    if int.encoding == Encoding::CHAR {
        return char::from(value as u8).to_string().into();
    }
    match int.encoding.is_signed() {
        true => (extend(value, int.size * 8, true) as i64).into(),
        false => value.into(),
    }
}

fn little(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(wide)
}

fn extend(value: u64, bits: u32, is_signed: bool) -> u64 {
    let unused = 64u32.saturating_sub(bits).min(63);
    match is_signed {
        true => ((value << unused) as i64 >> unused) as u64,
        false => value,
    }
}

/// Writes a value into the bytes of a type. Members that are not named keep their bytes.
///
/// # Errors
/// What does not fit, and where in the value.
pub fn from_json(
    types: &Btf<'_>,
    ty: TypeId,
    value: &Value,
    into: &mut [u8],
) -> Result<(), String> {
    Writer { types, depth: 0 }.value(ty, value, into)
}

/// Writes bytes that are written as [`bytes_to_json`] does, or as numbers.
pub fn bytes_from_json(value: &Value, into: &mut [u8]) -> Result<(), String> {
    let items = value.as_array().filter(|items| items.len() == into.len());
    let items = items.ok_or_else(|| format!("{value} is no array of {} bytes", into.len()))?;
    for (byte, item) in into.iter_mut().zip(items) {
        let number = number(item).and_then(|number| u8::try_from(number).ok());
        *byte = number.ok_or_else(|| format!("{item} is no byte"))?;
    }
    Ok(())
}

struct Writer<'b> {
    types: &'b Btf<'b>,
    depth: u32,
}

impl Writer<'_> {
    fn value(&mut self, ty: TypeId, value: &Value, into: &mut [u8]) -> Result<(), String> {
        let types = self.types;
        let no_form = || "values of this type cannot be written".to_owned();
        if self.depth > DEEPEST {
            return Err(no_form());
        }
        let ty = types.skip_modifiers(ty).ok_or_else(no_form)?;
        let wrong = |what: &str| format!("{value} is no {what}");
        let shape = types.get(ty).ok_or_else(no_form)?.shape();
        self.depth += 1;
        match shape {
            Shape::Int(int) if int.size <= 16 => {
                let number = match (value.as_bool(), value.as_str()) {
                    (Some(is_true), _) if int.encoding.is_bool() => Some(i128::from(is_true)),
                    (_, Some(text)) if int.encoding == Encoding::CHAR && text.len() == 1 => {
                        text.bytes().next().map(i128::from)
                    }
                    _ => number(value),
                };
                let number = number.ok_or_else(|| wrong("number"))?;
                put(number, int.size, int.encoding.is_signed(), into)?;
            }
            Shape::Ptr(_) => put(
                number(value).ok_or_else(|| wrong("number"))?,
                8,
                false,
                into,
            )?,
            Shape::Enum(of) => {
                let named = value.as_str().and_then(|text| {
                    let mut values = of.values();
                    let found = values.find(|value| types.string(value.name) == *text)?;
                    Some(match of.signed {
                        true => i128::from(found.value as i64),
                        false => i128::from(found.value),
                    })
                });
                let number = named.or_else(|| number(value));
                let number = number.ok_or_else(|| wrong("enumerator"))?;
                put(number, of.size, of.signed, into)?;
            }
            Shape::Array(array) => {
                let size = types.size_of(array.element).ok_or_else(no_form)? as usize;
                let count = array.count as usize;
                let too_long = || format!("{value} has more than {count} elements");
                if let (Some(text), 1) = (value.as_str(), size) {
                    let place = into.get_mut(..text.len()).filter(|_| text.len() <= count);
                    place.ok_or_else(too_long)?.copy_from_slice(text.as_bytes());
                } else {
                    let items = value.as_array().ok_or_else(|| wrong("array"))?;
                    if items.len() > count {
                        return Err(too_long());
                    }
                    for (at, item) in items.iter().enumerate() {
                        let place = into.get_mut(at * size..(at + 1) * size);
                        let place = place.ok_or_else(no_form)?;
                        let written = self.value(array.element, item, place);
                        written.map_err(|error| format!("[{at}]: {error}"))?;
                    }
                }
            }
            Shape::Struct(of) | Shape::Union(of) => self.members(of, value, into)?,
            _ => return Err(no_form()),
        }
        self.depth -= 1;
        Ok(())
    }

    fn members(&mut self, of: Composite<'_>, value: &Value, into: &mut [u8]) -> Result<(), String> {
        let types = self.types;
        let name = |offset| types.string(offset).to_string();
        let object = value.as_object();
        let object = object.ok_or_else(|| format!("{value} is no object"))?;
        for (key, value) in object {
            let member = of.members().find(|member| name(member.name) == *key);
            let Some(member) = member else {
                let names: Vec<String> = of.members().map(|member| name(member.name)).collect();
                return Err(format!(
                    "there is no member {key:?}; members are {}",
                    names.join(", ")
                ));
            };
            if field_bits(types, member.ty, member.bits).is_some() {
                return Err(format!("{key}: bit fields cannot be written"));
            }
            let place = into.get_mut((member.bit_offset / 8) as usize..);
            let place = place.ok_or_else(|| format!("{key}: it lies outside of its type"))?;
            let written = self.value(member.ty, value, place);
            written.map_err(|error| format!("{key}: {error}"))?;
        }
        Ok(())
    }
}

/// A number, or one as a string, in decimal or after `0x`.
fn number(value: &Value) -> Option<i128> {
    if let Some(text) = value.as_str() {
        return match text.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
    }
    let unsigned = value.as_u64().map(i128::from);
    unsigned.or_else(|| value.as_i64().map(i128::from))
}

fn put(number: i128, size: u32, is_signed: bool, into: &mut [u8]) -> Result<(), String> {
    let bits = size * 8;
    let fits = match (is_signed, bits) {
        (_, 128) => true,
        (true, _) => (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(&number),
        (false, _) => (0..1i128 << bits).contains(&number),
    };
    let place = into.get_mut(..size as usize).filter(|_| fits);
    let place = place.ok_or_else(|| {
        let kind = if is_signed { "a signed" } else { "an unsigned" };
        format!("{number} does not fit {kind} number of {bits} bits")
    })?;
    place.copy_from_slice(&number.to_le_bytes()[..size as usize]);
    Ok(())
}
