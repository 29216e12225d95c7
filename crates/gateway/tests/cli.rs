//! The command `beebox-gateway`.

mod attach;
mod files;
mod outputs;
mod remedies;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use command_tests::json::{Sample, check_keys};
use command_tests::modes::{Place, check_all};
use command_tests::{Executable, documents, root, vocabulary};

const GATEWAY: Executable = Executable {
    name: "beebox-gateway",
    path: env!("CARGO_BIN_EXE_beebox-gateway"),
};

const RULES: &str = "examples/gateway/office.rules";
const CAPTURE: &str = "examples/sample.pcap";

/// Runs the command in the root of the repository, without standard input.
fn run(words: &[&str]) -> Output {
    GATEWAY.command().args(words).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What a command that fails says.
fn failure_of(words: &[&str]) -> String {
    let output = run(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    stderr_of(&output)
}

/// Path of a file of a directory, with these contents.
fn file(directory: &Path, name: &str, contents: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, contents).unwrap();
    path.display().to_string()
}

#[oracle::test]
fn every_option_acts_or_is_refused() {
    let write_files = |at: &Place<'_>| {
        let put = |name: &str, text: &str| fs::write(at.directory.join(name), text).unwrap();
        put("kconfig", "CONFIG_HZ=250\n");
        put("other.rules", "drop proto tcp to 192.0.2.1 port 80\n");
        put(
            "rules.save",
            "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n-A INPUT -i eth0 -p tcp -m conntrack --ctstate NEW -j DROP\n-A FORWARD -i eth0 -o eth1 -p udp -j DROP\nCOMMIT\n",
        );
    };
    let modes = include_str!("cli/data/modes.txt");
    check_all(GATEWAY, modes, &write_files, &|mode, _, _| {
        vec![format!("{}: no mode is of a process", mode.command)]
    });
}

#[oracle::test]
fn letters_stand_for_one_option_and_formats_are_text_and_json() {
    vocabulary::check_letters(GATEWAY, &[]);
    vocabulary::check_formats(GATEWAY);
    vocabulary::check_values(GATEWAY);
    vocabulary::check_outputs(GATEWAY);
}

#[oracle::test]
fn pages_show_what_the_command_prints() {
    documents::check_pages(GATEWAY);
}

#[oracle::test]
fn every_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("man");
    let output = run(&["man", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    for command in ["", "-attach", "-run", "-import"] {
        let page = fs::read_to_string(path.join(format!("beebox-gateway{command}.1"))).unwrap();
        assert!(page.contains(".SH NAME"), "{command}: {page}");
    }
    let script = text(&run(&["completions", "bash"]));
    assert!(
        script.contains("_beebox__gateway") || script.contains("_beebox-gateway"),
        "{script}"
    );
    let help = text(&run(&["completions", "--help"]));
    assert!(help.contains("completions/beebox-gateway\n"), "{help}");
}

/// The shell's examples of help texts, in the root of the repository.
#[oracle::test]
fn examples_work_in_the_repository() {
    let directory = tempfile::tempdir().unwrap();
    let examples = directory.path().join("examples");
    std::os::unix::fs::symlink(root().canonicalize().unwrap().join("examples"), examples).unwrap();
    let path = Path::new(GATEWAY.path).parent().unwrap();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    for command in [
        "import", "compile", "run", "explain", "diff", "attach", "update",
    ] {
        let help = text(&run(&[command, "--help"]));
        let (_, examples) = help.split_once("Examples:\n").expect(command);
        let examples = examples.replace("\\\n", "");
        for example in examples.lines().filter(|line| !line.is_empty()) {
            // These need root, or programs that are not everywhere.
            if ["attach", "update"].contains(&command) || example.contains(" | ") {
                continue;
            }
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", example]).env("PATH", &path);
            let output = shell.current_dir(directory.path()).output().unwrap();
            assert!(
                output.status.code().is_some_and(|code| code < 2),
                "{example}: {output:?}"
            );
        }
    }
}

#[oracle::test]
fn keys_of_json_are_those_of_the_page() {
    let office = "examples/gateway/office.rules";
    let packet = "'proto tcp from 10.0.0.1 port 4000 to 192.0.2.1 port 80'";
    let samples = [
        ("compile", office.to_owned()),
        ("compile", "crates/gateway/tests/data/json.rules".to_owned()),
        ("run", format!("{office} --pcap {CAPTURE}")),
        ("run", format!("{office} --pcap {CAPTURE} --per-packet")),
        ("explain", format!("{office} --packet {packet}")),
        ("diff", format!("{office} examples/gateway/new.rules")),
        (
            "diff",
            format!("{office} crates/gateway/tests/data/json.rules"),
        ),
    ];
    let samples: Vec<Sample<'_>> = samples
        .iter()
        .map(|(command, words)| Sample { command, words })
        .collect();
    check_keys(GATEWAY, &samples, &[("compile: classes", "object by name")]);
}
