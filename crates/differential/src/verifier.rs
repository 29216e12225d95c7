//! The running kernel's verifier beside ours: generated programs, and real programs
//! with one instruction changed. Both must give the same verdict, the same counts
//! and the same last line. Runs of accepted programs are checked against the facts that
//! the verifier proved.

mod booted;
mod kfunc_calls;
pub mod live_code;
mod messages;
mod soak;
pub mod soundness;
mod verdict_comparison;

use btf::{Btf, Kind};
use spec::registry::Registry;

pub use booted::{BootedKernel, BootedSoak, Found, Question};
pub use kfunc_calls::compare_kfunc_calls;
pub use messages::{Expectation, Expectations};
pub use soak::{KindCounts, Tally, VerdictDifference, compare_generated, compare_mutations};
pub use verdict_comparison::{Agreement, VerdictComparison, VerifierPair, WholeLog};

/// Registry of the built-in configuration that a kernel with these types is built in: Debian's has
/// sched_ext.
pub fn registry_of(types: &Btf<'_>) -> Registry {
    match types.find(Kind::Struct, "sched_ext_ops") {
        Some(_) => kernel_data::linux_6_18_registry(types),
        None => kernel_data::linux_6_18_minimal_registry(types),
    }
}
