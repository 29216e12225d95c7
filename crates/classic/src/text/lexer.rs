//! The lexer of all text forms: words, numbers and signs.
//!
//! Tokens are separated by white space. `;` and `//` start a comment that ends with the
//! line, as does `#` in the first column; `/*` one that ends at `*/`. Numbers are parsed by
//! the caller's rules, because a leading zero means octal in some forms only.

use super::{MAX_READ_INSNS, Problem};

/// An error at a byte of the text.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A letter, `_` or `.`, then letters, digits and `_`.
    Word,
    /// A digit, then letters, digits and `_`.
    Number,
    /// Any other character.
    Sign(char),
    /// `/*` without `*/`.
    OpenComment,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// True if a newline precedes it.
    pub(super) opens_line: bool,
}

impl Token<'_> {
    /// The error that the token is not `what`.
    pub(super) fn is_not(self, what: impl Into<String>) -> Fault {
        let problem = Problem::Expected {
            what: what.into(),
            found: describe(self),
        };
        Fault {
            at: self.at,
            problem,
        }
    }
}

/// A numeric field: name and range.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) least: i64,
    pub(super) most: i64,
}

impl Field {
    pub(super) const fn unsigned(name: &'static str, most: u32) -> Field {
        Field {
            name,
            least: 0,
            most: most as i64,
        }
    }
}

/// Meaning of a leading zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LeadingZero {
    Octal,
    Decimal,
}

/// A stream of tokens with one token of lookahead.
pub(super) struct Lexer<'a> {
    source: &'a str,
    /// Position after `next`.
    at: usize,
    next: Token<'a>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a str) -> Lexer<'a> {
        // A byte order mark is skipped.
        let at = if source.starts_with('\u{feff}') { 3 } else { 0 };
        let next = Token {
            kind: Kind::End,
            text: "",
            at,
            opens_line: true,
        };
        let mut lexer = Lexer { source, at, next };
        lexer.next = lexer.scan(true);
        lexer
    }

    /// The next token, without consuming it.
    pub(super) fn peek(&self) -> Token<'a> {
        self.next
    }

    /// Consumes the next token.
    pub(super) fn take(&mut self) -> Token<'a> {
        let token = self.next;
        self.next = self.scan(false);
        token
    }

    /// Consumes the next token if it is `sign`.
    pub(super) fn take_sign(&mut self, sign: char) -> bool {
        let there = self.next.kind == Kind::Sign(sign);
        if there {
            self.take();
        }
        there
    }

    /// Consumes the next token if it is `word`, ignoring case.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let there = self.next.kind == Kind::Word && self.next.text.eq_ignore_ascii_case(word);
        if there {
            self.take();
        }
        there
    }

    /// Consumes `sign`, or fails.
    pub(super) fn expect_sign(&mut self, sign: char) -> Result<(), Fault> {
        if self.take_sign(sign) {
            return Ok(());
        }
        Err(self.expected(format!("'{sign}'")))
    }

    /// Consumes `word`, or fails.
    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), Fault> {
        if self.take_word(word) {
            return Ok(());
        }
        Err(self.expected(format!("'{word}'")))
    }

    /// Consumes a number for `field`, with a sign if the field has negative values. `what`
    /// is the expectation in an error.
    pub(super) fn expect_number(
        &mut self,
        what: &str,
        field: Field,
        zero: LeadingZero,
    ) -> Result<i64, Fault> {
        let at = self.next.at;
        let is_signed = field.least < 0;
        let is_negative = is_signed && self.take_sign('-');
        if is_signed && !is_negative {
            self.take_sign('+');
        }
        let digits = match self.next.kind {
            Kind::Number => self.next.text,
            _ => return Err(self.expected(what)),
        };
        let Some(size) = parse_digits(digits, zero) else {
            return Err(self.expected(what));
        };
        // A number beyond 63 bits exceeds every field.
        let size = size.unwrap_or(i64::MAX);
        let value = if is_negative { -size } else { size };
        if !(field.least..=field.most).contains(&value) {
            let sign = if is_negative { "-" } else { "" };
            let problem = Problem::NumberTooLarge {
                number: format!("{sign}{}", glance(digits)),
                field: field.name,
                least: field.least,
                most: field.most,
            };
            return Err(Fault { at, problem });
        }
        self.take();
        Ok(value)
    }

    /// Consumes a signed or unsigned 32-bit number.
    pub(super) fn expect_word32(&mut self, what: &str, zero: LeadingZero) -> Result<u32, Fault> {
        let field = Field {
            name: "a 32-bit word",
            least: i32::MIN as i64,
            most: u32::MAX as i64,
        };
        Ok(self.expect_number(what, field, zero)? as u32)
    }

    /// Consumes a 16-bit number.
    pub(super) fn expect_code(&mut self, zero: LeadingZero) -> Result<u16, Fault> {
        let field = Field::unsigned("the opcode", 0xffff);
        Ok(self.expect_number(field.name, field, zero)? as u16)
    }

    /// Consumes an 8-bit number.
    pub(super) fn expect_skip(
        &mut self,
        name: &'static str,
        zero: LeadingZero,
    ) -> Result<u8, Fault> {
        let field = Field::unsigned(name, 0xff);
        Ok(self.expect_number(name, field, zero)? as u8)
    }

    /// Fails if the limit of instructions is reached.
    pub(super) fn check_room(&self, insns: usize) -> Result<(), Fault> {
        if insns < MAX_READ_INSNS {
            return Ok(());
        }
        let limit = MAX_READ_INSNS;
        Err(self.fault(Problem::TooManyInsns { limit }))
    }

    /// The error that the next token is not `what`.
    pub(super) fn expected(&self, what: impl Into<String>) -> Fault {
        self.next.is_not(what)
    }

    /// An error at the next token.
    pub(super) fn fault(&self, problem: Problem) -> Fault {
        let at = self.next.at;
        Fault { at, problem }
    }

    fn scan(&mut self, mut opens_line: bool) -> Token<'a> {
        let source = self.source;
        let token = |kind, at: usize, len: usize, opens_line| Token {
            kind,
            text: &source[at..at + len],
            at,
            opens_line,
        };
        let to_line_end = |rest: &str| rest.find('\n').unwrap_or(rest.len());
        loop {
            let at = self.at;
            let rest = &source[at..];
            let Some(first) = rest.chars().next() else {
                // Errors at the end are reported after the last token.
                let last = self.next.at + self.next.text.len();
                return token(Kind::End, last, 0, opens_line);
            };
            let in_first_column = at == 0 || source.as_bytes()[at - 1] == b'\n';
            if first.is_whitespace() {
                opens_line |= first == '\n';
                self.at += first.len_utf8();
            } else if first == ';' || rest.starts_with("//") || (first == '#' && in_first_column) {
                self.at += to_line_end(rest);
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    self.at = source.len();
                    return token(Kind::OpenComment, at, rest.len(), opens_line);
                };
                opens_line |= comment[..end].contains('\n');
                self.at += end + 4;
            } else {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let (kind, len) = if is_part(first) || first == '.' {
                    let more = rest[1..].find(|c| !is_part(c)).unwrap_or(rest.len() - 1);
                    let kind = if first.is_ascii_digit() {
                        Kind::Number
                    } else {
                        Kind::Word
                    };
                    (kind, 1 + more)
                } else {
                    (Kind::Sign(first), first.len_utf8())
                };
                self.at += len;
                return token(kind, at, len, opens_line);
            }
        }
    }
}

/// The value of unsigned digits: `None` if they are no number, `Some(None)` if it exceeds
/// 63 bits.
fn parse_digits(digits: &str, zero: LeadingZero) -> Option<Option<i64>> {
    let lower = digits.to_ascii_lowercase();
    let (digits, radix) = if let Some(hex) = lower.strip_prefix("0x") {
        (hex, 16)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        (binary, 2)
    } else if lower.len() > 1 && lower.starts_with('0') && zero == LeadingZero::Octal {
        (&lower[1..], 8)
    } else {
        (lower.as_str(), 10)
    };
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_number.then(|| i64::from_str_radix(digits, radix).ok())
}

/// Description of a token for messages.
fn describe(token: Token<'_>) -> String {
    match token.kind {
        Kind::End => "the end".to_owned(),
        Kind::OpenComment => "an unterminated comment".to_owned(),
        _ => format!("'{}'", glance(token.text)),
    }
}

/// A text, truncated for messages.
fn glance(text: &str) -> String {
    const GLANCE: usize = 32;
    let mut shown: String = text.chars().take(GLANCE).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}
