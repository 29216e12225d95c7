//! `beebox link`: what it writes, when it writes nothing, and its exit codes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/link")
}

/// Runs the command among the example's objects.
fn link(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("link")
        .args(arguments)
        .current_dir(examples())
        .stdin(fs::File::open(examples().join("count.bpf.o")).unwrap())
        .stderr(Stdio::piped())
        .output()
        .unwrap()
}

fn refused(arguments: &[&str], code: i32, message: &str) {
    let output = link(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(message), "{arguments:?}: {text}");
}

#[oracle::test]
fn linked_objects_are_written_to_files_and_streams() {
    let directory = tempfile::tempdir().unwrap();
    let linked = directory.path().join("linked.o");
    let name = linked.to_str().unwrap();
    let output = link(&["-o", name, "main.bpf.o", "count.bpf.o"]);
    assert!(output.status.success());
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    let object = fs::read(&linked).unwrap();

    let output = link(&["-o", "-", "main.bpf.o", "-"]);
    assert!(output.stdout == object);
    assert!(link(&["-o", name, name, "main.bpf.o"]).status.code() == Some(2));
    assert!(
        fs::read(&linked).unwrap() == object,
        "an input was written over"
    );
}

#[oracle::test]
fn nothing_is_written_when_files_do_not_fit() {
    let directory = tempfile::tempdir().unwrap();
    let linked = directory.path().join("linked.o");
    let name = linked.to_str().unwrap();
    refused(
        &["-o", name, "main.bpf.o", "wide.bpf.o"],
        1,
        "beebox: wide.bpf.o, sample_every: type is incompatible with main.bpf.o",
    );
    refused(
        &["-o", name, "count.bpf.o", "wide.bpf.o"],
        1,
        "symbol is defined in count.bpf.o too",
    );
    refused(
        &["-o", name, "main.bpf.c"],
        2,
        "main.bpf.c: this file has no ELF magic number\n  try: an object that clang -target bpf -c writes",
    );
    refused(&["-o", name, "nowhere.o"], 2, "nowhere.o: No such file");
    refused(
        &["-o", name, "-", "-"],
        2,
        "standard input can be read only once",
    );
    refused(&["-o", name], 2, "required");
    refused(&["main.bpf.o"], 2, "--output");
    assert!(!linked.exists());

    let beyond = linked.join("further.o");
    refused(
        &["-o", beyond.to_str().unwrap(), "main.bpf.o"],
        2,
        "further.o: No such file",
    );
}
