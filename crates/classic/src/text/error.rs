//! Errors of the readers of classic programs, with their positions.

use std::fmt;

use super::Form;

/// An error of a reader and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Form of the input; `None` if it was not recognised.
    pub form: Option<Form>,
    /// Position of the error.
    pub place: TextPlace,
    /// Kind of the error.
    pub problem: Problem,
}

impl ReadError {
    pub(super) fn new(form: Option<Form>, place: TextPlace, problem: Problem) -> ReadError {
        ReadError {
            form,
            place,
            problem,
        }
    }
}

/// A position in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPlace {
    /// The input as a whole.
    Input,
    /// A byte offset, in a raw program.
    Byte(usize),
    /// A character, in a text; both count from 1.
    Text {
        /// Line.
        line: usize,
        /// Column, in characters.
        column: usize,
    },
}

impl TextPlace {
    /// The position of byte `at` of a text.
    pub(super) fn in_text(text: &str, at: usize) -> TextPlace {
        let before = &text[..text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        TextPlace::Text {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Kind of a reader's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The input is empty.
    Empty,
    /// No form is recognised.
    Unrecognized,
    /// A known other file format.
    OtherFile {
        /// Name of the format.
        what: &'static str,
    },
    /// A text form that is not UTF-8.
    NotText {
        /// The offending byte.
        byte: u8,
    },
    /// The input is too large.
    TooManyBytes {
        /// Limit of the reader.
        limit: usize,
    },
    /// Too many instructions.
    TooManyInsns {
        /// Limit of the reader.
        limit: usize,
    },
    /// A raw program that ends within an instruction.
    PartialInsn {
        /// Number of bytes of the last instruction.
        bytes: usize,
    },
    /// An unexpected token.
    Expected {
        /// The expected token.
        what: String,
        /// The token found.
        found: String,
    },
    /// A number out of the range of its field.
    NumberTooLarge {
        /// As written in the input.
        number: String,
        /// Name of the field.
        field: &'static str,
        /// Smallest value of the field.
        least: i64,
        /// Largest value of the field.
        most: i64,
    },
    /// Announced and actual number of instructions differ.
    WrongCount {
        /// The number at the start.
        announced: u32,
        /// The number of instructions that follow.
        found: usize,
    },
    /// The numbers before the instructions are not 0, 1, 2, …
    WrongIndex {
        /// The expected number.
        expected: usize,
        /// The number found.
        found: u32,
    },
    /// A target out of reach of a conditional jump, which skips 0 to 255 instructions.
    TargetTooFar {
        /// As written in the input.
        target: String,
        /// Instructions to skip; negative for a jump backwards.
        skip: i64,
    },
    /// A jump to an undefined label.
    UnknownLabel {
        /// Name.
        name: String,
    },
    /// A label that is defined twice.
    DuplicateLabel {
        /// Name.
        name: String,
        /// Line of the first definition.
        first_line: usize,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            TextPlace::Input => {}
            TextPlace::Byte(at) => write!(f, "byte {at}: ")?,
            TextPlace::Text { line, column } => write!(f, "line {line}, column {column}: ")?,
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Empty => write!(f, "the input is empty"),
            Problem::Unrecognized => write!(
                f,
                "not a classic program in any form: neither a sock_filter array \
                 nor tcpdump -d, -dd, -ddd, bpf_asm's one line or its source"
            ),
            Problem::OtherFile { what } => write!(f, "this is {what}, not a classic program"),
            Problem::NotText { byte } => write!(f, "byte 0x{byte:02x} is not text (UTF-8)"),
            Problem::TooManyBytes { limit } => write!(f, "longer than {limit} bytes"),
            Problem::TooManyInsns { limit } => write!(f, "more than {limit} instructions"),
            Problem::PartialInsn { bytes } => write!(
                f,
                "the last instruction is truncated: it has {bytes} of 8 bytes"
            ),
            Problem::Expected { what, found } => write!(f, "expected {what}, found {found}"),
            Problem::NumberTooLarge {
                number,
                field,
                least,
                most,
            } => write!(
                f,
                "{number} does not fit {field}, which holds {least} to {most}"
            ),
            Problem::WrongCount { announced, found } => write!(
                f,
                "the first number announces {announced} instructions, {found} follow"
            ),
            Problem::WrongIndex { expected, found } => {
                write!(f, "expected instruction number {expected}, found {found}")
            }
            Problem::TargetTooFar { target, skip } if *skip < 0 => write!(
                f,
                "a conditional jump can't go backwards, but {target} is before it"
            ),
            Problem::TargetTooFar { target, skip } => write!(
                f,
                "{target} is too far: a conditional jump skips up to 255 instructions, not {skip}"
            ),
            Problem::UnknownLabel { name } => write!(f, "label '{name}' is not defined"),
            Problem::DuplicateLabel { name, first_line } => {
                write!(f, "label '{name}' is already defined on line {first_line}")
            }
        }
    }
}

impl std::error::Error for Problem {}

impl std::error::Error for ReadError {}
