//! Helpers on sockets in the checked engine, as native code and in the running kernel, among real
//! sockets that the network describes: equal results, packets, contexts and errors.

use beebox_differential::execution::Setting;
use beebox_differential::helpers::{compare_engines, families};

/// Programs of each family, and those of them that find a socket at least.
const PROGRAMS: u64 = 600;
const FOUND: u64 = 60;

#[oracle::test]
fn sockets_are_found_as_in_linux() {
    let kernel = kernel_data::linux_6_18_minimal();
    let types = kernel.btf().expect("the built-in kernel has types");
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    let setting = Setting {
        kernel: &kernel,
        registry: &registry,
    };
    let families = families().filter(|family| family.name.contains("sockets"));
    let mut differences = String::new();
    for (seed, family) in (7..).zip(families) {
        let compared = compare_engines(setting, family, seed, PROGRAMS);
        let Some(comparison) = oracle::found("sockets of the running kernel", compared) else {
            return;
        };
        let count = comparison.differences.len();
        let shortest = comparison.differences.iter().min_by_key(|text| text.len());
        if let Some(text) = shortest {
            differences += &format!("{count} programs of {PROGRAMS}:\n{text}\n");
        }
        let answers = comparison.answers;
        assert!(
            answers > FOUND,
            "{family:?}: {answers} programs found a socket"
        );
    }
    assert!(differences.is_empty(), "{differences}");
}
