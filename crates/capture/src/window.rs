//! Sliding window over a capture: a stream or a mapped file.
//!
//! Over a stream it is one buffer: consumed bytes are overwritten, the rest of a partial
//! record moves to the front. The buffer has 256 KiB, to stay in a second-level cache
//! (4 KiB before the format is known). It grows for a longer record only, and only as
//! its bytes arrive, so that an attacker's length alone takes no memory.
//!
//! Over a mapping all bytes are present, and nothing is copied.

use std::io::{self, Read};
use std::sync::Arc;

use memmap2::Mmap;

/// Maximum size of a read in bytes.
const CHUNK: usize = 256 << 10;

/// Size of the first read in bytes, enough to recognise the format.
const START: usize = 4 << 10;

#[derive(Debug)]
pub(crate) struct Window<R> {
    bytes: Bytes<R>,
    /// Index of the first unconsumed byte.
    start: usize,
    /// End of the bytes read.
    end: usize,
    /// Offset of `bytes` in the source.
    base: u64,
}

#[derive(Debug)]
enum Bytes<R> {
    Buffer { source: R, buffer: Vec<u8> },
    Mapping(Arc<Mmap>),
}

impl<R> Window<R> {
    /// Window over a source whose next byte is at `offset`.
    pub(crate) fn new(source: R, offset: u64) -> Window<R> {
        Window {
            bytes: Bytes::Buffer {
                source,
                buffer: vec![0; START],
            },
            start: 0,
            end: 0,
            base: offset,
        }
    }

    /// Window over a mapped file from `offset`.
    pub(crate) fn over(mapping: Arc<Mmap>, offset: u64) -> Window<R> {
        let end = mapping.len();
        Window {
            bytes: Bytes::Mapping(mapping),
            start: usize::try_from(offset).map_or(end, |start| start.min(end)),
            end,
            base: 0,
        }
    }

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Buffer { buffer, .. } => buffer,
            Bytes::Mapping(mapping) => mapping,
        }
    }

    /// Bytes that are read and not consumed.
    #[inline(always)]
    pub(crate) fn ahead(&self) -> &[u8] {
        &self.bytes()[self.start..self.end]
    }

    /// Offset of the next byte in the source.
    #[inline(always)]
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Consumes the next `len` bytes, which [`ahead`](Self::ahead) has, and
    /// returns them.
    #[inline(always)]
    pub(crate) fn consume(&mut self, len: usize) -> &[u8] {
        let from = self.start;
        self.start += len;
        &self.bytes()[from..self.start]
    }

    /// Mapping, if the window is over one.
    pub(crate) fn mapping(&self) -> Option<&Mmap> {
        match &self.bytes {
            Bytes::Buffer { .. } => None,
            Bytes::Mapping(mapping) => Some(mapping),
        }
    }

    /// Replaces the source by one whose next byte is at `offset`; reuses the buffer.
    pub(crate) fn restart(&mut self, source: R, offset: u64) {
        match &mut self.bytes {
            Bytes::Buffer { source: old, .. } => *old = source,
            Bytes::Mapping(_) => return *self = Window::new(source, offset),
        }
        self.start = 0;
        self.end = 0;
        self.base = offset;
    }
}

impl<R: Read> Window<R> {
    /// Reads until `needed` bytes are ahead; false if the source ends before.
    #[cold]
    #[inline(never)]
    pub(crate) fn fill(&mut self, needed: usize) -> io::Result<bool> {
        let Bytes::Buffer { source, buffer } = &mut self.bytes else {
            return Ok(self.end - self.start >= needed);
        };
        buffer.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < needed {
            if self.base > 0 && buffer.len() < CHUNK {
                buffer.resize(CHUNK, 0);
            } else if self.end == buffer.len() {
                let grown = (2 * buffer.len()).min(needed.next_multiple_of(CHUNK));
                buffer.resize(grown, 0);
            }
            let room = buffer.len().min(self.end + CHUNK);
            match source.read(&mut buffer[self.end..room]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
