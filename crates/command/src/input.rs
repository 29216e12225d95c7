//! Inputs that the command line names: files, standard input, bytes.

use std::io;
use std::path::Path;

use beebox::internal::bytes::{ByteSource, ByteSourceError, MOST_BYTES};

use crate::answer::Failure;

/// Bytes of the longest text that is read: a million instructions with a label each.
pub const LONGEST_TEXT: u64 = 64 << 20;

/// The bytes of a file, or of standard input (`-`), if they are no more than `limit`.
pub fn read_at_most(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    sys::input::read(path, limit).map_err(|error| Failure::of_file(path, &error))
}

/// The text of a file, or of standard input (`-`), if it has no more than `limit` bytes.
pub fn read_text(path: &Path, limit: u64) -> Result<String, Failure> {
    String::from_utf8(read_at_most(path, limit)?)
        .map_err(|_| Failure::of_file(path, &io::ErrorKind::InvalidData.into()))
}

/// Fails if standard input (`-`) is named more than once.
pub fn check_streams<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Failure> {
    let is_stream = |path: &&Path| *path == Path::new("-");
    match paths.into_iter().filter(is_stream).count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::new("standard input can be read only once")),
    }
}

/// The name of a path in messages.
pub fn name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// The line with a mark below the column; `None` if the line is blank.
pub fn excerpt(bytes: &[u8], line: usize, column: usize) -> Option<String> {
    /// Characters shown before the mark, and in all.
    const BEFORE: usize = 40;
    const WIDTH: usize = 76;
    let source = bytes.split(|&byte| byte == b'\n').nth(line - 1)?;
    let source = String::from_utf8_lossy(source);
    let first = column.saturating_sub(1 + BEFORE);
    let shown: String = source
        .trim_end()
        .chars()
        .skip(first)
        .take(WIDTH)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if shown.trim().is_empty() {
        return None;
    }
    let indent = " ".repeat(column - 1 - first);
    Some(format!("{line:>6} | {shown}\n       | {indent}^"))
}

/// The bytes of a source.
pub fn read_source(source: &ByteSource) -> Result<Vec<u8>, Failure> {
    source.read().map_err(source_failure)
}

/// The failure for a source of bytes, with a remedy.
pub fn source_failure(error: ByteSourceError) -> Failure {
    match &error {
        ByteSourceError::File { path, error } => Failure::of_file(path, error),
        ByteSourceError::Capture { .. } => Failure::new(error)
            .hint("--pcap FILE runs on its packets; of an expectation file `capture`"),
        _ => Failure::new(error),
    }
}

/// The bytes of a file, or of standard input if the path is `-`.
pub fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    read_at_most(path, MOST_BYTES)
}
