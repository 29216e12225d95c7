//! The built-in registry of Linux 6.18 against the running kernel.

use beebox_differential::registry::compare::compare;
use beebox_differential::registry::privilege::compare_rights;
use btf::Btf;
use kernel_client::kernel_release;

/// One of so many entries in a test; `cargo differential compare registry` compares all.
const EVERY: u64 = 37;

#[oracle::test]
fn the_registry_is_the_running_kernels() {
    let what = "the registry";
    let release = kernel_release().map_err(|why| format!("{why:?}"));
    if oracle::found(what, release).is_none() {
        return;
    }
    let types = std::fs::read("/sys/kernel/btf/vmlinux").map_err(|error| error.to_string());
    let Some(types) = oracle::found(what, types) else {
        return;
    };
    let types = Btf::parse(types).expect("the kernel's own types");
    let registry = kernel_data::linux_6_18_minimal_registry(&types);
    let comparison = compare(&registry, EVERY).map_err(|error| error.to_string());
    let Some(comparison) = oracle::found(what, comparison) else {
        return;
    };
    assert_eq!(comparison.differences, Vec::<String>::new());
    let kinds: Vec<&str> = comparison.compared.iter().map(|(kind, _)| *kind).collect();
    for kind in [
        "prototypes",
        "helpers of program types",
        "context accesses",
        "return ranges",
        "capabilities of helpers",
        "fields refused by program type",
        "changes of sockmaps",
        "arguments of tracepoints",
        "targets of iterators",
        "arguments of iterators",
        "kfuncs of program types",
    ] {
        assert!(kinds.contains(&kind), "nothing compared of {kind}");
    }
    assert!(comparison.questions > 1_000);
}

#[oracle::test]
fn callers_create_what_the_kernel_lets_them() {
    for caller in [
        "none",
        "bpf",
        "net_admin",
        "bpf,net_admin",
        "perfmon",
        "all",
    ] {
        let privileges = caller.parse().expect("privileges");
        let rights = compare_rights(privileges);
        let Some(rights) = oracle::found("rights of callers", rights.ok_or("not asked")) else {
            return;
        };
        assert!(rights.differences.is_empty(), "{:#?}", rights.differences);
        assert!(rights.asked >= 30 && rights.permitted >= 13, "{rights:?}");
    }
}
