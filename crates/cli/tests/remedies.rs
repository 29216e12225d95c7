//! Messages of commands: they name object, fact and one remedy that works.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const FIREWALL: &str = "examples/packets/firewall.bpf.o";
const SAMPLE: &str = "examples/sample.pcap";

fn beebox(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
    command.current_dir(ROOT).args(words).stdin(Stdio::null());
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error of a command that cannot answer.
fn failure_of(words: &[&str]) -> String {
    let output = beebox(words);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
    told
}

/// Path of a file of a directory, with these contents.
fn file(directory: &Path, name: &str, contents: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, contents).unwrap();
    path.display().to_string()
}

#[oracle::test]
fn objects_and_captures_in_the_place_of_programs() {
    for (words, remedy) in [
        (
            &["dis", "--ebpf", FIREWALL][..],
            "beebox dis examples/packets/firewall.bpf.o, without --ebpf: it links objects",
        ),
        (
            &["asm", FIREWALL],
            "beebox dis examples/packets/firewall.bpf.o lists its programs",
        ),
        (
            &["filter", "-F", SAMPLE, SAMPLE],
            "-F FILE with the filter; captures stand after it",
        ),
        (&["dis", FIREWALL, "--converted"], "no --converted"),
        (
            &["dis", FIREWALL, "--format", "ddd"],
            "raw, hex, d, dd, asm, log, case or json",
        ),
        (&["filter", "tcp", "examples"], "the name of a file in it"),
        (
            &["filter", "tcp", "port", "examples"],
            "the name of a file in it",
        ),
    ] {
        let told = failure_of(words);
        assert!(told.ends_with(&format!("\n  try: {remedy}\n")), "{told}");
        assert_eq!(told.matches("try: ").count(), 1, "{told}");
    }
    // A map that Linux refuses is an answer.
    let refused = beebox(&[
        "run",
        FIREWALL,
        "--packet",
        "00",
        "--max-entries",
        "blocked=0",
    ]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let remedy = "\n  try: --max-entries blocked=N with N from 1\n";
    assert!(said.ends_with(remedy), "{said}");
    let directory = failure_of(&["filter", "tcp", "examples"]);
    assert!(
        directory.starts_with("beebox: examples: this is a directory"),
        "{directory}"
    );
    let text = failure_of(&["verify", "examples/sandbox.asm"]);
    let fact = "beebox: examples/sandbox.asm: this is text, but no text case\n";
    assert!(text.starts_with(fact), "{text}");
    assert!(!text.contains("clang"), "{text}");
}

#[oracle::test]
fn objects_are_run_and_instructions_executed() {
    let directory = tempfile::tempdir().unwrap();
    let sum = file(directory.path(), "sum.asm", "r0 = 1\nexit\n");
    let said = failure_of(&["run", &sum, "--packet", "00"]);
    let remedy = format!("  try: beebox exec {sum}, which executes instructions\n");
    assert!(said.ends_with(&remedy), "{said}");
    let said = failure_of(&["exec", FIREWALL]);
    let remedy = format!("  try: beebox run {FIREWALL}, which links objects\n");
    assert!(said.ends_with(&remedy), "{said}");
    let said = failure_of(&["gateway", "run", "office.rules", "-j"]);
    let remedy = "  try: beebox-gateway run office.rules -j, of the package beebox-gateway\n";
    assert!(said.ends_with(remedy), "{said}");
}

#[oracle::test]
fn only_near_names_are_suggested() {
    let directory = tempfile::tempdir().unwrap();
    let profile = "{\"defaultAction\": \"SCMP_ACT_ALLOW\"}";
    let profile = &*file(directory.path(), "profile.json", profile);
    for (words, name) in [
        (&["check", profile, "--cap", "foo"][..], "CAP_FOWNER"),
        (&["eval", profile, "--syscall", "foo"], "fork"),
        (
            &["eval", profile, "--syscall", "open", "--arg", "1=FOO"],
            "F_OK",
        ),
    ] {
        let told = failure_of(&[&["seccomp"], words].concat());
        assert!(told.contains("  try: ") && !told.contains(name), "{told}");
    }
    for (words, name) in [
        (
            &["check", profile, "--cap", "sys_admn"][..],
            "CAP_SYS_ADMIN",
        ),
        (&["eval", profile, "--syscall", "opneat"], "openat"),
    ] {
        let told = failure_of(&[&["seccomp"], words].concat());
        assert!(told.contains(name), "{told}");
    }
    for (option, value) in [("--machine", "foo"), ("--kernel-version", "foo")] {
        let told = failure_of(&["seccomp", "check", profile, option, value]);
        let first = told.lines().next().unwrap();
        assert!(first.contains(option) && first.contains(value), "{told}");
    }
    let array = &*file(directory.path(), "array.json", "[{}]");
    let told = failure_of(&["seccomp", "check", array]);
    assert!(
        told.contains("a container profile is a JSON object"),
        "{told}"
    );
}

#[oracle::test]
fn numbers_out_of_range_are_refused_as_such() {
    for words in [
        &["filter", "-c", "-1", "tcp", SAMPLE][..],
        &["run", FIREWALL, "--packet", "00", "--ifindex", "-1"],
        &["verify", "-n", "-1", FIREWALL],
        &["run", FIREWALL, "--packet", "00", "--cpu", "-1"],
        &["filter", "--snaplen", "-1", "-w", "-", "tcp", SAMPLE],
        &["verify", "-J", "0", FIREWALL],
        &["verify", "-J", "-1", FIREWALL],
    ] {
        let told = failure_of(words);
        assert!(
            told.starts_with("error: invalid value '"),
            "{words:?}: {told}"
        );
        assert!(!told.contains("tip: to pass"), "{told}");
    }
}

#[oracle::test]
fn commands_without_files_print_a_usage_error() {
    for words in [
        &["gen", "header"][..],
        &["gen", "rust"],
        &["gen", "min-core-btf"],
        &["verify"],
        &["link"],
    ] {
        let told = failure_of(words);
        assert!(told.starts_with("error: the following required"), "{told}");
    }
}

#[oracle::test]
fn an_empty_program_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let empty = &*file(directory.path(), "empty", "");
    let comments = &*file(directory.path(), "comments.s", "# nothing\n");
    for command in ["asm", "dis"] {
        let said = failure_of(&[command, "--ebpf", empty]);
        assert_eq!(said, format!("beebox: {empty}: the input is empty\n"));
        let said = failure_of(&[command, "--ebpf", comments]);
        assert_eq!(said, format!("beebox: {comments}: no instructions\n"));
    }
}

#[oracle::test]
fn forms_that_fit_are_those_of_the_command() {
    let help = text(&beebox(&["asm", "--help"]));
    assert!(
        help.contains("- hex:") && !help.contains("- case:"),
        "{help}"
    );
    assert!(text(&beebox(&["dis", "--help"])).contains("- case:"));
    let sandbox = ["asm", "examples/sandbox.asm"];
    let json = |words: &[&str]| text(&beebox(&[&sandbox[..], words].concat()));
    assert_eq!(json(&["-j"]), json(&["--format", "json"]));
    assert!(json(&["--json"]).starts_with("{\"schema\":1,\"insns\":["));
    let rows = text(&beebox(&["verify", FIREWALL, "--json"]));
    assert!(
        rows.starts_with("{\"schema\":1,\"file_name\":\"firewall.bpf.o\""),
        "{rows}"
    );
}

/// The options under a heading of a help text.
fn under(help: &str, heading: &str) -> Vec<String> {
    let lines = help
        .lines()
        .skip_while(|line| *line != format!("{heading}:"));
    let lines = lines
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with(' '));
    let option = |line: &str| {
        let word = line
            .split_whitespace()
            .find(|word| word.starts_with("--"))?;
        (line.trim_start().starts_with('-')).then(|| word.trim_end_matches(',').to_owned())
    };
    lines.filter_map(option).collect()
}

#[oracle::test]
fn help_has_options_under_their_headings() {
    const KERNEL: [&str; 10] = [
        "--kernel",
        "--btf",
        "--reduced-btf",
        "--kconfig",
        "--kernel-version",
        "--module-btf",
        "--core-btf",
        "--machine-memory",
        "--feature",
        "--host-functions",
    ];
    for words in [&["run"][..], &["verify"], &["show"], &["dis"], &["kfuncs"]] {
        let help = text(&beebox(&[words, &["-h"]].concat()));
        let kernel = under(&help, "Kernel");
        assert!(!kernel.is_empty(), "{words:?}: {help}");
        let others: Vec<_> = kernel
            .iter()
            .filter(|it| !KERNEL.contains(&&***it))
            .collect();
        assert!(others.is_empty(), "{words:?}: {others:?}");
    }
    for command in ["check", "eval", "table", "diff", "assert", "compile", "dis"] {
        let help = text(&beebox(&["seccomp", command, "-h"]));
        let machine = under(&help, "Machine and container");
        assert_eq!(machine, ["--machine", "--cap", "--runtime"], "{command}");
        let kernel = under(&help, "Kernel");
        assert_eq!(kernel, ["--kernel", "--kernel-version"], "{command}");
    }
    let run = text(&beebox(&["run", "-h"]));
    assert!(
        under(&run, "Options").contains(&"--engine".to_owned()),
        "{run}"
    );
}
