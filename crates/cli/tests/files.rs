//! Files that are not there: every command says which, and what to do.

use std::fs;
use std::process::Command;

#[oracle::test]
fn every_command_names_a_remedy_for_a_missing_file() {
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
        &["filter", "--filter-file", missing, &meant],
        &["exec", missing],
        &["seccomp", "table", missing],
    ] {
        let told = failure_of(words);
        let wanted =
            format!("beebox: {missing}: No such file or directory (os error 2)\n  try: {meant}\n");
        assert_eq!(told, wanted, "{words:?}");
    }
    let object = "../../examples/traffic/traffic.bpf.o";
    let told = failure_of(&["link", "-o", &path("nowhere/below/out"), object]);
    let wanted = format!(
        "  try: another path: there is no directory {}\n",
        path("nowhere")
    );
    assert!(told.ends_with(&wanted), "{told}");
}

#[oracle::test]
fn files_of_another_kind_are_named_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let capture = "../../examples/sample.pcap";
    for command in ["dis", "asm"] {
        assert_eq!(
            failure_of(&[command, capture]),
            format!(
                "beebox: {capture}: this is a packet capture, not a classic program\n  \
                 try: beebox filter reads captures\n"
            )
        );
    }
    let file = path("page");
    fs::write(&file, "").unwrap();
    assert_eq!(
        failure_of(&["man", &file]),
        format!("beebox: {file}: this is a file, not a directory\n  try: another DIRECTORY\n")
    );
    let object = fs::read("../../examples/traffic/traffic.bpf.o").unwrap();
    let cut = path("cut.bpf.o");
    fs::write(&cut, &object[..400]).unwrap();
    let message = failure_of(&["link", "-o", &path("out"), &cut]);
    assert!(message.contains(" section headers from byte "), "{message}");
    assert!(
        message.ends_with(" on exceed the file's 400 bytes\n"),
        "{message}"
    );
}

/// Message of a command that fails.
fn failure_of(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}
