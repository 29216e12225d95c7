//! Errors of CO-RE relocations. A missing type or field is no error: programs check for
//! it, and it is a [`Resolution`](super::Resolution).

use std::fmt;

use crate::TypeId;
use crate::errno::{E2BIG, EINVAL};
use crate::ext::CoreKind;

/// Error of a CO-RE relocation. libbpf refuses the whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoreError {
    /// The object lacks the type.
    NoType {
        /// Type id.
        id: TypeId,
    },
    /// The object's type is anonymous.
    Anonymous {
        /// Type id.
        id: TypeId,
    },
    /// The kind of relocation is unknown.
    UnknownKind {
        /// Kind.
        kind: CoreKind,
    },
    /// The access string is malformed.
    AccessText,
    /// The access string has more than 64 indices.
    AccessTooLong,
    /// An index of the access string has no member, element or enumerator in the object's
    /// type.
    NoSuchPart {
        /// Type id.
        id: TypeId,
        /// Index in the access string, from 0.
        step: usize,
    },
    /// A type of the object on the path has no size.
    LocalSize {
        /// Type id.
        id: TypeId,
    },
    /// A type of the target on the path has no size.
    TargetSize {
        /// Type id.
        id: TypeId,
    },
    /// The relocation is not defined for the field: it has no size, or the kind does not
    /// apply to array elements.
    Unmeasurable {
        /// Kind of relocation.
        kind: CoreKind,
    },
    /// A bit field that no load of at most 64 bits contains.
    WideBitField,
    /// Structures are nested more than 64 deep.
    TooDeep,
    /// Types form a cycle, or a chain beyond the limits of a comparison: 64 modifiers, or 32
    /// pointers, arrays and prototypes.
    TypeCycle,
    /// The comparison exceeds a million steps.
    TooComplex,
    /// Two candidates have the field at different offsets.
    Places {
        /// Offset in bits in the first.
        first: u32,
        /// Offset in bits in another.
        other: u32,
    },
    /// Two candidates give different values.
    Answers {
        /// Value of the first; `None` if the instruction would be poisoned.
        first: Option<u64>,
        /// Value of another.
        other: Option<u64>,
    },
}

impl CoreError {
    /// Error number of libbpf.
    pub fn errno(&self) -> i32 {
        match self {
            CoreError::WideBitField | CoreError::TooDeep => E2BIG,
            _ => EINVAL,
        }
    }
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            CoreError::NoType { id } => write!(f, "object has no type {id}"),
            CoreError::Anonymous { id } => write!(f, "type {id} is anonymous"),
            CoreError::UnknownKind { kind } => {
                write!(f, "relocation kind {} is unknown", kind.0)
            }
            CoreError::AccessText => {
                write!(f, "access string is not indices separated by colons")
            }
            CoreError::AccessTooLong => write!(f, "access string has more than 64 indices"),
            CoreError::NoSuchPart { id, step } => {
                write!(
                    f,
                    "index {step} of the access string is out of range in type {id}"
                )
            }
            CoreError::LocalSize { id } => write!(f, "type {id} of the object has no size"),
            CoreError::TargetSize { id } => write!(f, "type {id} of the target has no size"),
            CoreError::Unmeasurable { kind } => write!(
                f,
                "relocation {} is not defined for this field",
                kind.name().unwrap_or("this")
            ),
            CoreError::WideBitField => write!(f, "bit field does not fit into a load of 64 bits"),
            CoreError::TooDeep => write!(f, "structures are nested more than 64 deep"),
            CoreError::TypeCycle => write!(f, "types form a cycle or a chain that is too long"),
            CoreError::TooComplex => write!(f, "comparison of the types exceeds the step limit"),
            CoreError::Places { first, other } => write!(
                f,
                "candidates of the target are ambiguous: field at bit {first} and at bit {other}"
            ),
            CoreError::Answers { first, other } => {
                let text = |answer: Option<u64>| match answer {
                    Some(value) => value.to_string(),
                    None => "nothing".into(),
                };
                let (first, other) = (text(first), text(other));
                write!(
                    f,
                    "candidates of the target are ambiguous: value {first} and {other}"
                )
            }
        }
    }
}

impl std::error::Error for CoreError {}
