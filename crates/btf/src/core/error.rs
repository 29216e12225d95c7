//! Why a relocation has no answer. That a type or a field is not there is none of
//! these: programs ask for it, and it is a [`Resolution`](super::Resolution).

use std::fmt;

use crate::TypeId;
use crate::ext::CoreKind;

/// What is wrong. libbpf refuses the whole object for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoreError {
    /// The object has no such type.
    NoType {
        /// Its number.
        id: TypeId,
    },
    /// The object's type has no name to look for.
    Anonymous {
        /// Its number.
        id: TypeId,
    },
    /// Nobody knows the question.
    UnknownKind {
        /// Its number.
        kind: CoreKind,
    },
    /// The way into the type is not made of numbers with colons between.
    AccessText,
    /// The way has more than 64 steps.
    AccessTooLong,
    /// The way leads to a member, element or value that the type does not have, or
    /// into something that has none.
    NoSuchPart {
        /// The type.
        id: TypeId,
        /// Which step of the way, from 0.
        step: usize,
    },
    /// A type of the object on the way has no size.
    LocalSize {
        /// The type.
        id: TypeId,
    },
    /// A type of the target on the way has no size.
    TargetSize {
        /// The type.
        id: TypeId,
    },
    /// The field can't be measured: it has no size, or the question is none for
    /// elements of arrays.
    Unmeasurable {
        /// The question.
        kind: CoreKind,
    },
    /// A bit field lies so that no load of 64 bits or less holds it.
    WideBitField,
    /// Structures are nested more than 64 deep.
    TooDeep,
    /// Types refer to each other without an end.
    Endless,
    /// It takes more than a million steps to compare the types.
    TooComplex,
    /// Two types of the target have the field at different places.
    Places {
        /// Bits from the start, in the first.
        first: u32,
        /// Bits from the start, in another.
        other: u32,
    },
    /// Two types of the target give different answers.
    Answers {
        /// The first one's; nothing if the instruction would be poisoned.
        first: Option<u64>,
        /// Another's.
        other: Option<u64>,
    },
}

impl CoreError {
    /// The number of the error with which libbpf ends.
    pub fn errno(&self) -> i32 {
        const E2BIG: i32 = 7;
        const EINVAL: i32 = 22;
        match self {
            CoreError::WideBitField | CoreError::TooDeep => E2BIG,
            _ => EINVAL,
        }
    }
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            CoreError::NoType { id } => write!(f, "the object has no type {id}"),
            CoreError::Anonymous { id } => write!(f, "type {id} has no name to look for"),
            CoreError::UnknownKind { kind } => {
                write!(f, "relocations of kind {} are unknown", kind.0)
            }
            CoreError::AccessText => {
                write!(
                    f,
                    "the way into the type is not numbers with colons between"
                )
            }
            CoreError::AccessTooLong => write!(f, "the way into the type has over 64 steps"),
            CoreError::NoSuchPart { id, step } => {
                write!(f, "step {step} of the way leads nowhere in type {id}")
            }
            CoreError::LocalSize { id } => write!(f, "type {id} of the object has no size"),
            CoreError::TargetSize { id } => write!(f, "type {id} of the target has no size"),
            CoreError::Unmeasurable { kind } => write!(
                f,
                "{} is no question for such a field",
                kind.name().unwrap_or("this")
            ),
            CoreError::WideBitField => write!(f, "the bit field does not fit a load of 64 bits"),
            CoreError::TooDeep => write!(f, "structures are nested over 64 deep"),
            CoreError::Endless => write!(f, "types refer to each other without an end"),
            CoreError::TooComplex => write!(f, "the types take too many steps to compare"),
            CoreError::Places { first, other } => write!(
                f,
                "two types of the target have the field at bit {first} and at bit {other}"
            ),
            CoreError::Answers { first, other } => {
                let text = |answer: Option<u64>| match answer {
                    Some(value) => value.to_string(),
                    None => "nothing".into(),
                };
                let (first, other) = (text(first), text(other));
                write!(
                    f,
                    "two types of the target answer differently: {first} and {other}"
                )
            }
        }
    }
}

impl std::error::Error for CoreError {}
