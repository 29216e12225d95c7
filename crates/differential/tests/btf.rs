//! Our check of BTF against the running kernel's.
//!
//! Eight blobs are generated from each seed of `oracle::seeds`.

use beebox_differential::btf::Oracle;

#[oracle::test]
fn btf_verdicts_equal_the_kernels() {
    let Some(kernel) = oracle::found("the kernel's check of BTF", Oracle::open()) else {
        return;
    };
    let comparison = kernel.compare(oracle::seeds(8_000));
    eprintln!(
        "{} blobs, {} taken, refused for {} reasons: {:#?}",
        comparison.blobs,
        comparison.taken,
        comparison.reasons.len(),
        comparison.reasons
    );
    let described: Vec<String> = comparison
        .differences
        .iter()
        .map(|difference| difference.describe())
        .collect();
    assert!(described.is_empty(), "{}", described.join("\n\n"));
}
