//! Counters that code without checks increments: how often a run came to places of a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a program, at addresses that do not change. Code increments them without a lock, unless they
/// are shared: where two threads run it at the same time, increments get lost.
#[derive(Clone, Debug)]
pub struct Counters {
    counts: Arc<[AtomicU64]>,
    is_shared: bool,
}

impl Counters {
    /// So many counters of zero; shared ones are incremented by several threads.
    pub fn new(len: usize, is_shared: bool) -> Counters {
        Counters {
            counts: (0..len).map(|_| AtomicU64::new(0)).collect(),
            is_shared,
        }
    }

    /// True if code increments them with a lock.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The address of a counter, for code that keeps the counters.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn address(&self, index: usize) -> u64 {
        self.counts[index].as_ptr().expose_provenance() as u64
    }

    /// The value of a counter.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn get(&self, index: usize) -> u64 {
        self.counts[index].load(Ordering::Relaxed)
    }

    /// Increments a counter.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn increment(&self, index: usize) {
        let counter = &self.counts[index];
        if self.is_shared {
            counter.fetch_add(1, Ordering::Relaxed);
            return;
        }
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    /// Calls a function with each counter that is not zero, and its value, and sets it to zero.
    #[inline]
    pub fn drain(&self, mut each: impl FnMut(usize, u64)) {
        for (index, counter) in self.counts.iter().enumerate() {
            let count = counter.load(Ordering::Relaxed);
            if count != 0 {
                counter.store(0, Ordering::Relaxed);
                each(index, count);
            }
        }
    }

    /// Number of counters.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}
