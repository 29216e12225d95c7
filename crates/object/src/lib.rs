//! From an object file to linked programs.
#![forbid(unsafe_code)]

pub mod elf;
mod error;
pub mod programs;
pub mod sections;
mod target;

pub use error::{Blame, Error, Place, Problem, SourceLine};
pub use programs::{Code, ProgramId};
pub use target::{Features, Module, Symbols, Target};
