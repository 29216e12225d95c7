//! The benchmark of tail calls measures what it says.

use beebox_bench::{Bench, Options, Report, Unit};

#[test]
fn a_sample_holds_both_kinds_of_tail_calls() {
    let bench = Bench::find("tail-calls").expect("the benchmark");
    let options = Options {
        quick: true,
        only: None,
        keep: None,
        bench: "/nonexistent/beebox-bench".into(),
        beebox: None,
    };
    // This compares every answer before it times any.
    let printed = bench.part(&options, &["sample"]).expect("equal work");
    let report: Report = serde_json::from_str(&printed).expect("a report");
    let kernel = report.notes.is_empty();
    for workload in ["constant index", "computed index"] {
        for (engine, expected) in [("beebox", true), ("kernel", kernel)] {
            let value = report.value(workload, engine, Unit::NsPerOperation);
            let is_there = value.is_some_and(|it| it > 0.0);
            assert_eq!(is_there, expected, "{workload}, {engine}");
        }
    }
    let has = |name: &str| report.summary.iter().any(|figure| figure.name == name);
    assert!(has("direct_vs_indirect"));
    assert_eq!(has("native_vs_kernel"), kernel);
}
