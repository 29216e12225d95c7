//! `beebox btf` as a user meets it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .arg("btf")
        .args(words)
        .current_dir(data())
        .output()
        .expect("beebox starts")
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn text(words: &[&str]) -> String {
    let output = beebox(words);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn failure(words: &[&str]) -> String {
    let output = beebox(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    assert!(output.stdout.is_empty(), "{words:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[oracle::test]
fn dumps() {
    let raw = text(&["dump", "shapes.bpf.o"]);
    assert!(raw.starts_with("[1] PTR '(anon)' type_id=2\n"), "{raw}");
    assert_eq!(raw.lines().filter(|line| line.starts_with('[')).count(), 38);

    let c = text(&["dump", "shapes.bpf.o", "--format", "c"]);
    assert!(c.contains("enum colour {\n\tRED = 0,\n\tGREEN = 5,\n\tBLUE = -1,\n};\n"));
    assert!(c.contains("\tint (*call)(struct pair *, ...);\n"));

    let only = ["dump", "shapes.bpf.o", "--format", "c", "--type", "pair"];
    let c = text(&only);
    assert!(
        c.contains("struct pair {") && !c.contains("struct node"),
        "{c}"
    );
    let raw = text(&["dump", "shapes.bpf.o", "--type", "struct pair"]);
    assert_eq!(raw.lines().count(), 4, "{raw}");
}

#[oracle::test]
fn shows() {
    let summary = text(&["show", "shapes.bpf.o"]);
    assert!(summary.starts_with("38 types, "), "{summary}");
    assert!(summary.contains("2 functions, 11 lines, 0 relocations in .BTF.ext"));
    assert!(summary.contains("DATASEC .bss: size == 0"), "{summary}");

    let layout = text(&["show", "shapes.bpf.o", "pair"]);
    let lines: Vec<Vec<&str>> = layout
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines,
        [
            vec!["0", "4", "a", "int"],
            vec!["4", "1", "b", "char"],
            vec!["(hole", "of", "3", "bytes)"],
            vec!["8", "8", "c", "u64"],
        ]
    );

    let json = text(&["show", "shapes.bpf.o", "colour", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["types"][0]["values"][2]["val"], -1);
}

#[oracle::test]
fn differences() {
    let same = beebox(&["diff", "shapes.bpf.o", "shapes.bpf.o"]);
    assert_eq!(same.status.code(), Some(0));
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/btf/tags");
    let other = beebox(&["diff", "shapes.bpf.o", &seeds.to_string_lossy()]);
    assert_eq!(other.status.code(), Some(1));
    let text = String::from_utf8(other.stdout).unwrap();
    assert!(text.contains("struct pair\n  is gone\n"), "{text}");
    assert!(!text.contains("bpf_spin_lock"), "new types break nothing");
}

#[oracle::test]
fn files_without_btf_are_errors() {
    let error = failure(&["dump", "shapes.bpf.c"]);
    assert!(
        error.contains("shapes.bpf.c: no BTF: magic number is 0x7974"),
        "{error}"
    );
    let error = failure(&["show", env!("CARGO_BIN_EXE_beebox")]);
    assert!(error.contains("without a section .BTF"), "{error}");
    let error = failure(&["show", "shapes.bpf.o", "nothing"]);
    assert!(error.contains("no type named nothing"), "{error}");
    let error = failure(&["show", "shapes.bpf.o", "99"]);
    assert!(error.contains("no type 99: the last is 38"), "{error}");
}

#[oracle::test]
fn an_unknown_type_is_no_answer() {
    let words = ["diff", "shapes.bpf.o", "shapes.bpf.o", "--type", "pairr"];
    let stderr = failure(&words);
    assert!(stderr.contains("\"pairr\""), "{stderr}");
    assert!(stderr.contains("--type pair"), "{stderr}");
    let known = ["diff", "shapes.bpf.o", "shapes.bpf.o", "--type", "pair"];
    assert!(text(&known).starts_with("0 types changed"));
}

#[oracle::test]
fn json_is_that_of_bpftool() {
    let bpftool = oracle::selftest_path("7.2/tools/bpftool");
    let Some(bpftool) = oracle::found("JSON of types by bpftool", bpftool) else {
        return;
    };
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traffic/traffic.bpf.o");
    let files = [PathBuf::from("/sys/kernel/btf/vmlinux"), example];
    let mut compared = 0;
    for file in files.iter().filter(|file| file.exists()) {
        let types = |command: &mut Command| -> Vec<serde_json::Value> {
            let output = command.arg(file).output().expect("the command starts");
            let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            json["types"].as_array().unwrap().clone()
        };
        let theirs = types(Command::new(&bpftool).args(["-j", "btf", "dump", "file"]));
        let beebox = env!("CARGO_BIN_EXE_beebox");
        let ours = types(Command::new(beebox).args(["btf", "dump", "-j"]));
        assert_eq!(theirs.len(), ours.len(), "{}", file.display());
        for (mut theirs, ours) in theirs.into_iter().zip(&ours) {
            // bpftool extends unsigned values of 32 bits by their sign.
            let is_narrow = theirs["kind"] == "ENUM" && theirs["encoding"] == "UNSIGNED";
            let values = theirs.get_mut("values").filter(|_| is_narrow);
            for value in values
                .and_then(|values| values.as_array_mut())
                .into_iter()
                .flatten()
            {
                value["val"] = (value["val"].as_u64().unwrap() & 0xffff_ffff).into();
            }
            assert_eq!(&theirs, ours, "{}", file.display());
        }
        compared += ours.len();
    }
    assert!(compared > 20, "{compared} types");
}
