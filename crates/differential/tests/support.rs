//! The frame of the tests that compare families of calls with the running kernel.

use beebox_differential::helpers::{Family, compare};

/// Programs of each family.
const PROGRAMS: u64 = 600;

/// Runs programs of each family here and in the kernel, with a seed for each from `first_seed`
/// on; fails if one differs or fewer than so many calls were made.
pub(crate) fn assert_equal_answers(
    what: &'static str,
    first_seed: u64,
    families: impl Iterator<Item = Family>,
    least_calls: u64,
) {
    let mut calls = 0;
    let mut differences = String::new();
    for (seed, family) in (first_seed..).zip(families) {
        let compared = compare(family, seed, PROGRAMS);
        let Some(comparison) = oracle::found(what, compared) else {
            return;
        };
        let count = comparison.differences.len();
        let shortest = comparison.differences.iter().min_by_key(|text| text.len());
        if let Some(text) = shortest {
            differences += &format!("{count} programs of {PROGRAMS}:\n{text}\n");
        }
        calls += comparison.calls;
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(calls > least_calls, "{calls} calls");
}
