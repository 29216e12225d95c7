//! The doors to the host's pages: mapping, a second view, protection.
//!
//! Every function here is one or two system calls with the checks that make it
//! safe to call; who may read, write or run what lies behind an address is
//! `memory`'s concern.

use std::io;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use super::MemoryError;

/// What a mapping allows. Nothing is ever writable and executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Write,
    Run,
}

/// What becomes of a mapping when the process forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fork {
    /// The child has nothing there.
    Absent,
    /// The child finds zeroes.
    Wiped,
}

/// Whole pages of memory, unmapped by [`Pages::unmap`] only: who owns them
/// decides whether they are still there (a forked child may not have them).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it is an address and a length; every access through it is the unsafe
// business of who makes it.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// New zeroed pages that can be written, at `hint` if there is room. Shared
    /// ones can have a second view.
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

    /// A second view of `len` bytes at `offset`, whole pages of shared ones. It
    /// allows what the first does at this moment.
    pub(super) fn alias(&self, offset: usize, len: usize) -> Result<Pages, MemoryError> {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: an old length of zero leaves the pages of a shared mapping
        // where they are and maps them once more, at an address that is free.
        let start = unsafe {
            let from = self.start.as_ptr().add(offset);
            libc::mremap(from.cast(), 0, len, libc::MREMAP_MAYMOVE)
        };
        Pages::new(start, len, "mremap")
    }

    /// Changes what is allowed.
    ///
    /// # Safety
    /// Nobody holds a reference that it takes away, and nobody runs code there
    /// unless it stays allowed.
    pub(super) unsafe fn protect(&self, access: Access) -> Result<(), MemoryError> {
        let protection = match access {
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
            Access::Run => libc::PROT_READ | libc::PROT_EXEC,
        };
        // SAFETY: the range is a mapping of ours; the caller upholds the rest.
        let answer = unsafe { libc::mprotect(self.start.as_ptr().cast(), self.len, protection) };
        check(answer, "mprotect")
    }

    /// Says what a child made by `fork` shall have of them.
    pub(super) fn on_fork(&self, fork: Fork) -> Result<(), MemoryError> {
        let advice = match fork {
            Fork::Absent => libc::MADV_DONTFORK,
            Fork::Wiped => libc::MADV_WIPEONFORK,
        };
        // SAFETY: the range is a mapping of ours, and neither advice changes what
        // this process has there.
        let answer = unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, advice) };
        check(answer, "madvise")
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// The mapping is there (not in a child that did not inherit it), and nobody
    /// uses it or will.
    pub(super) unsafe fn unmap(self) {
        // SAFETY: the caller upholds it. It can only fail for a range that is no
        // mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }

    /// Where they start.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Their bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn new(start: *mut libc::c_void, len: usize, call: &'static str) -> Result<Pages, MemoryError> {
        if start == libc::MAP_FAILED {
            return Err(refused(call));
        }
        let start = NonNull::new(start.cast());
        let start = start.expect("the system maps nothing at address zero unless it is told to");
        Ok(Pages { start, len })
    }
}

/// Pages that go away again, unless they are kept.
pub(super) struct Passing(pub(super) Pages);

impl Passing {
    pub(super) fn keep(self) -> Pages {
        ManuallyDrop::new(self).0
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // SAFETY: who holds it made it, and its references end before it.
        unsafe { self.0.unmap() };
    }
}

/// Bytes of a page.
pub(super) fn page_size() -> usize {
    // SAFETY: a question without arguments in memory.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).expect("the system knows the size of its pages")
}

fn check(answer: libc::c_int, call: &'static str) -> Result<(), MemoryError> {
    match answer {
        0 => Ok(()),
        _ => Err(refused(call)),
    }
}

fn refused(call: &'static str) -> MemoryError {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    MemoryError::Refused { call, errno }
}
