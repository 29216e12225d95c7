//! Beebox and libbpf on the objects of the kernel's own tests: instructions, maps,
//! types and refusals must be the same.
//!
//! The objects and libbpf are built outside the tree. Where they are not there the
//! test says so and passes, unless `CI` is `true` and `BEEBOX_ORACLE` is `required`.
//! `BEEBOX_ORACLE_SETS` names other sets than `v3`, with commas between them.

use std::env;

use beebox_testkit::objects::Oracle;
use beebox_testkit::objects::selftests::Set;

#[test]
fn objects_are_loaded_as_libbpf_loads_them() {
    let is = |name, value| env::var(name).is_ok_and(|found| found == value);
    let must = is("CI", "true") && is("BEEBOX_ORACLE", "required");
    let oracle = match Oracle::open() {
        Ok(oracle) => oracle,
        Err(why) => {
            assert!(!must, "libbpf must be asked, but can't be: {why}");
            eprintln!("SKIPPED objects: libbpf can't be asked: {why}");
            return;
        }
    };
    let sets = env::var("BEEBOX_ORACLE_SETS").unwrap_or_else(|_| "v3".into());
    for name in sets.split(',') {
        let set = Set::find(name).expect("a set with this name");
        let objects = set.objects().expect("the directory can be read");
        if objects.is_empty() {
            assert!(!must, "the set {name} must be built");
            eprintln!("SKIPPED objects of {name}: not built");
            continue;
        }
        let found = oracle
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
