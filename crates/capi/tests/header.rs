//! The header, the versions of the symbols, and the sources have the same functions.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of cbindgen that `.ci/common` installs.
const CBINDGEN: &str = "cbindgen 0.29.2";

/// A file of this crate.
fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(here(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// cbindgen of that version, in the directory of tools or on the path.
fn cbindgen() -> Result<PathBuf, String> {
    let tools = oracle::cache().join("tools/bin/cbindgen");
    for program in [tools, PathBuf::from("cbindgen")] {
        let version = Command::new(&program).arg("--version").output();
        if version.is_ok_and(|it| it.stdout.trim_ascii() == CBINDGEN.as_bytes()) {
            return Ok(program);
        }
    }
    Err(format!("there is no {CBINDGEN}"))
}

#[oracle::test]
fn the_header_is_what_cbindgen_makes() {
    let program = match cbindgen() {
        Ok(program) => program,
        Err(absent) => return oracle::does_not_apply("header", absent),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let made = directory.path().join("beebox.h");
    let status = Command::new(program)
        .args(["--quiet", "--config", "cbindgen.toml", "--output"])
        .args([made.as_os_str(), ".".as_ref()])
        .current_dir(here(""))
        .status();
    assert!(status.expect("cbindgen").success());
    let made = fs::read_to_string(made).expect("a header");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(here("include/beebox.h"), &made).expect("the header");
    }
    assert_eq!(made, read("include/beebox.h"), "UPDATE_EXPECT=1 writes it");
}

/// The functions that a text names in front of a character.
fn functions(text: &str, behind: char) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("beebox_") {
        let is_start = !text[..at].ends_with(is_name);
        let name: String = text[at..].chars().take_while(|it| is_name(*it)).collect();
        if is_start && text[at + name.len()..].starts_with(behind) {
            found.insert(name);
        }
    }
    found
}

#[oracle::test]
fn every_function_is_declared_and_has_a_version() {
    let mut exported = BTreeSet::new();
    for file in fs::read_dir(here("src")).expect("the sources") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
        for behind in text.split("#[unsafe(no_mangle)]").skip(1) {
            let (_, name) = behind.split_once("extern \"C\" fn ").expect("a function");
            exported.insert(name.split('(').next().unwrap_or_default().to_owned());
        }
    }
    assert!(exported.len() > 60, "{exported:?}");
    let header = read("include/beebox.h");
    let code = header
        .lines()
        .filter(|line| !line.trim_start().starts_with(['/', '*', '#', ' ', '(']));
    let code: Vec<&str> = code.collect();
    let mut declared = functions(&code.join("\n"), '(');
    declared.retain(|name| !name.ends_with("_fn"));
    assert_eq!(declared, exported, "beebox.h");
    assert_eq!(
        functions(&read("libbeebox.map"), ';'),
        exported,
        "libbeebox.map"
    );
}
