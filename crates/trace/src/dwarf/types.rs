//! Types of debug information: their names in C, and values as text.

use std::collections::HashMap;
use std::fmt::Write;

/// Most types within types.
const DEEPEST: usize = 16;
/// Bytes of text from which a value is cut.
const LONGEST: usize = 4096;
/// Most elements of an array that are shown.
const SHOWN: usize = 16;

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
    Char,
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
    fn resolved(&self, kind: Option<usize>) -> Option<&Type> {
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

    pub(super) fn is_pointer(&self, kind: Option<usize>) -> bool {
        matches!(self.resolved(kind), Some(Type::Pointer(_)))
    }

    /// A value as text.
    pub(super) fn show(&self, kind: Option<usize>, bytes: &[u8]) -> String {
        let mut text = String::new();
        self.write(&mut text, kind, bytes, DEEPEST);
        text
    }

    fn write(&self, text: &mut String, kind: Option<usize>, bytes: &[u8], depth: usize) {
        let number = number(bytes);
        let signed = sign_extended(number, bytes.len());
        let depth = depth.checked_sub(1).filter(|_| text.len() < LONGEST);
        let Some(depth) = depth else {
            text.push('…');
            return;
        };
        let _ = match self.resolved(kind) {
            Some(Type::Base { base, .. }) => match base {
                Base::Bool => write!(text, "{}", number != 0),
                Base::Signed => write!(text, "{signed}"),
                Base::Char | Base::Unsigned => write!(text, "{number}"),
            },
            Some(Type::Enum { values, .. }) => {
                match values
                    .iter()
                    .find(|(_, value)| *value as u64 == number || *value == signed)
                {
                    Some((name, _)) => write!(text, "{name}"),
                    None => write!(text, "{number}"),
                }
            }
            Some(Type::Composite { members, .. }) => {
                text.push('{');
                for (index, member) in members.iter().take(SHOWN).enumerate() {
                    text.push_str(if index == 0 { " " } else { ", " });
                    let _ = write!(text, ".{} = ", member.name);
                    self.write_member(text, member, bytes, depth);
                }
                write!(text, " }}")
            }
            Some(Type::Array { of, count }) => self.write_array(text, (*of, *count), bytes, depth),
            Some(
                Type::Pointer(_) | Type::Function | Type::Typedef { .. } | Type::Modifier { .. },
            )
            | None => write!(text, "{number:#x}"),
        };
    }

    fn write_member(&self, text: &mut String, member: &Member, bytes: &[u8], depth: usize) {
        let start = (member.bit_offset / 8) as usize;
        let size = member.kind.and_then(|kind| self.size(kind)).unwrap_or(0);
        if let Some(bits) = member.bits {
            let end = bytes.len().min(start + 8);
            let value =
                number(bytes.get(start..end).unwrap_or_default()) >> (member.bit_offset % 8);
            let mask = u64::MAX
                .checked_shr(64 - bits.clamp(1, 64))
                .unwrap_or(u64::MAX);
            let _ = write!(text, "{}", value & mask);
            return;
        }
        match bytes.get(start..start.saturating_add(size)) {
            Some(bytes) => self.write(text, member.kind, bytes, depth),
            None => text.push('?'),
        }
    }

    fn write_array(
        &self,
        text: &mut String,
        (of, count): (Option<usize>, usize),
        bytes: &[u8],
        depth: usize,
    ) -> std::fmt::Result {
        let is_char = matches!(
            self.resolved(of),
            Some(Type::Base {
                base: Base::Char,
                ..
            })
        );
        let end = bytes
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(bytes.len());
        let is_text =
            is_char && end > 0 && bytes[..end].iter().all(|byte| (b' '..=b'~').contains(byte));
        if is_text && bytes[end..].iter().all(|byte| *byte == 0) {
            return write!(text, "{:?}", String::from_utf8_lossy(&bytes[..end]));
        }
        let each = bytes.len().checked_div(count).unwrap_or(0).max(1);
        text.push('[');
        for (index, element) in bytes.chunks(each).take(SHOWN).enumerate() {
            text.push_str(if index == 0 { "" } else { ", " });
            self.write(text, of, element, depth);
        }
        text.push_str(if count > SHOWN { ", …]" } else { "]" });
        Ok(())
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(wide)
}

fn sign_extended(number: u64, len: usize) -> i64 {
    let unused = 64 - 8 * len.clamp(1, 8) as u32;
    (number << unused) as i64 >> unused
}
