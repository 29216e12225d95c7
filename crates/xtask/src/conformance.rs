//! Writes the page that says how many cases of each instruction each engine gets
//! right. The test that compares the page knows how to make it, so it is run with
//! the word to write.

use std::path::Path;
use std::process::Command;

use crate::Outcome;

/// Runs the cases and writes docs/conformance.md.
pub(crate) fn count() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["test", "--locked", "--package", "beebox"])
        .args(["--test", "it", "conformance::"])
        .env("UPDATE_EXPECT", "1")
        .current_dir(root)
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err("a case went wrong; nothing was written".into()),
    }
}
