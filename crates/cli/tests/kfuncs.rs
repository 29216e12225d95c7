//! `beebox kfuncs`, the page that lists kernel functions, and the bit operations.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use beebox::Kernel;
use beebox::internal::run::kfunc_state;

const BITS: &str = "examples/bits/bits.bpf.o";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Exit code and standard output.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text)
}

#[oracle::test]
fn every_function_of_the_kernel_has_a_state() {
    let kernels = kernel_data::Configuration::ALL.map(kernel_data::Configuration::kernel);
    let kfuncs = |kernel: &Kernel| kernel.registry().unwrap().kfuncs.clone();
    let names: BTreeSet<_> = kernels
        .iter()
        .flat_map(|kernel| kfuncs(kernel).into_keys())
        .collect();
    assert_eq!(names.len(), 259);
    for name in names {
        assert!(kfunc_state(&name).is_some(), "{name}");
    }
    assert_eq!(kfunc_state("bpf_no_such_function"), None);
}

#[oracle::test]
fn the_list_is_json_too() {
    let (code, text) = run(&["kfuncs", "-j"]);
    assert_eq!(code, Some(0));
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    let functions = answer["functions"].as_array().unwrap();
    let (_, table) = run(&["kfuncs"]);
    // The table has a line with the names of its columns; prototypes have lines of their own.
    assert_eq!(2 * functions.len() + 1, table.lines().count());
    let prototypes = table.lines().skip(2).step_by(2);
    for (function, prototype) in functions.iter().zip(prototypes) {
        let expected = function["prototype"].as_str().unwrap();
        assert_eq!(prototype, format!("    {expected}"));
    }
    assert!(
        functions
            .iter()
            .all(|function| function["program_types"].is_array())
    );
    assert_eq!(run(&["kfuncs", "--format", "json"]).1, text);
}

/// `bpf_task_from_vpid` came with Linux 6.13 (`since/kfuncs.rs`).
#[oracle::test]
fn an_older_release_lacks_newer_functions() {
    let names = |words: &[&str]| {
        let (code, text) = run(&[&["kfuncs", "-j"], words].concat());
        assert_eq!(code, Some(0), "{words:?}");
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        let functions = answer["functions"].as_array().unwrap();
        let name = |function: &serde_json::Value| function["name"].as_str().unwrap().to_owned();
        functions.iter().map(name).collect::<BTreeSet<_>>()
    };
    let (newest, older) = (names(&[]), names(&["--kernel-version", "6.5"]));
    assert!(older.is_subset(&newest));
    let has = |names: &BTreeSet<String>, name: &str| names.contains(name);
    assert!(has(&newest, "bpf_task_from_vpid") && !has(&older, "bpf_task_from_vpid"));
    assert!(has(&older, "bpf_task_acquire"));
    assert_eq!(
        names(&["--kernel", "7.2", "--kernel-version", "6.5"])
            .difference(&older)
            .count(),
        0
    );
    // 5.13 has the first ones.
    assert!(names(&["--kernel-version", "5.12"]).is_empty());
}

#[oracle::test]
fn the_page_and_the_header_are_what_the_chore_writes() {
    let kernel = kernel_data::linux_6_18();
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    assert_eq!(
        read("docs/kfuncs.md"),
        report::kfuncs::page(
            kernel.registry().unwrap(),
            kernel.btf().unwrap(),
            kfunc_state
        ),
        "`cargo xtask kfuncs` writes it anew"
    );
    let (code, header) = run(&["kfuncs", "--header"]);
    assert_eq!(code, Some(0));
    assert_eq!(header, read("examples/bits/bpf_bits.h"));
}

#[oracle::test]
fn bit_operations_are_there_if_they_are_asked_for() {
    const WITH: [&str; 2] = ["--host-functions", "bits"];
    // All but the duration, which differs by run.
    let verified = |arguments: &[&str]| {
        let columns = ["-e", "prog,verdict,insns,states,reason"];
        run(&[&["verify", BITS], &columns[..], arguments].concat())
    };
    // Named or not, the built-in kernel is Linux 6.18.
    let (code, plain) = verified(&[]);
    assert_eq!(code, Some(1));
    assert!(plain.contains("1 accepted, 1 refused"), "{plain}");
    assert_eq!(verified(&["--kernel", "6.18"]), (code, plain));
    let insns =
        |arguments: &[&str]| run(&[&["verify", BITS, "-e", "prog,insns"], arguments].concat()).1;
    assert_ne!(insns(&[]), insns(&WITH));
    for kernel in [
        &[][..],
        &["--kernel", "6.18"],
        &["--kernel-version", "6.18"],
    ] {
        assert_eq!(
            run(&[&["verify", BITS], &WITH[..], kernel].concat()).0,
            Some(0)
        );
    }
    let ran = |program: &str, arguments: &[&str]| {
        let options = ["run", BITS, "--prog", program, "--packet", "zero:64"];
        run(&[&options, arguments].concat()).0
    };
    // `first` counts bits itself where the kernel has no such function.
    assert_eq!((ran("first", &[]), ran("first", &WITH)), (Some(0), Some(0)));
    assert_eq!((ran("all", &[]), ran("all", &WITH)), (Some(1), Some(0)));
    assert!(
        run(&["show", BITS])
            .1
            .contains("none: a bit operation of Beebox")
    );
    let listed = |arguments: &[&str]| run(&[&["kfuncs"], arguments].concat()).1;
    assert!(listed(&WITH).contains("bpf_ffs64"));
    assert!(!listed(&[]).contains("bpf_ffs64"));
}

#[oracle::test]
fn native_code_calls_no_bit_operation() {
    let (code, native) = run(&[
        "dis",
        "--jit",
        "--prog",
        "first",
        "--host-functions",
        "bits",
        BITS,
    ]);
    assert_eq!(code, Some(0));
    assert!(
        native.contains("tzcnt") || native.contains("bsf"),
        "{native}"
    );
    assert!(!native.contains(" call ["), "{native}");
}
