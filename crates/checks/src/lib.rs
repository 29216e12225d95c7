//! The source tree as its tests read it: its root and its files.
//!
//! The tests are the product of this crate. It depends on no crate of the workspace, so that
//! they are built in seconds and run before anything else is.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories that building, fuzzing and git make.
const MADE: &[&str] = &["target", ".git", "corpus", "artifacts", "coverage"];

/// Root of the repository.
///
/// # Panics
/// If the tree was moved since this crate was compiled.
pub fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("the repository")
}

/// Every file below a directory, sorted: those that git tracks; without git, all but what building
/// makes.
///
/// # Panics
/// If a directory cannot be read.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    tracked(directory).unwrap_or_else(|| walk(directory))
}

/// Every file with an ending below a directory, with its text, sorted.
///
/// # Panics
/// If a file cannot be read, or is no text.
pub fn texts(directory: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let mut paths = files(directory);
    paths.retain(|path| path.extension().is_some_and(|it| it == ending));
    let read = |path: PathBuf| match fs::read_to_string(&path) {
        Ok(text) => (path, text),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    paths.into_iter().map(read).collect()
}

/// The files below a directory that git tracks and that are there; `None` without git.
fn tracked(directory: &Path) -> Option<Vec<PathBuf>> {
    let git = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(directory)
        .output()
        .ok()?;
    let names = String::from_utf8(git.stdout).ok()?;
    let paths = names
        .split_terminator('\0')
        .map(|name| directory.join(name));
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    paths.sort();
    (git.status.success() && !paths.is_empty()).then_some(paths)
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry of a directory").path();
        if MADE.iter().any(|made| path.ends_with(made)) {
            continue;
        }
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
