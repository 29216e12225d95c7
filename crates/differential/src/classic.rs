//! Classic programs, compared with the running kernel.
//!
//! Every comparison works on inputs from a range of seeds, so that a difference
//! names the seed that shows it. It runs on a thread of its own in a network
//! namespace of its own, and stops at the first few differences.

pub mod cases;
pub mod limits;
pub mod link;
pub mod page;
pub mod seccomp;
pub mod unix;

use classic::Refusal;
use isa::classic::SockFilter;
use kernel_client::{Unavailable, in_own_namespace, kernel_release, unavailable};
use std::fmt::Write as _;
use std::ops::Range;
use sys::Errno;
use testkit::coverage::Coverage;
use testkit::shrink::shrink;

/// Differences after which a comparison stops.
const ENOUGH: usize = 5;

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct FilterComparison {
    /// Number of compared programs.
    pub programs: u64,
    /// Inputs that accepted programs ran on.
    pub runs: u64,
    /// Coverage.
    pub coverage: Coverage,
    /// Differences.
    pub differences: Vec<FilterDifference>,
}

impl FilterComparison {
    /// Adds another comparison.
    pub fn add(&mut self, other: FilterComparison) {
        self.programs += other.programs;
        self.runs += other.runs;
        self.coverage.add(&other.coverage);
        self.differences.extend(other.differences);
    }

    fn is_over(&self) -> bool {
        self.differences.len() >= ENOUGH
    }
}

/// One input on which the kernel and the model differ.
#[derive(Clone, Debug)]
pub struct FilterDifference {
    /// The seed that made it.
    pub seed: u64,
    /// The program, shrunk where that was possible.
    pub program: Vec<SockFilter>,
    /// Difference.
    pub how: Disagreement,
}

/// A difference between the kernel and the model.
#[derive(Clone, Debug)]
pub enum Disagreement {
    /// On whether the program may run.
    Verdict {
        /// The kernel's answer.
        kernel: Result<(), Errno>,
        /// The model's.
        model: Result<(), Refusal>,
    },
    /// On what becomes of an input.
    Result {
        /// The input, as its comparison describes it.
        input: String,
        /// The kernel's result.
        kernel: String,
        /// The model's result.
        model: String,
    },
}

impl FilterDifference {
    /// The difference in words, with the program as `tcpdump -ddd` would print it.
    pub fn describe(&self) -> String {
        let mut text = format!("seed {}: ", self.seed);
        let _ = match &self.how {
            Disagreement::Verdict { kernel, model } => {
                writeln!(text, "kernel {kernel:?}, model {model:?}")
            }
            Disagreement::Result {
                input,
                kernel,
                model,
            } => writeln!(text, "{input}: kernel {kernel}, model {model}"),
        };
        let _ = writeln!(text, "{}", self.program.len());
        for SockFilter { code, jt, jf, k } in &self.program {
            let _ = writeln!(text, "{code} {jt} {jf} {k}");
        }
        text
    }
}

/// Compares program after program, one from each seed, and shrinks those that
/// differ.
fn compare_seeds<T>(
    seeds: Range<u64>,
    comparison: &mut FilterComparison,
    mut make: impl FnMut(u64) -> (Vec<SockFilter>, T),
    mut compare: impl FnMut(
        &[SockFilter],
        &T,
        &mut FilterComparison,
    ) -> Result<Option<Disagreement>, Errno>,
) -> Result<(), Errno> {
    for seed in seeds {
        if comparison.is_over() {
            break;
        }
        let (program, inputs) = make(seed);
        comparison.programs += 1;
        let Some(mut how) = compare(&program, &inputs, comparison)? else {
            continue;
        };
        let mut unused = FilterComparison::default();
        let program = shrink(&program, |smaller| {
            match compare(smaller, &inputs, &mut unused) {
                Ok(Some(still)) => {
                    how = still;
                    true
                }
                _ => false,
            }
        });
        comparison
            .differences
            .push(FilterDifference { seed, program, how });
    }
    Ok(())
}
