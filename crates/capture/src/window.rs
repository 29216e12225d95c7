//! The one buffer through which a capture is read.
//!
//! It slides over the source: what was consumed is overwritten, what is left of
//! a record moves to the front. It starts at 256 KiB, which stays in a core's
//! second-level cache, so that the walk over freshly read packets costs little
//! (at the very first, when only the format is asked, 4 KiB); it grows only for a record that is longer, and only as its bytes arrive, so
//! that a length made up by an enemy costs no memory.

use std::io::{self, Read};

/// Bytes asked from the source at once.
const CHUNK: usize = 256 << 10;

/// Bytes asked at first, to see what the source is.
const START: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Window<R> {
    source: R,
    buffer: Vec<u8>,
    /// First byte not consumed.
    start: usize,
    /// End of what was read.
    end: usize,
    /// Offset of `buffer[0]` in the source.
    base: u64,
}

impl<R: Read> Window<R> {
    /// A window on a source whose next byte is at `offset`.
    pub(crate) fn new(source: R, offset: u64) -> Window<R> {
        Window {
            source,
            buffer: vec![0; START],
            start: 0,
            end: 0,
            base: offset,
        }
    }

    /// What was read and not consumed.
    #[inline(always)]
    pub(crate) fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Offset of the next byte in the source.
    #[inline(always)]
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Consumes the next `len` bytes, which [`ahead`](Self::ahead) has, and
    /// returns them.
    #[inline(always)]
    pub(crate) fn take(&mut self, len: usize) -> &[u8] {
        let from = self.start;
        self.start += len;
        &self.buffer[from..self.start]
    }

    /// Reads on until `needed` bytes are ahead; false when the source ends
    /// before that.
    #[cold]
    #[inline(never)]
    pub(crate) fn fill(&mut self, needed: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < needed {
            if self.base > 0 && self.buffer.len() < CHUNK {
                self.buffer.resize(CHUNK, 0);
            } else if self.end == self.buffer.len() {
                let grown = (2 * self.buffer.len()).min(needed.next_multiple_of(CHUNK));
                self.buffer.resize(grown, 0);
            }
            let room = self.buffer.len().min(self.end + CHUNK);
            match self.source.read(&mut self.buffer[self.end..room]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Goes on with another source whose next byte is at `offset`, in the same
    /// buffer.
    pub(crate) fn restart(&mut self, source: R, offset: u64) {
        self.source = source;
        self.start = 0;
        self.end = 0;
        self.base = offset;
    }
}
