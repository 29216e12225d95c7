//! Counters that code without checks increments: how often a run came to places of a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a program, at addresses that do not change. Code increments them without a lock: where
/// two threads run it at the same time, increments get lost.
#[derive(Clone, Debug)]
pub struct Counters(Arc<[AtomicU64]>);

impl Counters {
    /// So many counters of zero.
    pub fn new(len: usize) -> Counters {
        Counters((0..len).map(|_| AtomicU64::new(0)).collect())
    }

    /// The address of a counter, for code that keeps the counters.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn address(&self, index: usize) -> u64 {
        self.0[index].as_ptr().expose_provenance() as u64
    }

    /// The value of a counter.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn get(&self, index: usize) -> u64 {
        self.0[index].load(Ordering::Relaxed)
    }

    /// Increments a counter.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn increment(&self, index: usize) {
        let counter = &self.0[index];
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    /// Calls a function with each counter that is not zero, and its value, and sets it to zero.
    #[inline]
    pub fn drain(&self, mut each: impl FnMut(usize, u64)) {
        for (index, counter) in self.0.iter().enumerate() {
            let count = counter.load(Ordering::Relaxed);
            if count != 0 {
                counter.store(0, Ordering::Relaxed);
                each(index, count);
            }
        }
    }

    /// Number of counters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
