//! The JSON of a command beside its page: the version, and every key with its types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::{env, fs};

use serde_json::Value;

use crate::{Executable, root};

/// The page of keys, which UPDATE_EXPECT=1 writes.
const PAGE: &str = "docs/json-keys.md";

/// Words of a command and its output, in the root of the repository.
pub struct Sample<'a> {
    /// The command, as `btf show`.
    pub command: &'a str,
    /// Words behind it; those with spaces in single quotes.
    pub words: &'a str,
}

/// Types by path, as `files[].packets`.
type Keys = BTreeMap<String, BTreeSet<&'static str>>;

/// Panics unless every document begins with the version, and the page has the keys that the
/// samples print, and no others, below the heading of the command. What `by_name` lists, as
/// `btf show: kinds`, are objects whose keys are names out of the input.
pub fn check_keys(executable: Executable, samples: &[Sample<'_>], by_name: &[&str]) {
    let mut commands: BTreeMap<&str, Keys> = BTreeMap::new();
    let mut unused: BTreeSet<&str> = by_name.iter().copied().collect();
    for sample in samples {
        let keys = commands.entry(sample.command).or_default();
        for document in documents(executable, sample) {
            add(sample.command, "", &document, keys, (by_name, &mut unused));
        }
    }
    assert!(unused.is_empty(), "no such objects: {unused:?}");
    let mut section = String::new();
    for (command, keys) in &commands {
        let _ = write!(section, "\n### `{command}`\n\n| key | type |\n|---|---|\n");
        for (path, types) in keys {
            let types: Vec<&str> = types.iter().copied().collect();
            let _ = writeln!(section, "| `{path}` | {} |", types.join(" or "));
        }
    }
    let page = fs::read_to_string(root().join(PAGE)).expect("the page");
    let heading = format!("\n## {}\n", executable.name);
    let start = page.find(&heading).expect("the heading of the command") + heading.len();
    let end = page[start..]
        .find("\n## ")
        .map_or(page.len(), |at| start + at);
    if page[start..end] == section {
        return;
    }
    if env::var_os("UPDATE_EXPECT").is_some() {
        let new = [&page[..start], &section, &page[end..]].concat();
        return fs::write(root().join(PAGE), new).expect("the page is written");
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (page, printed) = (lines(&page[start..end]), lines(&section));
    let more: Vec<_> = printed.difference(&page).collect();
    let absent: Vec<_> = page.difference(&printed).collect();
    panic!(
        "{PAGE}: not in the page: {more:#?}\nnot printed: {absent:#?}\n(UPDATE_EXPECT=1 writes it)"
    );
}

/// The documents that a command prints: one, or one on each line.
fn documents(executable: Executable, sample: &Sample<'_>) -> Vec<Value> {
    let mut command = executable.command();
    command
        .args(sample.command.split(' '))
        .args(words(sample.words))
        .arg("--json");
    let output = command.output().expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
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
    (by_name, unused): (&[&'a str], &mut BTreeSet<&'a str>),
) {
    match value {
        Value::Object(members) => {
            let place = format!("{command}: {path}");
            if let Some(found) = by_name.iter().find(|known| **known == place) {
                unused.remove(found);
                keys.entry(path.to_owned())
                    .or_default()
                    .insert("object by name");
                return;
            }
            for (key, value) in members {
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                let name = match value {
                    Value::Null => "null",
                    Value::Bool(_) => "boolean",
                    Value::Number(_) => "number",
                    Value::String(_) => "text",
                    Value::Array(_) => "list",
                    Value::Object(_) => "object",
                };
                let is_by_name = by_name.contains(&format!("{command}: {path}").as_str());
                if !(is_by_name && value.is_object()) {
                    keys.entry(path.clone()).or_default().insert(name);
                }
                add(command, &path, value, keys, (by_name, unused));
            }
        }
        Value::Array(items) => {
            let path = format!("{path}[]");
            for item in items {
                add(command, &path, item, keys, (by_name, unused));
            }
        }
        _ => {}
    }
}
