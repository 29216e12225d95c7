//! `bloom_filter`: a set that answers "maybe" or "no".

use vm::sync::atomic::Ordering::Relaxed;

use program::creation;
use spec::{Errno, Result};
use vm::{CellSlice, Cells, MapOperations};

use super::memory::Charge;
use super::resources::Resources;
use super::{Definition, Host, RunGuard, SyscallOperations, key};

/// Bits of which each value sets some. A value that was pushed is always found; one that
/// was not is found by chance, with a probability as in Linux, whose hash differs.
#[derive(Debug)]
pub(super) struct BloomFilter {
    bits: Cells,
    mask: u32,
    hashes: u32,
    seed: u64,
}

impl BloomFilter {
    pub(super) fn new(map: &Definition, host: &Host, charge: &Charge) -> Result<BloomFilter> {
        let mask = creation::bloom_mask(&map.params);
        let cells = (u64::from(mask) + 1).div_ceil(64) as usize;
        Ok(BloomFilter {
            bits: charge.cells(cells)?,
            mask,
            hashes: creation::bloom_hashes(&map.params),
            seed: map.seed(host),
        })
    }

    /// The bits of a value: index of the cell and mask.
    fn bits_of<'a>(&'a self, value: &'a [u8]) -> impl Iterator<Item = (usize, u64)> + 'a {
        (0..self.hashes).map(move |number| {
            let hash = key::hash(value, self.seed.wrapping_add(number.into())) & self.mask;
            (hash as usize / 64, 1 << (hash % 64))
        })
    }
}

impl MapOperations for BloomFilter {
    fn push(&self, value: &[u8], flags: u64) -> Result {
        Errno::EINVAL.when(flags != 0)?;
        for (cell, bit) in self.bits_of(value) {
            self.bits.as_slice()[cell].fetch_or(bit, Relaxed);
        }
        Ok(())
    }

    fn peek(&self, value: &mut [u8]) -> Result {
        let is_set =
            |(cell, bit): (usize, u64)| self.bits.as_slice()[cell].load(Relaxed) & bit != 0;
        Errno::ENOENT.when(!self.bits_of(value).all(is_set))
    }

    fn pop(&self, _: &mut [u8]) -> Result {
        Err(Errno::EOPNOTSUPP)
    }

    fn lookup<'g>(&'g self, _: &'g RunGuard, _: u32, _: &[u8]) -> Option<CellSlice<'g>> {
        None
    }

    fn update(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result {
        Err(Errno::EINVAL)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result {
        Err(Errno::EOPNOTSUPP)
    }
}

impl SyscallOperations for BloomFilter {
    fn copy(&self, _: &[u8], out: &mut [u8]) -> Result {
        self.peek(out)
    }

    fn store(&self, _: &[u8], value: &[u8], flags: u64, _: &dyn Resources) -> Result {
        self.push(value, flags)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result {
        Err(Errno::EOPNOTSUPP)
    }
}
