//! One vocabulary: a letter stands for one option in all commands, and an option has one letter.
//! A command that takes the place of a known tool has the letters of that tool.

use std::collections::{BTreeMap, BTreeSet};

use crate::options::{Opt, options};

/// Letters that stand for another option in a command, with the tool that has them.
const OF_TOOLS: &[(&str, &str, &[&str])] = &[
    (
        "verify",
        "veristat",
        &[
            "-o --format",
            "-d --debug",
            "-n --top-n",
            "-q --quiet",
            "-t --test-states",
            "-e --emit",
            "-r --test-reg-invariants",
            "-s --sort",
        ],
    ),
    (
        "filter",
        "tcpdump",
        &[
            "-d -d",
            "-e -e",
            "-n -n",
            "-q -q",
            "-r --read",
            "-s --snaplen",
            "-t -t",
            "-F --filter",
            "-C -C",
            "-G -G",
        ],
    ),
];

/// Commands whose --format has other values than text and json, with what they are.
const OTHER_FORMATS: &[(&str, &str)] = &[
    ("asm", "forms of programs"),
    ("btf dump", "those of bpftool"),
    ("dis", "forms of programs"),
    ("seccomp compile", "forms of programs"),
    ("seccomp dump", "forms of programs"),
];

/// Options that every command has under this letter.
const LETTERS: &[(&str, &str)] = &[
    ("-j", "--json"),
    ("-J", "--jobs"),
    ("-o", "--output"),
    ("-G", "--set"),
];

/// Letters of an option; `-w` is that of `--write`, another name of `--output`.
fn letters(option: &Opt) -> impl Iterator<Item = &str> {
    let names = option.names.iter().map(String::as_str);
    names.filter(|name| !name.starts_with("--") && *name != "-w")
}

#[test]
fn letters_stand_for_one_option() {
    let mut unused: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (command, _, pairs) in OF_TOOLS {
        unused.extend(pairs.iter().map(|pair| (*command, *pair)));
    }
    let mut meanings: BTreeMap<String, String> = BTreeMap::new();
    meanings.extend(
        LETTERS
            .iter()
            .map(|(letter, name)| ((*letter).into(), (*name).into())),
    );
    let options = options();
    let mut complaints = Vec::new();
    for (command, list) in &options {
        for option in list {
            let name = &option.names[0];
            for letter in letters(option) {
                let pair = format!("{letter} {name}");
                let known = unused
                    .iter()
                    .find(|known| **known == (command, &pair))
                    .copied();
                if known.is_some_and(|known| unused.remove(&known)) {
                    continue;
                }
                let meaning = meanings
                    .entry(letter.to_owned())
                    .or_insert_with(|| name.clone());
                if meaning != name {
                    complaints.push(format!(
                        "{command}: {letter} is {name} here, {meaning} elsewhere"
                    ));
                }
            }
        }
        for (letter, name) in LETTERS {
            let has = |word: &str| {
                list.iter()
                    .any(|option| option.names.iter().any(|name| name == word))
            };
            if has(name) && !has(letter) {
                complaints.push(format!("{command}: {name} without {letter}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(unused.is_empty(), "without need: {unused:?}");
}

#[test]
fn formats_are_text_and_json() {
    for (command, list) in &options() {
        let Some(format) = list.iter().find(|option| option.names[0] == "--format") else {
            continue;
        };
        let has = |value: &str| format.values.iter().any(|known| known == value);
        let is_other = OTHER_FORMATS.iter().any(|(other, _)| other == command);
        assert_eq!(
            has("text") && has("json"),
            !is_other,
            "{command}: {:?}",
            format.values
        );
        let has_short = list.iter().any(|option| option.names[0] == "--json");
        assert_eq!(has_short, has("json"), "{command}: --json is --format json");
    }
}
