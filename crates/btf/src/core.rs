//! CO-RE relocations: resolution of type accesses of an object against the BTF of a
//! kernel.
//!
//! The compiler writes a [`CoreRelo`](crate::ext::CoreRelo) for each instruction that
//! depends on the layout of a type: a root type of the object, an access string and a
//! kind. Resolution has four steps, one module each:
//!
//! 1. `path` parses the access string against the object's types;
//! 2. `name` finds the candidates: types of the target with the same name, flavours
//!    ignored (`task_struct___old` is a flavour of `task_struct`);
//! 3. `matching`, `compatible` and `alike` find the same path in each candidate, by the
//!    names of members and through anonymous structures;
//! 4. `value` computes the [`Resolution`], the effect on the instruction. All candidates
//!    must agree on it.
//!
//! The rules and their order are libbpf's: a [`Resolver`] keeps the remaining candidates
//! of each type, and later relocations see only those. The loader patches the
//! instructions. `minimal` collects the types that relocations need, as BTF of their
//! own.
//!
//! Candidates come from an index by name, built once for each target. A repeated
//! relocation costs one lookup, a new one a walk over the members beside its path. Types
//! that contain themselves are refused, as are relocations of more than a million steps,
//! and objects that take four million steps and more than four thousand for each
//! relocation.

mod absence;
mod alike;
mod compatible;
mod error;
mod matching;
mod minimal;
pub(crate) mod name;
mod path;
mod resolver;
mod value;

use crate::{Btf, TypeId};

pub use absence::Absence;
pub use error::CoreError;
pub use minimal::{Minimal, MinimalBtf};
pub use name::essential_name;
pub use path::Path;
pub use resolver::Resolver;
pub use value::{Access, Resolution};

/// True if a type of the object is compatible with one of the target. Pointers, arrays
/// and prototypes are followed; names and members are ignored.
pub fn are_compatible(
    (local, of_local): (&Btf<'_>, TypeId),
    (target, of_target): (&Btf<'_>, TypeId),
) -> Result<bool, CoreError> {
    compatible::Comparison::new(local, target).types_fit((of_local, of_target))
}
