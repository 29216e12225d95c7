//! The benchmark of loading measures what it says.

use beebox_bench::{Bench, Options, Report, Unit};

#[test]
fn a_sample_holds_both_loaders_where_both_are_there() {
    let bench = Bench::find("load").expect("the benchmark");
    let options = Options {
        quick: true,
        only: None,
        keep: None,
        bench: "/nonexistent/beebox-bench".into(),
        beebox: None,
    };
    // This compares every answer of both before it times any.
    let printed = bench
        .part(&options, &["sample"])
        .expect("equal work can be timed");
    let report: Report = serde_json::from_str(&printed).expect("a report");
    let peer = !report
        .notes
        .iter()
        .any(|note| note.starts_with("skipped: nothing"));
    for workload in ["open, 100 relocations", "open, 10,000 relocations"] {
        for engine in ["beebox", "libbpf"] {
            let value = report.value(workload, engine, Unit::Micros);
            let expected = engine == "beebox" || peer;
            assert_eq!(value.is_some(), expected, "{workload} {engine}");
        }
    }
    let has = |name: &str| report.summary.iter().any(|figure| figure.name == name);
    assert_eq!(has("open_vs_libbpf"), peer);
    let types = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    assert_eq!(has("btf_vs_libbpf"), peer && types);
    assert_eq!(has("btf_parse_ms"), types);
}

#[test]
fn unknown_parts_are_refused() {
    let bench = Bench::find("load").expect("the benchmark");
    let options = Options {
        quick: true,
        only: None,
        keep: None,
        bench: "/nonexistent/beebox-bench".into(),
        beebox: None,
    };
    assert!(
        bench
            .part(&options, &["memory", "beebox", "nothing"])
            .is_err()
    );
    assert!(
        bench
            .part(&options, &["memory", "nobody", "types"])
            .is_err()
    );
}
