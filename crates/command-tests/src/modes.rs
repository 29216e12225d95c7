//! Each option of each command in each mode acts or is refused by its name. Modes, values and the
//! options that change nothing of what is shown are a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use sys::network::OwnNamespace;

use crate::Executable;
use crate::options::{Opt, options};

/// A command with words that choose what it does.
pub struct Mode {
    /// The command, and those below it.
    pub command: String,
    words: Vec<String>,
    values: BTreeMap<String, String>,
    /// Options that may change nothing that is shown.
    same: BTreeSet<String>,
    /// Options that are not tried.
    left: BTreeSet<String>,
    needs: Needs,
}

/// What a mode needs of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// A network namespace of its own.
    Namespace,
    /// A process with filters, which `{pid}` stands for.
    Process,
    /// A kernel that is booted for each option: none is tried.
    Machine,
}

/// Where commands of modes run.
pub struct Place<'p> {
    /// The command.
    pub executable: Executable,
    /// Directory of the files that modes name.
    pub directory: &'p Path,
    /// Number of the process with filters; empty if there is none.
    pub process: &'p str,
}

/// What a command gave.
#[derive(PartialEq, Eq)]
pub struct Outcome {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    file: Option<Vec<u8>>,
}

/// Words as a shell splits them.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in text.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn read(modes: &str) -> Vec<Mode> {
    let mut common = BTreeMap::new();
    let mut read: Vec<Mode> = Vec::new();
    let lines = modes.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').expect("a word and more");
        let (option, value) = rest.split_once(' ').unwrap_or((rest, ""));
        match (kind, read.last_mut()) {
            ("mode", _) => {
                let (command, words) = rest.split_once('|').expect("a command and words");
                read.push(Mode {
                    command: command.trim().to_owned(),
                    words: split(words),
                    values: common.clone(),
                    same: BTreeSet::new(),
                    left: BTreeSet::new(),
                    needs: Needs::Nothing,
                });
            }
            ("value", None) => {
                common.insert(option.to_owned(), value.to_owned());
            }
            ("value", Some(mode)) => {
                mode.values.insert(option.to_owned(), value.to_owned());
            }
            ("needs", Some(mode)) => {
                mode.needs = match option {
                    "namespace" => Needs::Namespace,
                    "process" => Needs::Process,
                    "machine" => Needs::Machine,
                    _ => panic!("{line}"),
                };
            }
            ("same", Some(mode)) => {
                assert!(!value.is_empty(), "{line}: a reason");
                mode.same.insert(option.to_owned());
            }
            ("leave", Some(mode)) => {
                assert!(!value.is_empty(), "{line}: a reason");
                mode.left.insert(option.to_owned());
            }
            _ => panic!("{line}"),
        }
    }
    read
}

/// Figures that move from run to run.
fn without_times(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let words = text.split_inclusive([' ', '\n']);
    let is_time = |word: &str| word.trim_end().parse::<f64>().is_ok();
    let mut kept = String::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let unit = words
            .peek()
            .map(|unit| unit.trim_end_matches([' ', '\n', ',']));
        let before = kept.trim_end().ends_with("\"duration_ns\":");
        if is_time(word.trim_end().trim_end_matches(','))
            && (before || matches!(unit, Some("ns" | "us" | "ms" | "s" | "milliseconds")))
        {
            kept.push_str("N ");
        } else {
            kept.push_str(word);
        }
    }
    kept
}

/// Runs the command, in words of which `{new}`, `{pid}` and `{dir}` are replaced.
pub fn run(at: &Place<'_>, words: &[String]) -> Outcome {
    let new = at.directory.join("new");
    let _ = fs::remove_file(&new);
    let place = |word: &String| {
        let word = word.replace("{new}", &new.display().to_string());
        let word = word.replace("{pid}", at.process);
        word.replace("{dir}", &at.directory.display().to_string())
    };
    let mut command = at.executable.command();
    let output = command.args(words.iter().map(place)).output();
    let output = output.expect("the command starts");
    Outcome {
        code: output.status.code(),
        out: without_times(&output.stdout),
        err: without_times(&output.stderr),
        file: fs::read(&new).ok(),
    }
}

/// The complaints about a mode.
pub fn check(mode: &Mode, options: &[Opt], at: &Place<'_>) -> Vec<String> {
    let command = split(&mode.command);
    let base_words = [&command[..], &mode.words].concat();
    let base = run(at, &base_words);
    let shown = base_words.join(" ");
    let mut complaints = Vec::new();
    if !matches!(base.code, Some(0 | 1)) {
        complaints.push(format!("{shown}: {}", base.err));
    }
    for option in options {
        let name = &option.names[0];
        let is_there = |word: &String| {
            let names = &mut option.names.iter();
            names.any(|name| word == name || word.starts_with(&format!("{name}=")))
        };
        if mode.left.contains(name) || mode.words.iter().any(is_there) {
            continue;
        }
        let mut words = [&base_words[..], std::slice::from_ref(name)].concat();
        match (option.takes_value, mode.values.get(name)) {
            (false, _) => {}
            (true, None) => {
                complaints.push(format!("{shown}: no value of {name} in the table"));
                continue;
            }
            // A value that may be left out, or that stands behind an equals sign.
            (true, Some(value)) if value.is_empty() => {}
            (true, Some(value)) if value.starts_with('=') => {
                words.pop();
                words.push(format!("{name}{value}"));
            }
            (true, Some(value)) => words.extend(split(value)),
        }
        let got = run(at, &words);
        // A refusal names the option, or the value or file that it gives.
        let value = words.last().map_or("", |word| word.as_str());
        let is_named = || {
            let names = option.names.iter().map(|name| name.trim_start_matches('-'));
            let parts = value.split(['=', '/']).filter(|part| part.len() > 2);
            names.chain(parts).any(|part| got.err.contains(part))
        };
        match got == base {
            true if !mode.same.contains(name) => {
                complaints.push(format!("{shown} {name}: nothing changes"));
            }
            false if got.code == Some(2) && !is_named() => {
                complaints.push(format!(
                    "{shown} {name}: refused by another name: {}",
                    got.err
                ));
            }
            _ => {}
        }
    }
    complaints
}

/// A check of a mode with its options; the result is complaints.
pub type CheckMode = dyn Fn(&Mode, &[Opt], &Place<'_>) -> Vec<String> + Sync;

/// Panics unless each option of each command in each mode acts or is refused by its name.
/// `write_files` writes the files that modes name; `beside_process` checks a mode that reads the
/// filters of a process.
pub fn check_all(
    executable: Executable,
    modes: &str,
    write_files: &(dyn Fn(&Place<'_>) + Sync),
    beside_process: &CheckMode,
) {
    let options = options(executable);
    let modes = read(modes);
    let known: BTreeSet<&str> = modes.iter().map(|mode| mode.command.as_str()).collect();
    for command in options.keys() {
        assert!(known.contains(command.as_str()), "no mode of {command}");
    }
    let next = Mutex::new(modes.iter());
    let complaints = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let directory = tempfile::tempdir().unwrap();
                let place = Place {
                    executable,
                    directory: directory.path(),
                    process: "",
                };
                write_files(&place);
                loop {
                    let Some(mode) = next.lock().unwrap().next() else {
                        return;
                    };
                    let options = &options[&mode.command];
                    let found = match mode.needs {
                        Needs::Nothing => check(mode, options, &place),
                        Needs::Namespace => check_in_namespace(mode, options, &place),
                        Needs::Process => beside_process(mode, options, &place),
                        Needs::Machine => Vec::new(),
                    };
                    complaints.lock().unwrap().extend(found);
                }
            });
        }
    });
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The complaints about a mode that changes network devices.
fn check_in_namespace(mode: &Mode, options: &[Opt], at: &Place<'_>) -> Vec<String> {
    // What the thread starts is in its namespace.
    let checked = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _namespace = OwnNamespace::enter().ok()?;
            Some(check(mode, options, at))
        });
        thread.join().unwrap()
    });
    checked.unwrap_or_else(|| {
        oracle::skip("options of devices", "no network namespace of our own");
        Vec::new()
    })
}
