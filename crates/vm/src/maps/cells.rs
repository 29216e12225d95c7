//! Memory that programs share: 64-bit cells at stable addresses.
//!
//! Programs on several threads and the host read and write map values without a lock. Rust
//! code accesses them by relaxed atomic operations on whole cells, so no two of its accesses
//! are a data race; native code accesses the same memory through
//! [`CellSlice::address`]. An access to several cells is not atomic as a whole, as in Linux.

#[cfg(not(loom))]
use std::alloc::{self, Layout};
use std::fmt;
use std::marker::PhantomData;
#[cfg(not(loom))]
use std::ptr;
use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};

use crate::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

/// Bytes of a cell.
pub const CELL_BYTES: usize = 8;

/// Memory for shared cells could not be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes that were requested.
    pub bytes: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: {} bytes of shared cells", self.bytes)
    }
}

impl std::error::Error for OutOfMemory {}

/// Bytes of a cache line, to which owned cells are aligned.
const LINE: usize = 64;

/// Cells of a cache line.
pub const LINE_CELLS: usize = LINE / CELL_BYTES;

/// Bytes from which on cells are mapped, in huge pages where the system has some.
const LARGE: usize = 4 << 20;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes of a page.
const PAGE: usize = 4 << 10;

/// Owned cells. Their addresses do not change while they exist; a clone is the same cells.
#[derive(Clone)]
pub struct Cells {
    /// They lie in the memory.
    cells: NonNull<[AtomicU64]>,
    _memory: Arc<Memory>,
}

/// Memory of cells, which is released with them.
enum Memory {
    None,
    /// A leaked box.
    Allocated(*mut [AtomicU64]),
    Mapped(#[allow(dead_code, reason = "it is unmapped when it is dropped")] MmapMut),
}

// SAFETY: the memory is only released, by its last owner; any thread may do that.
unsafe impl Send for Memory {}
// SAFETY: as before; a shared reference gives no access.
unsafe impl Sync for Memory {}

// SAFETY: cells are shared as slices of atomic numbers are; the memory is only released
// with its last owner.
unsafe impl Send for Cells {}
// SAFETY: as before.
unsafe impl Sync for Cells {}

impl Cells {
    /// The alignment of cells in bytes.
    #[cfg(not(loom))]
    pub(crate) const ALIGN: usize = LINE;

    /// `count` cells that are zero. The system provides their pages on first use.
    pub fn zeroed(count: usize) -> Result<Cells, OutOfMemory> {
        let bytes = count.saturating_mul(CELL_BYTES);
        match bytes {
            0 => Ok(Cells {
                cells: NonNull::slice_from_raw_parts(NonNull::dangling(), 0),
                _memory: Arc::new(Memory::None),
            }),
            // Miri and other systems map no memory, and cells of loom are larger.
            LARGE.. if cfg!(any(unix, windows)) && !cfg!(any(miri, loom)) => {
                Cells::mapped(count, bytes)
            }
            _ => Cells::allocated(count),
        }
    }

    /// Bytes that come to be where a cell among so many bytes of cells is written to: a page.
    pub const fn page_of(bytes: usize) -> usize {
        match bytes {
            LARGE.. => HUGE_PAGE,
            _ => PAGE,
        }
    }

    fn mapped(count: usize, bytes: usize) -> Result<Cells, OutOfMemory> {
        let mapping = MmapOptions::new().len(bytes).map_anon();
        let mut mapping = mapping.map_err(|_| OutOfMemory { bytes })?;
        // Without huge pages it is slower only.
        #[cfg(target_os = "linux")]
        let _ = mapping.advise(memmap2::Advice::HugePage);
        let start = NonNull::new(mapping.as_mut_ptr().cast());
        Ok(Cells {
            cells: NonNull::slice_from_raw_parts(start.ok_or(OutOfMemory { bytes })?, count),
            _memory: Arc::new(Memory::Mapped(mapping)),
        })
    }

    #[cfg(loom)]
    fn allocated(count: usize) -> Result<Cells, OutOfMemory> {
        let cells: Box<[AtomicU64]> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let cells = NonNull::from(Box::leak(cells));
        Ok(Cells {
            cells,
            _memory: Arc::new(Memory::Allocated(cells.as_ptr())),
        })
    }

    #[cfg(not(loom))]
    fn allocated(count: usize) -> Result<Cells, OutOfMemory> {
        // An allocation that is aligned to lines would be cleared page by page.
        let allocated = count.saturating_add(LINE / CELL_BYTES - 1);
        let bytes = allocated.saturating_mul(CELL_BYTES);
        let layout = Layout::array::<AtomicU64>(allocated).map_err(|_| OutOfMemory { bytes })?;
        // SAFETY: the layout has a size other than 0.
        let start = unsafe { alloc::alloc_zeroed(layout) }.cast::<AtomicU64>();
        let start = NonNull::new(start).ok_or(OutOfMemory { bytes })?;
        let skipped = start.addr().get().next_multiple_of(LINE) - start.addr().get();
        // SAFETY: the allocation has room for the cells of a line less one.
        let first = unsafe { start.byte_add(skipped) };
        Ok(Cells {
            cells: NonNull::slice_from_raw_parts(first, count),
            _memory: Arc::new(Memory::Allocated(ptr::slice_from_raw_parts_mut(
                start.as_ptr(),
                allocated,
            ))),
        })
    }

    /// All cells.
    #[inline(always)]
    pub fn as_slice(&self) -> &[AtomicU64] {
        // SAFETY: they are valid, zeroed at first, as long as the memory, of which `self` is an
        // owner.
        unsafe { self.cells.as_ref() }
    }

    /// The first `len` bytes of the cells from `start` on.
    ///
    /// # Panics
    /// If there are fewer cells.
    #[inline(always)]
    pub fn slice(&self, start: usize, len: usize) -> CellSlice<'_> {
        CellSlice::new(
            &self.as_slice()[start..start + len.div_ceil(CELL_BYTES)],
            len,
        )
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Memory::Allocated(memory) = self {
            // SAFETY: the memory was allocated by the global allocator with the layout of
            // this slice, and is released once.
            drop(unsafe { Box::from_raw(*memory) });
        }
    }
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cells({})", self.cells.len())
    }
}

/// Borrowed cells: the value of a map entry, for instance.
#[derive(Clone, Copy)]
pub struct CellSlice<'a> {
    cells: &'a [AtomicU64],
    len: usize,
}

/// Address of borrowed cells; for native code.
#[derive(Clone, Copy, Debug)]
pub struct CellAddress<'a>(NonNull<u8>, PhantomData<&'a AtomicU64>);

impl<'a> CellAddress<'a> {
    /// The address of the first of these cells.
    #[inline(always)]
    pub fn of(cells: &'a [AtomicU64]) -> CellAddress<'a> {
        CellAddress(NonNull::from(cells).cast(), PhantomData)
    }

    /// The address, aligned to 8.
    #[inline(always)]
    pub fn get(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

impl<'a> CellSlice<'a> {
    /// The first `len` bytes of these cells.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn new(cells: &'a [AtomicU64], len: usize) -> CellSlice<'a> {
        assert!(len <= cells.len() * CELL_BYTES, "more bytes than cells");
        CellSlice { cells, len }
    }

    /// Length in bytes.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// True if it has no bytes.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Address of the first byte, aligned to 8; for native code.
    #[inline(always)]
    pub fn address(self) -> *mut u8 {
        // A cell may be changed through a shared reference.
        self.cells.as_ptr().cast_mut().cast()
    }

    /// The cells all of whose bytes are in the slice.
    #[inline(always)]
    pub fn whole_cells(self) -> &'a [AtomicU64] {
        &self.cells[..self.len / CELL_BYTES]
    }

    /// Reads `out.len()` bytes from offset `at` on.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn read(self, at: usize, out: &mut [u8]) {
        assert!(at + out.len() <= self.len, "read beyond the cells");
        let skip = at % CELL_BYTES;
        let (mut cells, mut rest) = (&self.cells[at / CELL_BYTES..], out);
        if skip != 0 {
            let (part, others) = rest.split_at_mut(rest.len().min(CELL_BYTES - skip));
            part.copy_from_slice(&cells[0].load(Relaxed).to_ne_bytes()[skip..][..part.len()]);
            (cells, rest) = (&cells[1..], others);
        }
        for (cell, part) in cells.iter().zip(rest.chunks_mut(CELL_BYTES)) {
            part.copy_from_slice(&cell.load(Relaxed).to_ne_bytes()[..part.len()]);
        }
    }

    /// Writes `bytes` from offset `at` on. Bytes beside them in the same cells keep their
    /// values.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn write(self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "write beyond the cells");
        let skip = at % CELL_BYTES;
        let (mut cells, mut rest) = (&self.cells[at / CELL_BYTES..], bytes);
        if skip != 0 {
            let (part, others) = rest.split_at(rest.len().min(CELL_BYTES - skip));
            write_part(&cells[0], skip, part);
            (cells, rest) = (&cells[1..], others);
        }
        let (whole, last) = rest.as_chunks();
        for (cell, word) in cells.iter().zip(whole) {
            cell.store(u64::from_ne_bytes(*word), Relaxed);
        }
        if !last.is_empty() {
            write_part(&cells[whole.len()], 0, last);
        }
    }

    /// Sets all bytes to zero.
    pub fn clear(self) {
        for cell in self.cells {
            cell.store(0, Relaxed);
        }
    }

    /// Replaces the `N` bytes at offset `at`, a little-endian number aligned to its size,
    /// by what `update` makes of it, in one sequentially consistent step. Returns the old
    /// number.
    ///
    /// # Panics
    /// If the bytes are not all there or not aligned.
    pub fn update<const N: usize>(self, at: usize, update: impl Fn(u64) -> u64) -> u64 {
        assert!(
            at + N <= self.len && at.is_multiple_of(N),
            "no number there"
        );
        let shift = 8 * (at % CELL_BYTES) as u32;
        let mask = u64::MAX >> (64 - 8 * N as u32);
        let replace = |cell: u64| {
            let cell = u64::from_le(cell);
            let new = update(cell >> shift & mask) & mask;
            (cell & !(mask << shift) | new << shift).to_le()
        };
        let cell = &self.cells[at / CELL_BYTES];
        // The closure always returns a value, so the update succeeds.
        let old = match cell.fetch_update(SeqCst, SeqCst, |old| Some(replace(old))) {
            Ok(old) | Err(old) => old,
        };
        u64::from_le(old) >> shift & mask
    }

    /// A copy of the bytes.
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }
}

/// Replaces some bytes of a cell, in one atomic step.
fn write_part(cell: &AtomicU64, skip: usize, part: &[u8]) {
    let replace = |old: u64| {
        let mut bytes = old.to_ne_bytes();
        bytes[skip..skip + part.len()].copy_from_slice(part);
        u64::from_ne_bytes(bytes)
    };
    // The closure always returns a value, so the update succeeds.
    let _ = cell.fetch_update(Relaxed, Relaxed, |old| Some(replace(old)));
}

impl fmt::Debug for CellSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CellSlice").field(&self.to_vec()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_read_and_written() {
        let cells = Cells::zeroed(4).unwrap();
        let slice = cells.slice(0, 29);
        let mut model = [0u8; 29];
        for (round, (at, len)) in [(0, 29), (3, 2), (7, 9), (8, 8), (16, 13), (28, 1), (5, 0)]
            .into_iter()
            .enumerate()
        {
            let bytes: Vec<u8> = (0..len).map(|i| (round * 31 + i) as u8 + 1).collect();
            slice.write(at, &bytes);
            model[at..at + len].copy_from_slice(&bytes);
            assert_eq!(slice.to_vec(), model);
            let mut back = vec![0; len];
            slice.read(at, &mut back);
            assert_eq!(back, bytes);
        }
        slice.clear();
        assert_eq!(slice.to_vec(), [0; 29]);
    }

    #[test]
    fn threads_lose_no_update() {
        let cells = Cells::zeroed(1).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        cells.slice(0, 8).update::<4>(4, |old| old + 1);
                    }
                });
            }
        });
        assert_eq!(cells.slice(0, 8).update::<8>(0, |old| old + 5), 400 << 32);
        assert_eq!(cells.slice(0, 8).update::<4>(0, |old| old), 5);
    }

    #[test]
    #[should_panic(expected = "beyond the cells")]
    fn bytes_beyond_the_length_are_out_of_reach() {
        let cells = Cells::zeroed(1).unwrap();
        cells.slice(0, 5).write(4, &[1, 2]);
    }

    #[test]
    fn memory_that_there_is_not_is_an_error() {
        assert!(Cells::zeroed(usize::MAX / 8).is_err());
        assert!(Cells::zeroed(usize::MAX).is_err());
    }
}
