//! The benchmark of maps measures what it says.

use crate::support;
use beebox_bench::Unit;

#[test]
fn a_sample_has_every_available_engine() {
    let report = support::sample("maps");
    let kernel = !report
        .notes
        .iter()
        .any(|note| note.contains("takes no maps"));
    let lookup = "hash: lookup, 4,096 flows";
    for (workload, unit, engine, expected) in [
        (lookup, Unit::NsPerOperation, "beebox", true),
        (lookup, Unit::NsPerOperation, "hash table", true),
        (lookup, Unit::NsPerOperation, "kernel", kernel),
        (
            "ring buffer: records of 64 bytes",
            Unit::NsPerOperation,
            "kernel",
            kernel,
        ),
        ("firewall, one packet", Unit::NsPerRun, "beebox", true),
        ("firewall, one packet", Unit::NsPerRun, "kernel", kernel),
        (
            "firewall, capture",
            Unit::MillionRunsPerSecond,
            "beebox",
            true,
        ),
    ] {
        let value = report.value(workload, engine, unit);
        assert_eq!(
            value.is_some_and(|it| it > 0.0),
            expected,
            "{workload}, {engine}"
        );
    }
    let has = |name: &str| report.summary.iter().any(|figure| figure.name == name);
    assert!(has("capture_xdp_mpps"));
    assert_eq!(has("firewall_vs_kernel"), kernel);
    // The largest map is left out, and with it the mean.
    assert!(!has("hash_lookup_vs_native"));
}
