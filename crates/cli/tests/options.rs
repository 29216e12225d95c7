//! Each option of each command in each mode acts or is refused by its name.
//!
//! The options are those of clap's tree, read from the completion script for fish; modes, values
//! and the options that change nothing of what is shown are in `data/options/modes.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use sys::network::OwnNamespace;

use crate::seccomp::SANDBOXED;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const MODES: &str = include_str!("data/options/modes.txt");

/// An option: all its names, the first of which names it in the table.
pub(crate) struct Opt {
    pub(crate) names: Vec<String>,
    takes_value: bool,
    /// The values that are listed.
    pub(crate) values: Vec<String>,
}

/// A command with words that choose what it does.
struct Mode {
    command: String,
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
}

/// Where commands of modes run.
struct Place<'p> {
    directory: &'p Path,
    /// Number of the process with filters; empty if there is none.
    process: &'p str,
}

/// What a command gave.
#[derive(PartialEq, Eq)]
struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
    file: Option<Vec<u8>>,
}

/// Options by command, of `complete -c beebox -n "CONDITION" -s x -l long -d '…' -r -f -a "VALUE`,
/// where a line for each further value follows.
pub(crate) fn options() -> BTreeMap<String, Vec<Opt>> {
    let script = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(["completions", "fish"])
        .output()
        .unwrap();
    let script = String::from_utf8(script.stdout).unwrap();
    let mut options: BTreeMap<String, Vec<Opt>> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in script.lines() {
        let Some(rest) = line.strip_prefix("complete -c beebox -n \"") else {
            let of_command = last.as_ref().and_then(|command| options.get_mut(command));
            if let (Some(list), Some((value, _))) = (of_command, line.split_once("\\t")) {
                let option = list.last_mut().expect("an option before its values");
                option.values.push(value.to_owned());
            }
            continue;
        };
        last = None;
        let (condition, rest) = rest.split_once("\" ").expect("a condition in quotes");
        let mut words = condition.split("; and ").map(|part| {
            let (test, word) = part.split_once(' ').unwrap_or((part, ""));
            (!test.starts_with("not")).then_some(word)
        });
        let command: Option<Vec<&str>> = words.by_ref().collect();
        let Some(command) = command else { continue };
        let (names, after) = rest.split_once(" -d '").unwrap_or((rest, ""));
        let names: Vec<&str> = names.split(' ').collect();
        let of = |flag: &str, dashes: &str| -> Vec<String> {
            let pairs = names.windows(2).filter(|pair| pair[0] == flag);
            pairs.map(|pair| format!("{dashes}{}", pair[1])).collect()
        };
        let names = [of("-l", "--"), of("-s", "-")].concat();
        if names.is_empty() || names[0] == "--help" || names[0] == "--version" {
            continue;
        }
        let flags = after.rsplit_once('\'').map_or("", |(_, flags)| flags);
        let list = after.split_once("' -r -f -a \"").map(|(_, list)| list);
        let takes_value = list.is_some() || flags.split(' ').any(|flag| flag == "-r");
        let value = list.and_then(|list| list.split_once("\\t"));
        let of_command = options.entry(command.join(" ")).or_default();
        of_command.push(Opt {
            names,
            takes_value,
            values: value
                .map(|(value, _)| value.to_owned())
                .into_iter()
                .collect(),
        });
        last = Some(command.join(" "));
    }
    options
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

fn modes() -> Vec<Mode> {
    let mut common = BTreeMap::new();
    let mut modes: Vec<Mode> = Vec::new();
    let lines = MODES.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').expect("a word and more");
        let (option, value) = rest.split_once(' ').unwrap_or((rest, ""));
        match (kind, modes.last_mut()) {
            ("mode", _) => {
                let (command, words) = rest.split_once('|').expect("a command and words");
                modes.push(Mode {
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
    modes
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

fn run(at: &Place<'_>, words: &[String]) -> Outcome {
    let new = at.directory.join("new");
    let _ = fs::remove_file(&new);
    let place = |word: &String| {
        let word = word.replace("{new}", &new.display().to_string());
        let word = word.replace("{pid}", at.process);
        word.replace("{dir}", &at.directory.display().to_string())
    };
    let output = Command::new(env!("CARGO_BIN_EXE_beebox"))
        .args(words.iter().map(place))
        .current_dir(ROOT)
        .stdin(Stdio::null())
        .output()
        .expect("beebox starts");
    Outcome {
        code: output.status.code(),
        out: without_times(&output.stdout),
        err: without_times(&output.stderr),
        file: fs::read(&new).ok(),
    }
}

/// Files that modes name.
fn write_files(at: &Place<'_>) {
    let directory = at.directory;
    let put = |name: &str, text: &str| fs::write(directory.join(name), text).unwrap();
    put(
        "tcp.ddd",
        "4\n40 0 0 12\n21 0 1 2048\n6 0 0 262144\n6 0 0 0\n",
    );
    put("drop.asm", "ret #0\n");
    put("allow.asm", "ret #0x7fff0000\n");
    put(
        "sum.asm",
        "w0 = 0\nr2 += r1\nnext:\nif r1 == r2 goto done\nr3 = *(u8 *)(r1 + 0)\nr0 += r3\nr1 += 1\n\
         goto next\ndone:\nexit\n",
    );
    put("kconfig", "CONFIG_HZ=250\n");
    put("empty", "");
    let profile = |action: &str| {
        format!(
            r#"{{"defaultAction": "{action}", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [
            {{"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"}},
            {{"names": ["open"], "action": "SCMP_ACT_KILL", "includes": {{"caps": ["CAP_SYS_ADMIN"]}}}}]}}"#
        )
    };
    put("profile.json", &profile("SCMP_ACT_ERRNO"));
    put("other.json", &profile("SCMP_ACT_KILL"));
    put("other.rules", "drop proto tcp to 192.0.2.1 port 80\n");
    put(
        "rules.save",
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n-A INPUT -i eth0 -p tcp -m conntrack --ctstate NEW -j DROP\n-A FORWARD -i eth0 -o eth1 -p udp -j DROP\nCOMMIT\n",
    );
    for name in ["old.csv", "new.csv"] {
        let object = "examples/packets/firewall.bpf.o";
        let words = ["verify", object, "--format", "csv"].map(str::to_owned);
        put(name, &run(at, &words).out);
    }
}

/// The complaints about a mode.
fn check(mode: &Mode, options: &[Opt], at: &Place<'_>) -> Vec<String> {
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

#[test]
fn every_option_acts_or_is_refused() {
    let options = options();
    let modes = modes();
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
                        Needs::Process => check_beside_process(mode, options, &place),
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
        oracle::skip("options of the gateway", "no network namespace of our own");
        Vec::new()
    })
}

/// The complaints about a mode that reads the filters of a process.
fn check_beside_process(mode: &Mode, options: &[Opt], at: &Place<'_>) -> Vec<String> {
    let filter = at.directory.join("allow.bpf").display().to_string();
    let words = ["asm", "{dir}/allow.asm", "-o", &filter].map(str::to_owned);
    assert_eq!(run(at, &words).code, Some(0));
    let child = Command::new("python3")
        .args(["-c", SANDBOXED, &filter])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        oracle::skip("options for processes with filters", "no python3");
        return Vec::new();
    };
    let mut ready = [0; 5];
    let started = child
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut ready);
    let at = Place {
        directory: at.directory,
        process: &child.id().to_string(),
    };
    let words = ["seccomp", "dump", "--pid", "{pid}"].map(str::to_owned);
    let found = match started.is_ok() && run(&at, &words).code == Some(0) {
        true => check(mode, options, &at),
        false => {
            oracle::skip("options for processes with filters", "they are not shown");
            Vec::new()
        }
    };
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    found
}
