//! Standard output: text that is safe for a terminal, JSON, and bytes.

use std::io::{self, BufWriter, IsTerminal, Write};

pub use report::json::SCHEMA;
use report::terminal::{LONGEST_LINE, TerminalWriter, cut, escape_controls_in_styled, fold};
use serde::Serialize;
use terminal_size::Width;

use crate::answer::Failure;
use crate::answer_format::AnswerFormat;
use crate::output_file;
use crate::output_path::OutputPath;

/// Any record as one line of JSON.
pub fn json(record: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).expect("records have string keys only");
    line.push(b'\n');
    line
}

/// JSON with its version as the first member of each object that begins a line: of one document, or
/// of each of JSON Lines.
pub fn with_schema(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + 16);
    for line in json.split_inclusive(|byte| *byte == b'\n') {
        let Some(rest) = line.strip_prefix(b"{") else {
            out.extend_from_slice(line);
            continue;
        };
        let member = match rest {
            [b'\n', ..] => format!("{{\n  \"schema\": {SCHEMA},"),
            [b'}', ..] => format!("{{\"schema\":{SCHEMA}"),
            _ => format!("{{\"schema\":{SCHEMA},"),
        };
        out.extend_from_slice(member.as_bytes());
        out.extend_from_slice(rest);
    }
    out
}

/// Writes text to a file, or to standard output without one (or with `-`), there as
/// [`Shown::Text`].
pub fn write_output(text: &[u8], out: Option<OutputPath<'_>>) -> Result<(), Failure> {
    write_as(Shown::Text, text, out)
}

/// Writes JSON to standard output.
pub fn write_json(text: &[u8]) -> Result<(), Failure> {
    write_as(Shown::Whole, &with_schema(text), None)
}

/// Writes bytes to a file, or to standard output without one (or with `-`), as they are.
pub fn write_bytes(bytes: &[u8], out: Option<OutputPath<'_>>) -> Result<(), Failure> {
    write_as(Shown::AsItIs, bytes, out)
}

/// How standard output gets bytes.
#[derive(Clone, Copy)]
pub enum Shown {
    /// With control characters escaped and long lines cut.
    Text,
    /// With control characters escaped, as JSON escapes them.
    Whole,
    /// Unchanged; bytes that are no text are refused on a terminal.
    AsItIs,
}

/// Writes bytes to a file, or to standard output without one (or with `-`), there as shown.
pub fn write_as(shown: Shown, bytes: &[u8], out: Option<OutputPath<'_>>) -> Result<(), Failure> {
    if let Some(out) = out.filter(|out| !out.is_standard()) {
        return output_file::write_whole(out.path(), bytes);
    }
    let is_text = |bytes| std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
    if matches!(shown, Shown::AsItIs) && io::stdout().is_terminal() && !is_text(bytes) {
        return Err(Failure::new("a raw program is no text for a terminal")
            .hint("write it to a file with -o, or into a pipe"));
    }
    let mut stdout = io::stdout().lock();
    written(match shown {
        Shown::Text => {
            let mut out = TerminalWriter::cutting(stdout);
            out.write_all(bytes).and_then(|()| out.finish())
        }
        Shown::Whole => {
            let mut out = TerminalWriter::new(stdout);
            out.write_all(bytes).and_then(|()| out.finish())
        }
        Shown::AsItIs => stdout.write_all(bytes).and_then(|()| stdout.flush()),
    })
}

/// Standard output for an answer of any size, which is written piece by piece.
pub fn streamed_output(format: AnswerFormat) -> TerminalWriter<impl Write> {
    let out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    match format {
        AnswerFormat::Text => TerminalWriter::cutting(out),
        AnswerFormat::Json => TerminalWriter::new(out),
    }
}

/// Result of writing to standard output. A reader that closed the pipe is no failure.
pub fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::new(format_args!("standard output: {error}"))),
    }
}

/// Prints an answer: text with its styles in lines that fit a terminal, or JSON.
pub fn print_answer(format: AnswerFormat, answer: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_folded(format, answer, None)
}

/// As [`write_answer`], text on a terminal in lines that fit it.
pub fn write_folded(
    format: AnswerFormat,
    answer: impl AsRef<[u8]>,
    out: Option<OutputPath<'_>>,
) -> Result<(), Failure> {
    match (format, out.filter(|out| !out.is_standard())) {
        (AnswerFormat::Text, None) => print_folded(&String::from_utf8_lossy(answer.as_ref())),
        (format, out) => write_answer(format, answer, out),
    }
}

/// Writes an answer to a file, text without its styles, or prints it without one (or with `-`).
pub fn write_answer(
    format: AnswerFormat,
    answer: impl AsRef<[u8]>,
    out: Option<OutputPath<'_>>,
) -> Result<(), Failure> {
    let out = out.filter(|out| !out.is_standard());
    match (format, out) {
        (AnswerFormat::Text, None) => print(&String::from_utf8_lossy(answer.as_ref())),
        (AnswerFormat::Text, Some(_)) => {
            let plain = anstream::adapter::strip_bytes(answer.as_ref()).into_vec();
            write_output(&plain, out)
        }
        (AnswerFormat::Json, _) => write_as(Shown::Whole, &with_schema(answer.as_ref()), out),
    }
}

/// A text without its styles.
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Columns of a terminal that does not say how many it has.
const USUAL_WIDTH: usize = 80;

/// Columns of the terminal that standard output is, if it is one: those that COLUMNS states, or the
/// terminal itself.
pub fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    // WASI has no size of terminals.
    #[cfg(any(unix, windows))]
    let own = terminal_size::terminal_size_of(&stdout);
    #[cfg(not(any(unix, windows)))]
    let own = terminal_size::terminal_size();
    let own = own.map(|(Width(width), _)| usize::from(width));
    let stated = std::env::var("COLUMNS").ok();
    let stated = stated.and_then(|text| text.parse().ok());
    let mut widths = [stated, own].into_iter().flatten();
    Some(widths.find(|width| *width > 0).unwrap_or(USUAL_WIDTH))
}

/// Columns of the terminal that an answer goes to, if it goes to one.
pub fn width_of(out: Option<OutputPath<'_>>) -> Option<usize> {
    terminal_width().filter(|_| out.is_none_or(OutputPath::is_standard))
}

/// Text in lines that fit the terminal that standard output is, if it is one.
pub fn fit(text: &str) -> String {
    terminal_width().map_or_else(|| text.to_owned(), |width| fold(text, width))
}

/// As [`print()`], in lines that fit the terminal.
pub fn print_folded(text: &str) -> Result<(), Failure> {
    print(&fit(text))
}

/// Prints text with styles, which a terminal gets.
pub fn print(text: &str) -> Result<(), Failure> {
    written(print_styled(text))
}

/// As [`print()`], with the error of standard output.
///
/// # Errors
/// If it cannot be written.
pub fn print_styled(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let lines = text.split('\n').map(|line| cut(line, LONGEST_LINE));
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = escape_controls_in_styled(&text);
    out.write_all(&text).and_then(|()| out.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_comes_first_in_each_document() {
        for (json, expected) in [
            (
                "{\"a\":1}\n{}\n",
                "{\"schema\":1,\"a\":1}\n{\"schema\":1}\n",
            ),
            (
                "{\n  \"a\": {}\n}\n",
                "{\n  \"schema\": 1,\n  \"a\": {}\n}\n",
            ),
        ] {
            let written = with_schema(json.as_bytes());
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
    }
}
