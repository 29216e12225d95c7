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
            (&["--define", "X"], "NAME=NUMBER is expected"),
            (&["--define", "=1"], "NAME=NUMBER is expected"),
            (&["--define", "X=zz"], "\"zz\" is no number of 64 bits"),
            (&["--define", "X=1"], "it has NODE_ID"),
            (&["--type", "entry=foo"], "expected one of socket_filter"),
            (&["--type", "none=xdp"], "no program is called \"none\""),
            (&["--attach", "entry"], "PROGRAM=FUNCTION is expected"),
            (&["--attach", "none=f"], "no program is called \"none\""),
            (&["--attach", "entry=f"], "attaches to no function"),
            (&["--set", "none=1"], "the object has no such variable"),
        ] {
            let conventions: &[&str] = match words[0] {
                "--loader" => &[],
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
