//! Text out of files on its way to a terminal: without control characters, in lines of bounded
//! length.
//!
//! A terminal obeys control characters (ESC, and the C1 set in UTF-8 among them), which names,
//! comments and source lines of a file may hold. Here they become escapes that JSON has too, so
//! that text and JSON are treated alike. Linear in the text.

use std::borrow::Cow;
use std::io::{self, Write};

/// Bytes of a line of text that are shown.
pub const LONGEST_LINE: usize = 64 << 10;

/// Text with control characters but line ends and tabs as `\u001b`, and bytes that are no UTF-8
/// as `\u0080` and so on.
pub fn escape_controls(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().copied().any(may_need_escape) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        let mut copied = 0;
        for (at, character) in valid.char_indices() {
            if character.is_control() && !matches!(character, '\n' | '\t') {
                out.extend_from_slice(&valid.as_bytes()[copied..at]);
                put_escape(&mut out, character as u32);
                copied = at + character.len_utf8();
            }
        }
        out.extend_from_slice(&valid.as_bytes()[copied..]);
        for byte in chunk.invalid() {
            put_escape(&mut out, u32::from(*byte));
        }
    }
    Cow::Owned(out)
}

/// As [`escape_controls`], of text that has the styles of this crate: sequences of ESC `[`, up to
/// two digits and `m` stay.
pub fn escape_controls_in_styled(text: &str) -> Cow<'_, [u8]> {
    if !text.bytes().any(may_need_escape) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        let (before, sequence) = rest.split_at(at);
        out.extend_from_slice(&escape_controls(before.as_bytes()));
        let style = style_len(sequence);
        let (shown, after) = sequence.split_at(style.unwrap_or(2));
        match style {
            Some(_) => out.extend_from_slice(shown.as_bytes()),
            None => out.extend_from_slice(&escape_controls(shown.as_bytes())),
        }
        rest = after;
    }
    out.extend_from_slice(&escape_controls(rest.as_bytes()));
    Cow::Owned(out)
}

/// Bytes of the style that a text begins with.
fn style_len(text: &str) -> Option<usize> {
    let after = text.strip_prefix("\x1b[")?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let is_style = digits <= 2 && after[digits..].starts_with('m');
    is_style.then_some(2 + digits + 1)
}

/// Room of the last column of a table at least, for rows to continue below it.
const LEAST_ROOM: usize = 12;

/// Text with styles in lines of at most `width` columns. A longer line continues below its last
/// column, which begins behind two spaces or more, or four spaces in where its words have no room
/// there; a rule under headings is cut. Linear in the text.
pub fn fold(text: &str, width: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        fold_line(line, width.max(1), &mut folded);
    }
    folded
}

fn fold_line(line: &str, width: usize, folded: &mut String) {
    let pieces = pieces(line.trim_end_matches('\n'));
    let columns: Vec<char> = pieces.iter().filter_map(|(shown, _)| *shown).collect();
    if columns.len() <= width {
        return folded.push_str(line);
    }
    let is_rule = columns.iter().all(|shown| matches!(shown, '-' | ' '));
    let gap = columns.windows(2).rposition(|pair| pair == [' ', ' ']);
    let column = gap.map_or(0, |gap| gap + 2);
    let words = columns[column..].split(|shown| *shown == ' ');
    let longest = words.map(<[char]>::len).max().unwrap_or(0);
    let indent = match gap.is_some() && column + longest.max(LEAST_ROOM) <= width {
        true => column,
        false => 4.min(width / 2),
    };
    let mut at = 0;
    let mut begin = 0;
    let mut end = match is_rule {
        true => width,
        false => line_end(&columns, 0, width),
    };
    for (shown, piece) in pieces {
        if shown.is_none() {
            folded.push_str(piece);
            continue;
        }
        if at == end && !is_rule {
            begin = end
                + columns[end..]
                    .iter()
                    .take_while(|shown| **shown == ' ')
                    .count();
            end = line_end(&columns, begin, width - indent);
            folded.push('\n');
            folded.extend(std::iter::repeat_n(' ', indent));
        }
        if (begin..end).contains(&at) {
            folded.push_str(piece);
        }
        at += 1;
    }
    if line.ends_with('\n') {
        folded.push('\n');
    }
}

/// The end of a line of at most `room` columns that begins at a column: behind its last word, or
/// within a word that has no room.
fn line_end(columns: &[char], begin: usize, room: usize) -> usize {
    let most = begin + room;
    if columns.len() <= most {
        return columns.len();
    }
    let is_end = |at: &usize| columns[*at] == ' ' && columns[*at - 1] != ' ';
    (begin + 1..=most).rev().find(is_end).unwrap_or(most)
}

/// Columns that a line with styles takes.
pub fn columns_of(line: &str) -> usize {
    let pieces = pieces(line);
    pieces.iter().filter(|(shown, _)| shown.is_some()).count()
}

/// Styles, with no character, and characters of a line.
fn pieces(line: &str) -> Vec<(Option<char>, &str)> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some(shown) = rest.chars().next() {
        let style = style_len(rest);
        let (piece, after) = rest.split_at(style.unwrap_or(shown.len_utf8()));
        pieces.push((style.is_none().then_some(shown), piece));
        rest = after;
    }
    pieces
}

/// True for the bytes of control characters but line ends and tabs, and for those of characters
/// beyond ASCII.
fn may_need_escape(byte: u8) -> bool {
    !matches!(byte, b'\n' | b'\t' | 0x20..0x7f)
}

fn put_escape(out: &mut Vec<u8>, character: u32) {
    out.extend_from_slice(format!("\\u{character:04x}").as_bytes());
}

/// A writer of text to a terminal: control characters are escaped, as [`escape_controls`] does.
/// Each write has whole characters.
pub struct TerminalWriter<W> {
    inner: W,
    /// Bytes of a line that are shown.
    longest: usize,
    /// Bytes of the present line, and those of them that are left out.
    line: usize,
    left_out: usize,
}

impl<W: Write> TerminalWriter<W> {
    /// A writer of lines of any length, as those of JSON.
    pub fn new(inner: W) -> TerminalWriter<W> {
        TerminalWriter {
            inner,
            longest: usize::MAX,
            line: 0,
            left_out: 0,
        }
    }

    /// A writer that cuts lines beyond [`LONGEST_LINE`] bytes, with a mark that says how much is
    /// left out.
    pub fn cutting(inner: W) -> TerminalWriter<W> {
        TerminalWriter {
            longest: LONGEST_LINE,
            ..TerminalWriter::new(inner)
        }
    }

    /// Marks the end of a last line that was cut, and writes what waits.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_line()?;
        self.inner.flush()
    }

    fn put(&mut self, part: &[u8]) -> io::Result<()> {
        let room = self.longest.saturating_sub(self.line);
        let shown = match part.len() > room {
            true => character_start(part, room),
            false => part.len(),
        };
        self.line += part.len();
        self.left_out += part.len() - shown;
        self.inner.write_all(&part[..shown])
    }

    fn end_line(&mut self) -> io::Result<()> {
        if self.left_out > 0 {
            self.inner.write_all(left_out(self.left_out).as_bytes())?;
        }
        (self.line, self.left_out) = (0, 0);
        Ok(())
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let escaped = escape_controls(text);
        if self.longest == usize::MAX {
            self.inner.write_all(&escaped)?;
            return Ok(text.len());
        }
        for part in escaped.split_inclusive(|&byte| byte == b'\n') {
            match part.split_last() {
                Some((b'\n', line)) => {
                    self.put(line)?;
                    self.end_line()?;
                    self.inner.write_all(b"\n")?;
                }
                _ => self.put(part)?,
            }
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The largest index up to `at` at which a character of UTF-8 begins.
fn character_start(bytes: &[u8], at: usize) -> usize {
    let is_start = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (at.saturating_sub(3)..=at)
        .rev()
        .find(is_start)
        .unwrap_or(at)
}

/// The mark of a cut.
fn left_out(bytes: usize) -> String {
    format!("… ({bytes} more bytes)")
}

/// A text of a message, of which at most `most` bytes are shown, with a mark at the cut.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most);
    Cow::Owned(format!("{}{}", &text[..end], left_out(text.len() - end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_nothing_else() {
        for (text, expected) in [
            (&b"a\tb\n\xc3\xa9 \xe2\x80\xa6"[..], "a\tb\n\u{e9} \u{2026}"),
            (b"\x1b[31mred\x1b[0m", "\\u001b[31mred\\u001b[0m"),
            (b"a\rb\x07\x7f\0", "a\\u000db\\u0007\\u007f\\u0000"),
            ("\u{9b}31m\u{85}".as_bytes(), "\\u009b31m\\u0085"),
            (b"\xff\x9b]", "\\u00ff\\u009b]"),
        ] {
            let escaped = escape_controls(text);
            assert_eq!(std::str::from_utf8(&escaped), Ok(expected));
        }
    }

    #[test]
    fn styles_stay_in_styled_text() {
        let text = "\x1b[1mbold\x1b[0m \x1b[2Jx \x1b]0;title\x07 \x1b[\u{9b}";
        let expected = "\x1b[1mbold\x1b[0m \\u001b[2Jx \\u001b]0;title\\u0007 \\u001b[\\u009b";
        let escaped = escape_controls_in_styled(text);
        assert_eq!(std::str::from_utf8(&escaped), Ok(expected));
    }

    #[test]
    fn long_lines_continue_below_their_last_column() {
        let table = "\
file    verdict  reason
------  -------  ------------------------------------------
a.o     failure  R2 offset is outside of the packet, by far
b.o     success
";
        let folded = "\
file    verdict  reason
------  -------  --------------------
a.o     failure  R2 offset is outside
                 of the packet, by
                 far
b.o     success
";
        assert_eq!(fold(table, 37), folded);
        assert_eq!(fold(table, 80), table);
        // Without room below the last column, and with a word that is too long.
        let narrow = "a.o\n    fail\n    ure\n";
        assert_eq!(fold("a.o  failure\n", 8), narrow);
        let styled = "a  \x1b[31mb\u{e9} ccc\x1b[0m  the last column goes on";
        let folded = "a  \x1b[31mb\u{e9} ccc\x1b[0m  the last column goes\n           on";
        assert_eq!(fold(styled, 31), folded);
    }

    #[test]
    fn long_lines_are_cut_between_characters_and_say_so() {
        let written = |parts: &[&str]| {
            let mut out = Vec::new();
            let mut writer = TerminalWriter::cutting(&mut out);
            for part in parts {
                writer.write_all(part.as_bytes()).unwrap();
            }
            writer.finish().unwrap();
            String::from_utf8(out).unwrap()
        };
        let long = "\u{e9}".repeat(LONGEST_LINE);
        let shown = format!(
            "{}… ({LONGEST_LINE} more bytes)",
            "\u{e9}".repeat(LONGEST_LINE / 2)
        );
        assert_eq!(
            written(&["first\n", &long, "\nlast"]),
            format!("first\n{shown}\nlast")
        );
        assert_eq!(written(&["a", &long]).matches("more bytes").count(), 1);
        assert_eq!(written(&["a\nb\n"]), "a\nb\n");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("ab\u{e9}", 3), "ab… (2 more bytes)");
    }
}
