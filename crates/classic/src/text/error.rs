//! Why a text or dump is not a classic program, and where.

use std::fmt;

use super::Form;

/// A program that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The form it was read in; `None` when none could be told.
    pub form: Option<Form>,
    /// Where it goes wrong.
    pub place: Place,
    /// What is wrong.
    pub problem: Problem,
}

impl ReadError {
    pub(super) fn new(form: Option<Form>, place: Place, problem: Problem) -> ReadError {
        ReadError {
            form,
            place,
            problem,
        }
    }
}

/// A place in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
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

impl Place {
    /// The place of byte `at` of a text.
    pub(super) fn in_text(text: &str, at: usize) -> Place {
        let before = &text[..text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place::Text {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is nothing to read.
    Empty,
    /// It resembles none of the forms.
    Unrecognized,
    /// It is something else, which is known.
    OtherFile {
        /// What it is.
        what: &'static str,
    },
    /// A text form that is not UTF-8.
    NotText {
        /// The offending byte.
        byte: u8,
    },
    /// Too large to be a program.
    TooManyBytes {
        /// What a reader takes.
        limit: usize,
    },
    /// Too many instructions.
    TooManyInsns {
        /// What a reader takes.
        limit: usize,
    },
    /// A raw program that ends within an instruction.
    PartialInsn {
        /// Bytes of it that are there.
        bytes: usize,
    },
    /// Something else stands where one thing must.
    Expected {
        /// What must stand there.
        what: String,
        /// What does.
        found: String,
    },
    /// A number that its field can't hold.
    NumberTooLarge {
        /// As written.
        number: String,
        /// Name of the field.
        field: &'static str,
        /// The least value that fits.
        least: i64,
        /// The greatest value that fits.
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
        /// The number that must stand there.
        expected: usize,
        /// The number that does.
        found: u32,
    },
    /// A target that a conditional jump can't reach: it skips 0 to 255
    /// instructions.
    TargetTooFar {
        /// As written.
        target: String,
        /// Instructions to skip; negative for a jump backwards.
        skip: i64,
    },
    /// A jump to a label that is nowhere.
    UnknownLabel {
        /// Its name.
        name: String,
    },
    /// A label that stands for two places.
    DuplicateLabel {
        /// Its name.
        name: String,
        /// Line of the first one.
        first_line: usize,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Input => {}
            Place::Byte(at) => write!(f, "byte {at}: ")?,
            Place::Text { line, column } => write!(f, "line {line}, column {column}: ")?,
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Empty => write!(f, "no instructions: the input is empty"),
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
                "the last instruction is cut off: {bytes} of its 8 bytes are there"
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
            Problem::UnknownLabel { name } => write!(f, "no label '{name}:' in the program"),
            Problem::DuplicateLabel { name, first_line } => {
                write!(f, "label '{name}' stands already on line {first_line}")
            }
        }
    }
}

impl std::error::Error for ReadError {}
