//! The memory that maps take, and its limit.
//!
//! Values of arrays are charged when the map is created, those of one entry, as the global
//! variables of programs, never: pages that nothing was written to take no memory. What other
//! maps hold is charged when it first comes to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use spec::{Errno, Result};
use vm::{CELL_BYTES, Cells};

/// The memory of all maps of a host.
#[derive(Debug)]
pub struct MapMemory {
    limit: u64,
    used: AtomicU64,
    is_refused: AtomicBool,
}

impl MapMemory {
    /// Most memory of the maps of a run, in bytes, if nothing else is given: 1 GiB.
    pub const DEFAULT_LIMIT: u64 = 1 << 30;

    /// Memory of so many bytes.
    pub fn new(limit: u64) -> MapMemory {
        MapMemory {
            limit,
            used: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
        }
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that maps take.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// True if maps asked for more than the limit since this was called last.
    #[inline]
    pub fn take_refused(&self) -> bool {
        self.is_refused.load(Relaxed) && self.is_refused.swap(false, Relaxed)
    }
}

impl Default for MapMemory {
    /// Memory without a limit.
    fn default() -> MapMemory {
        MapMemory::new(u64::MAX)
    }
}

/// The part of the memory that a map takes, until it is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    memory: Arc<MapMemory>,
    bytes: AtomicU64,
}

impl Charge {
    /// A map that takes nothing yet.
    pub(super) fn new(memory: &Arc<MapMemory>) -> Charge {
        Charge {
            memory: Arc::clone(memory),
            bytes: AtomicU64::new(0),
        }
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// ENOMEM beyond the limit.
    pub(super) fn add(&self, bytes: u64) -> Result {
        let MapMemory {
            limit,
            used,
            is_refused,
        } = &*self.memory;
        let sum = |used: u64| used.checked_add(bytes).filter(|sum| sum <= limit);
        match used.fetch_update(Relaxed, Relaxed, sum) {
            Ok(_) => {
                self.bytes.fetch_add(bytes, Relaxed);
                Ok(())
            }
            Err(_) => {
                is_refused.store(true, Relaxed);
                Err(Errno::ENOMEM)
            }
        }
    }

    /// So many cells that are zero. Their bytes are taken first: the system is not asked for what is
    /// beyond the limit.
    ///
    /// # Errors
    /// ENOMEM beyond the limit, and if there is no memory for them.
    pub(super) fn cells(&self, count: usize) -> Result<Cells> {
        self.add((count as u64).saturating_mul(CELL_BYTES as u64))?;
        Cells::zeroed(count).map_err(|_| Errno::ENOMEM)
    }

    /// Gives bytes back.
    pub(super) fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Relaxed);
        self.memory.used.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(*self.bytes.get_mut(), Relaxed);
    }
}
