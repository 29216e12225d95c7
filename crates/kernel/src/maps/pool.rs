//! Elements of equal size at stable addresses, recycled when they are freed.
//!
//! An element is an index; its cells stay allocated until the pool is dropped, so a pointer
//! to a freed element stays valid memory, as with Linux's preallocated hashes, and may see
//! the element's next use. Elements come from blocks, each as large as all before it
//! together (an element of the first is found soonest), or from a single block that holds
//! them all. Behind the elements of a block are their copies, those for each CPU together: a
//! CPU writes to no cache line that another one uses. Freed elements are linked through their
//! first cell, in a list for each CPU to reduce contention; an empty list takes from the others.

use std::sync::{Arc, OnceLock};
use std::{fmt, iter};

use vm::sync::atomic::Ordering::{Relaxed, Release};
use vm::sync::atomic::{AtomicU32, AtomicU64, fence};
use vm::{CELL_BYTES, Cells, LINE_CELLS, OutOfMemory};

use super::MapMemory;
use super::memory::Charge;
use super::spin_lock::SpinLock;

/// Fewest and most elements of the first block of a pool that grows.
const FIRST_BLOCK: u32 = 64;
const MOST_IN_FIRST: u32 = 1 << 18;

/// No element.
pub(super) const NONE: u32 = u32::MAX;

/// The cells of a cache line.
pub(super) type Line = [AtomicU64; LINE_CELLS];

/// Layout of a pool's elements.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Cells of an element.
    pub(super) stride: usize,
    /// Number of copies: the possible CPUs, or 0.
    pub(super) copies: u32,
    /// Cells of a copy.
    pub(super) copy_stride: usize,
}

/// See the module's text.
pub(super) struct Pool {
    layout: Layout,
    /// The first block: that of most elements, and the only one of a preallocated pool.
    first: Cells,
    /// Elements of the first block, a power of two where there are more blocks.
    first_len: u32,
    blocks: Box<[OnceLock<Cells>]>,
    capacity: u32,
    /// Elements that were handed out at least once.
    used: AtomicU32,
    /// The memory of those, if it is counted.
    charge: Option<Charge>,
    /// Bytes of the table that leads to the elements, which count as it is written to.
    table: u64,
    free: Box<[Free]>,
}

/// A list of freed elements: the first one, or [`NONE`]. The upper half of an element's
/// first cell is the next one; the lower half stays as it is.
struct Free {
    lock: SpinLock,
    head: AtomicU32,
}

impl Default for Free {
    fn default() -> Free {
        Free {
            lock: SpinLock::default(),
            head: AtomicU32::new(NONE),
        }
    }
}

impl Layout {
    /// Elements of so many cells, without copies.
    pub(super) fn plain(stride: usize) -> Layout {
        Layout {
            stride,
            copies: 0,
            copy_stride: 0,
        }
    }

    /// Cells of a block of so many elements.
    fn block(&self, elements: usize) -> usize {
        let copies = self
            .copies_on_cpu(elements)
            .saturating_mul(self.copies as usize);
        self.before_copies(elements).saturating_add(copies)
    }

    /// Cells of the elements of a block before their copies.
    fn before_copies(&self, elements: usize) -> usize {
        in_lines(elements.saturating_mul(self.stride))
    }

    /// Cells of the copies of a block for a CPU.
    fn copies_on_cpu(&self, elements: usize) -> usize {
        in_lines(elements.saturating_mul(self.copy_stride))
    }
}

/// Cells of the cache lines of so many cells.
fn in_lines(cells: usize) -> usize {
    cells.div_ceil(LINE_CELLS).saturating_mul(LINE_CELLS)
}

impl Pool {
    /// A pool of `capacity` elements, allocated at once.
    pub(super) fn preallocated(
        layout: Layout,
        capacity: u32,
        lists: u32,
    ) -> Result<Pool, OutOfMemory> {
        Pool::with_blocks(layout, capacity, capacity, 0, lists)
    }

    /// A pool that grows up to `capacity` elements. The first block has room for `expected`
    /// elements, within limits.
    pub(super) fn growing(
        layout: Layout,
        expected: u32,
        capacity: u32,
        lists: u32,
    ) -> Result<Pool, OutOfMemory> {
        let first = expected
            .clamp(FIRST_BLOCK, MOST_IN_FIRST)
            .next_power_of_two();
        let blocks = capacity.div_ceil(first).max(1).ilog2() as usize + 1;
        Pool::with_blocks(layout, capacity, first, blocks, lists)
    }

    fn with_blocks(
        layout: Layout,
        capacity: u32,
        first_len: u32,
        blocks: usize,
        lists: u32,
    ) -> Result<Pool, OutOfMemory> {
        Ok(Pool {
            layout,
            first: Cells::zeroed(layout.block(first_len as usize))?,
            first_len,
            blocks: (0..blocks).map(|_| OnceLock::new()).collect(),
            capacity,
            used: AtomicU32::new(0),
            charge: None,
            table: 0,
            free: (0..lists.max(1)).map(|_| Free::default()).collect(),
        })
    }

    /// The pool with elements that count from their first use, and a table of so many bytes that
    /// leads to them.
    pub(super) fn charging(self, memory: &Arc<MapMemory>, table: u64) -> Pool {
        let charge = Some(Charge::new(memory));
        Pool {
            charge,
            table,
            ..self
        }
    }

    /// Counts so many elements behind those that were used; the bytes.
    fn charge(&self, elements: u32) -> Result<u64, OutOfMemory> {
        let used = self.used();
        let bytes = self.bytes_of(used.saturating_add(elements)) - self.bytes_of(used);
        match self.charge.as_ref().map(|charge| charge.add(bytes)) {
            None | Some(Ok(())) => Ok(bytes),
            Some(Err(_)) => Err(OutOfMemory {
                bytes: bytes as usize,
            }),
        }
    }

    /// Bytes of the first elements, and of the pages of the table that lead to them at most.
    fn bytes_of(&self, elements: u32) -> u64 {
        let Layout {
            stride,
            copies,
            copy_stride,
        } = self.layout;
        let cells = stride + copies as usize * copy_stride;
        let elements = u64::from(elements);
        let page = Cells::page_of(self.table as usize) as u64;
        let table = elements.saturating_mul(page).min(self.table);
        elements * (cells * CELL_BYTES) as u64 + table
    }

    /// Notes the use of an element that something else than the pool handed out.
    pub(super) fn note_use(&self, index: u32) -> Result<(), OutOfMemory> {
        if let Some(first) = (index + 1)
            .checked_sub(self.used())
            .filter(|more| *more > 0)
        {
            self.charge(first)?;
            self.used.fetch_max(index + 1, Relaxed);
        }
        Ok(())
    }

    /// The cells of an element.
    #[inline(always)]
    pub(super) fn element(&self, index: u32) -> &[AtomicU64] {
        let (cells, offset) = match index < self.first_len {
            true => (&self.first, index),
            false => self.later(index),
        };
        let start = offset as usize * self.layout.stride;
        &cells.as_slice()[start..start + self.layout.stride]
    }

    /// The cells of the copy of an element for a CPU.
    #[inline(always)]
    pub(super) fn copy(&self, index: u32, cpu: u32) -> &[AtomicU64] {
        let (cells, offset, len) = match index < self.first_len {
            true => (&self.first, index, self.first_len as usize),
            false => {
                let (cells, offset) = self.later(index);
                // The elements of the blocks before are as many.
                (cells, offset, (index - offset) as usize)
            }
        };
        let layout = self.layout;
        let start = layout.before_copies(len)
            + (cpu % layout.copies) as usize * layout.copies_on_cpu(len)
            + offset as usize * layout.copy_stride;
        &cells.as_slice()[start..start + layout.copy_stride]
    }

    /// An element of the first block, where each has the cells of a line.
    #[inline(always)]
    pub(super) fn line(&self, index: u32) -> Option<&Line> {
        let (lines, _) = self.first.as_slice().as_chunks();
        lines.get(index as usize)
    }

    /// The cells of the first block, and the number of its elements.
    pub(super) fn first_block(&self) -> (&Cells, u32) {
        (&self.first, self.first_len)
    }

    /// The block of an element behind the first block, and its index there.
    #[inline(never)]
    fn later(&self, index: u32) -> (&Cells, u32) {
        let (block, offset) = self.place(index);
        let cells = self.blocks[block].get();
        (cells.expect("a block of its elements"), offset)
    }

    /// Number of the block of an element behind the first block, and its index there.
    fn place(&self, index: u32) -> (usize, u32) {
        let block = (index / self.first_len).ilog2();
        (block as usize, index - (self.first_len << block))
    }

    /// The element that has an address in its cells or copies.
    pub(super) fn element_at(&self, address: u64) -> Option<u32> {
        let later = (0..).zip(&self.blocks).filter_map(|(block, cells)| {
            let before = self.first_len << block;
            Some((cells.get()?, before, before))
        });
        let mut blocks = iter::once((&self.first, 0, self.first_len)).chain(later);
        blocks.find_map(|(block, before, len)| {
            let start = block.as_slice().as_ptr().addr() as u64;
            let offset = usize::try_from(address.checked_sub(start)?).ok()?;
            let (cell, len) = (offset / CELL_BYTES, len as usize);
            let Layout {
                stride,
                copy_stride,
                ..
            } = self.layout;
            let number = match cell.checked_sub(self.layout.before_copies(len)) {
                None => cell / stride,
                Some(_) if cell >= self.layout.block(len) => return None,
                Some(cell) => cell % self.layout.copies_on_cpu(len) / copy_stride,
            };
            (number < len).then_some(before + number as u32)
        })
    }

    /// An element that is not in use, from the lists of this CPU first; `None` if all are.
    /// Its cells hold what they held. A reader that sees what is written to them from now on
    /// and then executes an acquire fence sees all that was done before the element was
    /// freed.
    pub(super) fn take(&self, cpu: u32) -> Result<Option<u32>, OutOfMemory> {
        let lists = self.free.len();
        let own = cpu as usize % lists;
        // Each list is unlocked before the next one is locked.
        let index = match self.pop(own) {
            None => self.take_unused()?,
            freed => freed,
        };
        let index = index.or_else(|| (1..lists).find_map(|step| self.pop((own + step) % lists)));
        fence(Release);
        Ok(index)
    }

    /// An element that was never handed out.
    fn take_unused(&self) -> Result<Option<u32>, OutOfMemory> {
        if self.used() >= self.capacity {
            return Ok(None);
        }
        let bytes = self.charge(1)?;
        let taken = self.next_unused();
        if let (Ok(None) | Err(_), Some(charge)) = (&taken, &self.charge) {
            charge.remove(bytes);
        }
        taken
    }

    /// The next element that was never handed out; its block is allocated.
    fn next_unused(&self) -> Result<Option<u32>, OutOfMemory> {
        let mut index = self.used();
        while index < self.capacity {
            if index >= self.first_len {
                let (block, _) = self.place(index);
                if self.blocks[block].get().is_none() {
                    self.allocate(block)?;
                }
            }
            match (self.used).compare_exchange_weak(index, index + 1, Relaxed, Relaxed) {
                Ok(_) => return Ok(Some(index)),
                Err(now) => index = now,
            }
        }
        Ok(None)
    }

    fn pop(&self, list: usize) -> Option<u32> {
        let list = &self.free[list];
        if list.head.load(Relaxed) == NONE {
            return None;
        }
        let _guard = list.lock.lock();
        let index = list.head.load(Relaxed);
        if index == NONE {
            return None;
        }
        let next = (self.element(index)[0].load(Relaxed) >> 32) as u32;
        list.head.store(next, Relaxed);
        Some(index)
    }

    #[cold]
    fn allocate(&self, block: usize) -> Result<(), OutOfMemory> {
        let elements = (self.first_len as usize) << block;
        let cells = Cells::zeroed(self.layout.block(elements))?;
        // If another thread was first, its block serves as well.
        let _ = self.blocks[block].set(cells);
        Ok(())
    }

    /// Frees an element, into the list of this CPU.
    pub(super) fn give_back(&self, cpu: u32, index: u32) {
        let list = &self.free[cpu as usize % self.free.len()];
        let _guard = list.lock.lock();
        let next = list.head.load(Relaxed);
        let first = &self.element(index)[0];
        let lower_half = first.load(Relaxed) & u64::from(u32::MAX);
        // Whoever reads this link of an element that left its place sees that it left.
        first.store(u64::from(next) << 32 | lower_half, Release);
        list.head.store(index, Relaxed);
    }

    /// Elements that were handed out at least once: all in use have a lower index.
    pub(super) fn used(&self) -> u32 {
        self.used.load(Relaxed)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("capacity", &self.capacity)
            .field("used", &self.used())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn elements_are_distinct_and_come_back() {
        for pool in [
            Pool::preallocated(Layout::plain(3), 1000, 2).unwrap(),
            Pool::growing(Layout::plain(3), 0, 1000, 2).unwrap(),
        ] {
            let taken: Vec<u32> = (0..1000).map(|i| pool.take(i).unwrap().unwrap()).collect();
            assert_eq!(pool.take(0).unwrap(), None);
            for &index in &taken {
                pool.element(index)[2].store(index.into(), Relaxed);
            }
            for &index in &taken {
                assert_eq!(pool.element(index)[2].load(Relaxed), u64::from(index));
            }
            pool.give_back(1, 700);
            assert_eq!(pool.take(0).unwrap(), Some(700));
        }
    }

    #[test]
    fn copies_have_lines_of_their_own() {
        let layout = Layout {
            stride: 3,
            copies: 2,
            copy_stride: 1,
        };
        for pool in [
            Pool::preallocated(layout, 200, 2).unwrap(),
            Pool::growing(layout, 0, 200, 2).unwrap(),
        ] {
            let address = |cells: &[AtomicU64]| cells.as_ptr().addr() as u64;
            let mut lines = [HashSet::new(), HashSet::new(), HashSet::new()];
            let mut all = HashSet::new();
            while let Some(index) = pool.take(0).unwrap() {
                let cells = [
                    pool.element(index),
                    pool.copy(index, 0),
                    pool.copy(index, 1),
                ];
                assert_eq!(cells.map(<[_]>::len), [3, 1, 1]);
                for (cells, lines) in cells.iter().zip(&mut lines) {
                    assert_eq!(pool.element_at(address(cells)), Some(index));
                    assert!(all.insert(address(cells)), "cells of two elements");
                    lines.insert(address(cells) / 64);
                }
            }
            assert_eq!(all.len(), 600);
            assert!(lines[0].is_disjoint(&lines[1]) && lines[1].is_disjoint(&lines[2]));
            assert_eq!(pool.element_at(address(pool.first.as_slice()) - 8), None);
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use std::sync::Arc;

    use loom::thread;

    use super::*;

    /// Takes an element, writes it by plain steps and frees it: what another thread wrote to
    /// the element before is whole.
    fn use_element(pool: &Pool, cpu: u32) {
        let Some(index) = pool.take(cpu).unwrap() else {
            return;
        };
        let [_, first, second] = pool.element(index) else {
            panic!("an element of 3 cells");
        };
        let number = first.load(Relaxed);
        assert_eq!(second.load(Relaxed), number, "an element of two threads");
        first.store(number + 1, Relaxed);
        second.store(number + 1, Relaxed);
        pool.give_back(cpu, index);
    }

    #[test]
    fn an_element_has_one_owner_at_a_time() {
        loom::model(|| {
            let pool = Arc::new(Pool::preallocated(Layout::plain(3), 1, 1).unwrap());
            let other = Arc::clone(&pool);
            let thread = thread::spawn(move || use_element(&other, 0));
            use_element(&pool, 0);
            thread.join().unwrap();
            let index = pool.take(0).unwrap().expect("it came back");
            assert!((1..=2).contains(&pool.element(index)[1].load(Relaxed)));
            assert_eq!(pool.take(0).unwrap(), None);
        });
    }

    #[test]
    fn a_list_without_elements_takes_those_of_others() {
        loom::model(|| {
            let pool = Arc::new(Pool::preallocated(Layout::plain(3), 2, 2).unwrap());
            for cpu in [0, 1] {
                let index = pool.take(cpu).unwrap().unwrap();
                pool.give_back(0, index);
            }
            let other = Arc::clone(&pool);
            let thread = thread::spawn(move || use_element(&other, 1));
            use_element(&pool, 0);
            thread.join().unwrap();
            let all = [0; 3].map(|cpu| pool.take(cpu).unwrap());
            assert!(
                matches!(all, [Some(0), Some(1), None] | [Some(1), Some(0), None]),
                "{all:?}"
            );
        });
    }
}
