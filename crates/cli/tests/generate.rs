//! `beebox gen` as a user meets it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .current_dir(repository())
        .output()
        .expect("beebox starts")
}

fn refusal(words: &[&str]) -> String {
    let output = beebox(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    assert!(output.stdout.is_empty(), "{words:?}");
    String::from_utf8(output.stderr).expect("text")
}

const TARGET: &str = "crates/object/tests/core/targets/moved.o";
const OBJECT: &str = "crates/object/tests/objects/core.o";
const KERNEL: &str = "crates/object/tests/objects/kernel.o";

#[oracle::test]
fn minimal_btf_has_the_types_that_relocations_need() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = directory.path().join("min.btf");
    let output = output.to_str().expect("text");
    let words = ["gen", "min-core-btf", "--btf", KERNEL, "-o", output, OBJECT];
    let made = beebox(&words);
    let error = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success(), "{error}");
    let whole = beebox(&["btf", "dump", KERNEL]).stdout;
    let dump = beebox(&["btf", "dump", output]);
    assert!(dump.status.success());
    assert!(!dump.stdout.is_empty() && dump.stdout.len() < whole.len());
}

#[oracle::test]
fn what_minimal_btf_cannot_be_made_of_is_refused() {
    let words = ["gen", "min-core-btf", "--btf", TARGET, "-o", "-"];
    let with = |object: &str| refusal(&[&words[..], &[object]].concat());
    let missing = with("nosuch.bpf.o");
    assert!(missing.contains("nosuch.bpf.o"), "{missing}");
    let text = with("README.md");
    assert!(text.contains("README.md"), "{text}");
    let without = with(TARGET);
    assert!(without.contains("no section .BTF.ext"), "{without}");
    let no_kernel = refusal(&[
        "gen",
        "min-core-btf",
        "--btf",
        "README.md",
        "-o",
        "-",
        OBJECT,
    ]);
    assert!(no_kernel.contains("README.md"), "{no_kernel}");
}
