//! From an object file to linked programs.
#![forbid(unsafe_code)]

mod datasec;
pub mod elf;
mod error;
pub mod externs;
pub mod linker;
pub mod maps;
pub mod programs;
pub mod sections;
mod target;

pub use datasec::DatasecFault;
pub use error::{Blame, Error, Place, Problem, SourceLine};
pub use programs::{Code, ProgramId};
pub use target::{Features, Module, SymbolAddress, Symbols, Target};
