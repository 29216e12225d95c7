//! Epoch-based reclamation of deleted map entries.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::sync::Arc;

use crossbeam_epoch::Guard;

use crate::Cells;
use crate::iteration::Iterations;
use crate::lock;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::yield_now;

/// A run of a program, or of an operation of the host: while it exists, no entry is
/// recycled that was reachable when it began, where the kind of map promises that (Linux's
/// RCU read-side critical section).
pub struct RunGuard {
    epoch: Guard,
    /// Runs since garbage was last collected.
    renewals: u32,
    /// Address of the spin lock that a verified program holds; 0: none.
    held_lock: Cell<u64>,
    /// What few runs need, made when it is used first.
    kept: OnceCell<Box<Kept>>,
}

/// What a guard keeps for a run.
#[derive(Default)]
struct Kept {
    /// Records of ring buffers that verified programs write.
    records: RefCell<Vec<ReservedRecord>>,
    iterations: Iterations,
    /// Cells for keys, and the numbers of those that are free.
    #[expect(clippy::vec_box, reason = "cells keep their addresses")]
    key_cells: RefCell<(Vec<Box<AtomicU64>>, Vec<usize>)>,
    /// Values of which a program got an address.
    values: RefCell<Vec<Arc<Cells>>>,
}

impl Kept {
    /// Forgets what a run that has ended needed.
    #[cold]
    fn clear(&mut self) {
        self.records.get_mut().clear();
        self.iterations.clear();
        let (cells, free) = self.key_cells.get_mut();
        free.clear();
        cells.clear();
        self.values.get_mut().clear();
    }
}

/// Renewals of a guard between two that collect garbage, as every so many new guards do.
const RENEWALS: u32 = 128;

/// A record of a ring buffer that a program writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReservedRecord {
    /// Address of its first byte.
    pub(crate) address: u64,
    /// Pointer to the map.
    pub(crate) map: u64,
    /// Its name in the ring buffer.
    pub(crate) position: u64,
}

impl RunGuard {
    /// A guard of the current thread.
    #[inline]
    pub fn new() -> RunGuard {
        RunGuard {
            epoch: crossbeam_epoch::pin(),
            renewals: 0,
            held_lock: Cell::new(0),
            kept: OnceCell::new(),
        }
    }

    /// Makes it the guard of the next run, as if it were dropped and another one made.
    #[inline]
    pub fn renew(&mut self) {
        self.renewals += 1;
        match self.renewals.is_multiple_of(RENEWALS) {
            true => self.epoch.repin_after(|| ()),
            false => self.epoch.repin(),
        }
        self.held_lock.set(0);
        if let Some(kept) = self.kept.get_mut() {
            kept.clear();
        }
    }

    fn kept(&self) -> &Kept {
        self.kept.get_or_init(Box::default)
    }

    /// Takes a cell for a key that a program reads while it visits entries; returns its
    /// number.
    pub fn take_key_cell(&self) -> usize {
        let (cells, free) = &mut *self.kept().key_cells.borrow_mut();
        free.pop().unwrap_or_else(|| {
            cells.push(Box::default());
            cells.len() - 1
        })
    }

    /// The cell of a number that [`RunGuard::take_key_cell`] returned.
    ///
    /// # Panics
    /// If there is none.
    pub fn key_cell(&self, number: usize) -> &AtomicU64 {
        let cell: *const AtomicU64 = &*self.kept().key_cells.borrow().0[number];
        // SAFETY: a box is only dropped with the guard, and its cell is only shared.
        unsafe { &*cell }
    }

    /// Lets another visit take the cell of that number.
    pub fn release_key_cell(&self, number: usize) {
        self.kept().key_cells.borrow_mut().1.push(number);
    }

    /// Keeps cells as long as the guard exists.
    pub fn keep(&self, cells: Arc<Cells>) -> &[AtomicU64] {
        let kept: *const [AtomicU64] = cells.as_slice();
        self.kept().values.borrow_mut().push(cells);
        // SAFETY: the cells are dropped with the guard, and are only shared.
        unsafe { &*kept }
    }

    /// Notes the spin lock that a verified program holds.
    pub(crate) fn set_held_lock(&self, address: u64) {
        self.held_lock.set(address);
    }

    /// Frees the spin lock that a run held when its deadline ended it.
    ///
    /// # Safety
    /// The maps of the program exist, and the program does not run.
    #[inline]
    pub unsafe fn free_held_lock(&self) {
        let address = self.held_lock.replace(0);
        if address != 0 {
            // SAFETY: the program took it in a value of one of its maps, which the guard
            // kept.
            unsafe { lock::free(address) };
        }
    }

    pub(crate) fn iterations(&self) -> &Iterations {
        &self.kept().iterations
    }

    /// Calls the function when all guards that exist now are dropped.
    pub fn defer(&self, recycle: impl FnOnce() + Send + 'static) {
        self.epoch.defer(recycle);
    }

    /// Calls functions that wait for guards of other threads, as far as those are dropped.
    pub fn flush(&self) {
        self.epoch.flush();
    }

    /// Waits until all guards that exist now are dropped (Linux's `synchronize_rcu`). The
    /// calling thread must have none.
    pub fn synchronize() {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        RunGuard::new().defer(move || done.store(true, Ordering::Release));
        while !is_done.load(Ordering::Acquire) {
            RunGuard::new().flush();
            yield_now();
        }
    }

    /// Remembers a record that was reserved.
    pub(crate) fn add_record(&self, record: ReservedRecord) {
        self.kept().records.borrow_mut().push(record);
    }

    /// Forgets the record at an address and returns it, if it was reserved.
    pub(crate) fn take_record(&self, address: u64) -> Option<ReservedRecord> {
        let mut records = self.kept().records.borrow_mut();
        let at = records
            .iter()
            .position(|record| record.address == address)?;
        Some(records.swap_remove(at))
    }
}

impl Default for RunGuard {
    fn default() -> RunGuard {
        RunGuard::new()
    }
}

impl fmt::Debug for RunGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunGuard")
    }
}
