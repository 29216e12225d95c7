//! Text for XML and HTML.

/// A text of one line for an element or a value: characters that XML does not have, and line ends, are
/// replaced.
pub fn escaped(text: &str) -> String {
    escaped_lines(text, "\u{fffd}")
}

/// A text for an element or a value: characters that XML does not have are replaced, and line ends are
/// written as `line_end`.
pub fn escaped_lines(text: &str, line_end: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for each in text.chars() {
        match each {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str(line_end),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            each if each.is_control() && each != '\t' => out.push(char::REPLACEMENT_CHARACTER),
            each => out.push(each),
        }
    }
    out
}
