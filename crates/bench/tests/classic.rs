//! The benchmark of classic filters measures what it says, and fails where it
//! could not.

use crate::support;
use beebox_bench::{Bench, Unit};

#[test]
fn a_sample_holds_every_engine_on_every_workload() {
    let report = support::sample("classic");
    let with_libpcap = sys::libpcap::Libpcap::load().is_ok();
    for filter in ["port 22", "tcp port 22 with payload"] {
        for set in ["one packet", "16,384 packets"] {
            for engine in ["checked", "interp", "libpcap", "rbpf", "native", "compiled"] {
                let workload = format!("{filter}, {set}");
                let value = report.value(&workload, engine, Unit::NsPerRun);
                let expected = engine != "libpcap" || with_libpcap;
                assert_eq!(value.is_some(), expected, "{workload} {engine}");
                assert!(value.is_none_or(|value| value > 0.0));
            }
        }
    }
    let figures: Vec<&str> = report.summary.iter().map(|f| f.name.as_str()).collect();
    assert!(figures.contains(&"interp_vs_rbpf"), "{figures:?}");
    for figure in [
        "checked_vs_libpcap",
        "interp_vs_libpcap",
        "seccomp2_vs_libpcap",
        "seccomp200_vs_libpcap",
    ] {
        assert_eq!(figures.contains(&figure), with_libpcap, "{figure}");
    }
}

#[test]
fn a_benchmark_without_its_command_is_reported() {
    let bench = Bench::find("classic").expect("the benchmark");
    let failure = bench
        .run(&support::options(None), &mut |_| {})
        .expect_err("there is no such command");
    let said = failure.to_string();
    assert!(said.starts_with("measuring in a new process: "), "{said}");
}

#[test]
fn unknown_parts_are_refused() {
    assert!(support::part("classic", &["make", "huge", "x"]).is_err());
}
