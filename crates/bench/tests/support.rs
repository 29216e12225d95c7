//! Shared parts of the tests of benchmarks.

use beebox_bench::{Bench, Failure, Options, Report};

/// Options of a quick run, of the workloads whose names contain `only`.
pub(crate) fn options(only: Option<&str>) -> Options {
    Options {
        quick: true,
        only: only.map(String::from),
        keep: None,
        bench: "/nonexistent/beebox-bench".into(),
        beebox: None,
    }
}

/// Part of a benchmark, as it prints it.
pub(crate) fn part(bench: &str, words: &[&str]) -> Result<String, Failure> {
    let bench = Bench::find(bench).expect("the benchmark");
    bench.part(&options(None), words)
}

/// A sample of a benchmark, which compares every answer before it times any.
pub(crate) fn sample(bench: &str) -> Report {
    let printed = part(bench, &["sample"]).expect("equal work can be timed");
    serde_json::from_str(&printed).expect("a report")
}
