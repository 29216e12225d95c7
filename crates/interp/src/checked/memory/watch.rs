//! Stack frames whose written bytes are noted, so that reads of other bytes are noticed.

use std::cell::Cell;
use std::collections::BTreeMap;

use vm::FRAME_BYTES;

use super::{FRAME_STRIDE, Memory};

/// Frames that are watched.
#[derive(Default)]
pub(super) struct Watch {
    /// New frames are watched.
    is_on: bool,
    /// By number of a frame, a bit for each byte that was written; bit 0 is the lowest byte.
    written: BTreeMap<usize, [u64; FRAME_BYTES / 64]>,
    /// A byte was read that was not written.
    found: Cell<bool>,
}

impl Watch {
    /// Notes a new frame.
    pub(super) fn push(&mut self, frame: usize) {
        if self.is_on {
            self.written.insert(frame, [0; FRAME_BYTES / 64]);
        }
    }

    /// Forgets a frame.
    pub(super) fn pop(&mut self, frame: usize) {
        if !self.written.is_empty() {
            self.written.remove(&frame);
        }
    }
}

impl Memory<'_> {
    /// Has frames watched from now on, or not.
    pub(in crate::checked) fn watch_new_frames(&mut self, is_on: bool) {
        self.watch.is_on = is_on;
    }

    /// True if bytes of a watched frame were read that the program had not written, since this was
    /// asked last.
    pub(in crate::checked) fn take_unwritten_read(&self) -> bool {
        self.watch.found.take()
    }

    /// Notes a read.
    #[inline]
    pub(in crate::checked) fn note_read(&self, address: u64, len: u64) {
        if !self.watch.written.is_empty() {
            self.note_watched_read(address, len);
        }
    }

    #[cold]
    fn note_watched_read(&self, address: u64, len: u64) {
        let written = |at: u64| {
            let (frame, offset) = self.place_in_frames(at)?;
            let written = self.watch.written.get(&frame)?;
            Some(written[offset / 64] >> (offset % 64) & 1 != 0)
        };
        let mut bytes = address..address.saturating_add(len);
        if bytes.any(|at| written(at) == Some(false)) {
            self.watch.found.set(true);
        }
    }

    /// Notes a write.
    #[inline]
    pub(in crate::checked) fn note_write(&mut self, address: u64, len: u64) {
        if !self.watch.written.is_empty() {
            self.note_watched_write(address, len);
        }
    }

    /// For each byte at an address true if it is in a watched frame and the program did not write it;
    /// `None` if there are none.
    pub fn unwritten(&self, address: u64, len: usize) -> Option<Vec<bool>> {
        if self.watch.written.is_empty() {
            return None;
        }
        let bytes = address..address.saturating_add(len as u64);
        let unwritten = bytes.map(|at| {
            let Some((frame, offset)) = self.place_in_frames(at) else {
                return false;
            };
            let written = self.watch.written.get(&frame);
            written.is_some_and(|written| written[offset / 64] >> (offset % 64) & 1 == 0)
        });
        let unwritten: Vec<bool> = unwritten.collect();
        unwritten.contains(&true).then_some(unwritten)
    }

    #[cold]
    fn note_watched_write(&mut self, address: u64, len: u64) {
        // Most are of one word of the bits.
        if let Some((frame, offset)) = self.place_in_frames(address)
            && len <= 8
            && offset % 64 + len as usize <= 64
            && let Some(written) = self.watch.written.get_mut(&frame)
        {
            written[offset / 64] |= ((1 << len) - 1) << (offset % 64);
            return;
        }
        for at in address..address.saturating_add(len) {
            let Some((frame, offset)) = self.place_in_frames(at) else {
                return;
            };
            if let Some(written) = self.watch.written.get_mut(&frame) {
                written[offset / 64] |= 1 << (offset % 64);
            }
        }
    }

    /// The frame that an address could be in, and the offset from its start.
    fn place_in_frames(&self, address: u64) -> Option<(usize, usize)> {
        let below = self.end_of_frame(0).checked_sub(address)?.checked_sub(1)?;
        let number = usize::try_from(below / FRAME_STRIDE).ok()?;
        let offset = (FRAME_BYTES as u64 - 1).checked_sub(below % FRAME_STRIDE)?;
        Some((number, offset as usize))
    }
}
