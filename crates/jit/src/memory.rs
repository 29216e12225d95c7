//! Executable memory, shared by many programs.
//!
//! An allocator for native code. A [`Pool`] holds regions of pages; an [`Image`] is a block
//! of whole cache lines in a region and is freed when it is dropped. Free memory is filled
//! with `int3`, so that a wild jump traps. No address is ever writable and executable at
//! once (W^X).
//!
//! # Writing code
//!
//! Every region is mapped twice: an executable view, and a writable view at an address that
//! only the pool knows ([`Writing::PersistentView`]). An image is then installed without a
//! system call, and programs share pages while other threads run code of the same pages,
//! which a change of protection by `mprotect` would not allow. [`Writing::TemporaryView`]
//! maps the writable view only while an image is written; [`Writing::OwnPages`] gives each
//! image pages of its own.
//!
//!
//!
//! The pages are shared anonymous memory, and `mremap` with an old size of 0 makes the
//! second view. A memfd would need a descriptor and count against the limits of descriptors
//! and file sizes.
//!
//! # Forks
//!
//! A forked child would share the pages with its parent, and each would overwrite code of
//! the other. So both views are `MADV_DONTFORK`: in a child, running an inherited program
//! raises SIGSEGV, dropping one does nothing, and new images go to new regions. A process
//! that compiles before it forks uses [`Writing::OwnPages`], which is also the fallback
//! where the system makes no second view.
//!
//! # Other threads
//!
//! A block is written while no thread runs it. x86 keeps instruction fetch coherent with
//! stores by physical address, so the synchronisation that hands the image to another
//! thread also publishes the code.

mod error;
mod holes;
#[cfg(not(target_os = "linux"))]
#[path = "memory/no_pages.rs"]
mod pages;
#[cfg(all(target_os = "linux", not(miri)))]
mod pages;
#[cfg(all(target_os = "linux", miri))]
#[path = "memory/stand_in.rs"]
mod pages;
mod regions;

use std::fmt;
use std::iter;
use std::mem;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use error::MemoryError;
use holes::{Block, GRANULE};
use pages::{Access, Pages, TemporaryPages, page_size};
use regions::{Region, Regions};

/// The trap instruction, `int3`.
const TRAP: u8 = 0xcc;

/// Largest distance between the target and the start of a region: within reach of 32-bit
/// displacements, less 64 MiB for what is linked beside the target.
const REACH: usize = (2 << 30) - (64 << 20);

/// Size of the largest image: within reach of 32-bit displacements.
const LARGEST_IMAGE: usize = 1 << 30;

/// The way in which code is written to executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Writing {
    /// Through a second, writable view of the region that stays mapped: the fastest.
    #[default]
    PersistentView,
    /// Through a second, writable view that is mapped only while an image is installed or
    /// freed.
    TemporaryView,
    /// In pages of its own for each image, made executable by `mprotect` when they are
    /// written. Children made by `fork` inherit such images.
    OwnPages,
}

/// Options of a pool.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// The way in which code is written.
    pub writing: Writing,
    /// Address near which regions are mapped, within 2 GiB where there is room, so that
    /// code can call what is linked there directly. The default is the code of this
    /// library.
    pub near: Option<usize>,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        let here: fn() -> Pool = Pool::new;
        PoolOptions {
            writing: Writing::default(),
            near: Some(here as usize),
        }
    }
}

/// Executable memory for any number of programs and threads. Clones share the pool. Regions
/// are unmapped when they are empty, one small one excepted, and all of them with the last
/// clone and image.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    options: PoolOptions,
    page: usize,
    /// Lowest address that was mapped near the target; the next mapping is tried below it.
    frontier: AtomicUsize,
    regions: Mutex<Regions>,
}

/// Code in executable memory. Dropping it frees the memory, so it must outlive every run.
pub struct Image {
    pool: Arc<Inner>,
    location: Location,
    start: *const u8,
    len: usize,
}

enum Location {
    Shared(RegionId),
    Own(Pages),
}

/// Index of a region, and the generation in which it was mapped.
#[derive(Clone, Copy)]
struct RegionId {
    region: u32,
    generation: u32,
}

/// A block for an image that is still to be written; dropping it frees the block.
struct Reservation<'a> {
    pool: &'a Inner,
    address: RegionId,
    start: *const u8,
    len: usize,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.pool.free(self.address, self.start, self.len);
    }
}

/// Bytes of a region that an image of `size` bytes occupies.
fn reserved(size: usize) -> usize {
    size.max(1).next_multiple_of(GRANULE)
}

// SAFETY: the bytes at `start` do not change while the image lives, and dropping it takes
// the pool's lock or touches pages of its own.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Pool {
    /// An empty pool with default options. Memory is mapped on first use.
    pub fn new() -> Pool {
        Pool::with(PoolOptions::default())
    }

    /// An empty pool with these options.
    pub fn with(options: PoolOptions) -> Pool {
        Pool(Arc::new(Inner {
            options,
            page: page_size(),
            frontier: AtomicUsize::new(0),
            regions: Mutex::default(),
        }))
    }

    /// Installs an image of `size` bytes, aligned to `align`. `write` receives the bytes,
    /// all `int3`, and the address at which they will run.
    pub fn install(
        &self,
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
            Writing::PersistentView | Writing::TemporaryView => {
                pool.regions().take(pool, reserved(size), align)?
            }
        };
        let Some((region, block, generation)) = shared else {
            return self.install_own(size, write);
        };
        // SAFETY: the block lies in the region.
        let start: *const u8 = unsafe { region.run.start().add(block.offset) };
        let address = RegionId {
            region: block.region,
            generation,
        };
        let reservation = Reservation {
            pool,
            address,
            start,
            len: size,
        };
        pool.write(region, block, |bytes| {
            write(&mut bytes[..size], start as u64)
        })?;
        mem::forget(reservation);
        Ok(Image {
            pool: pool.clone(),
            location: Location::Shared(address),
            start,
            len: size,
        })
    }

    /// Installs an image in pages of its own.
    fn install_own(
        &self,
        size: usize,
        write: impl FnOnce(&mut [u8], u64),
    ) -> Result<Image, MemoryError> {
        let pool = &self.0;
        let len = size.max(1).next_multiple_of(pool.page);
        let pages = pool.map(len, false)?;
        let image = Image {
            pool: pool.clone(),
            location: Location::Own(pages),
            start: pages.start(),
            len: size,
        };
        // SAFETY: new private writable pages; there is no other reference to them.
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
        // The regions are consistent at every point that can panic (allocation), so
        // poisoning is harmless.
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        regions.reset_after_fork();
        regions
    }

    /// Maps new pages, near the target if there is one.
    fn map(&self, len: usize, is_shared: bool) -> Result<Pages, MemoryError> {
        match self.options.near {
            Some(target) => self.map_near(target, len, is_shared),
            None => Pages::map(len, is_shared, None),
        }
    }

    /// Maps new pages within reach of an address if there is room, else anywhere.
    fn map_near(&self, target: usize, len: usize, is_shared: bool) -> Result<Pages, MemoryError> {
        const STEP: usize = 32 << 20;
        let is_near = |start: usize| {
            start.abs_diff(target) < REACH && start.saturating_add(len).abs_diff(target) < REACH
        };
        // Below a program is free address space, above it is the heap.
        let beside = self.frontier.load(Relaxed).wrapping_sub(len);
        let base = target & !(STEP - 1);
        let below = (1..=8).map(|steps| base.wrapping_sub(steps * STEP));
        let above = (8..=16).map(|steps| base.wrapping_add(steps * STEP));
        let hints = iter::once(beside).chain(below).chain(above);
        for hint in hints.filter(|&hint| is_near(hint)) {
            let pages = TemporaryPages(Pages::map(len, is_shared, Some(hint))?);
            let start = pages.0.start() as usize;
            if is_near(start) {
                self.frontier.store(start, Relaxed);
                return Ok(pages.keep());
            }
        }
        Pages::map(len, is_shared, None)
    }

    /// Passes the writable bytes of a block to `write`; no image uses the block.
    fn write(
        &self,
        region: Region,
        block: Block,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), MemoryError> {
        if let Some(view) = region.write {
            // SAFETY: the block lies in the region, whose view stays mapped while a block
            // is allocated; no image uses the block and no thread runs it.
            write(unsafe { slice::from_raw_parts_mut(view.start().add(block.offset), block.len) });
            return Ok(());
        }
        let first = block.offset & !(self.page - 1);
        let end = (block.offset + block.len).next_multiple_of(self.page);
        let view = TemporaryPages(region.run.alias(first, end - first)?);
        // SAFETY: a new view; no thread runs code through it.
        unsafe { view.0.protect(Access::Write)? };
        let offset = block.offset - first;
        // SAFETY: the view maps the pages of the block, which no image uses and no thread
        // runs.
        write(unsafe { slice::from_raw_parts_mut(view.0.start().add(offset), block.len) });
        Ok(())
    }

    /// Frees the block of an image of `len` bytes.
    fn free(&self, address: RegionId, start: *const u8, len: usize) {
        let mut regions = self.regions();
        if !regions.is_of(address.generation) {
            return;
        }
        let region = regions.region(address.region);
        let block = Block {
            region: address.region,
            offset: start.addr() - region.run.start().addr(),
            len: reserved(len),
        };
        // On failure the dead code stays until the block is used again.
        let wipe = || {
            let _ = self.write(region, block, |bytes| bytes.fill(TRAP));
        };
        // Short writes are made under the lock.
        if region.write.is_some() && block.len <= self.page {
            wipe();
        } else {
            drop(regions);
            wipe();
            regions = self.regions();
        }
        regions.put(block);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let regions = self.regions.get_mut();
        let regions = regions.unwrap_or_else(PoisonError::into_inner);
        regions.reset_after_fork();
        // SAFETY: there is no image left, since each image holds its pool.
        unsafe { regions.unmap_all() };
    }
}

impl Image {
    /// The address at which it runs.
    pub fn address(&self) -> *const u8 {
        self.start
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the image.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the image is readable and is not written while it lives.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        match self.location {
            Location::Shared(address) => self.pool.free(address, self.start, self.len),
            // SAFETY: the pages were mapped for this image only, and children inherit them.
            Location::Own(pages) => unsafe { pages.unmap() },
        }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} bytes at {:p})", self.len, self.start)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
