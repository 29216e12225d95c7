//! The result of a command: yes, no, or why it could not answer.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

use report::terminal::{cut, escape_controls};

use crate::file_hint;
use crate::input::name;

/// Name of the command in its messages.
static COMMAND_NAME: OnceLock<String> = OnceLock::new();

/// Sets the name of the command in its messages; a later name is ignored.
pub(crate) fn set_command_name(name: &str) {
    let _ = COMMAND_NAME.set(name.to_owned());
}

/// Writes a message to standard error, with the command's name in front.
pub fn note(message: impl Display) {
    let name = COMMAND_NAME.get().map_or("beebox", String::as_str);
    diagnostic!("{name}: {message}");
}

/// The answer of a command.
pub enum Answer {
    /// Exit code 0.
    Yes,
    /// Exit code 1: nothing matched, refused, differs, missed.
    No,
}

/// Error of a command: exit code 2.
#[derive(Debug)]
pub struct Failure {
    /// Object, place and fact, in one line.
    what: String,
    /// The source lines of the place.
    excerpt: Option<String>,
    /// The remedy.
    hint: Option<String>,
}

impl Failure {
    /// A failure without excerpt and remedy.
    pub fn new(what: impl Display) -> Failure {
        Failure {
            what: what.to_string(),
            excerpt: None,
            hint: None,
        }
    }

    /// A file that can't be opened, read or written (`-` is a standard stream), with a
    /// remedy.
    pub fn of_file(path: &Path, error: &io::Error) -> Failure {
        let failure = match error.kind() {
            io::ErrorKind::InvalidData => {
                Failure::new("the file is not text (UTF-8)").within(name(path))
            }
            _ => Failure::new(format_args!("{}: {error}", name(path))),
        };
        match file_hint::hint(path, error) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// Adds the source lines of the place.
    pub fn excerpt(self, lines: impl Display) -> Failure {
        Failure {
            excerpt: Some(lines.to_string()),
            ..self
        }
    }

    /// Adds the input in front.
    pub fn within(self, input: impl Display) -> Failure {
        Failure {
            what: format!("{input}: {}", self.what),
            ..self
        }
    }

    /// Adds the remedy.
    pub fn hint(self, hint: impl Display) -> Failure {
        Failure {
            hint: Some(hint.to_string()),
            ..self
        }
    }

    /// Object, place and fact.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Prints the failure on standard error; the exit code.
    pub fn report(&self) -> u8 {
        note(&self.what);
        if let Some(excerpt) = &self.excerpt {
            diagnostic!("{excerpt}");
        }
        if let Some(hint) = &self.hint {
            diagnostic!("  try: {hint}");
        }
        2
    }
}

/// Bytes of a line of a message that are shown; inputs that it repeats may be longer.
const LONGEST_MESSAGE: usize = 2 << 10;

/// Writes lines to standard error, with control characters escaped and long lines cut. A closed
/// standard error is no fault of the command.
pub fn write_diagnostic(text: &str) {
    let lines = text.split('\n').map(|line| cut(line, LONGEST_MESSAGE));
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    let _ = io::stderr().write_all(&escape_controls(text.as_bytes()));
}
