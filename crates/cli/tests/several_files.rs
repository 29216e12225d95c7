//! Several files, files of equal names, and standard input in place of a file.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const FIREWALL: &str = "examples/packets/firewall.bpf.o";

/// Runs the command in the root of the repository, with a file of it as standard input.
fn beebox(words: &[&str], input: &str) -> Output {
    let input = match input {
        "" => Stdio::null(),
        path => fs::File::open(Path::new(ROOT).join(path)).unwrap().into(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_beebox"));
    let command = command.current_dir(ROOT).args(words).stdin(input);
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[oracle::test]
fn types_come_from_standard_input() {
    for (words, at, file) in [
        (&["btf", "show", FIREWALL][..], 2, FIREWALL),
        (&["btf", "dump", FIREWALL], 2, FIREWALL),
        (&["btf", "diff", FIREWALL, FIREWALL], 3, FIREWALL),
    ] {
        let named = beebox(words, "");
        let mut words = words.to_vec();
        words[at] = "-";
        let read = beebox(&words, file);
        assert_eq!(stderr_of(&read), "", "{words:?}");
        assert_eq!(read.status.code(), named.status.code(), "{words:?}");
        assert_eq!(text(&read), text(&named), "{words:?}");
    }
    let read = beebox(&["btf", "diff", "-", "-"], FIREWALL);
    assert_eq!(read.status.code(), Some(2));
    let told = stderr_of(&read);
    assert_eq!(told, "beebox: standard input can be read only once\n");
    for words in [&["run", "-"][..], &["verify", "-"]] {
        let told = stderr_of(&beebox(words, ""));
        assert!(told.starts_with("beebox: standard input: "), "{told}");
    }
}

#[oracle::test]
fn files_of_equal_names_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for name in ["d1", "d2"] {
        fs::create_dir(path(name)).unwrap();
        fs::copy(Path::new(ROOT).join(FIREWALL), path(&format!("{name}/a.o"))).unwrap();
    }
    let (one, two) = (path("d1/a.o"), path("d2/a.o"));
    let verified = text(&beebox(&["verify", &one, &two, "--format", "csv"], ""));
    let firsts = verified.lines().skip(1).map(|line| line.split(',').next());
    assert_eq!(firsts.collect::<Vec<_>>(), [Some(&*one), Some(&*two)]);
    let alone = text(&beebox(&["verify", &one, "--format", "csv"], ""));
    assert!(alone.lines().nth(1).unwrap().starts_with("a.o,"), "{alone}");
    let shown = text(&beebox(&["show", &one, &two, "-j"], ""));
    let files: Vec<_> = shown
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["file"].clone())
        .collect();
    assert_eq!(files, [one.as_str(), &two]);
    fs::write(&two, &fs::read(&one).unwrap()[..400]).unwrap();
    let damaged = beebox(&["verify", &one, &two], "");
    assert_eq!(damaged.status.code(), Some(2));
    let told = stderr_of(&damaged);
    assert!(told.starts_with(&format!("beebox: {two}: ")), "{told}");
}

#[oracle::test]
fn a_damaged_file_keeps_no_other_from_being_shown() {
    let directory = tempfile::tempdir().unwrap();
    let damaged = directory.path().join("damaged.o");
    fs::write(&damaged, b"\x7fELF").unwrap();
    let damaged = damaged.to_str().unwrap();
    const OTHER: &str = "examples/verify/record.bpf.o";
    let [one, other] = [FIREWALL, OTHER].map(|file| text(&beebox(&["show", file], "")));
    let output = beebox(&["show", damaged, FIREWALL, "no.such.o", OTHER], "");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output), format!("{one}\n{other}"));
    let told = stderr_of(&output);
    assert!(told.starts_with(&format!("beebox: {damaged}: ")), "{told}");
    assert!(told.contains("beebox: no.such.o: No such file"), "{told}");
}

#[oracle::test]
fn the_summary_counts_programs_that_are_not_listed() {
    let files = ["verify", FIREWALL, "examples/verify/record.bpf.o"];
    let summary = |words: &[&str]| {
        let output = beebox(&[&files[..], words].concat(), "");
        assert_eq!(output.status.code(), Some(1));
        text(&output).lines().last().unwrap().to_owned()
    };
    assert_eq!(summary(&["-n", "1"]), summary(&[]));
}
