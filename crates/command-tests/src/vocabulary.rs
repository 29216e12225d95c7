//! One vocabulary of both commands: a letter stands for one option, an option has one letter, and its
//! value one name.
//! A command that takes the place of a known tool has the letters of that tool.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::options::{Opt, options, value_names};
use crate::{Executable, root};

/// A command, the known tool whose letters it has, and pairs of a letter and an option.
pub type OfTool = (&'static str, &'static str, &'static [&'static str]);

/// Options that every command has under this letter.
const LETTERS: &[(&str, &str)] = &[
    ("-j", "--json"),
    ("-J", "--jobs"),
    ("-o", "--output"),
    ("-G", "--set"),
];

/// Letters of options that not every command with the option has.
const OTHER_LETTERS: &[(&str, &str)] = &[
    ("-#", "--number"),
    ("-L", "--list-linktypes"),
    ("-O", "--no-optimize"),
    ("-S", "--top-src-lines"),
    ("-c", "--limit"),
    ("-e", "--expression"),
    ("-f", "--filter"),
    ("-i", "--interface"),
    ("-l", "--log"),
    ("-v", "--verbose"),
];

/// Letters of an option; `-w` is that of `--write`, another name of `--output`.
fn letters(option: &Opt) -> impl Iterator<Item = &str> {
    let names = option.names.iter().map(String::as_str);
    names.filter(|name| !name.starts_with("--") && *name != "-w")
}

/// Panics unless letters stand for the options of the table, or those of the known tool whose place
/// a command takes, of which `of_tools` are all.
pub fn check_letters(executable: Executable, of_tools: &[OfTool]) {
    let mut unused: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (command, _, pairs) in of_tools {
        unused.extend(pairs.iter().map(|pair| (*command, *pair)));
    }
    let meanings: BTreeMap<&str, &str> = LETTERS.iter().chain(OTHER_LETTERS).copied().collect();
    let options = options(executable);
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
                match meanings.get(letter) {
                    Some(meaning) if meaning == name => {}
                    Some(meaning) => complaints.push(format!(
                        "{command}: {letter} is {name} here, {meaning} elsewhere"
                    )),
                    None => complaints.push(format!("{command}: {letter} is not in the table")),
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

/// An option whose value is another one in some commands: the option, the name of the value there,
/// the commands, and why.
type OtherValue = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
);

/// Options whose values differ.
const OTHER_VALUES: &[OtherValue] = &[
    (
        "--output",
        "[VERDICT=]OUT",
        &["beebox run"],
        "packets of a verdict have a file of their own",
    ),
    (
        "--output",
        "[FORM=]OUT",
        &["beebox coverage"],
        "one run writes several forms, by the words of --coverage",
    ),
    (
        "--output",
        "DIR",
        &["beebox fuzz"],
        "each find is two files",
    ),
    (
        "--type",
        "TYPE",
        &[
            "beebox btf dump",
            "beebox btf diff",
            "beebox gen header",
            "beebox gen rust",
        ],
        "commands about types: a type of BTF, not of a program",
    ),
    (
        "--from",
        "FROM",
        &["beebox-gateway import"],
        "the program that wrote the rules; elsewhere the number of a packet",
    ),
    (
        "--why",
        "",
        &["beebox test"],
        "a test has no packet to choose: the run that decided is told",
    ),
];

/// Panics unless the value of an option has one name in all commands of both executables, but for
/// those of a list.
pub fn check_values(executable: Executable) {
    let mut unused: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (option, _, commands, why) in OTHER_VALUES {
        assert!(!why.is_empty(), "{option}: a reason");
        let is_read = |command: &&&str| {
            let mut words = command.split(' ');
            words
                .next()
                .is_some_and(|name| [executable.name, "beebox"].contains(&name))
        };
        let commands = commands.iter().filter(is_read);
        unused.extend(commands.map(|command| (*option, *command)));
    }
    let all = value_names(executable);
    let mut values: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for valued in &all {
        let (option, command) = (valued.option.as_str(), valued.command.as_str());
        let is_other = OTHER_VALUES.iter().any(|(known, value, commands, _)| {
            (*known, *value) == (option, valued.value.as_str()) && commands.contains(&command)
        });
        if is_other && unused.remove(&(option, command)) {
            continue;
        }
        let of_option = values.entry(option).or_default();
        of_option.entry(&valued.value).or_default().push(command);
    }
    values.retain(|_, of_option| of_option.len() > 1);
    assert!(values.is_empty(), "options of two values: {values:#?}");
    assert!(unused.is_empty(), "without need: {unused:?}");
}

/// The page with the options that several commands have.
const PAGE: &str = "docs/commands.md";

/// Panics unless a row of the page names all commands with its options and no others, those of groups
/// by their first word. Rows that name commands without a code span are not compared.
pub fn check_page(executable: Executable) {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let (_, table) = page.split_once("| option | commands |").expect("the table");
    let options = options(executable);
    let mut complaints = Vec::new();
    for row in table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<&str> = row.split(" | ").collect();
        let spans = |cell: &str| -> Vec<String> {
            let spans = cell.split('`').skip(1).step_by(2);
            spans.map(str::to_owned).collect()
        };
        let first = |name: &str| name.split(' ').next().unwrap_or(name).to_owned();
        let named: BTreeSet<String> = spans(cells[1])
            .iter()
            .map(|name| first(name))
            .filter(|name| *name != "beebox-gateway" && name != "dump")
            .collect();
        if cells[1].contains("those ") {
            continue;
        }
        let of_row = spans(cells[0]).into_iter().map(|option| first(&option));
        // Letters are those of other tools in some commands.
        for option in of_row.filter(|option| option.starts_with("--")) {
            let is_other = |command: &str| {
                OTHER_VALUES.iter().any(|(name, _, commands, _)| {
                    *name == option && commands.contains(&&*format!("beebox {command}"))
                })
            };
            let have = options.iter().filter(|(command, list)| {
                list.iter().any(|it| it.names.contains(&option)) && !is_other(command)
            });
            let have: BTreeSet<String> = have.map(|(command, _)| first(command)).collect();
            if have != named {
                complaints.push(format!("{option}: {have:?}, in the page {named:?}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{PAGE}: {}", complaints.join("\n"));
}

/// Panics unless every command with `--format` has `--output`.
pub fn check_outputs(executable: Executable) {
    let lacking = options(executable).into_iter().filter(|(_, list)| {
        let has = |name: &str| {
            list.iter()
                .any(|option| option.names.iter().any(|it| it == name))
        };
        has("--format") && !has("--output")
    });
    let lacking: Vec<String> = lacking.map(|(command, _)| command).collect();
    assert!(lacking.is_empty(), "--format without --output: {lacking:?}");
}

/// Panics unless every `--format` has text and json.
pub fn check_formats(executable: Executable) {
    for (command, list) in &options(executable) {
        let Some(format) = list.iter().find(|option| option.names[0] == "--format") else {
            continue;
        };
        let has = |value: &str| format.values.iter().any(|known| known == value);
        assert!(has("text") && has("json"), "{command}: {:?}", format.values);
        let has_short = list.iter().any(|option| option.names[0] == "--json");
        assert_eq!(has_short, has("json"), "{command}: --json is --format json");
    }
}
