//! Beebox and libbpf on the objects of the kernel's own tests: instructions, maps,
//! types and refusals must be the same.
//!
//! The objects and libbpf are built outside the tree.
//! `BEEBOX_ORACLE_SETS` names other sets than `v3`, with commas between them.

use std::env;

use beebox_differential::objects::Oracle;
use beebox_differential::objects::selftests::Set;

#[oracle::test]
fn objects_are_loaded_as_libbpf_loads_them() {
    let Some(libbpf) = oracle::found("objects loaded by libbpf", Oracle::open()) else {
        return;
    };
    let sets = env::var("BEEBOX_ORACLE_SETS").unwrap_or_else(|_| "v3".into());
    for name in sets.split(',') {
        let set = Set::find(name).expect("a set with this name");
        let objects = set.objects().expect("the directory can be read");
        if objects.is_empty() {
            oracle::skip(
                "objects loaded by libbpf",
                format!("set {name} is not built"),
            );
            continue;
        }
        let found = libbpf
            .compare_all(&objects, |_| {})
            .expect("libbpf answers");
        let differences = found.differences.iter().take(20);
        let described: Vec<String> = differences.map(ToString::to_string).collect();
        assert!(
            described.is_empty(),
            "{name}: {} differences\n{}",
            found.differences.len(),
            described.join("\n")
        );
    }
}
