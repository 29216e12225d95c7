//! CO-RE relocations: what an object asks about the types of a kernel that was
//! not known when it was compiled, answered.
//!
//! The compiler leaves a [`CoreRelo`](crate::ext::CoreRelo) beside each
//! instruction that depends on a layout: a type of the object, a way into it, and
//! a question. The answer takes four steps, one module each:
//!
//! 1. `path`: the way is read against the object's types;
//! 2. `name`: the target's types of the same name are its candidates, whatever
//!    follows three underscores left out (`task_struct___old` is a flavour of
//!    `task_struct`);
//! 3. `matching`, `compatible` and `alike`: the same way is looked for in each
//!    candidate, by the names of members and through anonymous structures;
//! 4. `value`: both ways are measured, and the [`Resolution`] says what becomes
//!    of the instruction. Candidates must agree on it.
//!
//! The rules are those of libbpf, which is what people's objects are tested with;
//! its order is kept, too: a [`Resolver`] remembers which candidates a type has
//! left, and a later relocation sees only those. Patching instructions is left to
//! who has them.
//!
//! Cost: candidates come from an index by name that is made once for each target;
//! a relocation that was seen before costs one look-up, a new one a walk over the
//! members beside its way. Types that contain themselves are refused, and so is a
//! question that would take more than a million steps, or an object whose questions
//! take four million and more than four thousand each.

mod alike;
mod compatible;
mod error;
mod matching;
pub(crate) mod name;
mod path;
mod resolver;
mod value;

use crate::{Btf, TypeId};

pub use error::CoreError;
pub use name::essential_name;
pub use path::Path;
pub use resolver::Resolver;
pub use value::{Access, Resolution};

/// Is a type of the object the same kind of thing as one of the target? Pointers,
/// arrays and prototypes are followed; names and members do not count.
pub fn are_compatible(
    (local, of_local): (&Btf<'_>, TypeId),
    (target, of_target): (&Btf<'_>, TypeId),
) -> Result<bool, CoreError> {
    compatible::Comparison::new(local, target).types_fit((of_local, of_target))
}
