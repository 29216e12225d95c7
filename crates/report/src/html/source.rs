//! Source files: whole where the file is there and is the one that was compiled, else the lines that the
//! object has.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Most bytes of a file that is shown whole.
const MOST_BYTES: u64 = 4 << 20;

/// Finds source files by the names that objects have of them.
#[derive(Clone, Debug)]
pub struct SourceFinder {
    beside: Vec<PathBuf>,
}

/// A source file.
#[derive(Debug, Serialize)]
pub(super) struct SourceFile {
    name: String,
    /// Numbers of the lines, if they are not all from 1 on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<u32>,
    texts: Vec<String>,
}

impl SourceFinder {
    /// Files with names from the current directory, or beside one of these objects.
    pub fn beside<'o>(objects: impl IntoIterator<Item = &'o Path>) -> SourceFinder {
        let directories = objects.into_iter().map(|object| object.parent());
        let mut beside: Vec<PathBuf> = directories
            .map(|directory| directory.unwrap_or(Path::new("")).to_owned())
            .collect();
        beside.dedup();
        SourceFinder { beside }
    }

    /// A file, with the texts of lines that are known of it.
    pub(super) fn find(&self, name: &str, known: &BTreeMap<u32, String>) -> SourceFile {
        let path = Path::new(name);
        let base = path.file_name().map(Path::new);
        let beside = self.beside.iter().flat_map(|directory| {
            let names = [Some(path), base].into_iter().flatten();
            names.map(|name| directory.join(name))
        });
        let mut places = [path.to_owned()].into_iter().chain(beside);
        let whole = places.find_map(|place| {
            let is_read = |file: &fs::Metadata| file.is_file() && file.len() <= MOST_BYTES;
            fs::metadata(&place).ok().filter(is_read)?;
            let text = String::from_utf8_lossy(&fs::read(&place).ok()?).into_owned();
            is_source_of(&text, known).then_some(text)
        });
        match whole {
            Some(text) => SourceFile {
                name: name.to_owned(),
                numbers: Vec::new(),
                texts: text.lines().map(str::to_owned).collect(),
            },
            None => SourceFile {
                name: name.to_owned(),
                numbers: known.keys().copied().collect(),
                texts: known.values().cloned().collect(),
            },
        }
    }
}

/// True if a file has the known lines where they should be: objects name files, and another file of that
/// name does not go into a page.
fn is_source_of(text: &str, known: &BTreeMap<u32, String>) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let is_there = |(number, known): (&u32, &String)| {
        let line = number.checked_sub(1).and_then(|at| lines.get(at as usize));
        line.is_some_and(|line| line.trim() == known.trim())
    };
    let told = known.iter().filter(|(number, _)| **number > 0);
    known.keys().any(|number| *number > 0) && told.into_iter().all(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_other_lines_is_not_shown() {
        let known = |text: &str| BTreeMap::from([(2, text.to_owned())]);
        assert!(is_source_of("one\n  two\n", &known("two")));
        assert!(!is_source_of("one\nthree\n", &known("two")));
        assert!(!is_source_of("secret\n", &BTreeMap::new()));
        assert!(!is_source_of(
            "secret\n",
            &BTreeMap::from([(0, String::new())])
        ));
    }
}
