//! Parsing of the command line's captures and expression, and opening of captures.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::path::Path;

use beebox::captures::Input;
use beebox::internal::captures::CaptureError;
use beebox::internal::captures::{Fault, Problem};
use sys::interruptible::{Interruptible, Interruption};

use super::stopwatch::{Stopwatch, Timed};
use crate::answer::Failure;
use crate::capture_file::open_file;
use crate::input::{check_streams, name};

/// An opened capture.
pub(super) struct NamedInput {
    /// Name for messages.
    pub(super) name: String,
    pub(super) input: Input,
    /// Time spent waiting for its bytes, if it is a stream.
    pub(super) waiting: Stopwatch,
}

/// The expression (an empty one with a compiled filter) and the captures. Captures that
/// `-r` names leave all words to the expression.
pub(super) fn tell_apart(
    words: &[OsString],
    read: &[OsString],
    has_compiled_filter: bool,
) -> Result<(String, Vec<OsString>), Failure> {
    if has_compiled_filter {
        return Ok((String::new(), [read, words].concat()));
    }
    if !read.is_empty() {
        return Ok((joined(words)?, read.to_vec()));
    }
    if let [_, others @ ..] = words
        && let Some(directory) = others.iter().find(|word| Path::new(word).is_dir())
    {
        return Err(is_directory(&name(Path::new(directory))));
    }
    let [expression, captures @ ..] = words else {
        return Err(Failure::new("no expression and no capture is given"));
    };
    if captures.is_empty() {
        let word = expression.display();
        return Err(if is_capture(expression) {
            Failure::new(format_args!("{word}: no filter is given for this capture")).hint(
                format_args!(
                    "beebox filter EXPR {word} (as in 'tcp port 22'; '' matches everything), \
                     or -F FILE"
                ),
            )
        } else {
            Failure::new(format_args!("no capture is given for the filter {word:?}"))
                .hint("name capture files after the expression, or - for standard input")
        });
    }
    Ok((text(expression)?.to_owned(), captures.to_vec()))
}

/// The expression that all words are.
pub(super) fn joined(words: &[OsString]) -> Result<String, Failure> {
    let words: Result<Vec<&str>, Failure> = words.iter().map(text).collect();
    Ok(words?.join(" "))
}

fn text(word: &OsString) -> Result<&str, Failure> {
    word.to_str()
        .ok_or_else(|| Failure::new("the expression is not UTF-8"))
}

/// True for standard input, files, and pipes by name.
pub(super) fn is_capture(word: &OsString) -> bool {
    let is_read = |found: Metadata| !found.is_dir();
    word == "-" || fs::metadata(word).is_ok_and(is_read)
}

/// The failure if no capture is given: none of several words is a file or looks like the
/// name of one, and the first is no quoted expression.
pub(super) fn no_capture(words: &[OsString]) -> Option<Failure> {
    if words.iter().skip(1).any(|word| Path::new(word).is_dir()) {
        return None;
    }
    let is_quoted = |word: &OsString| word.is_empty() || word.to_string_lossy().contains(' ');
    let names_none = |word| !is_capture(word) && !names_file(word);
    if words.len() < 2 || is_quoted(&words[0]) || !words.iter().all(names_none) {
        return None;
    }
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    Some(
        Failure::new(format_args!(
            "no capture is given: none of {} is a file",
            words.join(", ")
        ))
        .hint(format_args!(
            "beebox filter '{}' FILE, where - is standard input",
            words.join(" ")
        )),
    )
}

/// True if a word looks like the name of a file, which no word of an expression does.
fn names_file(word: &OsString) -> bool {
    let path = Path::new(word);
    let text = word.to_string_lossy();
    let is_address = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '/');
    !text.chars().all(is_address) && (path.extension().is_some() || text.contains('/'))
}

/// The intended command for an unquoted expression, or one after the captures; `None` if
/// the words are valid.
pub(super) fn misplaced_expression(words: &[OsString]) -> Option<String> {
    let (captures, expression): (Vec<&OsString>, Vec<&OsString>) =
        words.iter().partition(|word| is_capture(word));
    let in_order = words.first().is_some_and(|first| [first] == expression[..]);
    if captures.is_empty() || expression.is_empty() || in_order {
        return None;
    }
    let join = |words: &[&OsString]| {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    };
    Some(format!(
        "beebox filter '{}' {}",
        join(&expression),
        join(&captures)
    ))
}

/// Opens all captures, so that nothing is written if one is missing.
pub(super) fn open_all(
    paths: &[OsString],
    interruption: &Interruption,
) -> Result<Vec<NamedInput>, Failure> {
    check_streams(paths.iter().map(Path::new))?;
    let opened = paths.iter().map(|path| open(Path::new(path), interruption));
    opened.collect()
}

/// Opens one capture.
pub(super) fn open(path: &Path, interruption: &Interruption) -> Result<NamedInput, Failure> {
    let (name, file) = (name(path), open_file(path)?);
    let metadata = file.metadata().ok();
    if metadata.as_ref().is_some_and(Metadata::is_dir) {
        return Err(is_directory(&name));
    }
    let waiting = Stopwatch::default();
    let input = match metadata.as_ref().is_none_or(Metadata::is_file) {
        true => Input::try_open(file),
        false => {
            let stream = Interruptible::new(file, interruption);
            Input::try_stream(Timed::new(stream, &waiting))
        }
    };
    let input = input.map_err(|error| unreadable(&name, &error))?;
    Ok(NamedInput {
        name,
        input,
        waiting,
    })
}

/// Error of a directory in place of a capture.
fn is_directory(name: &str) -> Failure {
    Failure::new(format_args!("{name}: this is a directory, not a capture"))
        .hint("the name of a file in it")
}

/// Error of a capture that cannot be read.
pub(super) fn unreadable(name: &str, error: &CaptureError) -> Failure {
    let failure = Failure::new(format_args!("{name}: {error}"));
    match error {
        CaptureError::Fault(Fault {
            problem: Problem::UnknownFormat { .. },
            ..
        }) => failure
            .hint("captures are pcap or pcapng files, plain or in .gz, .zst, .xz, .lz4 or .bz2"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::no_capture;

    #[test]
    fn only_words_that_name_no_file_lack_a_capture() {
        let lacks = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(Into::into).collect();
            no_capture(&words).is_some()
        };
        assert!(lacks(&["tcp", "port", "22"]));
        assert!(lacks(&["net", "10.0.0.0/8"]));
        assert!(lacks(&["host", "fe80::1"]));
        assert!(!lacks(&["port 22", "day"]));
        assert!(!lacks(&["", "day"]));
        assert!(!lacks(&["tcp", "missing.pcap"]));
        assert!(!lacks(&["tcp", "captures/day"]));
        assert!(!lacks(&["tcp", "-"]));
        assert!(!lacks(&["tcp"]));
    }
}
