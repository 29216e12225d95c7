//! Lexer of directives: words, numbers, quoted strings, `key=value`.

use super::{CaseError, CaseProblem};

/// Remaining words of one line.
pub(super) struct Words<'t> {
    line: usize,
    rest: &'t str,
}

impl<'t> Words<'t> {
    pub(super) fn of(line: usize, text: &'t str) -> Words<'t> {
        Words { line, rest: text }
    }

    pub(super) fn fault(&self, problem: CaseProblem) -> CaseError {
        CaseError {
            line: self.line,
            problem,
        }
    }

    /// Error at the next word.
    pub(super) fn unexpected(&self, expected: &'static str) -> CaseError {
        let found = self.rest.trim().to_owned();
        self.fault(CaseProblem::Word { expected, found })
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('#') || self.rest.starts_with("//") {
            self.rest = "";
        }
    }

    pub(super) fn is_empty(&mut self) -> bool {
        self.skip_space();
        self.rest.is_empty()
    }

    /// Next unquoted word, if any.
    pub(super) fn word(&mut self) -> Option<&'t str> {
        self.skip_space();
        let end = self.rest.find([' ', '\t', '"', '=']);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Next unquoted word, which is required.
    pub(super) fn expect_word(&mut self, expected: &'static str) -> Result<&'t str, CaseError> {
        let refusal = self.unexpected(expected);
        self.word().ok_or(refusal)
    }

    /// Key before an equals sign, if one is next.
    pub(super) fn key(&mut self) -> Option<&'t str> {
        self.skip_space();
        let before = self.rest;
        let key = self.word()?;
        match self.rest.strip_prefix('=') {
            Some(rest) => {
                self.rest = rest;
                Some(key)
            }
            None => {
                self.rest = before;
                None
            }
        }
    }

    /// Signed number, decimal or hexadecimal.
    pub(super) fn number(&mut self, expected: &'static str) -> Result<i128, CaseError> {
        let refusal = self.unexpected(expected);
        let word = self.word().unwrap_or_default();
        let (digits, sign) = match word.strip_prefix('-') {
            Some(digits) => (digits, -1),
            None => (word, 1),
        };
        let number = match digits.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        number.map(|number| sign * number).map_err(|_| refusal)
    }

    /// Number in the range of `T`.
    pub(super) fn fitting<T: TryFrom<i128>>(
        &mut self,
        expected: &'static str,
    ) -> Result<T, CaseError> {
        let refusal = self.unexpected(expected);
        T::try_from(self.number(expected)?).map_err(|_| refusal)
    }

    /// True if a quoted string is next.
    pub(super) fn has_text(&mut self) -> bool {
        self.skip_space();
        self.rest.starts_with('"')
    }

    /// Bytes of a quoted string. Escapes: `\"`, `\\`, `\n`, `\t` and `\xHH`.
    pub(super) fn bytes(&mut self, expected: &'static str) -> Result<Vec<u8>, CaseError> {
        if !self.has_text() {
            return Err(self.unexpected(expected));
        }
        let unended = || self.fault(CaseProblem::Text);
        let mut bytes = Vec::new();
        let mut letters = self.rest[1..].char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.rest = &self.rest[1 + at + 1..];
                    return Ok(bytes);
                }
                '\\' => match letters.next().map(|(_, letter)| letter) {
                    Some('n') => bytes.push(b'\n'),
                    Some('t') => bytes.push(b'\t'),
                    Some(letter @ ('"' | '\\')) => bytes.push(letter as u8),
                    Some('x') => {
                        let mut digit = || letters.next()?.1.to_digit(16);
                        let (high, low) = (digit(), digit());
                        let byte = high.zip(low).map(|(high, low)| (high * 16 + low) as u8);
                        bytes.push(byte.ok_or_else(unended)?);
                    }
                    _ => return Err(unended()),
                },
                letter => {
                    let mut encoded = [0; 4];
                    bytes.extend_from_slice(letter.encode_utf8(&mut encoded).as_bytes());
                }
            }
        }
        Err(unended())
    }

    /// Quoted string in UTF-8.
    pub(super) fn text(&mut self, expected: &'static str) -> Result<String, CaseError> {
        let bytes = self.bytes(expected)?;
        String::from_utf8(bytes).map_err(|_| self.fault(CaseProblem::Text))
    }

    /// Bytes in hexadecimal up to the end of the line.
    pub(super) fn hex(&mut self) -> Result<Vec<u8>, CaseError> {
        let mut bytes = Vec::new();
        while !self.is_empty() {
            let refusal = self.unexpected("bytes in hexadecimal");
            let word = self.word().unwrap_or_default();
            let pairs = word.as_bytes().chunks(2).map(|pair| {
                let digits = std::str::from_utf8(pair).ok()?;
                u8::from_str_radix(digits, 16)
                    .ok()
                    .filter(|_| pair.len() == 2)
            });
            let read: Option<Vec<u8>> = pairs.collect();
            bytes.extend(read.filter(|read| !read.is_empty()).ok_or(refusal)?);
        }
        Ok(bytes)
    }

    /// Error if words remain on the line.
    pub(super) fn end(&mut self) -> Result<(), CaseError> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(self.unexpected("the end of the line")),
        }
    }
}

/// Quoted string with escapes.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' | '\\' => text.extend(['\\', letter]),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                letter if letter.is_ascii_control() => {
                    text.push_str(&format!("\\x{:02x}", letter as u32));
                }
                letter => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text
}

/// Bytes in hexadecimal, in pairs of digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}
