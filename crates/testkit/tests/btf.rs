//! Our check of BTF against the running kernel's.
//!
//! `BEEBOX_ORACLE_PROGRAMS` sets how many seeds are asked about (eight blobs
//! each), `BEEBOX_ORACLE_SEED` where they start. Where the kernel can't be asked
//! the test says so and passes, unless `CI` is `true` and `BEEBOX_ORACLE` is
//! `required`.

use beebox_testkit::btf::Oracle;
use std::env;

#[test]
fn blobs_are_judged_as_the_kernel_judges_them() {
    let number = |name| env::var(name).ok().and_then(|value| value.parse().ok());
    let start: u64 = number("BEEBOX_ORACLE_SEED").unwrap_or(0);
    let count = number("BEEBOX_ORACLE_PROGRAMS").unwrap_or(8_000);
    let oracle = match Oracle::open() {
        Ok(oracle) => oracle,
        Err(why) => {
            let is = |name, value| env::var(name).is_ok_and(|found| found == value);
            let must = is("CI", "true") && is("BEEBOX_ORACLE", "required");
            assert!(!must, "the kernel must be asked, but can't be: {why:?}");
            eprintln!("SKIPPED BTF: the kernel can't be asked: {why:?}");
            return;
        }
    };
    let comparison = oracle.compare(start..start + count);
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
