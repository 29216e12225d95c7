//! Text of the command without the colours of terminals.

/// A text without sequences that set colours (`ESC [ … m`).
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut parts = text.split('\u{1b}');
    plain += parts.next().unwrap_or_default();
    for part in parts {
        plain += part.split_once('m').map_or(part, |(_, rest)| rest);
    }
    plain
}
