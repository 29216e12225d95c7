//! Kfuncs in the checked engine and in the running kernel: equal results, packets, memory and
//! errors.

use beebox_testkit::helpers::{compare, kfunc_families};

/// Programs of each family.
const PROGRAMS: u64 = 600;

#[test]
fn kfuncs_do_what_those_of_linux_do() {
    let mut calls = 0;
    let mut differences = String::new();
    for (seed, family) in (18..).zip(kfunc_families()) {
        let compared = compare(family, seed, PROGRAMS);
        let Some(comparison) = oracle::found("kfuncs of the running kernel", compared) else {
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
    assert!(calls > 5_000, "{calls} calls");
}
