//! Parts of a capture file that threads read by themselves.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use capture::{Error, Event, Fault, Framed, Framing, Problem, Record};

use super::positioned::read_at;

/// Bytes that are read behind a part, for the rest of its last record.
const BEHIND: u64 = 4 << 10;

/// A place in a capture where a record or block begins.
#[derive(Clone)]
pub(crate) struct Place {
    pub(super) offset: u64,
    /// The framing there.
    pub(super) framing: Framing,
}

/// A part of a capture file in memory, at least as far as its last record reaches.
pub(crate) struct Part {
    file: Arc<File>,
    /// Offset of the bytes in the file.
    start: u64,
    bytes: Vec<u8>,
    /// True if the file ends with them.
    is_last: bool,
}

impl Part {
    /// A part without bytes.
    pub(crate) fn new(file: Arc<File>) -> Part {
        Part {
            file,
            start: 0,
            bytes: Vec::new(),
            is_last: false,
        }
    }

    /// Reads the bytes from `start` to `end`, as far as there are, in place of the old ones.
    pub(crate) fn load(&mut self, start: u64, end: u64) -> Result<(), Error> {
        self.start = start;
        self.is_last = false;
        self.read(0, (end + BEHIND - start) as usize)
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Goes on from `place` to the first record or block at the offset `end` or behind it, and
    /// shows the packets and where their bytes are in the part; false if the capture ends before.
    ///
    /// # Errors
    /// The capture cannot be read on; what `packet` returns.
    #[inline]
    pub(crate) fn walk<E: From<Error>>(
        &mut self,
        place: &mut Place,
        end: u64,
        mut packet: impl FnMut(Range<usize>, &Record<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        while place.offset < end {
            let at = (place.offset - self.start) as usize;
            let ahead = self.bytes.get(at..).unwrap_or_default();
            let fault = |problem| {
                E::from(Error::Fault(Fault {
                    packets: 0,
                    offset: place.offset,
                    problem,
                }))
            };
            let len = match place.framing.event(ahead).map_err(fault)? {
                Framed::Event(Event::Packet(record)) => {
                    let data = record.data_range();
                    packet(at + data.start..at + data.end, &record)?;
                    record.raw().len()
                }
                Framed::Event(Event::Block(block)) => block.raw.len(),
                Framed::Incomplete { .. } if ahead.is_empty() && self.is_last => return Ok(false),
                Framed::Incomplete { needed } if self.is_last => {
                    return Err(fault(Problem::Truncated {
                        needed: needed.into(),
                        present: ahead.len() as u64,
                    }));
                }
                Framed::Incomplete { .. } => {
                    // Not as many as are needed, which a damaged capture may overstate.
                    self.read(self.bytes.len(), 2 * self.bytes.len())?;
                    continue;
                }
            };
            place.offset += len as u64;
        }
        Ok(true)
    }

    /// Reads the bytes after the first `kept` ones until there are `len`, or the file ends.
    fn read(&mut self, mut kept: usize, len: usize) -> Result<(), Error> {
        self.bytes.resize(len, 0);
        while kept < len {
            let offset = self.start + kept as u64;
            match read_at(&self.file, &mut self.bytes[kept..], offset) {
                Ok(0) => {
                    self.is_last = true;
                    break;
                }
                Ok(count) => kept += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Io { offset, source }),
            }
        }
        self.bytes.truncate(kept);
        Ok(())
    }
}
