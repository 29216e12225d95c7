//! Values of BTF types as Python values, and back.
//!
//! A type is compiled once to a [`Codec`], a tree whose leaves know their place and size; decoding
//! and encoding walk it. Depth is limited by [`DEEPEST`]; time is linear in the size of a value.

pub(crate) mod arrow;
mod compile;
mod decode;
mod encode;

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Depth of types within types; what lies deeper is bytes.
const DEEPEST: u32 = 32;

/// The form of a value in Python.
#[derive(Debug)]
pub(crate) enum Codec {
    /// A number.
    Int { size: usize, is_signed: bool },
    /// `True` or `False`.
    Bool { size: usize },
    /// A member of an `IntEnum`, or a number that has no name.
    Enum(Enum),
    /// A number with a fraction, of 4 or 8 bytes.
    Float { size: usize },
    /// `char[N]`: text up to the first zero, or all bytes where they are no such text.
    Text { size: usize },
    /// An array of bytes, and what has no type.
    Bytes { size: usize },
    /// A list.
    Array {
        element: Box<Codec>,
        size: usize,
        count: usize,
    },
    /// A dict of members; those of a union lie in the same place.
    Struct(Struct),
}

/// An enumeration.
#[derive(Debug)]
pub(crate) struct Enum {
    size: usize,
    is_signed: bool,
    name: String,
    /// Names with their values.
    values: Vec<(String, i128)>,
    /// The class, if Python takes the names.
    class: Option<Py<PyAny>>,
}

/// A structure or union.
#[derive(Debug)]
pub(crate) struct Struct {
    size: usize,
    name: String,
    members: Vec<Member>,
}

/// A member of a structure, those of anonymous members among them.
#[derive(Debug)]
pub(crate) struct Member {
    name: Py<PyString>,
    text: String,
    /// Offset in bytes.
    offset: usize,
    codec: Codec,
    /// Of a bit field: offset in bits from `offset`, and width.
    bits: Option<(u32, u32)>,
}

impl Codec {
    /// Bytes of a value.
    pub(crate) fn size(&self) -> usize {
        match self {
            Codec::Int { size, .. }
            | Codec::Bool { size }
            | Codec::Float { size }
            | Codec::Text { size }
            | Codec::Bytes { size } => *size,
            Codec::Enum(it) => it.size,
            Codec::Array { size, count, .. } => size * count,
            Codec::Struct(it) => it.size,
        }
    }

    /// What fits, in words for messages.
    pub(crate) fn expected(&self) -> String {
        match self {
            Codec::Int { size, is_signed } => {
                let (least, most) = range(*size, *is_signed);
                format!("an int from {least} to {most}")
            }
            Codec::Bool { .. } => "a bool".to_owned(),
            Codec::Enum(it) => {
                let names: Vec<_> = it.values.iter().map(|(name, _)| name.as_str()).collect();
                format!("{} (one of {}, or an int)", it.name, names.join(", "))
            }
            Codec::Float { .. } => "a float".to_owned(),
            Codec::Text { size } => format!("a str or bytes of at most {size} bytes"),
            Codec::Bytes { size } => format!("bytes of length {size}"),
            Codec::Array { element, count, .. } => {
                format!("a list of {count}, each {}", element.expected())
            }
            Codec::Struct(it) => {
                let names: Vec<_> = it.members.iter().map(|it| it.text.as_str()).collect();
                format!("a dict of {} with {}", it.name, names.join(", "))
            }
        }
    }
}

/// The least and greatest number of so many bytes.
fn range(size: usize, is_signed: bool) -> (i128, i128) {
    let bits = size as u32 * 8;
    bit_range(bits.min(64), is_signed)
}

/// The least and greatest number of so many bits, at most 64.
fn bit_range(bits: u32, is_signed: bool) -> (i128, i128) {
    match is_signed {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    }
}
