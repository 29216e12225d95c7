//! The streams of a program, standard output and error, into which it prints and which the host
//! reads.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use spec::{Errno, Result};

/// Bytes that a stream does not hold any more (`BPF_STREAM_MAX_CAPACITY`).
const CAPACITY: usize = 100_000;
/// Most bytes of a text (`MAX_BPRINTF_BUF`).
const MOST_BYTES: usize = 1024;

/// One of the streams of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// `BPF_STDOUT`.
    Output = 1,
    /// `BPF_STDERR`.
    Error = 2,
}

impl Stream {
    /// Both streams.
    pub const ALL: [Stream; 2] = [Stream::Output, Stream::Error];

    /// The stream of a number.
    pub fn from_number(number: u32) -> Option<Stream> {
        let mut all = Stream::ALL.into_iter();
        all.find(|stream| *stream as u32 == number)
    }

    /// `stdout` or `stderr`.
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Output => "stdout",
            Stream::Error => "stderr",
        }
    }
}

/// The streams of a program, what the host has not read of them.
#[derive(Debug, Default)]
pub struct Streams(Mutex<[Waiting; 2]>);

/// Unread contents of a stream.
#[derive(Debug, Default)]
struct Waiting {
    bytes: VecDeque<u8>,
    /// Bytes that count: those that wait, and those of texts that were too long.
    counted: usize,
}

impl Streams {
    /// Empty streams.
    pub fn new() -> Streams {
        Streams::default()
    }

    /// Adds a text to a stream. ENOSPC if it would hold 100,000 bytes, ENOMEM for more than 1,024
    /// bytes at once: these are not added, but count as if they were.
    pub fn push(&self, stream: Stream, text: &[u8]) -> Result {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = &mut streams[stream as usize - 1];
        Errno::ENOSPC.when(waiting.counted + text.len() >= CAPACITY)?;
        waiting.counted += text.len();
        Errno::ENOMEM.when(text.len() > MOST_BYTES)?;
        waiting.bytes.extend(text);
        Ok(())
    }

    /// Takes the bytes that wait in a stream.
    pub fn take(&self, stream: Stream) -> Vec<u8> {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = &mut streams[stream as usize - 1];
        waiting.counted -= waiting.bytes.len();
        std::mem::take(&mut waiting.bytes).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_fill_and_are_emptied() {
        let streams = Streams::new();
        let text = [b'a'; 1000];
        let pushed = (0..200).map(|_| streams.push(Stream::Error, &text));
        assert_eq!(pushed.filter(Result::is_ok).count(), 99);
        assert_eq!(streams.push(Stream::Error, &[0; 999]), Ok(()));
        assert_eq!(streams.push(Stream::Error, &[0]), Err(Errno::ENOSPC));
        assert_eq!(streams.push(Stream::Output, &[0; 1025]), Err(Errno::ENOMEM));
        assert_eq!(streams.take(Stream::Output), []);
        assert_eq!(streams.take(Stream::Error).len(), 99_999);
        assert_eq!(streams.push(Stream::Error, &text), Ok(()));
        assert_eq!(Stream::from_number(3), None);
    }
}
