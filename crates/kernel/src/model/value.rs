//! The language of values: JSON without the quotes around names, with types, references to given objects
//! and memory of the process. A recursive-descent parser, bounded in depth.

use std::fmt;
use std::ops::Deref;

/// Most values in values.
const MOST_DEPTH: usize = 64;

/// A value as a test writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelValue {
    /// A number.
    Number(i128),
    /// `be 443`: a number with its most significant byte first.
    BigEndian(u64),
    /// Text: characters, an address, or what a pointer leads to.
    Text(String),
    /// `hex 0011`: bytes.
    Bytes(Vec<u8>),
    /// `null`, `true`, `false`, an enumerator, an error number.
    Word(String),
    /// `@name`, `@name.member.member`: the address of an object or of a member of it.
    Object(String, Vec<String>),
    /// `TYPE {a: 1, b.c: 2, ..}`.
    Fields {
        /// The type, if it is named.
        ty: Option<String>,
        /// Members, by the names between their dots.
        fields: Vec<(MemberPath, ModelValue)>,
        /// True for `..`: what is not named is zero.
        others_are_zero: bool,
    },
    /// `[1, 2]`.
    List(Vec<ModelValue>),
    /// `user VALUE`: a pointer to the value in memory of the process.
    User(Box<ModelValue>),
}

/// The names between the dots of a member's path, and where a text has it.
#[derive(Clone, Debug)]
pub struct MemberPath {
    names: Vec<String>,
    /// Bytes in the text in front of the path and of its value; `None` for a path that no text has.
    pub(super) written: Option<(usize, usize)>,
}

impl Deref for MemberPath {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.names
    }
}

impl From<&str> for MemberPath {
    fn from(name: &str) -> MemberPath {
        MemberPath {
            names: vec![name.to_owned()],
            written: None,
        }
    }
}

impl PartialEq for MemberPath {
    fn eq(&self, other: &MemberPath) -> bool {
        self.names == other.names
    }
}

impl Eq for MemberPath {}

/// Why a model does not take what a test gives: the fact, and where the text has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    /// The fact.
    pub what: String,
    /// Bytes in front of the place in the text of the value, if it is about a member.
    pub at: Option<usize>,
}

impl ModelError {
    /// The same at a place, if it has none closer to the fault.
    pub(super) fn within(mut self, place: Option<usize>) -> ModelError {
        self.at = self.at.or(place);
        self
    }

    pub(super) fn reword(mut self, words: impl FnOnce(&str) -> String) -> ModelError {
        self.what = words(&self.what);
        self
    }
}

impl From<String> for ModelError {
    fn from(what: String) -> ModelError {
        ModelError { what, at: None }
    }
}

impl From<&str> for ModelError {
    fn from(what: &str) -> ModelError {
        what.to_owned().into()
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ModelError {}

/// Reason why a text is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// Column from 1, in characters.
    pub column: usize,
    /// What is expected there, and what is there.
    pub what: String,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.what)
    }
}

impl std::error::Error for ValueError {}

impl ModelValue {
    /// The value that a text is.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<ModelValue, ValueError> {
        ModelValue::parse_behind(text, 0)
    }

    /// The value that a text is behind so many bytes; places of errors and members are in the whole text.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse_behind(text: &str, start: usize) -> Result<ModelValue, ValueError> {
        let mut parser = Parser { text, at: start };
        let value = parser.value(0)?;
        parser.skip_blanks();
        match parser.rest().is_empty() {
            true => Ok(value),
            false => Err(parser.expected("the end")),
        }
    }
}

/// Brackets that are open at the end of a text, which comes in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenBrackets {
    depth: i32,
    in_text: bool,
    is_escaped: bool,
}

impl OpenBrackets {
    /// Goes on with the next part; true if brackets are open behind it, so that a value goes on.
    pub fn go_on(&mut self, part: &str) -> bool {
        for each in part.chars() {
            match each {
                _ if self.is_escaped => self.is_escaped = false,
                '\\' if self.in_text => self.is_escaped = true,
                '"' => self.in_text = !self.in_text,
                '{' | '[' if !self.in_text => self.depth += 1,
                '}' | ']' if !self.in_text => self.depth -= 1,
                _ => {}
            }
        }
        self.depth > 0
    }
}

/// The number that a text is in C's forms: decimal, `0x` and hexadecimal, `0` and octal (modes of files), with a
/// sign in front.
pub fn number_of(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (digits, radix) = match (digits.strip_prefix("0x"), digits.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        (None, _) => (digits, 10),
    };
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_alphanumeric());
    let number = i128::from_str_radix(digits, radix)
        .ok()
        .filter(|_| is_plain)?;
    Some(if is_negative { -number } else { number })
}

struct Parser<'t> {
    text: &'t str,
    /// In bytes.
    at: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn takes(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let is_it = self.rest().starts_with(token);
        if is_it {
            self.at += token.len();
        }
        is_it
    }

    fn expected(&self, what: &str) -> ValueError {
        let found = match self.rest().split_whitespace().next() {
            Some(found) => format!("{found:?}"),
            None => "the end".to_owned(),
        };
        ValueError {
            column: self.text[..self.at].chars().count() + 1,
            what: format!("{what} is expected, not {found}"),
        }
    }

    fn word(&mut self) -> Option<&'t str> {
        self.skip_blanks();
        let rest = self.rest();
        let is_part = |each: char| each.is_ascii_alphanumeric() || each == '_';
        let len = rest.find(|each| !is_part(each)).unwrap_or(rest.len());
        self.at += len;
        (len > 0).then(|| &rest[..len])
    }

    fn value(&mut self, depth: usize) -> Result<ModelValue, ValueError> {
        self.skip_blanks();
        if depth == MOST_DEPTH {
            return Err(self.expected("a value less deep in others"));
        }
        let rest = self.rest();
        match rest.chars().next() {
            Some('{') => self.fields(None, depth),
            Some('[') => self.list(depth),
            Some('"') => Ok(ModelValue::Text(self.quoted()?)),
            Some('@') => {
                self.at += 1;
                let name = self
                    .word()
                    .ok_or_else(|| self.expected("the name of an object"))?;
                let mut path = Vec::new();
                while self.rest().starts_with('.') {
                    self.at += 1;
                    let member = self.word().ok_or_else(|| self.expected("a member"))?;
                    path.push(member.to_owned());
                }
                Ok(ModelValue::Object(name.to_owned(), path))
            }
            Some(first) if first.is_ascii_digit() || first == '-' => self.number_or_error(),
            Some(first) if first.is_ascii_alphabetic() || first == '_' => self.named(depth),
            _ => Err(self.expected("a value")),
        }
    }

    fn number_or_error(&mut self) -> Result<ModelValue, ValueError> {
        let start = self.at;
        let is_negative = self.takes("-");
        let word = self.word().unwrap_or_default();
        if is_negative && word.starts_with(|each: char| each.is_ascii_uppercase()) {
            return Ok(ModelValue::Word(format!("-{word}")));
        }
        match number_of(word) {
            Some(number) if number < 1 << 64 => Ok(ModelValue::Number(match is_negative {
                true => -number,
                false => number,
            })),
            _ => {
                self.at = start;
                Err(self.expected(match word.strip_prefix('0') {
                    Some(_) => "a number of 64 bits (0 in front is octal, 0x hexadecimal)",
                    None => "a number of 64 bits",
                }))
            }
        }
    }

    /// What begins with a word.
    fn named(&mut self, depth: usize) -> Result<ModelValue, ValueError> {
        let mut word = self.word().unwrap_or_default();
        match word {
            "user" => return Ok(ModelValue::User(Box::new(self.value(depth + 1)?))),
            "be" => {
                return match self.value(depth + 1)? {
                    ModelValue::Number(number) if number >= 0 => {
                        Ok(ModelValue::BigEndian(number as u64))
                    }
                    _ => Err(self.expected("be and a number")),
                };
            }
            "be16" => {
                return match self.value(depth + 1)? {
                    ModelValue::Number(number @ 0..=0xffff) => {
                        Ok(ModelValue::Number((number as u16).swap_bytes().into()))
                    }
                    _ => Err(self.expected("be16 and a number of 16 bits")),
                };
            }
            "hex" => {
                let digits = self.word().unwrap_or_default();
                let is_hex = digits.len().is_multiple_of(2)
                    && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                let pairs = digits.as_bytes().chunks(2);
                let byte = |pair: &[u8]| {
                    let pair = std::str::from_utf8(pair).ok()?;
                    u8::from_str_radix(pair, 16).ok()
                };
                return match is_hex && !digits.is_empty() {
                    true => Ok(ModelValue::Bytes(pairs.filter_map(byte).collect())),
                    false => Err(self.expected("hex and an even number of hexadecimal digits")),
                };
            }
            "struct" | "union" => {
                word = self
                    .word()
                    .ok_or_else(|| self.expected("the name of a type"))?;
            }
            _ => {}
        }
        self.skip_blanks();
        match self.rest().starts_with('{') {
            true => self.fields(Some(word.to_owned()), depth),
            false => Ok(ModelValue::Word(word.to_owned())),
        }
    }

    fn fields(&mut self, ty: Option<String>, depth: usize) -> Result<ModelValue, ValueError> {
        self.takes("{");
        let mut fields: Vec<(MemberPath, ModelValue)> = Vec::new();
        let mut others_are_zero = false;
        while !self.takes("}") {
            if self.takes("..") {
                others_are_zero = true;
                if !self.takes("}") {
                    return Err(self.expected("} behind .."));
                }
                break;
            }
            self.skip_blanks();
            let start = self.at;
            let names: Vec<String> = match self.rest().starts_with('"') {
                true => self.quoted()?.split('.').map(str::to_owned).collect(),
                false => self.path()?,
            };
            if fields.iter().any(|(known, _)| known.names == names) {
                self.at = start;
                return Err(self.expected("a member that was not named before"));
            }
            if !self.takes(":") {
                return Err(self.expected("a colon behind the name of a member"));
            }
            self.skip_blanks();
            let written = Some((start, self.at));
            fields.push((MemberPath { names, written }, self.value(depth + 1)?));
            if !self.takes(",") && !self.rest().trim_start().starts_with('}') {
                return Err(self.expected("a comma or }"));
            }
        }
        Ok(ModelValue::Fields {
            ty,
            fields,
            others_are_zero,
        })
    }

    /// Names with dots between them.
    fn path(&mut self) -> Result<Vec<String>, ValueError> {
        let mut path = Vec::new();
        loop {
            let name = self.word();
            let name = name.ok_or_else(|| self.expected("the name of a member, .. or }"))?;
            path.push(name.to_owned());
            match self.rest().strip_prefix('.') {
                Some(behind) if !behind.starts_with('.') => self.at += 1,
                _ => return Ok(path),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<ModelValue, ValueError> {
        self.takes("[");
        let mut values = Vec::new();
        while !self.takes("]") {
            values.push(self.value(depth + 1)?);
            if !self.takes(",") && !self.rest().trim_start().starts_with(']') {
                return Err(self.expected("a comma or ]"));
            }
        }
        Ok(ModelValue::List(values))
    }

    /// Text with JSON's escapes.
    fn quoted(&mut self) -> Result<String, ValueError> {
        let mut texts = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
        match texts.next() {
            Some(Ok(text)) => {
                self.at += texts.byte_offset();
                Ok(text)
            }
            _ => Err(self.expected("a text that ends with \"")),
        }
    }
}

impl fmt::Display for ModelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelValue::Number(number) => write!(f, "{number}"),
            ModelValue::BigEndian(number) => write!(f, "be {number}"),
            ModelValue::Text(text) => write!(f, "{text:?}"),
            ModelValue::Bytes(bytes) => {
                f.write_str("hex ")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            ModelValue::Word(word) => f.write_str(word),
            ModelValue::Object(name, path) => {
                write!(f, "@{name}")?;
                path.iter().try_for_each(|member| write!(f, ".{member}"))
            }
            ModelValue::Fields { ty, .. } => match ty {
                Some(ty) => write!(f, "{ty} {{…}}"),
                None => f.write_str("{…}"),
            },
            ModelValue::List(_) => f.write_str("[…]"),
            ModelValue::User(value) => write!(f, "user {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let value = ModelValue::parse(
            r#"task_struct { pid: 7, comm: "bash", real_parent: @init.se, "a.b": [1, -2, 0x10], .. }"#,
        );
        let Ok(ModelValue::Fields {
            ty: Some(ty),
            fields,
            others_are_zero: true,
        }) = value
        else {
            panic!("{value:?}");
        };
        assert_eq!((ty.as_str(), fields.len()), ("task_struct", 4));
        assert_eq!(*fields[3].0, ["a", "b"]);
        let user = ModelValue::parse("user [user \"ls\", null, be 80, hex 00ff, -ENOENT]");
        assert!(matches!(user, Ok(ModelValue::User(_))), "{user:?}");
        let mut brackets = OpenBrackets::default();
        assert!(brackets.go_on("given @a = b { c: \"}\""));
        assert!(!brackets.go_on("d: \"{\" }"));
    }

    #[test]
    fn errors_name_the_column() {
        for (text, error) in [
            ("", "column 1: a value is expected, not the end"),
            (
                "{pid 7}",
                "column 6: a colon behind the name of a member is expected, not \"7}\"",
            ),
            (
                "{pid: 7 tgid: 8}",
                "column 9: a comma or } is expected, not \"tgid:\"",
            ),
            (
                "{a: 1, a: 2}",
                "column 8: a member that was not named before is expected, not \"a:\"",
            ),
            (
                "@",
                "column 2: the name of an object is expected, not the end",
            ),
            ("99999999999999999999", "a number of 64 bits is expected"),
            ("hex 0", "an even number of hexadecimal digits"),
            ("\"a", "a text that ends with"),
            ("7 8", "column 3: the end is expected, not \"8\""),
            ("{..a}", "} behind .. is expected"),
        ] {
            let found = ModelValue::parse(text).expect_err(text).to_string();
            assert!(found.contains(error), "{text}: {found}");
        }
        assert!(ModelValue::parse(&"[".repeat(100_000)).is_err());
    }
}
