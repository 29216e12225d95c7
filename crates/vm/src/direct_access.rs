//! Accesses of native code to one map, without the helper.

use crate::{CellSlice, Cells, HashLookup, MapFunction};

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
#[derive(Clone, Debug)]
pub struct Elements {
    cells: Cells,
    entries: u32,
    copies: u32,
    /// Cells of one value.
    value_cells: usize,
}

impl Elements {
    /// Values of `value_cells` cells, `copies` for each of `entries` indices, one after the
    /// other; `None` if there are fewer cells.
    pub fn new(cells: Cells, entries: u32, copies: u32, value_cells: usize) -> Option<Elements> {
        let needed = (entries as usize)
            .checked_mul(copies as usize)?
            .checked_mul(value_cells)?;
        (copies > 0 && needed <= cells.as_slice().len()).then_some(Elements {
            cells,
            entries,
            copies,
            value_cells,
        })
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
        self.copy_stride() * u64::from(self.copies)
    }

    /// Bytes from the value of a CPU to that of the next one.
    pub fn copy_stride(&self) -> u64 {
        8 * self.value_cells as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_need_their_cells() {
        let cells = Cells::zeroed(12).unwrap();
        let elements = Elements::new(cells.clone(), 3, 2, 2).unwrap();
        assert_eq!((elements.stride(), elements.copy_stride()), (32, 16));
        assert!(Elements::new(cells.clone(), 4, 2, 2).is_none());
        assert!(Elements::new(cells, u32::MAX, u32::MAX, usize::MAX).is_none());
    }
}
