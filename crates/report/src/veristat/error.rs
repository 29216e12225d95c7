//! Errors of filters, orders and results that are read.

use std::error::Error;
use std::fmt;

use super::spec::Column;

/// Reason why a filter, a column or a file of results is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VeristatError {
    /// The filter has no name and no condition.
    EmptyFilter(String),
    /// The filter is no condition on a value.
    Condition {
        /// The condition.
        text: String,
        /// The fact.
        fact: String,
    },
    /// There is no column of this name.
    NoColumn(String),
    /// Results lack these columns.
    Absent(Vec<&'static str>),
    /// One set of results has a program twice, so that it is not joined with another.
    ProgramTwice {
        /// Its file.
        file: String,
        /// Its name.
        prog: String,
    },
    /// Results have this column twice.
    ColumnTwice(&'static str),
    /// A line has more or fewer cells than the first one has columns.
    Cells {
        /// Line of the text, from 1.
        line: usize,
        /// Cells of the line.
        cells: usize,
        /// Columns.
        columns: usize,
    },
    /// A quote is not closed.
    OpenQuote {
        /// Line of the text, from 1.
        line: usize,
    },
    /// A verdict is none of `success`, `failure` and `unsupported`.
    Verdict {
        /// Line of the text, from 1.
        line: usize,
        /// The cell.
        cell: String,
    },
    /// A text has more results than [`MOST_ROWS`](super::MOST_ROWS).
    TooMany {
        /// Line of the first of them that is too many, from 1.
        line: usize,
    },
    /// A cell of a column of numbers is no number.
    Number {
        /// Line of the text, from 1.
        line: usize,
        /// Name of the column.
        column: &'static str,
        /// The cell.
        cell: String,
    },
}

impl VeristatError {
    /// The form that is expected in its place, if there is one.
    pub fn form(&self) -> Option<String> {
        match self {
            VeristatError::EmptyFilter(_) => {
                Some("GLOB, FILE/PROG, or a condition such as insns>=1000".to_owned())
            }
            VeristatError::Condition { .. } => {
                Some("a condition is NAME OPERATOR NUMBER, such as insns>=1000".to_owned())
            }
            VeristatError::NoColumn(_) => {
                let names: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
                Some(names.join(", "))
            }
            VeristatError::Absent(_) => Some(
                "CSV as veristat writes it, with the names of the columns in the first line"
                    .to_owned(),
            ),
            VeristatError::ProgramTwice { .. }
            | VeristatError::ColumnTwice(_)
            | VeristatError::Cells { .. }
            | VeristatError::OpenQuote { .. }
            | VeristatError::Verdict { .. }
            | VeristatError::TooMany { .. }
            | VeristatError::Number { .. } => None,
        }
    }
}

impl fmt::Display for VeristatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VeristatError::EmptyFilter(text) => write!(f, "filter {text:?} selects nothing"),
            VeristatError::Condition { text, fact } => write!(f, "filter {text:?}: {fact}"),
            VeristatError::NoColumn(name) => write!(f, "no column is called {name:?}"),
            VeristatError::Absent(columns) => {
                let noun = if columns.len() == 1 {
                    "column"
                } else {
                    "columns"
                };
                write!(f, "no {noun} {}", columns.join(", "))
            }
            VeristatError::ProgramTwice { file, prog } => {
                write!(f, "two results of program {prog} of {file}")
            }
            VeristatError::ColumnTwice(column) => write!(f, "two columns {column}"),
            VeristatError::Cells {
                line,
                cells,
                columns,
            } => write!(f, "line {line}: {cells} of {columns} columns"),
            VeristatError::OpenQuote { line } => write!(f, "line {line}: a quote is not closed"),
            VeristatError::Verdict { line, cell } => {
                write!(f, "line {line}: {cell:?} is no verdict")
            }
            VeristatError::TooMany { line } => {
                let most = super::MOST_ROWS;
                write!(f, "line {line}: a file has at most {most} results")
            }
            VeristatError::Number { line, column, cell } => {
                write!(f, "line {line}: {cell:?} in column {column} is no number")
            }
        }
    }
}

impl Error for VeristatError {}
