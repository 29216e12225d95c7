//! YAML as a tree of JSON values.
//!
//! Mappings, sequences and scalars of one document are read; anchors and aliases are
//! refused, because a short text with them can stand for a long one. Plain scalars are
//! null, booleans and integers (decimal, `0x`, `0o`) as in YAML's core schema, else
//! strings.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Value};

use super::ProfileError;

/// Levels of nested mappings and sequences that are read.
const MAX_DEPTH: usize = 64;

/// Reads the first document of a text.
pub(super) fn read(text: &[u8]) -> Result<Value, ProfileError> {
    let text = str::from_utf8(text).map_err(|_| ProfileError {
        place: "the profile".to_owned(),
        what: "not text (UTF-8)".to_owned(),
    })?;
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
    };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (event, span) => return reader.value(event, &span, 0),
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

fn fault(line: usize, column: usize, what: impl Into<String>) -> ProfileError {
    ProfileError {
        place: format!("line {line}, column {}", column + 1),
        what: what.into(),
    }
}

fn fault_at(span: &Span, what: impl Into<String>) -> ProfileError {
    fault(span.start.line(), span.start.col(), what)
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), ProfileError> {
        match self.parser.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let marker = error.marker();
                let what = format!("not YAML: {}", error.info());
                Err(fault(marker.line(), marker.col(), what))
            }
            None => Err(fault(1, 0, "not YAML: it ends too soon")),
        }
    }

    /// The value that starts with an event.
    fn value(
        &mut self,
        event: Event<'a>,
        span: &Span,
        depth: usize,
    ) -> Result<Value, ProfileError> {
        if depth > MAX_DEPTH {
            return Err(fault_at(span, "nested too deeply"));
        }
        match event {
            Event::Scalar(text, style, 0, _) => Ok(match style {
                ScalarStyle::Plain => plain(&text),
                _ => Value::String(text.into_owned()),
            }),
            Event::SequenceStart(0, _) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                        (event, span) => items.push(self.value(event, &span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(0, _) => {
                let mut members = Map::new();
                loop {
                    let (key, at) = match self.next()? {
                        (Event::MappingEnd, _) => return Ok(Value::Object(members)),
                        (Event::Scalar(key, _, 0, _), at) => (key.into_owned(), at),
                        (_, at) => return Err(fault_at(&at, "a key that is not a string")),
                    };
                    let (event, span) = self.next()?;
                    let value = self.value(event, &span, depth + 1)?;
                    if members.insert(key.clone(), value).is_some() {
                        return Err(fault_at(&at, format!("the key {key:?} is given twice")));
                    }
                }
            }
            Event::StreamEnd | Event::DocumentEnd => Err(fault_at(span, "the document is empty")),
            _ => Err(fault_at(span, "anchors and aliases are not read")),
        }
    }
}

/// The value of a scalar without quotes.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let number = if let Some(digits) = text.strip_prefix("0x") {
        u64::from_str_radix(digits, 16).ok()
    } else if let Some(digits) = text.strip_prefix("0o") {
        u64::from_str_radix(digits, 8).ok()
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    };
    number.map_or_else(|| Value::String(text.to_owned()), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_profiles_use_is_read() {
        let text = b"---\n# a comment\na: [x, 'y z', \"1\"]\nb:\n  - c: 0x10\n    d: ~\n  - 7\n";
        let expected = json!({"a": ["x", "y z", "1"], "b": [{"c": 16, "d": null}, 7]});
        assert_eq!(read(text), Ok(expected));
    }

    #[test]
    fn faults_have_a_place() {
        let fault = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert!(fault("a: &x 1\nb: *x\n").starts_with("line 1, column"));
        assert!(fault("a: 1\na: 2\n").contains("line 2, column 1: the key \"a\""));
        assert!(fault("a: [1\n").contains("not YAML"));
        assert!(fault("").contains("line "));
        assert!(fault(&"[".repeat(500)).contains("line "));
    }
}
