//! Why a text is not a program, and where.

use std::fmt;

/// A text that could not be assembled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: AsmProblem,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsmProblem {
    /// Something else stands where one of few things must.
    Expected {
        /// What may stand there.
        what: Vec<String>,
        /// What does; `None` at the end of the statement.
        found: Option<String>,
    },
    /// A number that its field can't hold.
    OutOfRange {
        /// As written.
        number: String,
        /// The least value that fits.
        least: i64,
        /// The greatest value that fits.
        most: u64,
    },
    /// The two places of one register name different ones.
    NotTheSame {
        /// The register that must stand there.
        expected: String,
        /// The register that does.
        found: String,
    },
    /// Fields that fit one by one but make no instruction together.
    NoInstruction,
    /// A label that is nowhere.
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
    /// A label that the instruction can't reach.
    TooFar {
        /// Its name.
        name: String,
        /// Slots from the next instruction to it.
        distance: i64,
        /// How far the instruction reaches in either direction.
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

impl fmt::Display for AsmProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AsmProblem::Expected { what, found } => {
                f.write_str("expected ")?;
                for (index, item) in what.iter().enumerate() {
                    let joint = match index {
                        0 => "",
                        _ if index + 1 == what.len() => " or ",
                        _ => ", ",
                    };
                    write!(f, "{joint}{item}")?;
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
            AsmProblem::DuplicateLabel { name, first_line } => {
                write!(f, "label `{name}` stands already on line {first_line}")
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

impl std::error::Error for AsmError {}
