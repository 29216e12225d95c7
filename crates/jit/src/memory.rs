//! Executable memory, shared by many programs.
//!
//! A [`Pool`] holds regions of pages; an [`Image`] is a part of one, of whole
//! cache lines, and goes back when it is dropped. What is free holds `int3`, so a
//! wild jump traps. No address is ever writable and executable at once.
//!
//! # How code gets there
//!
//! A region is mapped twice: one view can be read and run, the other, at an
//! address that only the pool knows, can be written. The alternatives, in microseconds
//! for an image of 1 KiB in a virtual machine (`tests/install_cost.rs`):
//!
//! | how | alone | beside a thread that runs code of the region |
//! |---|---|---|
//! | two views, both kept | 0.07 | 0.1 |
//! | a descriptor of the pages, written with `pwrite` | 0.6 | 1.7 |
//! | a second view for the time of the installation | 6–9 | 22 |
//! | `mprotect` back and forth, one page for all | 8 | 22: and the thread is killed |
//! | new pages for each image, then `mprotect` | 12–20 | 30 |
//! | a new copy of the page, moved over the old one | 22 | 50 |
//!
//! A filter of 20 instructions compiles in about a microsecond, so only the first
//! is not most of the cost, and the usual one, a switch of protection, can't let
//! programs share pages at all: nobody may run what is being written. A writable
//! view at an unknown address is what engines with two views do; a host that wants
//! none has [`Writing::PassingView`].
//!
//! The pages are shared anonymous memory and `mremap` makes the second view. A
//! memfd costs the same, but needs a descriptor and falls under the host's limits
//! on descriptors and file sizes (which kill), and profilers don't look into it.
//!
//! # Forks
//!
//! Both views see the same memory, and a forked child would go on sharing it: each
//! process would overwrite programs of the other. So a child has neither view; a
//! program that it inherited ends it by SIGSEGV, what it drops does nothing, what
//! it installs goes to new regions. A host that compiles first and forks then takes
//! [`Writing::OwnPages`], which is also what is used where the system makes no
//! second view.
//!
//! # Other threads
//!
//! A part is written while nobody runs it, and x86 keeps what a processor fetches
//! coherent with what another one stores, by physical address. The store that
//! hands the image to another thread is the one that makes it visible.

mod error;
mod holes;
mod pages;
mod regions;

use std::fmt;
use std::iter;
use std::mem;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use error::MemoryError;
use holes::{GRANULE, Part};
use pages::{Access, Pages, Passing, page_size};
use regions::{Region, Regions};
use spec::Random;

/// What traps: `int3`.
const TRAP: u8 = 0xcc;

/// How far from its target the start of a region may be, so that all of it is in
/// reach of 32-bit displacements, with 64 MiB for what is linked beside the target.
const REACH: usize = (2 << 30) - (64 << 20);

/// The largest image: all of it can be reached by a 32-bit displacement.
const LARGEST_IMAGE: usize = 1 << 30;

/// How code is written to memory that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Writing {
    /// Through a second view of the region that is kept: the fastest by far.
    #[default]
    KeptView,
    /// Through a second view of the pages that are written, which is there only
    /// while an image is installed or freed.
    PassingView,
    /// In pages of its own for each image, which then lose the permission to be
    /// written. Children made by `fork` keep such images.
    OwnPages,
}

/// What a host decides about executable memory.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How code is written.
    pub writing: Writing,
    /// Regions lie within 2 GiB of this address where there is room, so that code
    /// can call it and what is linked beside it directly. By default it is the
    /// code of this library.
    pub near: Option<usize>,
}

impl Default for Options {
    fn default() -> Options {
        let here: fn() -> Pool = Pool::new;
        Options {
            writing: Writing::default(),
            near: Some(here as usize),
        }
    }
}

/// Where an image goes.
pub enum Placement<'a> {
    /// To the smallest hole that has room.
    BestFit,
    /// To any place with room, and a new region to any address: for hosts that run
    /// programs of strangers, who then can't know where their code is.
    Random(&'a mut dyn Random),
}

/// Executable memory, for any number of programs and threads. Clones are the same
/// pool; the memory goes back to the system with the last clone and image, but for
/// one small region already when nothing is in it.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    options: Options,
    page: usize,
    /// The lowest address that was mapped near the host's target; the next pages
    /// are tried below it.
    frontier: AtomicUsize,
    regions: Mutex<Regions>,
}

/// Code in executable memory. It is freed when this is dropped, so whoever runs it
/// keeps this for as long.
pub struct Image {
    pool: Arc<Inner>,
    home: Home,
    start: *const u8,
    len: usize,
}

enum Home {
    Shared(Address),
    Own(Pages),
}

/// The region of that number, in the era of that number.
#[derive(Clone, Copy)]
struct Address {
    region: u32,
    era: u32,
}

/// What was taken for an image that is still to be written: freed however that ends. An
/// image itself would lie in memory for that and be moved out of it piece by piece,
/// for which processors wait.
struct Taken<'a> {
    pool: &'a Inner,
    address: Address,
    start: *const u8,
    len: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.pool.free(self.address, self.start, self.len);
    }
}

/// Bytes of a region that an image takes.
fn reserved(size: usize) -> usize {
    size.max(1).next_multiple_of(GRANULE)
}

// SAFETY: the bytes behind `start` don't change while the image lives, and what
// it does when it is dropped is under the pool's lock or its own part's business.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Pool {
    /// An empty pool. It takes memory when it is first used.
    pub fn new() -> Pool {
        Pool::with(Options::default())
    }

    /// An empty pool of another kind.
    pub fn with(options: Options) -> Pool {
        Pool(Arc::new(Inner {
            options,
            page: page_size(),
            frontier: AtomicUsize::new(0),
            regions: Mutex::default(),
        }))
    }

    /// Makes an image of `size` bytes at a multiple of `align`. `write` gets the
    /// bytes, all `int3`, and the address at which they will run; what it writes
    /// is what [`Image::bytes`] shows afterwards.
    pub fn install(
        &self,
        size: usize,
        align: usize,
        write: impl FnOnce(&mut [u8], u64),
    ) -> Result<Image, MemoryError> {
        self.install_at(Placement::BestFit, size, align, write)
    }

    /// The same, with a say in where it goes.
    pub fn install_at(
        &self,
        mut placement: Placement<'_>,
        size: usize,
        align: usize,
        write: impl FnOnce(&mut [u8], u64),
    ) -> Result<Image, MemoryError> {
        let pool = &self.0;
        if size > LARGEST_IMAGE {
            return Err(MemoryError::TooLarge { size });
        }
        if !align.is_power_of_two() || align > pool.page {
            return Err(MemoryError::BadAlignment { align });
        }
        let shared = match pool.options.writing {
            Writing::OwnPages => None,
            Writing::KeptView | Writing::PassingView => {
                pool.regions()
                    .take(pool, reserved(size), align, &mut placement)?
            }
        };
        let Some((region, part, era)) = shared else {
            return self.install_own(&mut placement, size, write);
        };
        // SAFETY: the part lies in the region.
        let start: *const u8 = unsafe { region.run.start().add(part.offset) };
        let address = Address {
            region: part.region,
            era,
        };
        let taken = Taken {
            pool,
            address,
            start,
            len: size,
        };
        pool.write(region, part, |bytes| {
            write(&mut bytes[..size], start as u64)
        })?;
        mem::forget(taken);
        Ok(Image {
            pool: pool.clone(),
            home: Home::Shared(address),
            start,
            len: size,
        })
    }

    /// Makes an image in pages of its own.
    fn install_own(
        &self,
        placement: &mut Placement<'_>,
        size: usize,
        write: impl FnOnce(&mut [u8], u64),
    ) -> Result<Image, MemoryError> {
        let pool = &self.0;
        let len = size.max(1).next_multiple_of(pool.page);
        let pages = pool.map(placement, len, false)?;
        let image = Image {
            pool: pool.clone(),
            home: Home::Own(pages),
            start: pages.start(),
            len: size,
        };
        // SAFETY: new private pages that can be written and that only this function
        // knows.
        let bytes = unsafe { slice::from_raw_parts_mut(pages.start(), len) };
        bytes.fill(TRAP);
        write(&mut bytes[..size], pages.start() as u64);
        // SAFETY: the reference above is not used any more.
        unsafe { pages.protect(Access::Run)? };
        Ok(image)
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.0.options).finish()
    }
}

impl Inner {
    fn regions(&self) -> MutexGuard<'_, Regions> {
        // What is done under the lock leaves them whole at every step that can
        // panic (allocation).
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        regions.begin_anew_in_a_child();
        regions
    }

    /// New pages where the host wants them.
    fn map(
        &self,
        placement: &mut Placement<'_>,
        len: usize,
        is_shared: bool,
    ) -> Result<Pages, MemoryError> {
        match placement {
            Placement::Random(random) => {
                // Any page of the lower 64 TiB, all of which are user space; the
                // system takes another place where there is no room.
                let draw = u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
                let hint = (draw % (1 << 46)) as usize & !(self.page - 1);
                Pages::map(len, is_shared, Some(hint))
            }
            Placement::BestFit => match self.options.near {
                Some(target) => self.map_near(target, len, is_shared),
                None => Pages::map(len, is_shared, None),
            },
        }
    }

    /// New pages in reach of an address if there is room, else anywhere.
    fn map_near(&self, target: usize, len: usize, is_shared: bool) -> Result<Pages, MemoryError> {
        const STEP: usize = 32 << 20;
        let is_near = |start: usize| {
            start.abs_diff(target) < REACH && start.saturating_add(len).abs_diff(target) < REACH
        };
        // Programs have room below them, and their heap above.
        let beside = self.frontier.load(Relaxed).wrapping_sub(len);
        let base = target & !(STEP - 1);
        let below = (1..=8).map(|steps| base.wrapping_sub(steps * STEP));
        let above = (8..=16).map(|steps| base.wrapping_add(steps * STEP));
        let hints = iter::once(beside).chain(below).chain(above);
        for hint in hints.filter(|&hint| is_near(hint)) {
            let pages = Passing(Pages::map(len, is_shared, Some(hint))?);
            let start = pages.0.start() as usize;
            if is_near(start) {
                self.frontier.store(start, Relaxed);
                return Ok(pages.keep());
            }
        }
        Pages::map(len, is_shared, None)
    }

    /// Lets `write` have the bytes of a part, which is free or not yet handed out.
    fn write(
        &self,
        region: Region,
        part: Part,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), MemoryError> {
        if let Some(view) = region.write {
            // SAFETY: the part lies in the region, whose view stays while a part is
            // out; nobody else has this part or runs it.
            write(unsafe { slice::from_raw_parts_mut(view.start().add(part.offset), part.len) });
            return Ok(());
        }
        let first = part.offset & !(self.page - 1);
        let end = (part.offset + part.len).next_multiple_of(self.page);
        let view = Passing(region.run.alias(first, end - first)?);
        // SAFETY: a new view that nobody else knows, so nobody runs code there.
        unsafe { view.0.protect(Access::Write)? };
        let offset = part.offset - first;
        // SAFETY: the view holds the pages of the part, which nobody else has or
        // runs.
        write(unsafe { slice::from_raw_parts_mut(view.0.start().add(offset), part.len) });
        Ok(())
    }

    /// Takes back what an image of `len` bytes has of a region.
    fn free(&self, address: Address, start: *const u8, len: usize) {
        let mut regions = self.regions();
        if !regions.are_of(address.era) {
            return;
        }
        let region = regions.region(address.region);
        let part = Part {
            region: address.region,
            offset: start.addr() - region.run.start().addr(),
            len: reserved(len),
        };
        // Where that fails, the dead code stays until the part is used again.
        let wipe = || {
            let _ = self.write(region, part, |bytes| bytes.fill(TRAP));
        };
        // Short writes are made under the lock that is held.
        if region.write.is_some() && part.len <= self.page {
            wipe();
        } else {
            drop(regions);
            wipe();
            regions = self.regions();
        }
        regions.put(part);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let regions = self.regions.get_mut();
        let regions = regions.unwrap_or_else(PoisonError::into_inner);
        regions.begin_anew_in_a_child();
        // SAFETY: there is no image any more, since each keeps its pool.
        unsafe { regions.give_back_all() };
    }
}

impl Image {
    /// Where it runs.
    pub fn address(&self) -> *const u8 {
        self.start
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is there.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the image can be read, and nobody writes it while it lives.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        match self.home {
            Home::Shared(address) => self.pool.free(address, self.start, self.len),
            // SAFETY: the pages were mapped for this image, and children inherit
            // them.
            Home::Own(pages) => unsafe { pages.unmap() },
        }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} bytes at {:p})", self.len, self.start)
    }
}

#[cfg(test)]
mod tests;
