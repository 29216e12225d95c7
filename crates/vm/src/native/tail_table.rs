//! Targets of tail calls in an engine: the entries of programs by index, which threads change
//! while others run.
//!
//! A table is what an engine sees of a program array: the number of indices, then for each
//! index the address of a [`TailTarget`]'s entry, 0 in an empty slot. All its callers and targets
//! are of one engine ([`TailConvention`]). Code loads a slot once
//! and decides by that value whether to unwind its frame and jump, or to fall through; a
//! change is one atomic store. So a run that unwinds has a target, whatever changes at the
//! same time, and no code is ever modified.
//!
//! A target that is replaced or removed exists until no run can be in it: it is dropped when
//! all guards are gone that exist at the change ([`RunGuard`]), and runs have one.

use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::{Arc, OnceLock, PoisonError};

use crate::sync::Mutex;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::{CELL_BYTES, Cells, ContextKind, OutOfMemory, RunGuard};

/// The engine whose code makes and takes tail calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailConvention {
    /// Entries are addresses of native code.
    Native,
    /// Entries are addresses of what the threaded interpreter enters.
    Threaded,
}

/// Code that tail calls enter.
///
/// # Safety
/// As long as the value exists, [`entry`](TailTarget::entry) is the address of code of
/// a program that was verified for this kind of context. The code follows the convention of
/// its engine: it takes the context and the state of the run where
/// an entry takes them, native code makes no demands on the stack beside the ABI's and preserves
/// the ABI's callee-saved registers, and it works with maps that have values for CPUs below
/// [`cpus`](TailTarget::cpus).
pub unsafe trait TailTarget: fmt::Debug + Send + Sync {
    /// The engine of its code.
    fn convention(&self) -> TailConvention;

    /// Address of its entry for tail calls.
    fn entry(&self) -> u64;

    /// The kind of its context.
    fn context(&self) -> ContextKind;

    /// Number of CPUs that it may run on.
    fn cpus(&self) -> u32;
}

/// The targets of one program array.
pub struct TailTable {
    /// The number of indices, then the address of each.
    cells: Cells,
    entries: u32,
    cpus: u32,
    /// The kind of context of all programs that call or are called.
    kind: OnceLock<ContextKind>,
    /// The engine of all of them.
    convention: OnceLock<TailConvention>,
    /// Targets of the addresses; locked by writers.
    targets: Mutex<HashMap<u32, Arc<dyn TailTarget>>>,
}

/// Reason why a table does not take a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailTableError {
    /// The index is not below the number of entries.
    Index(u32),
    /// The target has another kind of context than the table's programs.
    Context,
    /// The target is code of another engine than the table's programs.
    Convention,
    /// The target does not run on all CPUs that the table's callers run on.
    Cpus,
}

impl TailTable {
    /// Offset of the address of index 0 from [`TailTable::address`]; the number of indices
    /// comes before it.
    pub const FIRST: usize = CELL_BYTES;

    /// An empty table for callers on CPUs below `cpus`.
    ///
    /// # Errors
    /// If there is no memory for the slots.
    pub fn new(entries: u32, cpus: u32) -> Result<TailTable, OutOfMemory> {
        let cells = Cells::zeroed((entries as usize).saturating_add(1))?;
        cells.as_slice()[0].store(entries.into(), Release);
        Ok(TailTable {
            cells,
            entries,
            cpus,
            kind: OnceLock::new(),
            convention: OnceLock::new(),
            targets: Mutex::default(),
        })
    }

    /// Address of the table, as code refers to it.
    pub fn address(&self) -> u64 {
        self.cells.as_slice().as_ptr().expose_provenance() as u64
    }

    /// Address of the slot of an index in range, as code refers to it.
    pub fn slot(&self, index: u32) -> Option<u64> {
        let offset = Self::FIRST as u64 + u64::from(index) * CELL_BYTES as u64;
        (index < self.entries).then(|| self.address() + offset)
    }

    /// Number of CPUs that callers may run on.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// True if programs with this kind of context may call its targets. The first kind that
    /// is asked for decides.
    pub fn admits(&self, kind: ContextKind) -> bool {
        *self.kind.get_or_init(|| kind) == kind
    }

    /// True if code of an engine may call its targets: engines ask before they refer to the
    /// table. The first one that is asked for decides.
    pub fn admits_callers(&self, convention: TailConvention) -> bool {
        *self.convention.get_or_init(|| convention) == convention
    }

    /// The entry in the slot of an index of the table at an address; 0 if there is none.
    ///
    /// # Safety
    /// A table has this address.
    #[inline]
    pub unsafe fn entry_at(table: u64, index: u32) -> u64 {
        let entries = ptr::with_exposed_provenance::<AtomicU64>(table as usize);
        // SAFETY: the number of entries is in front of them.
        match u64::from(index) < unsafe { (*entries).load(Acquire) } {
            // SAFETY: so many slots follow.
            true => unsafe {
                Self::entry_in(table + (Self::FIRST + index as usize * CELL_BYTES) as u64)
            },
            false => 0,
        }
    }

    /// The entry in the slot at an address; 0 if it is empty.
    ///
    /// # Safety
    /// A slot has this address ([`TailTable::slot`]).
    #[inline]
    pub unsafe fn entry_in(slot: u64) -> u64 {
        let slot = ptr::with_exposed_provenance::<AtomicU64>(slot as usize);
        // SAFETY: passed on to the caller.
        unsafe { (*slot).load(Acquire) }
    }

    /// Fills a slot or empties it. Runs go on with what they found before.
    ///
    /// # Errors
    /// If the slot does not exist, or not for this target; nothing is changed then.
    pub fn set(
        &self,
        index: u32,
        target: Option<Arc<dyn TailTarget>>,
    ) -> Result<(), TailTableError> {
        if index >= self.entries {
            return Err(TailTableError::Index(index));
        }
        if let Some(target) = &target {
            if target.cpus() < self.cpus {
                return Err(TailTableError::Cpus);
            }
            if !self.admits(target.context()) {
                return Err(TailTableError::Context);
            }
            if !self.admits_callers(target.convention()) {
                return Err(TailTableError::Convention);
            }
        }
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = target.as_ref().map_or(0, |target| target.entry());
        // What the target consists of is visible to whoever finds its address.
        self.cells.as_slice()[1 + index as usize].store(entry, Release);
        let old = match target {
            Some(target) => targets.insert(index, target),
            None => targets.remove(&index),
        };
        drop(targets);
        if let Some(old) = old {
            RunGuard::new().defer(move || drop(old));
        }
        Ok(())
    }
}

impl fmt::Debug for TailTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TailTable")
            .field("entries", &self.entries)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for TailTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TailTableError::Index(index) => write!(f, "index {index} is beyond the table"),
            TailTableError::Context => {
                f.write_str("the target has another kind of context than the table's programs")
            }
            TailTableError::Convention => {
                f.write_str("the target is code of another engine than the table's programs")
            }
            TailTableError::Cpus => {
                f.write_str("the maps of the target have fewer CPUs than the table")
            }
        }
    }
}

impl std::error::Error for TailTableError {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Code {
        entry: u64,
        kind: ContextKind,
        cpus: u32,
    }

    // SAFETY: no test runs it.
    unsafe impl TailTarget for Code {
        fn convention(&self) -> TailConvention {
            TailConvention::Native
        }

        fn entry(&self) -> u64 {
            self.entry
        }

        fn context(&self) -> ContextKind {
            self.kind
        }

        fn cpus(&self) -> u32 {
            self.cpus
        }
    }

    fn code(entry: u64, kind: ContextKind, cpus: u32) -> Option<Arc<dyn TailTarget>> {
        Some(Arc::new(Code { entry, kind, cpus }))
    }

    #[test]
    fn slots_hold_what_was_stored_last() {
        let table = TailTable::new(2, 4).unwrap();
        let cells = || table.cells.as_slice().iter().map(|cell| cell.load(Acquire));
        assert!(cells().eq([2, 0, 0]));
        table.set(1, code(77, ContextKind::Xdp, 4)).unwrap();
        assert!(cells().eq([2, 0, 77]));
        table.set(1, code(88, ContextKind::Xdp, u32::MAX)).unwrap();
        assert!(cells().eq([2, 0, 88]));
        table.set(1, None).unwrap();
        assert!(cells().eq([2, 0, 0]));
        assert_eq!(table.slot(1), Some(table.address() + 16));
        assert_eq!(table.slot(2), None);
    }

    #[test]
    fn entries_are_found_by_address() {
        let table = TailTable::new(2, 4).unwrap();
        table.set(1, code(77, ContextKind::Xdp, 4)).unwrap();
        for (index, entry) in [(0, 0), (1, 77), (2, 0), (u32::MAX, 0)] {
            // SAFETY: the table exists, and the index is that of a slot.
            unsafe {
                assert_eq!(TailTable::entry_at(table.address(), index), entry);
                if let Some(slot) = table.slot(index) {
                    assert_eq!(TailTable::entry_in(slot), entry);
                }
            }
        }
    }

    #[test]
    fn unfit_targets_change_nothing() {
        let table = TailTable::new(1, 4).unwrap();
        assert!(table.admits(ContextKind::Xdp));
        let index = table.set(1, code(5, ContextKind::Xdp, 4));
        assert_eq!(index, Err(TailTableError::Index(1)));
        let context = table.set(0, code(5, ContextKind::SkBuff, 4));
        assert_eq!(context, Err(TailTableError::Context));
        assert!(table.admits_callers(TailConvention::Threaded));
        let engine = table.set(0, code(5, ContextKind::Xdp, 4));
        assert_eq!(engine, Err(TailTableError::Convention));
        let cpus = table.set(0, code(5, ContextKind::Xdp, 3));
        assert_eq!(cpus, Err(TailTableError::Cpus));
        assert_eq!(table.cells.as_slice()[1].load(Acquire), 0);
    }

    #[test]
    fn a_replaced_target_outlives_the_runs_that_may_be_in_it() {
        let table = TailTable::new(1, 1).unwrap();
        let old: Arc<dyn TailTarget> = Arc::new(Code {
            entry: 1,
            kind: ContextKind::Xdp,
            cpus: 1,
        });
        table.set(0, Some(old.clone())).unwrap();
        let run = RunGuard::new();
        table.set(0, None).unwrap();
        for _ in 0..1000 {
            RunGuard::new().defer(|| ());
        }
        assert_eq!(Arc::strong_count(&old), 2);
        drop(run);
        while Arc::strong_count(&old) > 1 {
            RunGuard::new().defer(|| ());
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::thread;

    use super::*;
    use crate::sync::atomic::Ordering::Relaxed;

    /// A target whose code is a number: 0 before it is written and when it is freed.
    #[derive(Debug)]
    struct Code {
        number: Arc<AtomicU64>,
        entry: u64,
    }

    // SAFETY: no test runs it.
    unsafe impl TailTarget for Code {
        fn convention(&self) -> TailConvention {
            TailConvention::Native
        }

        fn entry(&self) -> u64 {
            self.entry
        }

        fn context(&self) -> ContextKind {
            ContextKind::Xdp
        }

        fn cpus(&self) -> u32 {
            1
        }
    }

    impl Drop for Code {
        fn drop(&mut self) {
            self.number.store(0, Relaxed);
        }
    }

    #[test]
    fn who_finds_a_target_finds_its_code() {
        loom::model(|| {
            let table = Arc::new(TailTable::new(1, 1).unwrap());
            let codes = [1, 2].map(|_| Arc::new(AtomicU64::new(0)));
            let writer = {
                let (table, codes) = (Arc::clone(&table), codes.clone());
                thread::spawn(move || {
                    for (number, entry) in codes.iter().zip(1..) {
                        number.store(entry, Relaxed);
                        let number = Arc::clone(number);
                        let code: Arc<dyn TailTarget> = Arc::new(Code { number, entry });
                        table.set(0, Some(code)).unwrap();
                    }
                })
            };
            {
                let _run = RunGuard::new();
                // As native code loads: processors of x86-64 order loads.
                let entry = table.cells.as_slice()[1].load(Acquire);
                if entry != 0 {
                    let code = &codes[entry as usize - 1];
                    assert_eq!(code.load(Relaxed), entry, "code that is not there");
                }
            }
            writer.join().unwrap();
        });
    }
}
