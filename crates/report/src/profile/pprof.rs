//! The format of pprof: a message of protocol buffers (`profile.proto`), not compressed, which pprof reads as
//! well as a compressed one.

use std::collections::HashMap;

use super::{Profile, ProfileFrame};

/// A message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A field of a number.
    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    /// A field of bytes.
    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A field of packed numbers.
    fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }
}

/// Texts, each of which has a number.
struct Texts<'p> {
    texts: Vec<&'p str>,
    numbers: HashMap<&'p str, u64>,
}

impl<'p> Texts<'p> {
    fn number(&mut self, text: &'p str) -> u64 {
        let next = self.texts.len() as u64;
        let number = *self.numbers.entry(text).or_insert(next);
        if number == next {
            self.texts.push(text);
        }
        number
    }
}

/// The profile with the sample types `instructions` and `calls`, and `time` if it was measured.
pub fn pprof(profile: &Profile) -> Vec<u8> {
    let mut texts = Texts {
        texts: Vec::new(),
        numbers: HashMap::new(),
    };
    // The first text is empty.
    texts.number("");
    let mut message = Message::default();
    let is_timed = profile.samples.iter().any(|it| it.nanoseconds > 0);
    let kinds = [
        ("instructions", "count"),
        ("calls", "count"),
        ("time", "nanoseconds"),
    ];
    for (name, unit) in &kinds[..if is_timed { 3 } else { 2 }] {
        let mut kind = Message::default();
        kind.number(1, texts.number(name));
        kind.number(2, texts.number(unit));
        message.bytes(1, &kind.0);
    }
    let mut functions: HashMap<(&str, &str), u64> = HashMap::new();
    let mut locations: HashMap<&ProfileFrame, u64> = HashMap::new();
    for sample in &profile.samples {
        let mut numbers = Vec::new();
        for frame in &sample.stack {
            let next = locations.len() as u64 + 1;
            let location = *locations.entry(frame).or_insert(next);
            numbers.push(location);
            if location != next {
                continue;
            }
            let file = frame.file.as_deref().unwrap_or_default();
            let next = functions.len() as u64 + 1;
            let function = *functions.entry((&frame.function, file)).or_insert(next);
            if function == next {
                let mut of = Message::default();
                of.number(1, function);
                of.number(2, texts.number(&frame.function));
                of.number(4, texts.number(file));
                message.bytes(5, &of.0);
            }
            let mut line = Message::default();
            line.number(1, function);
            line.number(2, frame.line.unwrap_or(0).into());
            let mut of = Message::default();
            of.number(1, location);
            of.bytes(4, &line.0);
            message.bytes(4, &of.0);
        }
        // The innermost first.
        numbers.reverse();
        let mut of = Message::default();
        of.numbers(1, numbers);
        let values = [sample.instructions, sample.calls, sample.nanoseconds];
        of.numbers(2, values.into_iter().take(if is_timed { 3 } else { 2 }));
        message.bytes(2, &of.0);
    }
    for text in &texts.texts {
        message.bytes(6, text.as_bytes());
    }
    message.0
}
