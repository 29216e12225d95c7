//! Values of a type as JSON.

use btf::{Btf, Encoding, Int, Shape, Type, TypeId};
use serde_json::Value;

use super::format::of_type;
use super::{DEEPEST, Format, Formats, Ordered, field_bits};

/// Bytes of no known type: a string in hexadecimal.
pub fn bytes_to_json(bytes: &[u8]) -> Ordered {
    Ordered::Scalar(Format::Hex.show(bytes).unwrap_or_default())
}

/// As [`bytes_to_json`], in the form that is chosen for the value.
pub fn bytes_to_json_as(bytes: &[u8], formats: &Formats) -> Ordered {
    let chosen = formats.of_value().and_then(|format| format.show(bytes));
    chosen.map_or_else(|| bytes_to_json(bytes), Ordered::Scalar)
}

/// The value of a type; what has no JSON form, or no bytes, is null. Values beyond 64 for each
/// byte are left out, and the array or object that would have them ends with a line that says so.
pub fn to_json(types: &Btf<'_>, ty: TypeId, bytes: &[u8]) -> Ordered {
    to_json_as(types, ty, bytes, Formats::NONE)
}

/// As [`to_json`], with chosen forms.
pub fn to_json_as(types: &Btf<'_>, ty: TypeId, bytes: &[u8], formats: &Formats) -> Ordered {
    let left = VALUES_OF_BYTE.saturating_mul(bytes.len().saturating_add(8));
    let mut reader = Reader {
        types,
        formats,
        path: Vec::new(),
        depth: 0,
        left,
        is_cut: false,
    };
    reader.value(ty, None, bytes)
}

/// Values within values that are shown for a byte, on average: unions in unions, and structures
/// without bytes in such, have twice as many with each level.
const VALUES_OF_BYTE: usize = 64;

/// Text in the place of values that are left out.
const LEFT_OUT: &str = "values beyond the limit of 64 for each byte are left out";

struct Reader<'b> {
    types: &'b Btf<'b>,
    formats: &'b Formats,
    /// Names of the members that lead to a value, if forms are chosen.
    path: Vec<String>,
    depth: u32,
    /// Values that may still be shown.
    left: usize,
    /// The text says that values are left out.
    is_cut: bool,
}

const NULL: Ordered = Ordered::Scalar(Value::Null);

impl Reader<'_> {
    /// The value of a type, which is that of a member of a name or of its elements.
    fn value(&mut self, ty: TypeId, name: Option<&str>, bytes: &[u8]) -> Ordered {
        if let Some(value) = self.formatted(ty, name, bytes) {
            return Ordered::Scalar(value);
        }
        self.depth += 1;
        let value = match self.depth > DEEPEST {
            true => None,
            false => self.shape(ty, name, bytes),
        };
        self.depth -= 1;
        value.unwrap_or(NULL)
    }

    /// A value that has a form of its own.
    fn formatted(&self, ty: TypeId, name: Option<&str>, bytes: &[u8]) -> Option<Value> {
        let size = self.types.size_of(ty)? as usize;
        let chosen = (!self.formats.is_empty()).then(|| self.formats.at(&self.path));
        let bytes = bytes.get(..size)?;
        let chosen = chosen.flatten().and_then(|format| format.show(bytes));
        chosen.or_else(|| of_type(self.types, ty, name)?.show(bytes))
    }

    /// The value of a member, or of a variable, whose name says nothing about its form.
    fn member(&mut self, ty: TypeId, name: &str, is_variable: bool, bytes: &[u8]) -> Ordered {
        let has_path = !self.formats.is_empty() && !name.is_empty();
        if has_path {
            self.path.push(name.to_owned());
        }
        let value = self.value(ty, (!is_variable).then_some(name), bytes);
        if has_path {
            self.path.pop();
        }
        value
    }

    /// Counts a value; false if it is beyond the limit.
    fn is_within_limit(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }

    /// Text in the place of the first value that is left out.
    fn left_out(&mut self) -> Option<Ordered> {
        let is_first = !std::mem::replace(&mut self.is_cut, true);
        is_first.then(|| Ordered::Scalar(LEFT_OUT.into()))
    }

    fn shape(&mut self, ty: TypeId, of_member: Option<&str>, bytes: &[u8]) -> Option<Ordered> {
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
                let mut elements = Vec::new();
                for bytes in all.chunks_exact(size.max(1)) {
                    if !self.is_within_limit() {
                        elements.extend(self.left_out());
                        break;
                    }
                    elements.push(self.value(array.element, of_member, bytes));
                }
                Ordered::List(elements)
            }
            Shape::Struct(of) | Shape::Union(of) => {
                let mut members = Vec::new();
                for member in of.members() {
                    if !self.is_within_limit() {
                        members.extend(self.left_out().map(|text| ("...".to_owned(), text)));
                        break;
                    }
                    let start = (member.bit_offset / 8) as usize;
                    let bits = field_bits(types, member.ty, member.bits);
                    let name = name(member.name);
                    let value = match bits {
                        Some(bits) => bit_field(bytes, member.bit_offset, bits).unwrap_or(NULL),
                        None => {
                            let bytes = bytes.get(start..).unwrap_or(&[]);
                            self.member(member.ty, &name, false, bytes)
                        }
                    };
                    members.push((name, value));
                }
                Ordered::Object(members)
            }
            Shape::Datasec(section) => {
                let mut vars = Vec::new();
                for var in section.vars() {
                    if !self.is_within_limit() {
                        vars.extend(self.left_out());
                        break;
                    }
                    let at = var.offset as usize;
                    let bytes = bytes.get(at..at + var.size as usize).unwrap_or(&[]);
                    let variable = types.at(var.var);
                    let name = variable.name().to_string();
                    let value = match variable.shape() {
                        Shape::Var(of) => self.member(of.ty, &name, true, bytes),
                        _ => NULL,
                    };
                    vars.push(Ordered::Object(vec![(name, value)]));
                }
                let vars = Ordered::List(vars);
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
    if int.encoding.is_bool() && value <= 1 {
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
