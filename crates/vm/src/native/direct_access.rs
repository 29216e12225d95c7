//! Accesses of native code to one map, without the helper.

use crate::sync::atomic::AtomicU64;
use crate::{CELL_BYTES, CellSlice, Cells, HashLookup, LINE_CELLS, MapFunction};

/// Access of native code to one map in place of a helper call.
#[derive(Clone, Debug)]
pub enum DirectAccess {
    /// It looks up values at equal distances, by index.
    Elements(Elements),
    /// It looks up values as before, which are addresses of [`MapHandle`](crate::MapHandle)s or
    /// 0: the maps of a map of maps.
    Maps(Elements),
    /// It looks up keys in a hash table.
    Hash(HashLookup),
    /// It calls a function.
    Function(MapFunction),
}

/// The values of an array: for each index one, or one for each CPU.
///
/// The values of a CPU are together, in cache lines of their own: CPUs that count each for itself
/// do not wait for each other.
#[derive(Clone, Debug)]
pub struct Elements {
    cells: Cells,
    entries: u32,
    copies: u32,
    /// Cells of one value.
    value_cells: usize,
}

impl Elements {
    /// Values of `value_cells` cells, `copies` for each of `entries` indices; `None` if there are
    /// fewer cells than [`Elements::cells`] says.
    pub fn new(cells: Cells, entries: u32, copies: u32, value_cells: usize) -> Option<Elements> {
        let needed = Elements::cells(entries, copies, value_cells)?;
        (copies > 0 && needed <= cells.as_slice().len()).then_some(Elements {
            cells,
            entries,
            copies,
            value_cells,
        })
    }

    /// The number of cells of such values; `None` if there cannot be as many.
    pub fn cells(entries: u32, copies: u32, value_cells: usize) -> Option<usize> {
        let values = (entries as usize).checked_mul(value_cells)?;
        match copies {
            1 => Some(values),
            _ => values
                .checked_next_multiple_of(LINE_CELLS)?
                .checked_mul(copies as usize),
        }
    }

    /// Address of the first value.
    pub fn address(&self) -> u64 {
        let cells = self.cells.as_slice();
        CellSlice::new(cells, 0).address().expose_provenance() as u64
    }

    /// Number of indices.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Values of an index: the possible CPUs, or 1.
    pub fn copies(&self) -> u32 {
        self.copies
    }

    /// Bytes from an index to the next one.
    pub fn stride(&self) -> u64 {
        (CELL_BYTES * self.value_cells) as u64
    }

    /// Bytes from the value of a CPU to that of the next one.
    pub fn copy_stride(&self) -> u64 {
        let values = self.entries as usize * self.value_cells;
        (CELL_BYTES * values.next_multiple_of(LINE_CELLS)) as u64
    }

    /// All cells.
    pub fn as_slice(&self) -> &[AtomicU64] {
        self.cells.as_slice()
    }

    /// The cells of the value of a CPU.
    #[inline]
    pub fn value(&self, index: u32, cpu: u32) -> &[AtomicU64] {
        let copy = match self.copies {
            1 => 0,
            copies => self.copy_stride() as usize / CELL_BYTES * (cpu % copies) as usize,
        };
        let start = copy + index as usize * self.value_cells;
        &self.cells.as_slice()[start..start + self.value_cells]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_need_their_cells() {
        let cells = Cells::zeroed(16).unwrap();
        let elements = Elements::new(cells.clone(), 3, 2, 2).unwrap();
        assert_eq!((elements.stride(), elements.copy_stride()), (16, 64));
        assert!(Elements::new(cells.clone(), 4, 2, 2).is_some());
        assert!(Elements::new(cells.clone(), 5, 2, 2).is_none());
        assert!(Elements::new(cells, u32::MAX, u32::MAX, usize::MAX).is_none());
    }
}
