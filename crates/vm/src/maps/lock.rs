//! Spin locks in values of maps (`struct bpf_spin_lock`): 4 bytes that are 0 when free.
//!
//! Programs take them through helpers, the host when it copies a value under its lock. A
//! run holds one at most; it is freed when the run ends, whatever ends it.

use std::ptr;
use std::slice;

use crate::sync::atomic::AtomicU64;
use crate::sync::{spin_loop, yield_now};
use crate::{CELL_BYTES, CellSlice};

/// Rounds of waiting before a thread yields, and before the host gives up.
const ROUNDS: u64 = 64;
const MOST_ROUNDS: u64 = 1 << 20;

/// A lock that the host holds, until this is dropped.
#[derive(Debug)]
pub struct LockedValue<'a> {
    value: CellSlice<'a>,
    offset: usize,
}

impl<'a> LockedValue<'a> {
    /// Takes the lock at an offset of a value, a multiple of 4; `None` if it stays held
    /// although this thread waits.
    ///
    /// # Panics
    /// If the value has no such bytes.
    pub fn lock(value: CellSlice<'a>, offset: usize) -> Option<LockedValue<'a>> {
        let is_free = wait_for(value, offset, MOST_ROUNDS);
        is_free.then_some(LockedValue { value, offset })
    }
}

impl Drop for LockedValue<'_> {
    fn drop(&mut self) {
        self.value.update::<4>(self.offset, |_| 0);
    }
}

/// Takes a lock that a verified program names.
///
/// # Safety
/// The address is that of a lock in a value that is valid.
pub(crate) unsafe fn take(address: u64) {
    // SAFETY: the caller upholds it.
    let (cell, offset) = unsafe { cell_of(address) };
    wait_for(cell, offset, u64::MAX);
}

/// Frees a lock that [`take`] took.
///
/// # Safety
/// As for [`take`].
pub(crate) unsafe fn free(address: u64) {
    // SAFETY: the caller upholds it.
    let (cell, offset) = unsafe { cell_of(address) };
    cell.update::<4>(offset, |_| 0);
}

/// The cell of a lock, and the lock's offset in it.
///
/// # Safety
/// As for [`take`].
unsafe fn cell_of<'a>(address: u64) -> (CellSlice<'a>, usize) {
    let offset = address as usize % CELL_BYTES;
    let cell = ptr::with_exposed_provenance::<AtomicU64>(address as usize - offset);
    // SAFETY: values consist of whole cells, which the caller upholds to be valid.
    let cell = slice::from_ref(unsafe { &*cell });
    (CellSlice::new(cell, CELL_BYTES), offset)
}

/// Takes a lock in so many rounds at most; false if it is held all the while.
fn wait_for(value: CellSlice<'_>, offset: usize, most: u64) -> bool {
    for round in 0..most {
        if value.update::<4>(offset, |old| old.max(1)) == 0 {
            return true;
        }
        match round < ROUNDS {
            true => spin_loop(),
            false => yield_now(),
        }
    }
    false
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;
    use crate::Cells;

    #[test]
    fn a_lock_is_held_by_one_thread() {
        let cells = Cells::zeroed(3).unwrap();
        let value = cells.slice(0, 20);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _locked = LockedValue::lock(value, 4).expect("it is freed soon");
                        let mut count = [0; 8];
                        value.read(8, &mut count);
                        value.write(8, &(u64::from_le_bytes(count) + 1).to_le_bytes());
                    }
                });
            }
        });
        let mut bytes = [0; 12];
        value.read(4, &mut bytes);
        assert_eq!(bytes, [0, 0, 0, 0, 0x90, 1, 0, 0, 0, 0, 0, 0]);
    }
}

#[cfg(all(test, loom))]
mod model {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::Cells;

    /// Adds 1 to two cells, which are equal whenever the lock is free.
    fn count(value: CellSlice<'_>) {
        let mut pair = [0; 16];
        value.read(8, &mut pair);
        let (first, second) = pair.split_at(8);
        assert_eq!(first, second, "a torn value under the lock");
        let next = u64::from_le_bytes(first.try_into().unwrap()) + 1;
        value.write(8, &next.to_le_bytes());
        value.write(16, &next.to_le_bytes());
    }

    /// Runs a change under a lock of a value in two threads; both changes count.
    fn in_two_threads(change: fn(&Cells)) {
        loom::model(move || {
            let cells = Arc::new(Cells::zeroed(3).unwrap());
            let other = Arc::clone(&cells);
            let thread = thread::spawn(move || change(&other));
            change(&cells);
            thread.join().unwrap();
            let mut bytes = [0; 24];
            cells.slice(0, 24).read(0, &mut bytes);
            let words: Vec<u64> = (bytes.as_chunks().0.iter())
                .map(|word| u64::from_le_bytes(*word))
                .collect();
            assert_eq!(words, [0, 2, 2]);
        });
    }

    #[test]
    fn the_host_changes_values_one_after_the_other() {
        in_two_threads(|cells| {
            let value = cells.slice(0, 24);
            let _locked = LockedValue::lock(value, 0).expect("it is freed soon");
            count(value);
        });
    }

    #[test]
    fn programs_change_values_one_after_the_other() {
        in_two_threads(|cells| {
            let value = cells.slice(0, 24);
            let lock = value.address().expose_provenance() as u64;
            // SAFETY: the first cell of the value is the lock.
            unsafe { take(lock) };
            count(value);
            // SAFETY: as before.
            unsafe { free(lock) };
        });
    }
}
