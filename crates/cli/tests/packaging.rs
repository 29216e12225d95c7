//! Files for packages: version, completion scripts and man pages.

use std::fs;
use std::process::{Command, Output};

fn beebox(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words)
        .output()
        .expect("the command starts")
}

#[oracle::test]
fn the_version_names_the_built_in_kernels() {
    let text = String::from_utf8(beebox(&["--version"]).stdout).unwrap();
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    assert!(
        first.starts_with(concat!("beebox ", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
    let kernels = lines.next().unwrap();
    assert!(
        kernels.starts_with("built-in kernels: Linux 5.10.262, ") && kernels.contains(" 6.18.44, "),
        "{text}"
    );
}

#[oracle::test]
fn every_shell_gets_a_script_with_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = beebox(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{shell}");
        assert!(
            script.contains("seccomp") && script.contains("snaplen"),
            "{shell}: {script}"
        );
    }
    assert_eq!(beebox(&["completions", "cmd"]).status.code(), Some(2));
}

#[oracle::test]
fn every_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("man");
    let output = beebox(&["man", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    for name in [
        "beebox",
        "beebox-filter",
        "beebox-seccomp",
        "beebox-seccomp-table",
    ] {
        let page = fs::read_to_string(path.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".SH NAME"), "{name}: {page}");
    }
    let names = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
    let mut names = names.map(|entry| entry.file_name().into_string().unwrap());
    assert!(!names.any(|name| name.contains("conformance") || name.contains("help")));
}

#[oracle::test]
fn the_page_of_options_is_what_help_prints() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    assert_eq!(beebox(&["man", &path, "--markdown"]).status.code(), Some(0));
    let printed = fs::read_to_string(directory.path().join("beebox.md")).unwrap();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command-options.md");
    let text = fs::read_to_string(page).unwrap();
    let start = text.find("\n## ").unwrap_or(text.len());
    if text[start..] != printed && std::env::var_os("UPDATE_EXPECT").is_some() {
        return fs::write(page, text[..start].to_owned() + &printed).unwrap();
    }
    let differs = text[start..]
        .lines()
        .zip(printed.lines())
        .find(|(a, b)| a != b);
    assert!(
        text[start..] == printed,
        "{differs:?} (UPDATE_EXPECT=1 writes the page)"
    );
}
