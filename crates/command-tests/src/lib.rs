//! Tests that the commands `beebox` and `beebox-gateway` share: options and their effects, the
//! vocabulary of options, JSON, commands shown in documents.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod documents;
pub mod json;
pub mod modes;
pub mod options;
pub mod vocabulary;

use std::path::Path;
use std::process::{Command, Stdio};

/// A command under test.
#[derive(Clone, Copy)]
pub struct Executable {
    /// Its name, as users write it.
    pub name: &'static str,
    /// Path of the executable.
    pub path: &'static str,
}

impl Executable {
    /// A run in the root of the repository, without standard input.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.path);
        command.current_dir(root()).stdin(Stdio::null());
        command
    }
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
