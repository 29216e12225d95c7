//! The types of a kernel as the difference to those of another one.
//!
//! Kernels of neighbouring releases have most strings and types in common, and nearly in the same order,
//! but under other numbers: as bytes they have little in common. A difference is a sequence of runs, of
//! strings and types that the other kernel has and of new ones. A type of a run is the other kernel's with
//! the numbers of the names and types that this kernel has in their places; where that is not what the
//! kernel has, the type is written, its elements as far as they are others. What is written are columns
//! of small numbers (`columns`), which compress well. Writing and reading are linear in the types.
//!
//! | file | contents |
//! |---|---|
//! | `table` | a blob as a table |
//! | `columns` | columns of numbers |
//! | `write`, `read` | the difference |

mod columns;
mod read;
mod table;
mod write;

pub(crate) use read::Base;
pub use write::difference;

/// Number of a type or string that the other kernel has and this one has not.
const NONE: u32 = u32::MAX;

/// Types of the other kernel's element, as far as this kernel has them.
fn mapped(map: &[u32], number: u32) -> u32 {
    map.get(number as usize).copied().unwrap_or(NONE)
}

#[cfg(test)]
mod tests;
