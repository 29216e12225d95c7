//! The source tree as its tests read it: its root and its files.
//!
//! The tests are the product of this crate. It depends on no crate of the workspace, so that
//! they are built in seconds and run before anything else is.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that building, fuzzing and git make.
const MADE: &[&str] = &["target", ".git", "corpus", "artifacts", "coverage"];

/// Root of the repository.
///
/// # Panics
/// If the tree was moved since this crate was compiled.
pub fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("the repository")
}

/// Every file below a directory, sorted, but for what building makes.
///
/// # Panics
/// If a directory cannot be read.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry of a directory").path();
        if MADE.iter().any(|made| path.ends_with(made)) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
