//! Files mapped into memory.

use std::fs::File;
use std::io;
use std::ops::Range;

use memmap2::{Mmap, UncheckedAdvice};

/// Maps a file for reading.
///
/// Somebody who makes the file shorter while it is mapped ends this process by a
/// signal when it reads what is gone; somebody who writes to it changes what is
/// read. Both are so with every program that maps files, and no handler of ours
/// stands between: signals belong to the embedding program.
pub fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the bytes are only ever read as bytes, by code that believes
    // nothing it has not just checked; `Mmap` unmaps them when it is dropped.
    unsafe { Mmap::map(file) }
}

/// Gives back the memory of a part that is done with, so that what is resident
/// does not grow with the file. Reading it again fetches it again.
pub fn release(mapping: &Mmap, part: Range<usize>) {
    let part = part.start.min(mapping.len())..part.end.min(mapping.len());
    if part.is_empty() {
        return;
    }
    // SAFETY: the mapping is of a file, shared and never written through, so what
    // is dropped are page-table entries only; the bytes stay the file's. That it
    // may fail only concerns memory.
    let _ = unsafe {
        mapping.unchecked_advise_range(UncheckedAdvice::DontNeed, part.start, part.len())
    };
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the `lines` cache lines that stand `distance` bytes into `bytes`, as
/// far as they are there. It only concerns speed.
#[inline(always)]
pub fn fetch_ahead(bytes: &[u8], distance: usize, lines: usize) {
    let Some(part) = bytes.get(distance..distance + lines * LINE) else {
        return;
    };
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = part[line * LINE..].as_ptr();
        // SAFETY: a prefetch accesses nothing that the program could observe, and
        // the address lies in `bytes`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = part;
}
