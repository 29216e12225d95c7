//! Which words of the command line are captures, and opening them.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;

use beebox::captures::{CaptureError, Fault, Input, Problem};

use crate::answer::Failure;

/// An opened capture.
pub(super) struct NamedInput {
    /// What messages call it.
    pub(super) name: String,
    pub(super) input: Input,
    /// To tell whether the output is the same file.
    pub(super) metadata: Option<Metadata>,
}

/// The expression (an empty one with a compiled filter) and the captures.
pub(super) fn tell_apart(
    words: &[OsString],
    has_compiled_filter: bool,
) -> Result<(&str, &[OsString]), Failure> {
    if has_compiled_filter {
        return Ok(("", words));
    }
    let [expression, captures @ ..] = words else {
        return Err(Failure::new("no expression and no capture is given"));
    };
    if captures.is_empty() {
        let word = expression.display();
        return Err(if expression == "-" || Path::new(expression).is_file() {
            Failure::new(format_args!(
                "{word} is a capture to read, but no filter is given"
            ))
            .hint(format_args!(
                "beebox filter EXPR {word} (as in 'tcp port 22'; '' matches everything), or -F FILE"
            ))
        } else {
            Failure::new(format_args!(
                "no capture is given to look for \"{word}\" in"
            ))
            .hint("name capture files after the expression, or - for standard input")
        });
    }
    let Some(expression) = expression.to_str() else {
        return Err(Failure::new("the expression is not UTF-8"));
    };
    Ok((expression, captures))
}

/// Opens all captures, so that nothing is written if one is missing.
pub(super) fn open_all(paths: &[OsString]) -> Result<Vec<NamedInput>, Failure> {
    if paths.iter().filter(|path| *path == "-").count() > 1 {
        return Err(Failure::new("standard input can be read only once"));
    }
    paths.iter().map(|path| open(Path::new(path))).collect()
}

/// Opens one capture.
fn open(path: &Path) -> Result<NamedInput, Failure> {
    let (name, file) = if path == Path::new("-") {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Err(Failure::new("standard input is a terminal, not a capture"));
        }
        let file = stdin.as_fd().try_clone_to_owned().map(File::from);
        ("standard input".to_owned(), file)
    } else {
        (path.display().to_string(), File::open(path))
    };
    let file = file.map_err(|error| Failure::of_file(path, &error))?;
    let metadata = file.metadata().ok();
    if metadata.as_ref().is_some_and(Metadata::is_dir) {
        return Err(Failure::new(format_args!("{name}: it is a directory")));
    }
    let input = Input::open(file).map_err(|error| unreadable(&name, &error))?;
    Ok(NamedInput {
        name,
        input,
        metadata,
    })
}

/// What to say about a capture that can't be read (on).
pub(super) fn unreadable(name: &str, error: &CaptureError) -> Failure {
    let failure = Failure::new(format_args!("{name}: {error}"));
    match error {
        CaptureError::Fault(Fault {
            problem: Problem::UnknownFormat { .. },
            ..
        }) => failure.hint("captures are pcap or pcapng files, plain or in .gz or .zst"),
        _ => failure,
    }
}
