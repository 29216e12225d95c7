//! The numeric domain against the running kernel; `cargo xtask oracle numbers` asks for
//! a million cases.

use beebox_testkit::numbers::compare;

#[test]
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
