//! Pages in Miri, which makes no second view of memory and protects none: memory of the allocator.
//!
//! The views of a mapping are at one address, so that Miri sees a write to code that an image or a
//! thread still reads, and a use of pages that are unmapped. A mapping is freed with its last view.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::MemoryError;

const PAGE: usize = 4096;

/// Protection of a mapping.
pub(super) enum Access {
    Write,
    Run,
}

/// Treatment of a mapping when the process forks.
pub(super) enum Fork {
    Absent,
    Wiped,
}

/// A view of whole pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it is an address and a length; every access through the address is unsafe code of
// its own.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

/// The mappings with the number of their views, by address.
static MAPPINGS: Mutex<BTreeMap<usize, (Pages, usize)>> = Mutex::new(BTreeMap::new());

fn mappings() -> MutexGuard<'static, BTreeMap<usize, (Pages, usize)>> {
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pages {
    pub(super) fn map(len: usize, _: bool, _: Option<usize>) -> Result<Pages, MemoryError> {
        // SAFETY: a region, the marker of forks and an image have at least a page.
        let start = NonNull::new(unsafe { alloc_zeroed(layout(len)) }).expect("memory");
        let pages = Pages { start, len };
        mappings().insert(start.addr().get(), (pages, 1));
        Ok(pages)
    }

    pub(super) fn alias(&self, offset: usize, len: usize) -> Result<Pages, MemoryError> {
        assert!(offset <= self.len && len <= self.len - offset);
        let mut mappings = mappings();
        let (mapping, views) = mappings.get_mut(&self.start.addr().get()).expect("mapped");
        *views += 1;
        // SAFETY: the offset is in the mapping.
        let start = unsafe { mapping.start.add(offset) };
        Ok(Pages { start, len })
    }

    /// # Safety
    /// As that of other systems; there is no protection.
    pub(super) unsafe fn protect(&self, access: Access) -> Result<(), MemoryError> {
        match access {
            Access::Write | Access::Run => Ok(()),
        }
    }

    pub(super) fn on_fork(&self, fork: Fork) -> Result<(), MemoryError> {
        match fork {
            Fork::Absent | Fork::Wiped => Ok(()),
        }
    }

    /// # Safety
    /// The view is mapped, and nothing uses it any more.
    pub(super) unsafe fn unmap(self) {
        let mut mappings = mappings();
        let mut below = mappings.range_mut(..=self.start.addr().get());
        let (&address, (mapping, views)) = below.next_back().expect("mapped");
        *views -= 1;
        if *views > 0 {
            return;
        }
        let mapping = *mapping;
        mappings.remove(&address);
        // SAFETY: it was allocated with this layout, and no view is left.
        unsafe { dealloc(mapping.start.as_ptr(), layout(mapping.len)) };
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len, PAGE).expect("whole pages")
}

/// Pages that are unmapped on drop unless they are kept.
pub(super) struct TemporaryPages(pub(super) Pages);

impl TemporaryPages {
    pub(super) fn keep(self) -> Pages {
        ManuallyDrop::new(self).0
    }
}

impl Drop for TemporaryPages {
    fn drop(&mut self) {
        // SAFETY: the holder mapped the pages, and references to them end before this is
        // dropped.
        unsafe { self.0.unmap() };
    }
}

/// Size of a page in bytes.
pub(super) fn page_size() -> usize {
    PAGE
}

/// True if the error says that the system makes no second view of pages.
pub(super) fn lacks_second_view(_: &MemoryError) -> bool {
    false
}
