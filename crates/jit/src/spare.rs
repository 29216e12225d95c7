//! What a thread's last compilation worked in, for its next one.
//!
//! Most programs are small: making and freeing four vectors took a twentieth of the
//! time from bytes to native code.

use std::cell::Cell;

/// Bytes of a vector that is kept; after a larger program nothing stays behind.
const MOST: usize = 1 << 16;

/// A vector that may be used again.
pub(crate) struct Spare<T>(Cell<Vec<T>>);

impl<T> Spare<T> {
    pub(crate) const fn none() -> Spare<T> {
        Spare(Cell::new(Vec::new()))
    }

    /// The vector as it was given back, or an empty one.
    pub(crate) fn take(&self) -> Vec<T> {
        self.0.take()
    }

    pub(crate) fn give_back(&self, vector: Vec<T>) {
        if vector.capacity() * size_of::<T>() <= MOST {
            self.0.set(vector);
        }
    }
}
