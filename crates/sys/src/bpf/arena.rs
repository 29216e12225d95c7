//! The memory of an `arena` map of the running kernel, as user space sees it.
//!
//! The kernel itself copies the bytes (process_vm_readv(2)), so that a page that user space
//! must not use is an error instead of a signal.

use std::ptr;

use super::Map;
use crate::Errno;

/// A mapped arena. It keeps the address in user space that it got first.
#[derive(Debug)]
pub struct ArenaMapping {
    start: *mut libc::c_void,
    len: usize,
}

impl ArenaMapping {
    /// Maps all of an arena at this address, of which no part may be in use.
    pub fn at(map: &Map, address: u64, len: usize) -> Result<ArenaMapping, Errno> {
        // SAFETY: the flag keeps the kernel from replacing memory that is mapped already; the
        // new memory is reached through this value only.
        let start = unsafe {
            libc::mmap(
                ptr::without_provenance_mut(address as usize),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE,
                map.descriptor() as i32,
                0,
            )
        };
        match start {
            libc::MAP_FAILED => Err(Errno::last()),
            start => Ok(ArenaMapping { start, len }),
        }
    }

    /// Reads bytes at an offset. Pages come to be as they do when user space reads them.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), Errno> {
        let (ours, theirs) = self.ranges(offset, into.as_mut_ptr(), into.len())?;
        // SAFETY: the first range is `into`; the kernel checks the second one.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &ours, 1, &theirs, 1, 0) };
        complete(read, into.len())
    }

    /// Writes bytes at an offset. Pages come to be as they do when user space writes to them.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        let (ours, theirs) = self.ranges(offset, bytes.as_ptr().cast_mut(), bytes.len())?;
        // SAFETY: the kernel only reads the first range, which is `bytes`; the second one is
        // in the mapping, to which no reference exists.
        let written = unsafe { libc::process_vm_writev(libc::getpid(), &ours, 1, &theirs, 1, 0) };
        complete(written, bytes.len())
    }

    /// Bytes here and the same number in the mapping. EFAULT if they are not all in it.
    fn ranges(
        &self,
        offset: usize,
        ours: *mut u8,
        len: usize,
    ) -> Result<(libc::iovec, libc::iovec), Errno> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len);
        end.ok_or(Errno(libc::EFAULT))?;
        let range = |start: *mut libc::c_void| libc::iovec {
            iov_base: start,
            iov_len: len,
        };
        let theirs = self.start.wrapping_byte_add(offset);
        Ok((range(ours.cast()), range(theirs)))
    }
}

/// The outcome of a copy of so many bytes.
fn complete(copied: isize, len: usize) -> Result<(), Errno> {
    match usize::try_from(copied) {
        Err(_) => Err(Errno::last()),
        Ok(copied) if copied < len => Err(Errno(libc::EFAULT)),
        Ok(_) => Ok(()),
    }
}

impl Drop for ArenaMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no reference to it exists.
        unsafe { libc::munmap(self.start, self.len) };
    }
}
