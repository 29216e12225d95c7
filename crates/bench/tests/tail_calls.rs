//! The benchmark of tail calls measures what it says.

use crate::support;
use beebox_bench::Unit;

#[test]
fn a_sample_holds_both_kinds_of_tail_calls() {
    let report = support::sample("tail-calls");
    let kernel = report.notes.is_empty();
    for workload in ["constant index", "computed index"] {
        for (engine, expected) in [("beebox", true), ("kernel", kernel)] {
            let value = report.value(workload, engine, Unit::NsPerOperation);
            let is_there = value.is_some_and(|it| it > 0.0);
            assert_eq!(is_there, expected, "{workload}, {engine}");
        }
    }
    let unit = Unit::NsPerRun;
    for frame in ["nothing", "TCP over IPv6 in GRE"] {
        let title = format!("flow dissector, {frame}");
        let kernels = report.value(&title, "kernel", unit);
        assert_eq!(kernels.is_some(), kernel, "{title}");
        let value = report.value(&title, "beebox", unit);
        assert!(value.is_some_and(|it| it > 0.0), "{title}");
    }
    let has = |name: &str| report.summary.iter().any(|figure| figure.name == name);
    assert!(has("direct_vs_indirect"));
    assert_eq!(has("change_vs_kernel"), kernel);
    assert_eq!(has("native_vs_kernel"), kernel);
}
