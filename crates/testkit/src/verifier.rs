//! Programs for the verifier: generated from a seed, of real programs with one instruction
//! changed, and reduced to the instructions that show a difference.

mod edit;
mod grammar;
mod mutate;
mod names;
mod reduction;
mod source;

pub use edit::{reduce, without_unused_maps};
pub use grammar::{generated_case, generated_plain_case, generated_runnable};
pub use mutate::{Mutation, mutate};
pub use reduction::Reduction;
pub use source::{assembled, program_with_array};
