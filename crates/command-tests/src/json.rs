//! The JSON of a command beside its page: the version, and every key with its types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::{env, fs};

use serde_json::Value;

use crate::options::options;
use crate::{Executable, root};

/// The page of keys, which UPDATE_EXPECT=1 writes.
const PAGE: &str = "docs/json-keys.md";

/// Words of a command and its output, in the root of the repository.
pub struct Sample<'a> {
    /// The command, as `btf show`.
    pub command: &'a str,
    /// Words behind it; those with spaces in single quotes. `@FILE` is the recorded output of a command
    /// that does not run everywhere.
    pub words: &'a str,
}

/// Types by path, as `files[].packets`.
type Keys = BTreeMap<String, BTreeSet<&'static str>>;

/// Panics unless every command with `--json` has a sample, every document begins with the version, and
/// the page has the keys that the
/// samples print, and no others, below the heading of the command; and unless a key has one type in
/// the whole page, which is of both commands. What `by_name` lists, as `btf show: kinds`, are
/// objects whose keys are names out of the input, or `any` values whose type the input states.
pub fn check_keys(
    executable: Executable,
    samples: &[Sample<'_>],
    by_name: &[(&str, &'static str)],
) {
    let mut commands: BTreeMap<&str, Keys> = BTreeMap::new();
    let mut unused: BTreeSet<&str> = by_name.iter().map(|(place, _)| *place).collect();
    for sample in samples {
        let keys = commands.entry(sample.command).or_default();
        for document in documents(executable, sample) {
            add(sample.command, "", &document, keys, (by_name, &mut unused));
        }
    }
    assert!(unused.is_empty(), "no such objects: {unused:?}");
    let unsampled = options(executable).into_iter().filter(|(command, list)| {
        let has_json = list.iter().any(|option| option.names[0] == "--json");
        has_json && !commands.contains_key(&**command)
    });
    let unsampled: Vec<String> = unsampled.map(|(command, _)| command).collect();
    assert!(unsampled.is_empty(), "no samples of {unsampled:?}");
    let mut section = String::new();
    for (command, keys) in &commands {
        let _ = write!(section, "\n### `{command}`\n\n| key | type |\n|---|---|\n");
        for (path, types) in keys {
            // An empty list says nothing about the items of another one.
            let is_list = types.iter().any(|name| name.starts_with("list of "));
            let types = types
                .iter()
                .copied()
                .filter(|name| !is_list || *name != "list");
            let types: Vec<&str> = types.collect();
            let _ = writeln!(section, "| `{path}` | {} |", types.join(" or "));
        }
    }
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let heading = format!("\n## {}\n", executable.name);
    let start = page.find(&heading).expect("the heading of the command") + heading.len();
    let end = page[start..]
        .find("\n## ")
        .map_or(page.len(), |at| start + at);
    let new = [&page[..start], &section, &page[end..]].concat();
    let is_written = page != new && env::var_os("UPDATE_EXPECT").is_some();
    if is_written {
        fs::write(root().join(PAGE), &new).expect("the page is written");
    }
    check_types(&new);
    if page == new || is_written {
        return;
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (page, printed) = (lines(&page[start..end]), lines(&section));
    let more: Vec<_> = printed.difference(&page).collect();
    let absent: Vec<_> = page.difference(&printed).collect();
    panic!(
        "{PAGE}: not in the page: {more:#?}\nnot printed: {absent:#?}\n(UPDATE_EXPECT=1 writes it)"
    );
}

/// Panics if a key has two types in the page, `null` apart.
fn check_types(page: &str) {
    let mut types: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    let mut command = "";
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            command = name;
        }
        let row = line
            .strip_prefix("| `")
            .and_then(|row| row.split_once("` | "));
        let Some((path, of_path)) = row else { continue };
        let key = path.rsplit('.').next().expect("a key");
        let of_key = types.entry(key.trim_end_matches("[]")).or_default();
        let of_path = of_path.trim_end_matches(" |").split(" or ");
        for name in of_path.filter(|name| *name != "null") {
            let places = of_key.entry(name).or_default();
            places.push(format!("{command} {path}"));
        }
    }
    // An empty list says nothing about the items of another one.
    for of_key in types.values_mut() {
        if of_key.keys().any(|name| name.starts_with("list of ")) {
            of_key.remove("list");
        }
    }
    types.retain(|_, of_key| of_key.len() > 1);
    assert!(types.is_empty(), "{PAGE}: keys of two types: {types:#?}");
}

/// The documents that a command prints: one, or one on each line.
fn documents(executable: Executable, sample: &Sample<'_>) -> Vec<Value> {
    let (text, said) = match sample.words.strip_prefix('@') {
        Some(file) => {
            let text = fs::read_to_string(root().join(file));
            (text.expect("a recorded output"), String::new())
        }
        None => {
            let mut command = executable.command();
            command
                .args(sample.command.split(' '))
                .args(words(sample.words))
                .arg("--json");
            let output = command.output().expect("the command runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (String::from_utf8(output.stdout).expect("UTF-8"), said)
        }
    };
    let name = format!("{} {}", sample.command, sample.words);
    let documents: Vec<&str> = match serde_json::from_str::<Value>(&text) {
        Ok(_) => vec![&text],
        Err(_) => text.lines().collect(),
    };
    assert!(!documents.is_empty(), "{name}: {said}");
    let parsed = documents.iter().map(|text| {
        let begins = ["{\"schema\":1", "{\n  \"schema\": 1"];
        let has_version = begins.iter().any(|begin| text.starts_with(begin));
        assert!(has_version, "{name}: {text}");
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {said}"))
    });
    parsed.collect()
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

fn add<'a>(
    command: &str,
    path: &str,
    value: &Value,
    keys: &mut Keys,
    (by_name, unused): (&[(&'a str, &'static str)], &mut BTreeSet<&'a str>),
) {
    let place = format!("{command}: {path}");
    if let Some((place, name)) = by_name.iter().find(|(known, _)| **known == place) {
        unused.remove(place);
        keys.entry(path.to_owned()).or_default().insert(name);
        return;
    }
    // Items have the row of their list.
    if !path.is_empty() && !path.ends_with(']') {
        let types = keys.entry(path.to_owned()).or_default();
        match value {
            Value::Array(items) if !items.is_empty() => {
                types.extend(items.iter().map(|item| LISTS[kind(item)]));
            }
            value => {
                types.insert(TYPES[kind(value)]);
            }
        }
    }
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                add(command, &path, value, keys, (by_name, &mut *unused));
            }
        }
        Value::Array(items) => {
            let path = format!("{path}[]");
            for item in items {
                add(command, &path, item, keys, (by_name, &mut *unused));
            }
        }
        _ => {}
    }
}

/// Names of types, and of lists of them, by [`kind`].
const TYPES: [&str; 6] = ["null", "boolean", "number", "text", "list", "object"];
const LISTS: [&str; 6] = [
    "list of nulls",
    "list of booleans",
    "list of numbers",
    "list of texts",
    "list of lists",
    "list of objects",
];

fn kind(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}
