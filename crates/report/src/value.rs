//! Values of a type as JSON, with the keys and in the order of bpftool's map dumps, and
//! back.
//!
//! Numbers are numbers, booleans `true` and `false`, enumerators their names, pointers
//! numbers; printable characters and arrays of them are strings; bit fields are strings in
//! hexadecimal. Structures keep the order of their members.

use btf::{Btf, Composite, Encoding, Int, Member, Shape, Type, TypeId};
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
            Shape::Float(size) => Ordered::Scalar(float_to_json(bytes.get(..size as usize)?)),
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
        let element = skip_qualifiers(self.types, element)?;
        let Shape::Int(int) = element.shape() else {
            return None;
        };
        let is_char = int.encoding == Encoding::CHAR || &*element.name().to_string() == "char";
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let text = &bytes[..end];
        let is_text = int.size == 1 && is_char && text.iter().all(is_printable);
        is_text.then(|| text.iter().map(|byte| char::from(*byte)).collect())
    }
}

/// A type without `const`, `volatile`, `restrict` and type tags. Arrays of a typedef of `char` are
/// numbers, as in bpftool's dumps.
fn skip_qualifiers<'b>(types: &'b Btf<'b>, ty: TypeId) -> Option<Type<'b>> {
    let mut found = types.get(ty)?;
    for _ in 0..DEEPEST {
        match found.shape() {
            Shape::Const(of) | Shape::Volatile(of) | Shape::Restrict(of) | Shape::TypeTag(of) => {
                found = types.get(of)?;
            }
            _ => break,
        }
    }
    Some(found)
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
    let end = bit_offset.saturating_add(bits).div_ceil(8) as usize;
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

/// A number of 4 or 8 bytes; null for other sizes, infinities and what is no number.
fn float_to_json(bytes: &[u8]) -> Value {
    let single = <[u8; 4]>::try_from(bytes).map(|bytes| f64::from(f32::from_le_bytes(bytes)));
    let number = single.or_else(|_| <[u8; 8]>::try_from(bytes).map(f64::from_le_bytes));
    number.map_or(Value::Null, Value::from)
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
                    // The text ends there: what is behind its end says nothing.
                    if let Some(end) = into.get_mut(text.len()).filter(|_| text.len() < count) {
                        *end = 0;
                    }
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
            Shape::Float(size) => put_float(value, into.get_mut(..size as usize))
                .ok_or_else(|| wrong("number of 4 or 8 bytes"))?,
            Shape::Struct(of) | Shape::Union(of) => self.members(of, value, into)?,
            Shape::Datasec(section) => {
                let form = || {
                    wrong(&format!(
                        "{{{:?}: [{{NAME: VALUE}}]}}",
                        types.at(ty).name().to_string()
                    ))
                };
                let name = types.at(ty).name().to_string();
                let vars = value.get(&*name).and_then(Value::as_array);
                for given in vars.ok_or_else(form)? {
                    for (name, value) in given.as_object().ok_or_else(form)? {
                        let found = section
                            .vars()
                            .find(|var| types.at(var.var).name() == **name);
                        let found = found.and_then(|var| match types.at(var.var).shape() {
                            Shape::Var(of) => Some((var.offset as usize, var.size as usize, of.ty)),
                            _ => None,
                        });
                        let (start, size, ty) =
                            found.ok_or_else(|| format!("there is no variable {name:?}"))?;
                        let place = into.get_mut(start..start + size).ok_or_else(no_form)?;
                        let written = self.value(ty, value, place);
                        written.map_err(|error| format!("{name}: {error}"))?;
                    }
                }
            }
            _ => return Err(no_form()),
        }
        self.depth -= 1;
        Ok(())
    }

    fn members(&mut self, of: Composite<'_>, value: &Value, into: &mut [u8]) -> Result<(), String> {
        let types = self.types;
        let object = value.as_object();
        let object = object.ok_or_else(|| format!("{value} is no object"))?;
        for (key, value) in object {
            let is_named = |member: &Member| !key.is_empty() && types.string(member.name) == **key;
            let Some(member) = of.members().find(is_named) else {
                // As in C, members of unnamed members are named as if they were its own; dumps
                // have them in an object of that name.
                let inner = match &**key {
                    "" => value.clone(),
                    key => serde_json::json!({ key: value }),
                };
                let Some(member) = unnamed_with(types, of, &inner, DEEPEST) else {
                    let mut names = Vec::new();
                    member_names(types, of, DEEPEST, &mut names);
                    return Err(format!(
                        "there is no member {key:?}; members are {}",
                        names.join(", ")
                    ));
                };
                let place = into.get_mut((member.bit_offset / 8) as usize..);
                let place = place.ok_or_else(|| format!("{key}: it lies outside of its type"))?;
                self.value(member.ty, &inner, place)?;
                continue;
            };
            if let Some(bits) = field_bits(types, member.ty, member.bits) {
                let put = put_bits(value, member.bit_offset, bits, into);
                put.map_err(|error| format!("{key}: {error}"))?;
                continue;
            }
            let place = into.get_mut((member.bit_offset / 8) as usize..);
            let place = place.ok_or_else(|| format!("{key}: it lies outside of its type"))?;
            let written = self.value(member.ty, value, place);
            written.map_err(|error| format!("{key}: {error}"))?;
        }
        Ok(())
    }
}

/// The members of a structure or union; `None` for other types.
fn composite_of<'b>(types: &'b Btf<'b>, ty: TypeId) -> Option<Composite<'b>> {
    match types.get(types.skip_modifiers(ty)?)?.shape() {
        Shape::Struct(of) | Shape::Union(of) => Some(of),
        _ => None,
    }
}

/// Names of members, with those of unnamed members.
fn member_names(types: &Btf<'_>, of: Composite<'_>, depth: u32, names: &mut Vec<String>) {
    for member in of.members() {
        match types.string(member.name).to_string() {
            name if !name.is_empty() => names.push(name),
            _ if depth == 0 => {}
            _ => {
                if let Some(inner) = composite_of(types, member.ty) {
                    member_names(types, inner, depth - 1, names);
                }
            }
        }
    }
}

/// The first unnamed member that has all members which an object names.
fn unnamed_with(types: &Btf<'_>, of: Composite<'_>, object: &Value, depth: u32) -> Option<Member> {
    let keys = object.as_object()?;
    of.members().find(|member| {
        let inner = composite_of(types, member.ty);
        let Some(inner) = inner.filter(|_| depth > 0 && types.string(member.name) == *"") else {
            return false;
        };
        let mut names = Vec::new();
        member_names(types, inner, depth - 1, &mut names);
        let is_there = |(key, value): (&String, &Value)| match &**key {
            "" => unnamed_with(types, inner, value, depth - 1).is_some(),
            key => names.iter().any(|name| name == key),
        };
        keys.iter().all(is_there)
    })
}

/// Writes a number into a bit field: an unsigned one, or one of two's complement, that has so many
/// bits.
fn put_bits(value: &Value, bit_offset: u32, bits: u32, into: &mut [u8]) -> Result<(), String> {
    let number = number(value).ok_or_else(|| format!("{value} is no number"))?;
    let bits = bits.min(64);
    let fits = (-(1i128 << (bits.max(1) - 1))..1 << bits).contains(&number);
    let (start, shift) = ((bit_offset / 8) as usize, bit_offset % 8);
    let end = bit_offset.saturating_add(bits).div_ceil(8) as usize;
    let place = into.get_mut(start..end).filter(|_| fits);
    let place = place.ok_or_else(|| format!("{number} does not fit a bit field of {bits} bits"))?;
    let mut wide = [0; 16];
    wide[..place.len()].copy_from_slice(place);
    let mask = ((1u128 << bits) - 1) << shift;
    let kept = u128::from_le_bytes(wide) & !mask;
    let new = kept | (number as u128) << shift & mask;
    place.copy_from_slice(&new.to_le_bytes()[..end - start]);
    Ok(())
}

/// Writes a floating-point number of 4 or 8 bytes; null stands for what has no JSON form, and
/// leaves the bytes.
fn put_float(value: &Value, into: Option<&mut [u8]>) -> Option<()> {
    let into = into?;
    if value.is_null() {
        return Some(());
    }
    let number = value.as_f64()?;
    match into.len() {
        4 => into.copy_from_slice(&(number as f32).to_le_bytes()),
        8 => into.copy_from_slice(&number.to_le_bytes()),
        _ => return None,
    }
    Some(())
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

#[cfg(test)]
mod tests {
    use btf::{Array, Builder, Kind, Linkage, StrOffset, Var, VarSecinfo};
    use serde_json::json;

    use super::*;

    /// A type of every kind that has a JSON form, and the section of a variable of it.
    fn types() -> (Vec<u8>, TypeId, TypeId) {
        let mut it = Builder::new();
        let int = |it: &mut Builder, name: &str, size: u32, encoding| {
            let name = it.string(name);
            let (bits, offset) = (size * 8, 0);
            it.int(
                name,
                Int {
                    size,
                    bits,
                    offset,
                    encoding,
                },
            )
        };
        let unsigned = int(&mut it, "unsigned int", 4, Encoding(0));
        let character = int(&mut it, "char", 1, Encoding::SIGNED);
        let constant = it.reference(Kind::Const, StrOffset::EMPTY, character);
        let name = it.string("char_t");
        let typedef = it.reference(Kind::Typedef, name, character);
        let [text, numbers] = [constant, typedef].map(|element| {
            it.array(Array {
                element,
                index: unsigned,
                count: 4,
            })
        });
        let name = it.string("float");
        let float = it.float(name, 4);
        let mut composite = |kind, name: &str, size, members: &[(&str, TypeId, u32, u32)]| {
            let members: Vec<Member> = members
                .iter()
                .map(|&(name, ty, bit_offset, bits)| Member {
                    name: it.string(name),
                    ty,
                    bit_offset,
                    bits,
                })
                .collect();
            let name = it.string(name);
            it.composite(kind, name, size, &members)
        };
        let first = composite(
            Kind::Union,
            "",
            4,
            &[("a", unsigned, 0, 0), ("b", text, 0, 0)],
        );
        let second = composite(Kind::Struct, "", 4, &[("c", unsigned, 0, 0)]);
        let all = composite(
            Kind::Struct,
            "all",
            24,
            &[
                ("low", unsigned, 0, 3),
                ("high", unsigned, 3, 29),
                ("", first, 32, 0),
                ("", second, 64, 0),
                ("text", text, 96, 0),
                ("numbers", numbers, 128, 0),
                ("float", float, 160, 0),
            ],
        );
        let name = it.string("value");
        let var = it.var(
            name,
            Var {
                ty: all,
                linkage: Linkage(1),
            },
        );
        let name = it.string(".data");
        let section = it.datasec(
            name,
            32,
            &[VarSecinfo {
                var,
                offset: 8,
                size: 24,
            }],
        );
        (it.finish(), all, section)
    }

    fn shown(value: &Ordered) -> Value {
        serde_json::to_value(value).expect("keys are strings")
    }

    #[test]
    fn what_is_shown_is_read_again() {
        let (blob, all, section) = types();
        let types = Btf::parse(&blob).unwrap();
        let value = [
            &0xffff_fffdu32.to_le_bytes()[..],
            b"ab\0\0",
            &[7, 0, 0, 0],
            b"cde\0",
            b"fg\0\0",
            &1.5f32.to_le_bytes(),
        ]
        .concat();
        let json = shown(&to_json(&types, all, &value));
        assert_eq!(json["low"], "0x5");
        assert_eq!(json["high"], "0x1fffffff");
        assert_eq!(json["text"], "cde");
        assert_eq!(json["numbers"], json!([102, 103, 0, 0]));
        assert_eq!(json["float"], 1.5);
        // JSON has one of the unnamed members: the second.
        let mut read = vec![0; 24];
        from_json(&types, all, &json, &mut read).unwrap();
        let mut expected = value.clone();
        expected[4..8].fill(0);
        assert_eq!(read, expected);

        let data = [&[0xff; 8][..], &value].concat();
        let json = shown(&to_json(&types, section, &data));
        let mut read = vec![0xff; 32];
        from_json(&types, section, &json, &mut read).unwrap();
        expected[4..8].fill(0xff);
        assert_eq!(read[8..], expected);
        let wrong = from_json(&types, section, &json!({".data": [{"x": 1}]}), &mut read);
        assert_eq!(wrong.unwrap_err(), "there is no variable \"x\"");
    }

    #[test]
    fn members_that_are_written_replace_their_bits_only() {
        let (blob, all, _) = types();
        let types = Btf::parse(&blob).unwrap();
        let mut bytes = vec![0xff; 24];
        let value = json!({"low": -3, "b": "x", "c": 9, "text": "y"});
        from_json(&types, all, &value, &mut bytes).unwrap();
        assert_eq!(bytes[..4], 0xffff_fffdu32.to_le_bytes());
        assert_eq!(bytes[4..8], [b'x', 0, 0xff, 0xff]);
        assert_eq!(bytes[8..12], [9, 0, 0, 0]);
        assert_eq!(bytes[12..16], [b'y', 0, 0xff, 0xff]);
        for (value, why) in [
            (
                json!({"low": 8}),
                "low: 8 does not fit a bit field of 3 bits",
            ),
            (
                json!({"b": "abcde"}),
                "b: \"abcde\" has more than 4 elements",
            ),
            (
                json!({"float": "x"}),
                "float: \"x\" is no number of 4 or 8 bytes",
            ),
            (
                json!({"d": 1}),
                "there is no member \"d\"; members are low, high, a, b, c, text, numbers, float",
            ),
        ] {
            assert_eq!(from_json(&types, all, &value, &mut bytes).unwrap_err(), why);
        }
    }
}
