//! Tokens of the assembly language.

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name: a register, a keyword, a label, a directive.
    Word,
    /// A number without its sign; `None` if it exceeds 64 bits.
    Number(Option<u64>),
    /// An operator or a bracket.
    Mark,
    /// The end of a statement: a line's end or a semicolon.
    End,
    /// Any other character.
    Bad,
}

/// A token and its byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// Operators of several characters, longer ones before their prefixes; those with an `s`
/// are signed.
const OPERATORS: &[&str] = &[
    "s>>=", "s>=", "s<=", "s/=", "s%=", "s>", "s<", "<<=", ">>=", "+=", "-=", "*=", "/=", "%=",
    "|=", "&=", "^=", "==", "!=", "<=", ">=",
];

/// The tokens of a text. Comments run from `#` or `//` to the end of the line; a `#` between
/// a name and a number is an operator.
pub(super) fn tokens(source: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &source[at..];
            let first = rest.chars().next()?;
            let operator = OPERATORS
                .iter()
                .find(|operator| rest.starts_with(**operator));
            let (len, kind) = match first {
                ' ' | '\t' | '\r' => {
                    at += 1;
                    continue;
                }
                '#' if is_number_of_callee(&source[..at], rest) => (1, Kind::Mark),
                '#' => {
                    at += line_len(rest);
                    continue;
                }
                '/' if rest.starts_with("//") => {
                    at += line_len(rest);
                    continue;
                }
                '\n' | ';' => (1, Kind::End),
                '0'..='9' => {
                    let len = word_len(rest);
                    (len, number(&rest[..len]))
                }
                _ if let Some(operator) = operator => (operator.len(), Kind::Mark),
                'a'..='z' | 'A'..='Z' | '_' | '.' => (word_len(rest), Kind::Word),
                _ if first.is_ascii_punctuation() => (1, Kind::Mark),
                _ => (first.len_utf8(), Kind::Bad),
            };
            let token = Token {
                kind,
                text: &rest[..len],
                at,
            };
            at += len;
            return Some(token);
        }
    })
}

/// True if a `#` joins a name and a number (`bpf_map_lookup_elem#1`), and starts no comment.
fn is_number_of_callee(before: &str, rest: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    before.ends_with(is_name) && rest[1..].starts_with(|c: char| c.is_ascii_digit())
}

fn line_len(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

fn word_len(rest: &str) -> usize {
    rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '$'))
        .unwrap_or(rest.len())
}

fn number(text: &str) -> Kind {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Kind::Bad;
    }
    Kind::Number(u64::from_str_radix(digits, radix).ok())
}
