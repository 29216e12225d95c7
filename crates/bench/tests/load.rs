//! The benchmark of loading measures what it says.

use crate::support;
use beebox_bench::Unit;

#[test]
fn a_sample_holds_both_loaders_where_both_are_there() {
    let report = support::sample("load");
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
    for words in [
        ["memory", "beebox", "nothing"],
        ["memory", "nobody", "types"],
    ] {
        assert!(support::part("load", &words).is_err(), "{words:?}");
    }
}
