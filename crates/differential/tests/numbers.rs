//! The numeric domain against the running kernel; `cargo differential compare numbers` asks for
//! a million cases.

use beebox_differential::numbers::{compare, compare_logs};

#[oracle::test]
fn values_are_those_of_the_kernel() {
    let programs = oracle::seeds(60);
    let Some(comparison) = oracle::found("the verifier of the running kernel", compare(programs))
    else {
        return;
    };
    for difference in comparison.differences.iter().take(5) {
        println!("{difference}");
    }
    assert!(comparison.differences.is_empty());
    assert!(comparison.cases > 5_000, "{} cases", comparison.cases);
}

#[oracle::test]
fn whole_logs_are_those_of_the_kernel() {
    let kernel = kernel_data::linux_6_18_minimal();
    let logs = compare_logs(&kernel, oracle::seeds(60));
    let Some(logs) = oracle::found("the verifier of the running kernel", logs) else {
        return;
    };
    for (seed, kernel, ours) in logs.differences.iter().take(5) {
        println!("seed {seed}\n  kernel {kernel}\n  ours   {ours}");
    }
    assert!(logs.differences.is_empty());
    assert!(logs.lines > 20_000, "{} lines", logs.lines);
}
