//! Vectors that a thread keeps from one compilation to the next.

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
