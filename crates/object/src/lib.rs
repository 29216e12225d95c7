//! From an object file to linked programs.
#![forbid(unsafe_code)]

mod attach;
mod container;
mod datasec;
pub mod elf;
mod error;
pub mod externs;
mod linked;
pub mod linker;
pub mod maps;
mod object;
pub mod overview;
pub mod programs;
mod relocate;
pub mod sections;
mod target;
mod types;

pub use attach::AttachFault;
pub use container::{ContainerFault, ContainerKind, Embedded, objects_in};
pub use datasec::DatasecFault;
pub use error::{Blame, Error, Place, Problem, SourceLine};
pub use linked::{JumpTable, Linked};
pub use object::{Object, OpenOptions};
pub use programs::{Code, ProgramId};
pub use relocate::RelocationFault;
pub use target::{Features, Module, SymbolAddress, Symbols, Target};
pub use types::TypesFault;
