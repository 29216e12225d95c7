//! What a thread's last compilation worked in, for its next one.
//!
//! Most programs are small: making and freeing four vectors took a twentieth of the
//! time from bytes to native code. Vectors that are taken together are kept
//! together, since each look at a thread's own takes time, too.

use std::cell::Cell;

/// Bytes that are kept; after a larger program nothing stays behind.
const MOST: usize = 1 << 18;

/// Vectors that may be used again.
pub(crate) struct Spare<T>(Cell<Option<T>>);

impl<T: Default> Spare<T> {
    pub(crate) const fn none() -> Spare<T> {
        Spare(Cell::new(None))
    }

    /// The vectors as they were given back, or empty ones.
    pub(crate) fn take(&self) -> T {
        self.0.take().unwrap_or_default()
    }

    /// Keeps vectors that hold so many bytes.
    pub(crate) fn give_back(&self, vectors: T, bytes: usize) {
        if bytes <= MOST {
            self.0.set(Some(vectors));
        }
    }
}

/// How many bytes a vector holds.
pub(crate) fn bytes_of<T>(vector: &Vec<T>) -> usize {
    vector.capacity() * size_of::<T>()
}
