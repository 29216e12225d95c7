//! The running kernel's verifier beside ours: generated programs, and real programs
//! with one instruction changed. Both must give the same verdict, the same counts
//! and the same last line. Runs of accepted programs are checked against the facts that
//! the verifier proved.

mod ask;
mod edit;
mod grammar;
mod kfunc_calls;
pub mod live_code;
mod mutate;
mod simple;
mod soak;
pub mod soundness;

pub use ask::{
    Agreement, Answer, Counts, Refused, VerdictComparison, VerifierPair, WholeLog,
    refusal_of_kernel,
};
pub use kfunc_calls::compare_kfunc_calls;
pub use mutate::Mutation;
pub use simple::{Target, assembled, generated, generated_program};
pub use soak::{
    KindCounts, Tally, VerdictDifference, compare_generated, compare_mutations, generated_case,
    generated_plain_case,
};
