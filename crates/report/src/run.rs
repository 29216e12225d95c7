//! Texts about runs: bytes in rows, what programs printed in one line, and why the engine is
//! another one.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

/// The colour of what passes.
pub const PASSED: Style = AnsiColor::Green.on_default();
/// The colour of what is dropped or fails.
pub const FAILED: Style = AnsiColor::Red.on_default();

/// The colour of what cannot be judged.
pub const UNSUPPORTED: Style = AnsiColor::Yellow.on_default();

/// The colour of a verifier's verdict by its word.
pub fn verifier_verdict_style(word: &str) -> Style {
    match word {
        "accepted" | "yes" => PASSED,
        "refused" | "no" => FAILED,
        "unsupported" | "?" => UNSUPPORTED,
        _ => Style::new(),
    }
}

/// The colour of a program's verdict by its name: green where the packet passes, red where it is
/// dropped, cyan where it goes elsewhere; none for numbers.
pub fn verdict_style(name: &str) -> Style {
    let words = || name.split(['_', ',']);
    let has = |known: &[&str]| words().any(|word| known.contains(&word));
    if has(&["DROP", "ABORTED", "SHOT", "drop"]) {
        FAILED
    } else if has(&["PASS", "OK", "ACCEPT", "PIPE", "UNSPEC", "pass", "keep"]) {
        PASSED
    } else if name.starts_with(|first: char| first.is_ascii_uppercase()) {
        AnsiColor::Cyan.on_default()
    } else {
        Style::new()
    }
}

/// Writes bytes as `hexdump -C` shows them, from an address on.
pub fn hex_rows(text: &mut String, address: u64, bytes: &[u8]) {
    const ROW: usize = 16;
    for (row, bytes) in bytes.chunks(ROW).enumerate() {
        let address = address + (row * ROW) as u64;
        let shown: String = bytes
            .iter()
            .map(|byte| match byte {
                0x20..0x7f => char::from(*byte),
                _ => '.',
            })
            .collect();
        let bytes = bytes.iter().map(|byte| format!("{byte:02x} "));
        let bytes: String = bytes.collect();
        let _ = writeln!(text, "  {address:08x}  {bytes:<48} {shown}");
    }
}

/// A text without the line end that many programs print, other control characters escaped.
pub fn one_line(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let shown = text.chars().map(|character| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    });
    shown.collect()
}

/// The line that says that a program runs in another engine, for a construct that native code
/// does not support.
pub fn not_native_line(what: &str) -> String {
    format!("not native code, which does not support yet: {what}")
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A word as a shell reads it.
pub fn shell_word(word: &str) -> String {
    let is_plain = |each: char| each.is_alphanumeric() || "_-./:=,+@%".contains(each);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
