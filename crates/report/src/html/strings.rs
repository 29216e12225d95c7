//! Texts that are written once, with numbers.

use std::collections::HashMap;

/// Distinct texts in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Strings {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Strings {
    /// The number of a text.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    /// The texts by their numbers.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }
}
