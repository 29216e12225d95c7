//! Files that are not there: every command says which, and what to do.

use std::fs;
use std::process::Command;

#[test]
fn every_command_says_what_to_try_instead_of_a_missing_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("program.bpf.o"), "").unwrap();
    let (missing, meant) = (path("program.o"), path("program.bpf.o"));
    let out = path("out");
    let missing = missing.as_str();
    for words in [
        &["show", missing][..],
        &["dis", missing],
        &["dis", "--ebpf", missing],
        &["asm", missing],
        &["link", "-o", &out, missing],
        &["btf", "dump", missing],
        &["btf", "diff", missing, missing],
        &["filter", "--filter", missing, &meant],
        &["run", "--ebpf", missing],
        &["seccomp", "table", missing],
    ] {
        let told = told(words);
        let wanted =
            format!("beebox: {missing}: No such file or directory (os error 2)\n  try: {meant}\n");
        assert_eq!(told, wanted, "{words:?}");
    }
    let object = "../../examples/traffic/traffic.bpf.o";
    let told = told(&["link", "-o", &path("nowhere/below/out"), object]);
    let wanted = format!(
        "  try: mkdir -p: there is no directory {}\n",
        path("nowhere")
    );
    assert!(told.ends_with(&wanted), "{told}");
}

/// Message of a command that fails.
fn told(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}
