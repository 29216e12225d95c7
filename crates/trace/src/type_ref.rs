//! Types of debug information and of BTF as one: their parts, and values as text.

use std::fmt::Write;

use btf::{Btf, Kind, Shape, TypeId};

use crate::dwarf::{Debug, Describe, ValueBytes};
use crate::signature::type_name;

/// Most types within types.
const DEEPEST: usize = 16;
/// Bytes of text from which a value is cut.
const LONGEST: usize = 4096;
/// Most elements of an array, and members, that are shown.
const SHOWN: usize = 64;
/// The text of what is not known.
const UNKNOWN: &str = "?";

/// A type.
#[derive(Clone, Copy, Debug)]
pub enum VariableType<'t> {
    /// One of debug information, by its offset; `None` for void.
    Debug(&'t Debug, Option<usize>),
    /// One of BTF.
    Btf(&'t Btf<'static>, TypeId),
}

/// What a type is made of, without typedefs and modifiers.
#[derive(Clone, Debug)]
pub enum TypeForm<'t> {
    /// A number.
    Number(NumberForm),
    /// A number whose values have names.
    Enum {
        /// Names and values.
        values: Vec<(String, i64)>,
        /// True for a signed one.
        is_signed: bool,
    },
    /// A pointer to a type.
    Pointer(VariableType<'t>),
    /// A structure, a union, or a section of variables.
    Composite(Vec<FieldOf<'t>>),
    /// Elements of a type.
    Array {
        /// The type.
        of: VariableType<'t>,
        /// Their number.
        count: usize,
    },
    /// A function, void, or what has no size.
    Opaque,
}

/// How bytes are a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberForm {
    /// A truth value.
    Bool,
    /// A signed number.
    Signed,
    /// An unsigned number.
    Unsigned,
    /// A signed character.
    SignedChar,
    /// An unsigned character.
    UnsignedChar,
    /// A floating-point number.
    Float,
}

/// A member of a structure.
#[derive(Clone, Debug)]
pub struct FieldOf<'t> {
    /// Its name; empty for members without one.
    pub name: String,
    /// Its type.
    pub kind: VariableType<'t>,
    /// Offset of its first bit.
    pub bit_offset: u64,
    /// Bits of a bit field.
    pub bits: Option<u32>,
}

impl FieldOf<'_> {
    /// The bytes that hold it: offset and number.
    pub fn range(&self) -> (usize, usize) {
        let start = (self.bit_offset / 8) as usize;
        match self.bits {
            Some(bits) => (
                start,
                ((self.bit_offset % 8) as usize + bits as usize).div_ceil(8),
            ),
            None => (start, self.kind.size().unwrap_or(0)),
        }
    }

    /// The value of it in the bytes that hold it: of a bit field a number of its type.
    pub fn value(&self, holder: &ValueBytes) -> ValueBytes {
        match self.bits {
            Some(bits) => bit_field(holder, (self.bit_offset % 8, bits), self.kind),
            None => holder.clone(),
        }
    }
}

/// The value of a bit field of a type, as a number of that type: the bytes that hold it, its first bit
/// in them, and its bits.
pub fn bit_field(
    holder: &ValueBytes,
    (shift, bits): (u64, u32),
    kind: VariableType<'_>,
) -> ValueBytes {
    if holder.known.contains(&false) {
        let size = kind.size().unwrap_or(1).max(1);
        return ValueBytes {
            bytes: vec![0; size],
            known: vec![false; size],
        };
    }
    let unused = 64 - bits.clamp(1, 64);
    let number = ((wide(&holder.bytes) >> shift) as u64) << unused;
    let number = match kind.is_signed() {
        true => (number as i64 >> unused) as u64,
        false => number >> unused,
    };
    let size = kind.size().unwrap_or(8).clamp(1, 8);
    ValueBytes::known(number.to_le_bytes()[..size].to_vec())
}

impl<'t> VariableType<'t> {
    /// Its name in C.
    pub fn name(&self) -> String {
        match self {
            VariableType::Debug(debug, kind) => debug.name_of_type(*kind),
            VariableType::Btf(types, ty) => type_name(types, *ty),
        }
    }

    /// Its bytes.
    pub fn size(&self) -> Option<usize> {
        match self {
            VariableType::Debug(debug, kind) => debug.size_of_type((*kind)?),
            VariableType::Btf(types, ty) => types.size_of(*ty).map(|size| size as usize),
        }
    }

    /// What it is made of.
    pub fn form(&self) -> TypeForm<'t> {
        match *self {
            VariableType::Debug(debug, kind) => debug.form(kind),
            VariableType::Btf(types, ty) => btf_form(types, ty).unwrap_or(TypeForm::Opaque),
        }
    }

    /// True for a type of signed numbers.
    pub fn is_signed(&self) -> bool {
        match self.form() {
            TypeForm::Number(form) => {
                matches!(form, NumberForm::Signed | NumberForm::SignedChar)
            }
            TypeForm::Enum { is_signed, .. } => is_signed,
            TypeForm::Pointer(_)
            | TypeForm::Composite(_)
            | TypeForm::Array { .. }
            | TypeForm::Opaque => false,
        }
    }

    /// A value as text.
    pub fn show(&self, value: &ValueBytes, describe: &Describe<'_>) -> String {
        let mut text = String::new();
        write(&mut text, *self, value, describe, DEEPEST);
        text
    }
}

fn btf_form<'t>(types: &'t Btf<'static>, ty: TypeId) -> Option<TypeForm<'t>> {
    let ty = types.skip_modifiers(ty)?;
    let of = |ty| VariableType::Btf(types, ty);
    Some(match types.get(ty)?.shape() {
        Shape::Int(int) if int.encoding.is_bool() => TypeForm::Number(NumberForm::Bool),
        // BTF of clang marks characters by their size and name alone.
        Shape::Int(int) => {
            let is_char = int.size == 1 && types.get(ty)?.name().as_bytes().ends_with(b"char");
            TypeForm::Number(match (is_char, int.encoding.is_signed()) {
                (true, true) => NumberForm::SignedChar,
                (true, false) => NumberForm::UnsignedChar,
                (false, true) => NumberForm::Signed,
                (false, false) => NumberForm::Unsigned,
            })
        }
        Shape::Float(_) => TypeForm::Number(NumberForm::Float),
        Shape::Enum(of) => TypeForm::Enum {
            values: (of.values())
                .map(|value| (types.string(value.name).to_string(), value.value as i64))
                .collect(),
            is_signed: of.signed,
        },
        Shape::Ptr(target) => TypeForm::Pointer(of(target)),
        Shape::Struct(composite) | Shape::Union(composite) => {
            let members = composite.members().map(|member| FieldOf {
                name: types.string(member.name).to_string(),
                kind: of(member.ty),
                bit_offset: member.bit_offset.into(),
                bits: (member.bits != 0).then_some(member.bits),
            });
            TypeForm::Composite(members.collect())
        }
        Shape::Datasec(section) => {
            let vars = section.vars().filter_map(|var| {
                let of_var = types.get(var.var)?;
                Some(FieldOf {
                    name: of_var.name().to_string(),
                    kind: of(of_var.referred()?),
                    bit_offset: 8 * u64::from(var.offset),
                    bits: None,
                })
            });
            TypeForm::Composite(vars.collect())
        }
        Shape::Array(array) => TypeForm::Array {
            of: of(array.element),
            count: array.count as usize,
        },
        Shape::Void
        | Shape::Fwd(_)
        | Shape::Typedef(_)
        | Shape::Volatile(_)
        | Shape::Const(_)
        | Shape::Restrict(_)
        | Shape::Func(_)
        | Shape::Proto(_)
        | Shape::Var(_)
        | Shape::DeclTag(_)
        | Shape::TypeTag(_) => return None,
    })
}

/// The value of a constant of an enumeration.
pub fn enumerator(types: &Btf<'static>, name: &str) -> Option<i64> {
    let enums = types.of_kind(Kind::Enum).chain(types.of_kind(Kind::Enum64));
    let mut found = enums.filter_map(|ty| match ty.shape() {
        Shape::Enum(of) => {
            let mut values = of.values();
            let value = values.find(|value| types.string(value.name).as_bytes() == name.as_bytes());
            value.map(|value| value.value as i64)
        }
        _ => None,
    });
    found.next()
}

/// The bytes of a part of a value.
pub fn part(value: &ValueBytes, (start, len): (usize, usize)) -> Option<ValueBytes> {
    let end = start.checked_add(len)?;
    let bytes = value.bytes.get(start..end)?.to_vec();
    let known = value.known.get(start..end).unwrap_or_default().to_vec();
    Some(ValueBytes { bytes, known })
}

fn write(
    text: &mut String,
    kind: VariableType<'_>,
    value: &ValueBytes,
    describe: &Describe<'_>,
    depth: usize,
) {
    let Some(depth) = depth.checked_sub(1).filter(|_| text.len() < LONGEST) else {
        text.push('…');
        return;
    };
    let form = kind.form();
    match &form {
        TypeForm::Composite(fields) => {
            text.push('{');
            for (index, field) in fields.iter().take(SHOWN).enumerate() {
                text.push_str(if index == 0 { " " } else { ", " });
                if !field.name.is_empty() {
                    let _ = write!(text, ".{} = ", field.name);
                }
                match part(value, field.range()) {
                    Some(holder) => {
                        let value = field.value(&holder);
                        write(text, field.kind, &value, describe, depth);
                    }
                    None => text.push_str(UNKNOWN),
                }
            }
            text.push_str(if fields.len() > SHOWN {
                ", … }"
            } else {
                " }"
            });
        }
        TypeForm::Array { of, count } => write_array(text, (*of, *count), value, describe, depth),
        _ if value.known.contains(&false) => text.push_str(UNKNOWN),
        TypeForm::Pointer(_) => match wide(&value.bytes) as u64 {
            0 => text.push_str("NULL"),
            address => {
                let known = describe(address);
                text.push_str(&known.unwrap_or_else(|| format!("{address:#x}")));
            }
        },
        TypeForm::Number(_) | TypeForm::Enum { .. } | TypeForm::Opaque => {
            write_number(text, &form, &value.bytes);
        }
    }
}

fn write_array(
    text: &mut String,
    (of, count): (VariableType<'_>, usize),
    value: &ValueBytes,
    describe: &Describe<'_>,
    depth: usize,
) {
    let is_char = matches!(
        of.form(),
        TypeForm::Number(NumberForm::SignedChar | NumberForm::UnsignedChar)
    );
    let bytes = &value.bytes;
    let end = bytes.iter().position(|byte| *byte == 0);
    let end = end.unwrap_or(bytes.len());
    let is_text = is_char
        && !value.known.contains(&false)
        && end > 0
        && bytes[..end].iter().all(|byte| (b' '..=b'~').contains(byte))
        && bytes[end..].iter().all(|byte| *byte == 0);
    if is_text {
        let _ = write!(text, "{:?}", String::from_utf8_lossy(&bytes[..end]));
        return;
    }
    let each = bytes.len().checked_div(count).unwrap_or(0).max(1);
    text.push('[');
    for index in 0..count.min(SHOWN) {
        text.push_str(if index == 0 { "" } else { ", " });
        match part(value, (index * each, each)) {
            Some(element) => write(text, of, &element, describe, depth),
            None => text.push_str(UNKNOWN),
        }
    }
    text.push_str(if count > SHOWN { ", …]" } else { "]" });
}

fn write_number(text: &mut String, form: &TypeForm<'_>, bytes: &[u8]) {
    let number = wide(bytes);
    let unused = 128 - 8 * bytes.len().clamp(1, 16) as u32;
    let signed = (number << unused) as i128 >> unused;
    let _ = match form {
        TypeForm::Number(NumberForm::Bool) => write!(text, "{}", number != 0),
        TypeForm::Number(NumberForm::Float) => match bytes.len() {
            4 => write!(text, "{}", f32::from_bits(number as u32)),
            8 => write!(text, "{}", f64::from_bits(number as u64)),
            _ => write!(text, "{number:#x}"),
        },
        TypeForm::Number(NumberForm::Signed | NumberForm::SignedChar) => write!(text, "{signed}"),
        TypeForm::Number(NumberForm::Unsigned | NumberForm::UnsignedChar) => {
            write!(text, "{number}")
        }
        TypeForm::Enum { values, is_signed } => {
            let is_it =
                |value: &i64| i128::from(*value) == signed || *value as u64 as u128 == number;
            match values.iter().find(|(_, value)| is_it(value)) {
                Some((name, _)) => write!(text, "{name}"),
                None if *is_signed => write!(text, "{signed}"),
                None => write!(text, "{number}"),
            }
        }
        TypeForm::Pointer(_)
        | TypeForm::Composite(_)
        | TypeForm::Array { .. }
        | TypeForm::Opaque => write!(text, "{number:#x}"),
    };
}

/// The number that at most 16 bytes are.
fn wide(bytes: &[u8]) -> u128 {
    let mut wide = [0; 16];
    let len = bytes.len().min(16);
    wide[..len].copy_from_slice(&bytes[..len]);
    u128::from_le_bytes(wide)
}
