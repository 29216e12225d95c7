//! Keys in cells: comparison, copy and hash.

use spec::{Errno, Result};
use vm::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vm::{hash_start, hash_words};

/// Cells that a key of so many bytes takes.
pub(super) const fn cells_of(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

/// The key in numbers of 8 bytes, the last one filled up with zeros.
#[inline(always)]
pub(super) fn words(key: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (whole, rest) = key.as_chunks::<8>();
    let last = (!rest.is_empty()).then(|| {
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        u64::from_ne_bytes(bytes)
    });
    whole
        .iter()
        .map(|bytes| u64::from_ne_bytes(*bytes))
        .chain(last)
}

/// True if the cells hold the key.
#[inline(always)]
pub(super) fn equals(cells: &[AtomicU64], key: &[u8]) -> bool {
    equals_words(cells, words(key))
}

/// True if the cells hold the key, given in numbers of 8 bytes.
#[inline(always)]
pub(super) fn equals_words(cells: &[AtomicU64], mut words: impl Iterator<Item = u64>) -> bool {
    let mut cells = cells.iter();
    words.all(|word| cells.next().is_some_and(|cell| cell.load(Relaxed) == word))
}

/// True if the first cells hold the key, given in numbers of 8 bytes.
#[inline(always)]
pub(super) fn equals_array<const N: usize>(cells: &[AtomicU64], key: [u64; N]) -> bool {
    cells.first_chunk::<N>().is_some_and(|cells| {
        let pairs = cells.iter().zip(key);
        pairs.fold(0, |differences, (cell, word)| {
            differences | cell.load(Relaxed) ^ word
        }) == 0
    })
}

/// Writes the key into the cells.
#[inline(always)]
pub(super) fn write(cells: &[AtomicU64], key: &[u8]) {
    for (word, cell) in words(key).zip(cells) {
        cell.store(word, Relaxed);
    }
}

/// The hash of a key.
#[inline(always)]
pub(super) fn hash(key: &[u8], seed: u64) -> u32 {
    hash_words(words(key), hash_start(seed))
}

/// Writes the index after this one, of so many: the first after none. ENOENT after the last.
pub(super) fn write_next_index(index: Option<u32>, count: u32, next: &mut [u8]) -> Result {
    let following = index.map_or(0, |index| index + 1);
    Errno::ENOENT.when(following == count && index.is_some())?;
    next.copy_from_slice(&following.to_le_bytes());
    Ok(())
}
