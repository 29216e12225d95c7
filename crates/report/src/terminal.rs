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
        let after = &sequence[2..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let is_style = digits <= 2 && after[digits..].starts_with('m');
        out.extend_from_slice(&escape_controls(before.as_bytes()));
        let end = if is_style { 2 + digits + 1 } else { 2 };
        match is_style {
            true => out.extend_from_slice(&sequence.as_bytes()[..end]),
            false => out.extend_from_slice(&escape_controls(&sequence.as_bytes()[..end])),
        }
        rest = &sequence[end..];
    }
    out.extend_from_slice(&escape_controls(rest.as_bytes()));
    Cow::Owned(out)
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
