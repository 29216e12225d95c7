//! Files mapped into memory.

use std::fs::{self, File};
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;

#[cfg(unix)]
use memmap2::UncheckedAdvice;
use memmap2::{Mmap, MmapOptions};

/// Maps a file for reading.
///
/// Truncating the file while it is mapped ends this process by SIGBUS when it reads the
/// missing part; writing to it changes what is read. No signal handler is installed:
/// signals belong to the embedding program.
pub fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the bytes are only read as bytes, by code that checks each value after it
    // is read; `Mmap` unmaps them when it is dropped.
    unsafe { Mmap::map(file) }
}

/// Bytes of a kernel file, such as those in `/sys/kernel/btf`.
#[derive(Debug)]
pub enum KernelFile {
    /// A mapping of the kernel's memory.
    Mapped(Mmap),
    /// A copy.
    Copied(Vec<u8>),
}

impl KernelFile {
    /// Maps a file that the kernel never changes, such as its BTF; reads it where it
    /// cannot be mapped (kernels before 6.16).
    pub fn open(path: impl AsRef<Path>) -> io::Result<KernelFile> {
        let path = path.as_ref();
        let file = File::open(path)?;
        // The kernel refuses shared mappings, which mprotect could make writable.
        // SAFETY: as in `map`.
        match unsafe { MmapOptions::new().map_copy_read_only(&file) } {
            Ok(mapping) => Ok(KernelFile::Mapped(mapping)),
            Err(_) => fs::read(path).map(KernelFile::Copied),
        }
    }
}

impl Deref for KernelFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            KernelFile::Mapped(mapping) => mapping,
            KernelFile::Copied(bytes) => bytes,
        }
    }
}

/// Releases the resident pages of a range (`MADV_DONTNEED`), so that resident memory does
/// not grow with the file. The range remains readable.
pub fn release(mapping: &Mmap, part: Range<usize>) {
    let part = part.start.min(mapping.len())..part.end.min(mapping.len());
    if part.is_empty() {
        return;
    }
    // SAFETY: the mapping is of a file, shared and never written through, so the call
    // drops page-table entries and no contents. A failure only costs memory.
    #[cfg(unix)]
    let _ = unsafe {
        mapping.unchecked_advise_range(UncheckedAdvice::DontNeed, part.start, part.len())
    };
}

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches `lines` cache lines from offset `distance` of `bytes`.
#[inline(always)]
pub fn prefetch(bytes: &[u8], distance: usize, lines: usize) {
    let Some(part) = bytes.get(distance..distance + lines * LINE) else {
        return;
    };
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = part[line * LINE..].as_ptr();
        // SAFETY: a prefetch has no observable effect, and the address is in `bytes`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = part;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_bytes_are_those_of_the_file() {
        let types = Path::new("/sys/kernel/btf/vmlinux");
        if types.exists() {
            let file = KernelFile::open(types).unwrap();
            assert!(*file == *fs::read(types).unwrap());
        }
        // Files of /proc cannot be mapped.
        let file = KernelFile::open("/proc/version").unwrap();
        assert!(matches!(&file, KernelFile::Copied(text) if text.starts_with(b"Linux")));
        assert!(KernelFile::open("/no/such/file").is_err());
    }
}
