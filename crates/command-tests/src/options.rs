//! The options of a command, which are those of clap's tree, read from the completion script for
//! fish.

use std::collections::BTreeMap;
use std::fs;

use crate::{Executable, root};

/// An option: all its names, the first of which names it in the table.
pub struct Opt {
    /// Long names, then letters, with their dashes.
    pub names: Vec<String>,
    /// True if a value follows.
    pub takes_value: bool,
    /// The values that are listed.
    pub values: Vec<String>,
}

/// An option with a value name, of the reference of a command.
pub struct Valued {
    /// The command, as `beebox btf show`.
    pub command: String,
    /// Its long name.
    pub option: String,
    /// What stands for its value; empty if it takes none.
    pub value: String,
}

/// The page of the options of `beebox`, which is what its help prints.
const REFERENCE: &str = "docs/command-options.md";

/// Options with the names of their values: those of `beebox` by its page, and of this command by its
/// help.
pub fn value_names(executable: Executable) -> Vec<Valued> {
    let directory = tempfile::tempdir().unwrap();
    let mut command = executable.command();
    let made = command.arg("man").arg(directory.path()).arg("--markdown");
    assert!(made.status().unwrap().success());
    let own = directory.path().join(format!("{}.md", executable.name));
    let page = match executable.name {
        "beebox" => String::new(),
        _ => fs::read_to_string(root().join(REFERENCE)).unwrap(),
    };
    let text = page + &fs::read_to_string(own).unwrap();
    let mut found = Vec::new();
    let mut command = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            command = name;
        }
        // Behind two columns and a letter, or six; texts begin behind ten.
        let indent = line.len() - line.trim_start().len();
        let option = match line.trim_start().split_once(", --") {
            Some((letter, option)) if letter.len() == 2 => option,
            _ => line.trim_start().strip_prefix("--").unwrap_or_default(),
        };
        if !matches!(indent, 2 | 6) || option.is_empty() {
            continue;
        }
        let end = option.find(|each: char| !each.is_ascii_lowercase() && each != '-');
        let (name, rest) = option.split_at(end.unwrap_or(option.len()));
        let value = rest.find('<').zip(rest.rfind('>'));
        let value = value.map_or("", |(begin, end)| &rest[begin + 1..end]);
        // Other lines are those of examples.
        if rest.is_empty() || !value.is_empty() || rest == "..." {
            found.push(Valued {
                command: command.to_owned(),
                option: format!("--{name}"),
                value: value.to_owned(),
            });
        }
    }
    found
}

/// Options by command, of `complete -c COMMAND -n "CONDITION" -s x -l long -d '…' -r -f -a "VALUE`,
/// where a line for each further value follows.
pub fn options(executable: Executable) -> BTreeMap<String, Vec<Opt>> {
    let script = executable
        .command()
        .args(["completions", "fish"])
        .output()
        .unwrap();
    let script = String::from_utf8(script.stdout).unwrap();
    let prefix = format!("complete -c {} -n \"", executable.name);
    let mut options: BTreeMap<String, Vec<Opt>> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in script.lines() {
        let Some(rest) = line.strip_prefix(&*prefix) else {
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
