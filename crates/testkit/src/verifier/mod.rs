//! The running kernel's verifier beside ours: generated programs, and real programs
//! with one instruction changed. Both must give the same verdict, the same counts
//! and the same last line.

mod ask;
pub mod grammar;
mod soak;

pub use ask::{Agreement, Answer, Comparison, Judges, assembled};
pub use grammar::Target;
pub use soak::{Difference, Tally, compare_generated};
