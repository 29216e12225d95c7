//! The running kernel's verifier beside ours: generated programs, and real programs
//! with one instruction changed. Both must give the same verdict, the same counts
//! and the same last line. Runs of accepted programs are checked against the facts that
//! the verifier proved.

mod kfunc_calls;
pub mod live_code;
mod messages;
mod soak;
pub mod soundness;
mod verdict_comparison;

pub use kfunc_calls::compare_kfunc_calls;
pub use messages::{Expectation, Expectations};
pub use soak::{KindCounts, Tally, VerdictDifference, compare_generated, compare_mutations};
pub use verdict_comparison::{Agreement, VerdictComparison, VerifierPair, WholeLog};
