//! Reads at an offset of a file, whatever the system calls them.

use std::fs::File;
use std::io;

/// Reads bytes from an offset on, as many as the system gives at once.
#[cfg(unix)]
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, offset)
}

/// Reads bytes from an offset on, as many as the system gives at once.
#[cfg(windows)]
pub(super) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, offset)
}

/// Reads bytes from an offset on, as many as the system gives at once; for systems without
/// threads, since it moves the position of the file.
#[cfg(not(any(unix, windows)))]
pub(super) fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    file.read(bytes)
}
