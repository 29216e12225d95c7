//! From an object file to linked programs.
#![forbid(unsafe_code)]

pub mod elf;
mod error;

pub use error::{Blame, Error, Place, Problem, SourceLine};
