//! Symbolic execution of filters: the exact function from system calls to actions.

use std::fmt;

mod bits;
pub(crate) mod condition;
pub(crate) mod diagram;
pub(crate) mod explore;
pub(crate) mod outcome;
pub(crate) mod set;
pub(crate) mod solver;
pub(crate) mod value;

/// The filters are too complex for the analysis: its budget of time and memory
/// was exceeded.
///
/// It names the instruction at which symbolic execution stopped or, if a query exceeded the
/// budget, the most expensive one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooComplex {
    /// Index of the filter in the order of installation.
    pub filter: usize,
    /// Index of the instruction.
    pub insn: usize,
}

impl fmt::Display for TooComplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooComplex { filter, insn } = self;
        write!(f, "too complex, at instruction {insn}")?;
        match filter {
            0 => Ok(()),
            _ => write!(f, " of filter {filter}"),
        }
    }
}

impl std::error::Error for TooComplex {}
