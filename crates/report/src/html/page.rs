//! The frame of a page: its style, its scripts and its data.

use std::fmt::Write;

use crate::xml::escaped;

/// What a page may do: run the script and the style that are in it, and load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// A page of a script that finds its data, as JSON, in the element `data`.
pub(super) fn page(title: &str, script: &str, data: &str) -> String {
    let style = include_str!("page.css");
    let shared = include_str!("page.js");
    let (title, data) = (escaped(title), escaped_json(data));
    let mut out = String::with_capacity(data.len() + style.len() + shared.len() + script.len());
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
         <noscript>This page needs JavaScript, which is in the file.</noscript>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n{shared}</script>\n<script>\n{script}</script>\n</body>\n</html>\n"
    );
    out
}

/// Largest integer up to which scripts read numbers exactly.
const EXACT: u64 = 1 << 53;

/// JSON that ends no element and begins no comment: these characters are in strings only. Integers that
/// scripts would round are objects with their digits.
fn escaped_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 16);
    let (mut in_string, mut is_escaped) = (false, false);
    // Where a number begins.
    let mut number = None;
    for each in json.chars() {
        let is_part = !in_string && matches!(each, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        match number {
            // Of `true` and `false` an `e` stands alone.
            None if is_part && !each.is_ascii_alphabetic() => number = Some(out.len()),
            Some(start) if !is_part => {
                number = None;
                let text = &out[start..];
                let size = text.trim_start_matches('-').parse::<u64>();
                if size.is_ok_and(|size| size > EXACT) {
                    let exact = format!("{{\"#int\":\"{text}\"}}");
                    out.replace_range(start.., &exact);
                }
            }
            _ => {}
        }
        match each {
            '"' if !is_escaped => in_string = !in_string,
            _ => {}
        }
        is_escaped = in_string && each == '\\' && !is_escaped;
        match each {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            each => out.push(each),
        }
    }
    out
}

/// A value as JSON.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    // Records have string keys only.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{escaped_json, page};

    #[test]
    fn integers_that_scripts_round_are_texts() {
        let of = |json: &str| escaped_json(json);
        let kept = "{\"a\":[9007199254740992,-9007199254740992,1.8446744073709552e19,true,false],\
                    \"b\":\"18446744073709551615\",\"c\":\"\\\\\",\"d\":\"\\\"9007199254740993,\"}";
        assert_eq!(of(kept), kept);
        assert_eq!(
            of("[18446744073709551615,-9007199254740993]"),
            "[{\"#int\":\"18446744073709551615\"},{\"#int\":\"-9007199254740993\"}]"
        );
    }

    #[test]
    fn what_is_in_the_data_ends_no_element() {
        let hostile = "</script><img src=x onerror=alert(1)><!-- & \u{2028}";
        let data = super::json(&hostile);
        let page = page(hostile, "", &data);
        assert!(!page.contains("<img") && !page.contains("<!-- "));
        assert_eq!(page.matches("</script>").count(), 3);
        let at = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let text = &page[at..][..page[at..].find("</script>").unwrap()];
        assert_eq!(serde_json::from_str::<String>(text).unwrap(), hostile);
    }
}
