//! Errors of the assembler, with their positions.

use std::fmt;

/// An error of the assembler and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the error.
    pub problem: AsmProblem,
}

/// Kind of an assembler error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsmProblem {
    /// An unexpected token.
    Expected {
        /// The expected tokens.
        what: Vec<String>,
        /// The token found; `None` at the end of the statement.
        found: Option<String>,
    },
    /// A number out of the range of its field.
    OutOfRange {
        /// The number as written.
        number: String,
        /// Smallest value of the field.
        least: i64,
        /// Largest value of the field.
        most: u64,
    },
    /// Two different registers where both must be the same.
    NotTheSame {
        /// The expected register.
        expected: String,
        /// The register found.
        found: String,
    },
    /// Fields that are valid separately but form no instruction.
    NoInstruction,
    /// An undefined label.
    UnknownLabel {
        /// Name.
        name: String,
    },
    /// Instructions in a second section.
    SecondSection {
        /// Name of the first section.
        first: String,
        /// Name of the second.
        second: String,
    },
    /// A label that is defined twice.
    DuplicateLabel {
        /// Name.
        name: String,
        /// Line of the first definition.
        first_line: usize,
    },
    /// A label out of reach of the instruction.
    TooFar {
        /// Name.
        name: String,
        /// Slots from the next instruction to it.
        distance: i64,
        /// Reach of the instruction in slots, in either direction.
        reach: i64,
    },
}

impl fmt::Display for AsmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.problem
        )
    }
}

/// Number of expected tokens that a message lists.
const MOST_EXPECTED: usize = 8;

impl fmt::Display for AsmProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AsmProblem::Expected { what, found } => {
                f.write_str("expected ")?;
                let is_long = what.len() > MOST_EXPECTED;
                let shown = if is_long { MOST_EXPECTED } else { what.len() };
                for (index, item) in what[..shown].iter().enumerate() {
                    let joint = match index {
                        0 => "",
                        _ if index + 1 == what.len() => " or ",
                        _ => ", ",
                    };
                    write!(f, "{joint}{item}")?;
                }
                if is_long {
                    write!(f, " or one of {} others", what.len() - shown)?;
                }
                match found {
                    Some(found) => write!(f, ", found `{found}`"),
                    None => write!(f, ", found the end of the statement"),
                }
            }
            AsmProblem::OutOfRange {
                number,
                least,
                most,
            } => {
                write!(
                    f,
                    "{number} does not fit: the field holds {least} to {most}"
                )
            }
            AsmProblem::NotTheSame { expected, found } => {
                write!(
                    f,
                    "expected {expected} again, found {found}: both are one register field"
                )
            }
            AsmProblem::NoInstruction => f.write_str("no instruction has these values together"),
            AsmProblem::UnknownLabel { name } => write!(f, "no label `{name}:` in the program"),
            AsmProblem::SecondSection { first, second } => write!(
                f,
                "instructions in section {second} after those of section {first}: a program \
                 is one section; compile each on its own, or read the object with `beebox dis`"
            ),
            AsmProblem::DuplicateLabel { name, first_line } => {
                write!(f, "label `{name}` is already defined on line {first_line}")
            }
            AsmProblem::TooFar {
                name,
                distance,
                reach,
            } => {
                write!(
                    f,
                    "`{name}` is {distance} slots away, and the instruction reaches {reach}"
                )?;
                match *reach < i32::MAX.into() {
                    true => f.write_str("; `gotol` reaches further"),
                    false => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for AsmProblem {}

impl std::error::Error for AsmError {}
