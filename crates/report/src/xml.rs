//! Text for XML and HTML.

/// A text for an element or a value: characters that XML does not have are replaced, and line ends are
/// written as `line_end`.
pub fn escaped(text: &str, line_end: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for each in text.chars() {
        match each {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str(line_end),
            each if each.is_control() && each != '\t' => out.push(char::REPLACEMENT_CHARACTER),
            each => out.push(each),
        }
    }
    out
}
