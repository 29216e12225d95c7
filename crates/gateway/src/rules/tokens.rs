//! Words of a line with their columns, and the error that names one.

use std::error::Error;
use std::fmt;

/// Reason why a rule file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The text there, empty at the end of the line.
    pub found: String,
    /// The expected text.
    pub expected: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        match self.found.is_empty() {
            true => write!(f, "the line ends; ")?,
            false => write!(f, "`{}`; ", self.found)?,
        }
        write!(f, "expected {}", self.expected)
    }
}

impl Error for RuleError {}

/// The words of a line, which blanks separate.
pub(super) struct Words<'t> {
    line: usize,
    words: Vec<(usize, &'t str)>,
    next: usize,
    /// Column behind the last word.
    end: usize,
}

impl<'t> Words<'t> {
    pub(super) fn new(line: usize, text: &'t str) -> Words<'t> {
        let mut words = Vec::new();
        let mut start = None;
        let columns = text.char_indices().enumerate();
        for (column, (at, c)) in columns {
            match (start, c.is_whitespace()) {
                (None, false) => start = Some((column + 1, at)),
                (Some((column, from)), true) => {
                    words.push((column, &text[from..at]));
                    start = None;
                }
                _ => {}
            }
        }
        if let Some((column, from)) = start {
            words.push((column, &text[from..]));
        }
        let end = text.trim_end().chars().count() + 1;
        Words {
            line,
            words,
            next: 0,
            end,
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.next == self.words.len()
    }

    pub(super) fn peek(&self) -> Option<&'t str> {
        self.words.get(self.next).map(|(_, word)| *word)
    }

    /// Takes the next word if it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let is_it = self.peek() == Some(word);
        self.next += usize::from(is_it);
        is_it
    }

    /// The next word with its column.
    pub(super) fn word(&mut self, expected: &str) -> Result<Item<'t>, RuleError> {
        let (column, text) = *self
            .words
            .get(self.next)
            .ok_or_else(|| self.unexpected(expected))?;
        self.next += 1;
        Ok(Item {
            line: self.line,
            column,
            text,
        })
    }

    /// The error that the next word is not what was expected.
    pub(super) fn unexpected(&self, expected: impl Into<String>) -> RuleError {
        let (column, found) = match self.words.get(self.next) {
            Some((column, word)) => (*column, *word),
            None => (self.end, ""),
        };
        RuleError {
            line: self.line,
            column,
            found: found.to_owned(),
            expected: expected.into(),
        }
    }
}

/// A word, or a part of one.
#[derive(Clone, Copy)]
pub(super) struct Item<'t> {
    line: usize,
    column: usize,
    pub(super) text: &'t str,
}

impl<'t> Item<'t> {
    /// The parts that commas separate.
    pub(super) fn parts(self) -> impl Iterator<Item = Item<'t>> {
        let mut column = self.column;
        self.text.split(',').map(move |text| {
            let item = Item {
                line: self.line,
                column,
                text,
            };
            column += text.chars().count() + 1;
            item
        })
    }

    pub(super) fn unexpected(self, expected: impl Into<String>) -> RuleError {
        RuleError {
            line: self.line,
            column: self.column,
            found: self.text.to_owned(),
            expected: expected.into(),
        }
    }
}
