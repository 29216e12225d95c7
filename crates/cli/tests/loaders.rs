//! Options that say whose conventions an object follows, and what a loader sets: alike in every
//! command that takes objects.

use std::path::Path;
use std::process::{Command, Output};

const OBJECT: &str = "crates/object/tests/loaders/cilium_ebpf.o";

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .expect("the command starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Each command with what it needs beside an object.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("verify", &[]),
    ("show", &[]),
    ("dis", &["--prog", "entry"]),
    ("run", &["--prog", "entry", "--packet", "zero:60"]),
];

#[oracle::test]
fn wrong_values_are_refused_by_every_command() {
    for (command, more) in COMMANDS {
        for (words, told) in [
            (&["--loader", "foo"][..], "libbpf-0.8, cilium-ebpf, aya"),
            (
                &["--loader", "cilium"],
                "similar value exists: 'cilium-ebpf'",
            ),
            (&["--kernel", "6.18-minmal"], "try: --kernel 6.18-minimal"),
            (
                &["--type", "tc"],
                "programs of section \"tc\" have type 'sched_cls'",
            ),
            (
                &["--type", "entry=freplace"],
                "section \"freplace\" have type 'ext'",
            ),
            (
                &["--type", "entry=shed_cls"],
                "similar value exists: 'sched_cls'",
            ),
            (&["--define", "X"], "NAME=NUMBER is expected"),
            (&["--define", "=1"], "NAME=NUMBER is expected"),
            (&["--define", "X=zz"], "\"zz\" is no number of 64 bits"),
            (&["--define", "X=1"], "there is NODE_ID"),
            (&["--type", "entry=foo"], "expected one of socket_filter"),
            (&["--type", "none=xdp"], "no program is called \"none\""),
            (&["--attach", "entry"], "PROGRAM=FUNCTION is expected"),
            (&["--attach", "none=f"], "no program is called \"none\""),
            (&["--attach", "entry=f"], "attaches to no function"),
            (&["--set", "none=1"], "the object has no such variable"),
        ] {
            let conventions: &[&str] = match words[0] {
                "--loader" | "--kernel" => &[],
                _ => &["--loader", "cilium-ebpf"],
            };
            let words = [&[command, OBJECT], more, conventions, words].concat();
            let output = beebox(&words);
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
            assert!(error.contains(told), "{words:?}: {error}");
        }
    }
}

#[oracle::test]
fn an_option_says_one_thing_of_a_name() {
    let error = |words: &[&str]| {
        let output = beebox(&[&["verify", OBJECT, "--loader", "cilium-ebpf"], words].concat());
        (output.status.code() == Some(2)).then(|| stderr(&output))
    };
    for (option, one, other, told) in [
        (
            "--type",
            "entry=xdp",
            "entry=tracing",
            "--type is given twice for entry",
        ),
        (
            "--type",
            "xdp",
            "kprobe",
            "--type is given twice for all programs",
        ),
        (
            "--attach",
            "entry=f",
            "entry=g",
            "--attach is given twice for entry",
        ),
        (
            "--define",
            "NODE_ID=1",
            "NODE_ID=-1",
            "--define is given twice for NODE_ID",
        ),
    ] {
        let twice = error(&[option, one, option, other]).unwrap_or_default();
        assert!(twice.contains(told), "{option}: {twice}");
        let same = error(&[option, one, option, one]).unwrap_or_default();
        assert!(!same.contains("is given twice"), "{option}: {same}");
    }
    // One of several files has what is defined.
    let other = "crates/cli/tests/data/shapes.bpf.o";
    let define = |name| error(&[other, "--define", name]).unwrap_or_default();
    assert!(
        !define("NODE_ID=1").contains("NODE_ID"),
        "{}",
        define("NODE_ID=1")
    );
    assert!(
        define("NODE=1").contains("NODE: no undefined symbol"),
        "{}",
        define("NODE=1")
    );
    let shown = |name| {
        let words = [
            "show",
            OBJECT,
            other,
            "--loader",
            "cilium-ebpf",
            "--define",
            name,
        ];
        stderr(&beebox(&words))
    };
    assert!(
        !shown("NODE_ID=1").contains("NODE_ID"),
        "{}",
        shown("NODE_ID=1")
    );
    assert!(
        shown("NODE=1").contains("NODE: no undefined symbol"),
        "{}",
        shown("NODE=1")
    );
    let externs = "crates/object/tests/objects/externs.o";
    let output = beebox(&["verify", externs, "--define", "CONFIG_NO=-1"]);
    let given = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(
        given.contains("value -1 (0xffffffffffffffff) does not fit"),
        "{given}"
    );
    // Conventions decide nothing about a file that is no object.
    let output = beebox(&["verify", "README.md", "--loader", "aya", "--type", "xdp"]);
    assert!(
        !stderr(&output).contains("conventions"),
        "{}",
        stderr(&output)
    );
}

#[oracle::test]
fn every_command_takes_the_options() {
    for (command, more) in COMMANDS {
        let options = [
            "--loader",
            "cilium-ebpf",
            "--define",
            "NODE_ID=42",
            "--set",
            "mask=3",
            "--type",
            "untyped=xdp",
        ];
        let output = beebox(&[&[command, OBJECT], more, &options[..]].concat());
        // Some of its programs are refused.
        assert_ne!(
            output.status.code(),
            Some(2),
            "{command}: {}",
            stderr(&output)
        );
    }
}
