//! System calls for pages: mapping, a second view, protection.
//!
//! Each function is one or two system calls with the checks that make it safe to call.
//! Which thread may read, write or run the pages is decided in `memory`.

use std::io;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use super::MemoryError;

/// Protection of a mapping. No mapping is writable and executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    Run,
}

/// Treatment of a mapping when the process forks (`madvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    /// Not mapped in the child (`MADV_DONTFORK`).
    Absent,
    /// Zeroed in the child (`MADV_WIPEONFORK`).
    Wiped,
}

/// A mapping of whole pages. It is unmapped by [`Pages::unmap`] only, because the owner
/// knows whether it is still mapped (a forked child may not have it).
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

impl Pages {
    /// Maps new zeroed, writable pages, at `hint` if there is room. Shared pages can have a
    /// second view.
    pub(super) fn map(
        len: usize,
        is_shared: bool,
        hint: Option<usize>,
    ) -> Result<Pages, MemoryError> {
        let kind = match is_shared {
            true => libc::MAP_SHARED,
            false => libc::MAP_PRIVATE,
        };
        // SAFETY: a new anonymous mapping; without MAP_FIXED it replaces none.
        let start = unsafe {
            libc::mmap(
                ptr::without_provenance_mut(hint.unwrap_or(0)),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                kind | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        Pages::new(start, len, "mmap")
    }

    /// Maps a second view of `len` bytes at `offset` (whole pages of a shared mapping),
    /// with the protection that the first view has now.
    pub(super) fn alias(&self, offset: usize, len: usize) -> Result<Pages, MemoryError> {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: `mremap` with an old size of 0 leaves a shared mapping as it is and maps
        // its pages a second time, at a free address.
        let start = unsafe {
            let from = self.start.as_ptr().add(offset);
            libc::mremap(from.cast(), 0, len, libc::MREMAP_MAYMOVE)
        };
        Pages::new(start, len, "mremap")
    }

    /// Changes the protection.
    ///
    /// # Safety
    /// No reference exists that the new protection invalidates, and no thread runs code of
    /// the pages unless they stay executable.
    pub(super) unsafe fn protect(&self, access: Access) -> Result<(), MemoryError> {
        let protection = match access {
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
            Access::Run => libc::PROT_READ | libc::PROT_EXEC,
        };
        // SAFETY: the range is a mapping of ours; the caller upholds the rest.
        let answer = unsafe { libc::mprotect(self.start.as_ptr().cast(), self.len, protection) };
        check_answer(answer, "mprotect")
    }

    /// Sets the treatment of the pages when the process forks.
    pub(super) fn on_fork(&self, fork: Fork) -> Result<(), MemoryError> {
        let advice = match fork {
            Fork::Absent => libc::MADV_DONTFORK,
            Fork::Wiped => libc::MADV_WIPEONFORK,
        };
        // SAFETY: the range is our mapping, and neither advice changes it in this process.
        let answer = unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, advice) };
        check_answer(answer, "madvise")
    }

    /// Unmaps the pages.
    ///
    /// # Safety
    /// The pages are mapped (not in a child that did not inherit them), and nothing uses
    /// them any more.
    pub(super) unsafe fn unmap(self) {
        // SAFETY: upheld by the caller. It fails only for an invalid range.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }

    /// Start address.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn new(start: *mut libc::c_void, len: usize, call: &'static str) -> Result<Pages, MemoryError> {
        if start == libc::MAP_FAILED {
            return Err(refused(call));
        }
        let start = NonNull::new(start.cast());
        let start = start.expect("the kernel maps address 0 only on request");
        Ok(Pages { start, len })
    }
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
    // SAFETY: the call takes no pointers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).expect("sysconf(_SC_PAGESIZE) is positive")
}

/// True if the error says that the system makes no second view of pages.
pub(super) fn lacks_second_view(error: &MemoryError) -> bool {
    matches!(
        error,
        MemoryError::Refused {
            call: "mremap" | "madvise",
            errno: libc::EINVAL | libc::ENOSYS | libc::EPERM,
        }
    )
}

fn check_answer(answer: libc::c_int, call: &'static str) -> Result<(), MemoryError> {
    match answer {
        0 => Ok(()),
        _ => Err(refused(call)),
    }
}

fn refused(call: &'static str) -> MemoryError {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    MemoryError::Refused { call, errno }
}
