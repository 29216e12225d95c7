//! System calls of programs in the checked engine, as native code and in the running kernel: equal
//! results of maps, types and programs that they make by bpf(2).

use beebox_differential::execution::Setting;
use beebox_differential::helpers::{compare_engines, system_call_families};

/// Programs of each family, and calls in them at least.
const PROGRAMS: u64 = 1000;
const CALLS: u64 = 10_000;

#[oracle::test]
fn programs_call_bpf_as_in_linux() {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().expect("the built-in kernel has types");
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    let setting = Setting {
        kernel: &kernel,
        registry: &registry,
    };
    for (seed, family) in (1..).zip(system_call_families()) {
        let compared = compare_engines(setting, family, seed, PROGRAMS);
        let Some(comparison) = oracle::found("system calls of the running kernel", compared) else {
            return;
        };
        let count = comparison.differences.len();
        let shortest = comparison.differences.iter().min_by_key(|text| text.len());
        if let Some(text) = shortest {
            panic!("{count} programs of {PROGRAMS}:\n{text}");
        }
        assert!(comparison.calls > CALLS, "{} calls", comparison.calls);
    }
}
