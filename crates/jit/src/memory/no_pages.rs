//! Executable pages on systems other than Linux: there are none, so that nothing below can be
//! called with pages. The interpreters run there.

use super::MemoryError;

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

/// A mapping of whole pages, of which there is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pages {}

impl Pages {
    pub(super) fn map(_: usize, _: bool, _: Option<usize>) -> Result<Pages, MemoryError> {
        Err(MemoryError::NotLinux)
    }

    pub(super) fn alias(&self, _: usize, _: usize) -> Result<Pages, MemoryError> {
        match *self {}
    }

    /// # Safety
    /// It cannot be called.
    pub(super) unsafe fn protect(&self, _: Access) -> Result<(), MemoryError> {
        match *self {}
    }

    pub(super) fn on_fork(&self, _: Fork) -> Result<(), MemoryError> {
        match *self {}
    }

    /// # Safety
    /// It cannot be called.
    pub(super) unsafe fn unmap(self) {
        match self {}
    }

    pub(super) fn start(&self) -> *mut u8 {
        match *self {}
    }

    pub(super) fn len(&self) -> usize {
        match *self {}
    }
}

/// Pages that are unmapped on drop unless they are kept.
pub(super) struct TemporaryPages(pub(super) Pages);

impl TemporaryPages {
    pub(super) fn keep(self) -> Pages {
        self.0
    }
}

/// Size of a page in bytes.
pub(super) fn page_size() -> usize {
    4096
}

/// True if the error says that the system makes no second view of pages.
pub(super) fn lacks_second_view(_: &MemoryError) -> bool {
    false
}
