//! Types of debug information: their names in C, and values as text.

use std::collections::HashMap;
use std::fmt::Write;

/// Most types within types.
const DEEPEST: usize = 16;
/// Bytes of text from which a value is cut.
const LONGEST: usize = 4096;
/// Most elements of an array, and members, that are shown.
const SHOWN: usize = 64;

/// The text of what is not known.
const UNKNOWN: &str = "?";

/// Bytes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueBytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// For each one false if it is not known; empty if all are.
    pub known: Vec<bool>,
}

/// Bytes with what is known of them.
#[derive(Clone, Copy)]
struct Bytes<'v> {
    bytes: &'v [u8],
    known: &'v [bool],
}

impl ValueBytes {
    /// Bytes that are all known.
    pub fn known(bytes: Vec<u8>) -> ValueBytes {
        let known = Vec::new();
        ValueBytes { bytes, known }
    }

    fn all(&self) -> Bytes<'_> {
        let (bytes, known) = (&self.bytes[..], &self.known[..]);
        Bytes { bytes, known }
    }
}

impl<'v> Bytes<'v> {
    fn part(self, start: usize, len: usize) -> Option<Bytes<'v>> {
        let end = start.checked_add(len)?;
        let bytes = self.bytes.get(start..end)?;
        let known = self.known.get(start..end).unwrap_or_default();
        Some(Bytes { bytes, known })
    }

    fn is_known(self) -> bool {
        self.known.iter().all(|known| *known)
    }
}

/// Types by their offset.
#[derive(Debug, Default)]
pub(super) struct Types(HashMap<usize, Type>);

#[derive(Debug)]
pub(super) enum Type {
    Base {
        name: String,
        size: usize,
        base: Base,
    },
    Pointer(Option<usize>),
    Composite {
        keyword: &'static str,
        name: String,
        size: usize,
        members: Vec<Member>,
    },
    Array {
        of: Option<usize>,
        count: usize,
    },
    Enum {
        name: String,
        size: usize,
        values: Vec<(String, i64)>,
    },
    Typedef {
        name: String,
        of: Option<usize>,
    },
    Modifier {
        word: &'static str,
        of: Option<usize>,
    },
    Function,
}

/// What the bytes of a base type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Bool,
    Signed,
    Unsigned,
    SignedChar,
    UnsignedChar,
    Float,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) kind: Option<usize>,
    pub(super) bit_offset: u64,
    pub(super) bits: Option<u32>,
}

impl Types {
    pub(super) fn add(&mut self, at: usize, made: Type) {
        self.0.insert(at, made);
    }

    pub(super) fn add_member(&mut self, owner: usize, member: Member) {
        if let Some(Type::Composite { members, .. }) = self.0.get_mut(&owner) {
            members.push(member);
        }
    }

    pub(super) fn add_enumerator(&mut self, owner: usize, name: String, value: i64) {
        if let Some(Type::Enum { values, .. }) = self.0.get_mut(&owner) {
            values.push((name, value));
        }
    }

    /// Adds a dimension to an array; those behind the first one multiply its elements.
    pub(super) fn add_dimension(&mut self, owner: usize, elements: usize) {
        if let Some(Type::Array { count, .. }) = self.0.get_mut(&owner) {
            *count = match *count {
                0 => elements,
                count => count.saturating_mul(elements),
            };
        }
    }

    /// The type behind typedefs and modifiers.
    pub(super) fn resolved(&self, kind: Option<usize>) -> Option<&Type> {
        let mut kind = kind;
        for _ in 0..DEEPEST {
            match self.0.get(&kind?)? {
                Type::Typedef { of, .. } | Type::Modifier { of, .. } => kind = *of,
                other => return Some(other),
            }
        }
        None
    }

    pub(super) fn name(&self, kind: Option<usize>) -> String {
        self.name_within(kind, DEEPEST)
    }

    fn name_within(&self, kind: Option<usize>, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return "…".to_owned();
        };
        let Some(found) = kind.and_then(|kind| self.0.get(&kind)) else {
            return "void".to_owned();
        };
        match found {
            Type::Base { name, .. } | Type::Typedef { name, .. } => name.clone(),
            Type::Pointer(of) => {
                let of = self.name_within(*of, depth);
                match of.ends_with('*') {
                    true => format!("{of}*"),
                    false => format!("{of} *"),
                }
            }
            Type::Composite { keyword, name, .. } => {
                format!("{keyword} {name}").trim_end().to_owned()
            }
            Type::Enum { name, .. } => format!("enum {name}").trim_end().to_owned(),
            Type::Array { of, count } => format!("{}[{count}]", self.name_within(*of, depth)),
            Type::Modifier { word, of } => format!("{word}{}", self.name_within(*of, depth)),
            Type::Function => "function".to_owned(),
        }
    }

    pub(super) fn size(&self, kind: usize) -> Option<usize> {
        self.size_within(kind, DEEPEST)
    }

    fn size_within(&self, kind: usize, depth: usize) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        match self.resolved(Some(kind))? {
            Type::Base { size, .. } | Type::Composite { size, .. } | Type::Enum { size, .. } => {
                Some(*size)
            }
            Type::Pointer(_) => Some(8),
            Type::Array { of, count } => self.size_within((*of)?, depth)?.checked_mul(*count),
            Type::Typedef { .. } | Type::Modifier { .. } | Type::Function => None,
        }
    }

    /// The alignment that a variable without parts has; `None` for a type with parts.
    pub(super) fn scalar_align(&self, kind: Option<usize>) -> Option<usize> {
        match self.resolved(kind)? {
            Type::Base { size, .. } | Type::Enum { size, .. } => {
                Some(size.next_power_of_two().min(16))
            }
            Type::Pointer(_) => Some(8),
            Type::Composite { .. } | Type::Array { .. } => None,
            Type::Typedef { .. } | Type::Modifier { .. } | Type::Function => None,
        }
    }

    pub(super) fn is_pointer(&self, kind: Option<usize>) -> bool {
        matches!(self.resolved(kind), Some(Type::Pointer(_)))
    }

    /// A value as text.
    pub(super) fn show(
        &self,
        kind: Option<usize>,
        value: &ValueBytes,
        describe: &Describe<'_>,
    ) -> String {
        let mut text = String::new();
        let writer = Writer {
            types: self,
            describe,
        };
        writer.write(&mut text, kind, value.all(), DEEPEST);
        text
    }
}

/// Says what an address is of.
pub type Describe<'d> = dyn Fn(u64) -> Option<String> + 'd;

/// Writes values.
struct Writer<'w> {
    types: &'w Types,
    describe: &'w Describe<'w>,
}

impl Writer<'_> {
    fn write(&self, text: &mut String, kind: Option<usize>, value: Bytes<'_>, depth: usize) {
        let depth = depth.checked_sub(1).filter(|_| text.len() < LONGEST);
        let Some(depth) = depth else {
            text.push('…');
            return;
        };
        match self.types.resolved(kind) {
            Some(Type::Composite { members, .. }) => {
                text.push('{');
                for (index, member) in members.iter().take(SHOWN).enumerate() {
                    text.push_str(if index == 0 { " " } else { ", " });
                    if !member.name.is_empty() {
                        let _ = write!(text, ".{} = ", member.name);
                    }
                    self.write_member(text, member, value, depth);
                }
                text.push_str(if members.len() > SHOWN {
                    ", … }"
                } else {
                    " }"
                });
            }
            Some(Type::Array { of, count }) => self.write_array(text, (*of, *count), value, depth),
            _ if !value.is_known() => text.push_str(UNKNOWN),
            Some(Type::Pointer(_)) => match wide_number(value.bytes) as u64 {
                0 => text.push_str("NULL"),
                address => {
                    let known = (self.describe)(address);
                    text.push_str(&known.unwrap_or_else(|| format!("{address:#x}")));
                }
            },
            resolved => write_number(text, resolved, value.bytes),
        }
    }

    fn write_member(&self, text: &mut String, member: &Member, value: Bytes<'_>, depth: usize) {
        let start = (member.bit_offset / 8) as usize;
        let size = member
            .kind
            .and_then(|kind| self.types.size(kind))
            .unwrap_or(0);
        let part = match member.bits {
            Some(bits) => value.part(
                start,
                ((member.bit_offset % 8) as usize + bits as usize).div_ceil(8),
            ),
            None => value.part(start, size),
        };
        match (part, member.bits) {
            (Some(part), Some(_)) if !part.is_known() => text.push_str(UNKNOWN),
            (Some(part), Some(bits)) => {
                let shift = member.bit_offset % 8;
                let bits = bits.clamp(1, 64);
                let value = (wide_number(part.bytes) >> shift) as u64;
                let resolved = self.types.resolved(member.kind);
                let value = match is_signed(resolved) {
                    true => ((value << (64 - bits)) as i64 >> (64 - bits)) as u64,
                    false => value << (64 - bits) >> (64 - bits),
                };
                write_number(text, resolved, &value.to_le_bytes());
            }
            (Some(part), None) => self.write(text, member.kind, part, depth),
            (None, _) => text.push_str(UNKNOWN),
        }
    }

    fn write_array(
        &self,
        text: &mut String,
        (of, count): (Option<usize>, usize),
        value: Bytes<'_>,
        depth: usize,
    ) {
        let bytes = value.bytes;
        let is_char = matches!(
            self.types.resolved(of),
            Some(Type::Base {
                base: Base::SignedChar | Base::UnsignedChar,
                ..
            })
        );
        let end = bytes.iter().position(|byte| *byte == 0);
        let end = end.unwrap_or(bytes.len());
        let is_text = is_char
            && value.is_known()
            && end > 0
            && bytes[..end].iter().all(|byte| (b' '..=b'~').contains(byte));
        if is_text && bytes[end..].iter().all(|byte| *byte == 0) {
            let _ = write!(text, "{:?}", String::from_utf8_lossy(&bytes[..end]));
            return;
        }
        let each = bytes.len().checked_div(count).unwrap_or(0).max(1);
        text.push('[');
        for index in 0..count.min(SHOWN) {
            text.push_str(if index == 0 { "" } else { ", " });
            match value.part(index * each, each) {
                Some(element) => self.write(text, of, element, depth),
                None => text.push_str(UNKNOWN),
            }
        }
        text.push_str(if count > SHOWN { ", …]" } else { "]" });
    }
}

/// True for a type of signed numbers.
fn is_signed(resolved: Option<&Type>) -> bool {
    match resolved {
        Some(Type::Base { base, .. }) => matches!(base, Base::Signed | Base::SignedChar),
        Some(Type::Enum { values, .. }) => values.iter().any(|(_, value)| *value < 0),
        _ => false,
    }
}

/// Writes bytes of a type without parts.
fn write_number(text: &mut String, resolved: Option<&Type>, bytes: &[u8]) {
    let number = wide_number(bytes);
    let unused = 128 - 8 * bytes.len().clamp(1, 16) as u32;
    let signed = (number << unused) as i128 >> unused;
    let _ = match resolved {
        Some(Type::Base {
            base: Base::Bool, ..
        }) => write!(text, "{}", number != 0),
        Some(Type::Base {
            base: Base::Float, ..
        }) => match bytes.len() {
            4 => write!(text, "{}", f32::from_bits(number as u32)),
            8 => write!(text, "{}", f64::from_bits(number as u64)),
            _ => write!(text, "{number:#x}"),
        },
        Some(Type::Enum { values, .. }) => {
            let is_it =
                |value: &i64| i128::from(*value) == signed || *value as u64 as u128 == number;
            match values.iter().find(|(_, value)| is_it(value)) {
                Some((name, _)) => write!(text, "{name}"),
                None if is_signed(resolved) => write!(text, "{signed}"),
                None => write!(text, "{number}"),
            }
        }
        Some(Type::Base { .. }) if is_signed(resolved) => write!(text, "{signed}"),
        Some(Type::Base { .. }) => write!(text, "{number}"),
        _ => write!(text, "{number:#x}"),
    };
}

/// The number that at most 16 bytes are.
fn wide_number(bytes: &[u8]) -> u128 {
    let mut wide = [0; 16];
    let len = bytes.len().min(16);
    wide[..len].copy_from_slice(&bytes[..len]);
    u128::from_le_bytes(wide)
}
