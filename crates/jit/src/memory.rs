//! Executable memory, shared by many programs.
//!
//! A [`Pool`] holds regions of pages; an [`Image`] is a part of one, of whole
//! cache lines, and goes back when it is dropped. What is free holds `int3`, so a
//! wild jump traps. No address is ever writable and executable at once.
//!
//! # How code gets there
//!
//! A region is mapped twice: one view can be read and run, the other, at an
//! address that only the pool knows, can be written. The alternatives were
//! measured, in microseconds for an image of 1 KiB in a virtual machine, whose
//! page tables are slow to change (`tests/install_cost.rs` measures what is built):
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

mod holes;
mod pages;

use std::fmt;
use std::io;
use std::iter;
use std::mem::ManuallyDrop;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holes::{GRANULE, Holes, Part};
use pages::{Access, Fork, Pages, page_size};
use spec::Random;

/// What traps: `int3`.
const TRAP: u8 = 0xcc;

/// Bytes of a pool's first region; each one is twice the last, up to the largest,
/// unless an image needs more.
const SMALLEST_REGION: usize = 16 << 10;
const LARGEST_REGION: usize = 256 << 10;

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
    state: Mutex<State>,
}

/// The regions of one process.
#[derive(Default)]
struct State {
    /// One byte that is 1 in the process that made the regions, and 0 in a child.
    birthmark: Option<Pages>,
    /// How often a child has begun anew.
    era: u32,
    regions: Vec<Option<Region>>,
    holes: Holes,
    /// How many parts are out.
    images: usize,
    /// Set when the system makes no second view.
    only_own_pages: bool,
}

#[derive(Clone, Copy)]
struct Region {
    /// The view that can be run.
    run: Pages,
    /// The view that can be written, if it is kept.
    write: Option<Pages>,
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
    /// A part of a region, in the era of that number.
    Shared {
        region: Region,
        part: Part,
        era: u32,
    },
    Own(Pages),
}

// SAFETY: the bytes behind `start` don't change while the image lives, and what
// it does when it is dropped is under the pool's lock or its own part's business.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

/// Why there is no executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// No image can be that large.
    TooLarge {
        /// The bytes that were asked for.
        size: usize,
    },
    /// The alignment is no power of two or more than a page.
    BadAlignment {
        /// The alignment that was asked for.
        align: usize,
    },
    /// The system refused.
    Refused {
        /// What was asked of it.
        call: &'static str,
        /// Its word for why.
        errno: i32,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MemoryError::TooLarge { size } => write!(
                f,
                "{size} bytes of code are more than the largest image, {LARGEST_IMAGE}"
            ),
            MemoryError::BadAlignment { align } => write!(
                f,
                "code can't be aligned to {align}: only to powers of two up to a page"
            ),
            MemoryError::Refused { call, errno } => write!(
                f,
                "the system gives no executable memory: {call}: {}",
                io::Error::from_raw_os_error(errno)
            ),
        }
    }
}

impl std::error::Error for MemoryError {}

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
            state: Mutex::default(),
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
        let reserved = size.max(1).next_multiple_of(GRANULE);
        let shared = match pool.options.writing {
            Writing::OwnPages => None,
            Writing::KeptView | Writing::PassingView => {
                pool.state().take(pool, reserved, align, &mut placement)?
            }
        };
        let Some((region, part, era)) = shared else {
            return self.install_own(&mut placement, size, write);
        };
        // Already an image, so that the part is freed however this ends.
        let image = Image {
            pool: pool.clone(),
            // SAFETY: the part lies in the region.
            start: unsafe { region.run.start().add(part.offset) },
            home: Home::Shared { region, part, era },
            len: size,
        };
        pool.write(region, part, |bytes| {
            write(&mut bytes[..size], image.address() as u64)
        })?;
        Ok(image)
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
    fn state(&self) -> MutexGuard<'_, State> {
        // What is done under the lock leaves the state whole at every step that
        // can panic (allocation).
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.begin_anew_in_a_child();
        state
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

    /// Takes an image's part back.
    fn free(&self, region: Region, part: Part, era: u32) {
        if self.state().era != era {
            return;
        }
        // Where that fails, the dead code stays until the part is used again.
        let _ = self.write(region, part, |bytes| bytes.fill(TRAP));
        self.state().put(part);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.begin_anew_in_a_child();
        for region in state.regions.drain(..).flatten() {
            // SAFETY: there is no image any more, since each keeps its pool.
            unsafe { region.unmap() };
        }
        if let Some(birthmark) = state.birthmark {
            // SAFETY: nobody else knows it; a child inherits it, wiped.
            unsafe { birthmark.unmap() };
        }
    }
}

/// Pages that go away again, unless they are kept.
struct Passing(Pages);

impl Passing {
    fn keep(self) -> Pages {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // SAFETY: who holds it made it, and its references end before it.
        unsafe { self.0.unmap() };
    }
}

impl State {
    /// A part for an image, in an old region or a new one; `None` where the system
    /// makes no second view.
    fn take(
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
        let region = self.regions[part.region as usize];
        let region = region.expect("holes are in regions that are there");
        self.images += 1;
        Ok(Some((region, part, self.era)))
    }

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
        let live = self.regions.iter().flatten().count() as u32;
        let usual = (SMALLEST_REGION << live.min(8)).min(LARGEST_REGION);
        let len = len.max(usual).next_multiple_of(pool.page);
        let region = Region::new(pool, len, placement)?;
        let free = self.regions.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.regions.push(None);
            self.regions.len() - 1
        });
        self.regions[number] = Some(region);
        self.holes.put(Part {
            region: number as u32,
            offset: 0,
            len,
        });
        Ok(())
    }

    /// Takes a part back. One empty region is kept while there are programs, so
    /// that one which comes and goes does not map and unmap a region each time; a
    /// pool without programs keeps a small one at most.
    fn put(&mut self, part: Part) {
        self.images -= 1;
        let hole = self.holes.put(part);
        if !self.is_empty(hole.region) {
            return;
        }
        let numbers = 0..self.regions.len() as u32;
        if self.images == 0 {
            numbers.for_each(|number| self.give_back(number, SMALLEST_REGION));
        } else if numbers.filter(|&number| self.is_empty(number)).count() > 1 {
            self.give_back(hole.region, 0);
        }
    }

    /// Whether a region is there and has no image in it.
    fn is_empty(&self, number: u32) -> bool {
        let region = self.regions[number as usize];
        region.is_some_and(|region| self.holes.is_whole(number, region.run.len()))
    }

    /// Gives an empty region back to the system if it is larger than that.
    fn give_back(&mut self, number: u32, small: usize) {
        let slot = &mut self.regions[number as usize];
        if let Some(region) = slot.take_if(|region| region.run.len() > small) {
            self.holes.forget(number, region.run.len());
            // SAFETY: no part of it is out.
            unsafe { region.unmap() };
        }
    }

    /// In a child made by `fork`, forgets what it has not inherited.
    fn begin_anew_in_a_child(&mut self) {
        let Some(birthmark) = self.birthmark else {
            return;
        };
        // SAFETY: the page can be read and written, and nobody else knows it; what
        // wipes it is the system, hence volatile.
        unsafe {
            if ptr::read_volatile(birthmark.start()) == 0 {
                ptr::write_volatile(birthmark.start(), 1);
                self.era += 1;
                self.regions.clear();
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
            Home::Shared { region, part, era } => self.pool.free(region, part, era),
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
