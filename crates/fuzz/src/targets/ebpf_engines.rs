//! Generated eBPF programs, chosen by the input: every engine computes what the
//! reference evaluator does.
//!
//! The input's bytes are the generator's choices, so what changes in the input
//! changes the program in one place.

use super::with_engines;
use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "ebpf-engines",
    property: "every engine computes what the reference evaluator does",
    words: &[],
    run,
};

fn run(input: &[u8]) -> Signature {
    let tally = with_engines(|engines| engines.compare_chosen(input));
    if let Some(difference) = &tally.difference {
        panic!("{}", difference.describe());
    }
    Signature::of(tally.coverage.signature())
}
