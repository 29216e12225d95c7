//! The regions of a pool: allocation of blocks, mapping and unmapping of regions, and the
//! reset in a forked child.
//!
//! Cost: allocating and freeing a block are operations of the free list (`holes.rs`).
//! Mapping a region takes system calls; one empty region is kept, so that a program that is
//! installed and dropped repeatedly causes none.

use std::ptr;

use super::holes::{Block, Holes};
use super::pages::{Access, Fork, Pages, TemporaryPages, lacks_second_view};
use super::{Inner, MemoryError, TRAP, Writing};

/// Size of a pool's first region in bytes. Each further region is twice as large, up to
/// [`LARGEST_REGION`], unless an image needs more.
pub(super) const SMALLEST_REGION: usize = 16 << 10;
pub(super) const LARGEST_REGION: usize = 256 << 10;

/// The regions of one process.
#[derive(Default)]
pub(super) struct Regions {
    /// A byte that is 1 in the process that mapped the regions and 0 in a forked child.
    fork_marker: Option<Pages>,
    /// Number of resets after a fork.
    generation: u32,
    /// Regions by index.
    pub(super) live: Vec<Option<Region>>,
    holes: Holes,
    /// Number of allocated blocks.
    pub(super) images: usize,
    /// True if the system makes no second view.
    only_own_pages: bool,
}

/// Pages for several images.
#[derive(Clone, Copy)]
pub(super) struct Region {
    /// The executable view.
    pub(super) run: Pages,
    /// The writable view, if it stays mapped.
    pub(super) write: Option<Pages>,
}

impl Regions {
    /// Allocates a block for an image, in an existing region or a new one; `None` if the
    /// system makes no second view.
    pub(super) fn take(
        &mut self,
        pool: &Inner,
        len: usize,
        align: usize,
    ) -> Result<Option<(Region, Block, u32)>, MemoryError> {
        if self.only_own_pages {
            return Ok(None);
        }
        let block = match self.holes.take(len, align) {
            Some(block) => block,
            None => match self.grow(pool, len) {
                Ok(()) => self
                    .holes
                    .take(len, align)
                    .expect("a new region is page-aligned and large enough"),
                Err(error) if lacks_second_view(&error) => {
                    self.only_own_pages = true;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            },
        };
        self.images += 1;
        Ok(Some((self.region(block.region), block, self.generation)))
    }

    /// The region of a hole or a block.
    pub(super) fn region(&self, number: u32) -> Region {
        self.live[number as usize].expect("a region stays mapped while it has blocks")
    }

    /// Maps a new region that fits an image of `len` bytes.
    fn grow(&mut self, pool: &Inner, len: usize) -> Result<(), MemoryError> {
        if self.fork_marker.is_none() {
            self.fork_marker = Some(fork_marker(pool.page)?);
        }
        let live = self.live.iter().flatten().count() as u32;
        let usual = (SMALLEST_REGION << live.min(8)).min(LARGEST_REGION);
        let len = len.max(usual).next_multiple_of(pool.page);
        let region = Region::new(pool, len)?;
        let free = self.live.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.live.push(None);
            self.live.len() - 1
        });
        self.live[number] = Some(region);
        self.holes.put(region.whole(number as u32));
        Ok(())
    }

    /// Frees a block. One empty region stays mapped while there are images, so that one
    /// that is installed and dropped repeatedly does not map and unmap a region each time;
    /// a pool without images keeps at most a small one.
    pub(super) fn put(&mut self, block: Block) {
        self.images -= 1;
        let hole = self.holes.put(block);
        if hole.len < self.region(hole.region).run.len() {
            return;
        }
        let numbers = 0..self.live.len() as u32;
        if self.images == 0 {
            numbers.for_each(|number| self.unmap_larger(number, SMALLEST_REGION));
        } else if numbers.filter(|&number| self.is_empty(number)).count() > 1 {
            self.unmap_larger(hole.region, 0);
        }
    }

    /// True if the region is mapped and has no blocks.
    fn is_empty(&self, number: u32) -> bool {
        let region = self.live[number as usize];
        region.is_some_and(|region| self.holes.has(region.whole(number)))
    }

    /// Unmaps an empty region if it is larger than `small` bytes.
    fn unmap_larger(&mut self, number: u32, small: usize) {
        let slot = &mut self.live[number as usize];
        if let Some(region) = slot.take_if(|region| region.run.len() > small) {
            self.holes.forget(region.whole(number));
            // SAFETY: it has no blocks.
            unsafe { region.unmap() };
        }
    }

    /// True if the regions are of this generation.
    pub(super) fn is_of(&self, generation: u32) -> bool {
        self.generation == generation
    }

    /// Unmaps all regions.
    ///
    /// # Safety
    /// No block is allocated.
    pub(super) unsafe fn unmap_all(&mut self) {
        for region in self.live.drain(..).flatten() {
            // SAFETY: upheld by the caller; a forked child has dropped the regions that it
            // did not inherit.
            unsafe { region.unmap() };
        }
        if let Some(fork_marker) = self.fork_marker.take() {
            // SAFETY: there is no other reference to it; a child inherits it, zeroed.
            unsafe { fork_marker.unmap() };
        }
    }

    /// In a child made by `fork`, drops the records of regions that it has not inherited.
    pub(super) fn reset_after_fork(&mut self) {
        let Some(fork_marker) = self.fork_marker else {
            return;
        };
        // SAFETY: the page is readable and writable, and there is no reference to it;
        // volatile because the kernel zeroes it on fork.
        unsafe {
            if ptr::read_volatile(fork_marker.start()) == 0 {
                ptr::write_volatile(fork_marker.start(), 1);
                self.generation += 1;
                self.live.clear();
                self.holes = Holes::default();
                self.images = 0;
            }
        }
    }
}

/// Maps a page that is zeroed on fork.
fn fork_marker(page: usize) -> Result<Pages, MemoryError> {
    let mark = TemporaryPages(Pages::map(page, false, None)?);
    mark.0.on_fork(Fork::Wiped)?;
    // SAFETY: a new writable page.
    unsafe { ptr::write_volatile(mark.0.start(), 1) };
    Ok(mark.keep())
}

impl Region {
    fn new(pool: &Inner, len: usize) -> Result<Region, MemoryError> {
        let run = TemporaryPages(pool.map(len, true)?);
        // The second view inherits the setting of the first.
        run.0.on_fork(Fork::Absent)?;
        let write = TemporaryPages(run.0.alias(0, len)?);
        // SAFETY: new writable pages without references.
        unsafe { ptr::write_bytes(write.0.start(), TRAP, len) };
        // SAFETY: there are no references to this view.
        unsafe { run.0.protect(Access::Run)? };
        Ok(Region {
            run: run.keep(),
            write: (pool.options.writing == Writing::PersistentView).then(|| write.keep()),
        })
    }

    /// The whole region as a block.
    fn whole(&self, number: u32) -> Block {
        Block {
            region: number,
            offset: 0,
            len: self.run.len(),
        }
    }

    /// Unmaps both views.
    ///
    /// # Safety
    /// It has no blocks, and this process mapped it.
    unsafe fn unmap(self) {
        // SAFETY: upheld by the caller.
        unsafe {
            self.run.unmap();
            if let Some(view) = self.write {
                view.unmap();
            }
        }
    }
}
