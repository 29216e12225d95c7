//! Buckets of hash tables: cells in groups of four, of which three are used as numbers of
//! 4 bytes.

use crate::sync::atomic::{AtomicU32, AtomicU64};
use crate::{CELL_BYTES, OutOfMemory};

/// Four cells, three of them as numbers of 4 bytes: half a cache line.
#[derive(Debug)]
#[repr(C)]
pub struct CellGroup {
    /// The first three cells.
    pub words: [AtomicU32; 6],
    /// The last cell.
    pub cell: AtomicU64,
}

/// Owned groups at stable addresses; a clone is the same groups.
#[derive(Clone, Debug)]
pub struct CellGroups(imp::Groups);

impl CellGroups {
    /// Bytes of a group.
    pub const GROUP_BYTES: usize = 4 * CELL_BYTES;

    /// `count` groups that are zero.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn zeroed(count: usize) -> Result<CellGroups, OutOfMemory> {
        imp::Groups::zeroed(count).map(CellGroups)
    }

    /// All groups.
    #[inline(always)]
    pub fn as_slice(&self) -> &[CellGroup] {
        self.0.as_slice()
    }
}

#[cfg(not(loom))]
mod imp {
    use std::slice;

    use super::{CellGroup, CellGroups};
    use crate::{CELL_BYTES, Cells, OutOfMemory};

    /// Memory of cells that is accessed as groups only.
    #[derive(Clone, Debug)]
    pub(super) struct Groups {
        cells: Cells,
        count: usize,
    }

    impl Groups {
        pub(super) fn zeroed(count: usize) -> Result<Groups, OutOfMemory> {
            let cells = Cells::zeroed(count.saturating_mul(CellGroups::GROUP_BYTES / CELL_BYTES))?;
            Ok(Groups { cells, count })
        }

        #[inline(always)]
        pub(super) fn as_slice(&self) -> &[CellGroup] {
            const { assert!(size_of::<CellGroup>() == CellGroups::GROUP_BYTES) };
            const { assert!(align_of::<CellGroup>() <= Cells::ALIGN) };
            // SAFETY: the memory has so many groups, aligned and initialised, and no other
            // access to it exists.
            unsafe { slice::from_raw_parts(self.cells.as_slice().as_ptr().cast(), self.count) }
        }
    }
}

#[cfg(loom)]
mod imp {
    use std::sync::Arc;

    use super::CellGroup;
    use crate::OutOfMemory;
    use crate::sync::atomic::{AtomicU32, AtomicU64};

    #[derive(Clone, Debug)]
    pub(super) struct Groups(Arc<[CellGroup]>);

    impl Groups {
        pub(super) fn zeroed(count: usize) -> Result<Groups, OutOfMemory> {
            let group = |_| CellGroup {
                words: std::array::from_fn(|_| AtomicU32::new(0)),
                cell: AtomicU64::new(0),
            };
            Ok(Groups((0..count).map(group).collect()))
        }

        pub(super) fn as_slice(&self) -> &[CellGroup] {
            &self.0
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::atomic::Ordering::Relaxed;

    #[test]
    fn groups_have_addresses_that_native_code_computes() {
        let groups = CellGroups::zeroed(3).unwrap();
        let all = groups.as_slice();
        assert_eq!(all.len(), 3);
        all[1].words[5].store(7, Relaxed);
        all[1].cell.store(9, Relaxed);
        let start = all.as_ptr().addr();
        assert_eq!(start % Cells::ALIGN, 0);
        assert_eq!((&raw const all[1].words[5]).addr() - start, 32 + 20);
        assert_eq!((&raw const all[1].cell).addr() - start, 32 + 24);
        let sums = all.iter().map(|group| {
            let words = group.words.iter().map(|word| u64::from(word.load(Relaxed)));
            words.sum::<u64>() + group.cell.load(Relaxed)
        });
        assert!(sums.eq([0, 16, 0]));
        assert!(CellGroups::zeroed(0).unwrap().as_slice().is_empty());
        assert!(CellGroups::zeroed(usize::MAX).is_err());
    }

    use crate::Cells;
}
