//! The regions of a pool in one process: which are there, what is free in them,
//! when they come and go, and what a forked child makes of them.
//!
//! Cost: taking a part and putting it back cost what the holes cost (`holes.rs`);
//! a region more or less costs system calls, which a program that comes and goes
//! does not cause.

use std::ptr;

use super::holes::{Holes, Part};
use super::pages::{Access, Fork, Pages, Passing};
use super::{Inner, MemoryError, Placement, TRAP, Writing};

/// Bytes of a pool's first region; each one is twice the last, up to the largest,
/// unless an image needs more.
pub(super) const SMALLEST_REGION: usize = 16 << 10;
pub(super) const LARGEST_REGION: usize = 256 << 10;

/// The regions of one process.
#[derive(Default)]
pub(super) struct Regions {
    /// One byte that is 1 in the process that made the regions, and 0 in a child.
    birthmark: Option<Pages>,
    /// How often a child has begun anew.
    era: u32,
    /// By their numbers.
    pub(super) live: Vec<Option<Region>>,
    holes: Holes,
    /// How many parts are out.
    pub(super) images: usize,
    /// Set when the system makes no second view.
    only_own_pages: bool,
}

/// Pages for many images.
#[derive(Clone, Copy)]
pub(super) struct Region {
    /// The view that can be run.
    pub(super) run: Pages,
    /// The view that can be written, if it is kept.
    pub(super) write: Option<Pages>,
}

impl Regions {
    /// A part for an image, in an old region or a new one; `None` where the system
    /// makes no second view.
    pub(super) fn take(
        &mut self,
        pool: &Inner,
        len: usize,
        align: usize,
        placement: &mut Placement<'_>,
    ) -> Result<Option<(Region, Part, u32)>, MemoryError> {
        if self.only_own_pages {
            return Ok(None);
        }
        let part = match self.choose(len, align, placement) {
            Some(part) => part,
            None => match self.grow(pool, len, placement) {
                Ok(()) => self
                    .choose(len, align, placement)
                    .expect("a new region starts at a page and has room"),
                Err(MemoryError::Refused {
                    call: "mremap" | "madvise",
                    errno: libc::EINVAL | libc::ENOSYS | libc::EPERM,
                }) => {
                    self.only_own_pages = true;
                    return Ok(None);
                }
                Err(error) => return Err(error),
            },
        };
        self.images += 1;
        Ok(Some((self.region(part.region), part, self.era)))
    }

    /// The region of a hole or an image.
    pub(super) fn region(&self, number: u32) -> Region {
        self.live[number as usize].expect("a region stays while anything lies in it")
    }

    // In its place: a part that came back through memory would be read in other pieces
    // than it was written in, for which processors wait.
    #[inline(always)]
    fn choose(&mut self, len: usize, align: usize, placement: &mut Placement<'_>) -> Option<Part> {
        match placement {
            Placement::BestFit => self.holes.take(len, align),
            Placement::Random(random) => self.holes.take_anywhere(len, align, *random),
        }
    }

    /// Adds a region with room for an image of `len` bytes.
    fn grow(
        &mut self,
        pool: &Inner,
        len: usize,
        placement: &mut Placement<'_>,
    ) -> Result<(), MemoryError> {
        if self.birthmark.is_none() {
            self.birthmark = Some(birthmark(pool.page)?);
        }
        let live = self.live.iter().flatten().count() as u32;
        let usual = (SMALLEST_REGION << live.min(8)).min(LARGEST_REGION);
        let len = len.max(usual).next_multiple_of(pool.page);
        let region = Region::new(pool, len, placement)?;
        let free = self.live.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.live.push(None);
            self.live.len() - 1
        });
        self.live[number] = Some(region);
        self.holes.put(region.whole(number as u32));
        Ok(())
    }

    /// Takes a part back. One empty region is kept while there are programs, so
    /// that one which comes and goes does not map and unmap a region each time; a
    /// pool without programs keeps a small one at most.
    #[inline(always)]
    pub(super) fn put(&mut self, part: Part) {
        self.images -= 1;
        let hole = self.holes.put(part);
        if hole.len < self.region(hole.region).run.len() {
            return;
        }
        let numbers = 0..self.live.len() as u32;
        if self.images == 0 {
            numbers.for_each(|number| self.give_back(number, SMALLEST_REGION));
        } else if numbers.filter(|&number| self.is_empty(number)).count() > 1 {
            self.give_back(hole.region, 0);
        }
    }

    /// Whether a region is there and has no image in it.
    fn is_empty(&self, number: u32) -> bool {
        let region = self.live[number as usize];
        region.is_some_and(|region| self.holes.has(region.whole(number)))
    }

    /// Gives an empty region back to the system if it is larger than that.
    fn give_back(&mut self, number: u32, small: usize) {
        let slot = &mut self.live[number as usize];
        if let Some(region) = slot.take_if(|region| region.run.len() > small) {
            self.holes.forget(region.whole(number));
            // SAFETY: no part of it is out.
            unsafe { region.unmap() };
        }
    }

    /// Whether they were made in the era of that number.
    pub(super) fn are_of(&self, era: u32) -> bool {
        self.era == era
    }

    /// Gives all memory back.
    ///
    /// # Safety
    /// No part is out.
    pub(super) unsafe fn give_back_all(&mut self) {
        for region in self.live.drain(..).flatten() {
            // SAFETY: the caller upholds it; a child has forgotten what it has not.
            unsafe { region.unmap() };
        }
        if let Some(birthmark) = self.birthmark.take() {
            // SAFETY: nobody else knows it; a child inherits it, wiped.
            unsafe { birthmark.unmap() };
        }
    }

    /// In a child made by `fork`, forgets what it has not inherited.
    pub(super) fn begin_anew_in_a_child(&mut self) {
        let Some(birthmark) = self.birthmark else {
            return;
        };
        // SAFETY: the page can be read and written, and nobody else knows it; what
        // wipes it is the system, hence volatile.
        unsafe {
            if ptr::read_volatile(birthmark.start()) == 0 {
                ptr::write_volatile(birthmark.start(), 1);
                self.era += 1;
                self.live.clear();
                self.holes = Holes::default();
                self.images = 0;
            }
        }
    }
}

/// A page that tells a process from the one that it was forked from.
fn birthmark(page: usize) -> Result<Pages, MemoryError> {
    let mark = Passing(Pages::map(page, false, None)?);
    mark.0.on_fork(Fork::Wiped)?;
    // SAFETY: a new page that can be written.
    unsafe { ptr::write_volatile(mark.0.start(), 1) };
    Ok(mark.keep())
}

impl Region {
    fn new(pool: &Inner, len: usize, placement: &mut Placement<'_>) -> Result<Region, MemoryError> {
        let run = Passing(pool.map(placement, len, true)?);
        // The second view inherits what is said of the first.
        run.0.on_fork(Fork::Absent)?;
        let write = Passing(run.0.alias(0, len)?);
        // SAFETY: new pages that can be written and that nobody else knows.
        unsafe { ptr::write_bytes(write.0.start(), TRAP, len) };
        // SAFETY: there is no reference to this view.
        unsafe { run.0.protect(Access::Run)? };
        Ok(Region {
            run: run.keep(),
            write: (pool.options.writing == Writing::KeptView).then(|| write.keep()),
        })
    }

    /// All of the region of that number.
    fn whole(&self, number: u32) -> Part {
        Part {
            region: number,
            offset: 0,
            len: self.run.len(),
        }
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// No part of it is out, and this process made it.
    unsafe fn unmap(self) {
        // SAFETY: the caller upholds it.
        unsafe {
            self.run.unmap();
            if let Some(view) = self.write {
                view.unmap();
            }
        }
    }
}
