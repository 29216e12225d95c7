//! The benchmark of engines measures what it says, and fails where it could not.

use crate::support;
use beebox_bench::{Bench, Failure, Report, Unit};

#[test]
fn a_sample_holds_our_engines_and_rbpf_on_every_workload() {
    let report = support::sample("engines");
    let mut workloads: Vec<&str> = report
        .rows
        .iter()
        .filter(|row| row.engine == "interp" && row.unit == Unit::NsPerRun)
        .map(|row| row.workload.as_str())
        .collect();
    workloads.sort_unstable();
    workloads.dedup();
    let keys: Vec<&str> = workloads
        .iter()
        .filter_map(|title| title.split(' ').next())
        .filter(|key| key.starts_with('W'))
        .collect();
    assert_eq!(
        keys,
        [
            "W0", "W1", "W2", "W3a", "W3b", "W4a", "W4b", "W4c", "W5", "W6a", "W6b", "W8", "W9"
        ]
    );
    for workload in workloads.iter().filter(|title| title.starts_with('W')) {
        for engine in ["native", "interp", "rbpf"] {
            let value = report.value(workload, engine, Unit::NsPerRun);
            assert!(
                value.is_some_and(|value| value > 0.0),
                "{workload} {engine}"
            );
        }
    }
    let figures: Vec<&str> = report.summary.iter().map(|f| f.name.as_str()).collect();
    assert!(figures.contains(&"compile_vs_rbpf"), "{figures:?}");
}

#[test]
fn one_workload_can_be_chosen_and_others_are_named() {
    let bench = Bench::find("engines").expect("the benchmark");
    let failure = bench
        .run(&support::options(Some("W7")), &mut |_| {})
        .expect_err("there is no W7");
    assert!(matches!(failure, Failure::NoWorkload(..)), "{failure}");
    assert!(failure.to_string().contains("W6b"), "{failure}");
    let printed = bench
        .part(&support::options(Some("w3a")), &["sample"])
        .expect("a sample");
    let report: Report = serde_json::from_str(&printed).expect("a report");
    let timed = report
        .rows
        .iter()
        .filter(|row| row.engine == "native" && row.unit == Unit::NsPerRun);
    assert_eq!(timed.count(), 1);
}
