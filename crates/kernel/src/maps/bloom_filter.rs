//! `bloom_filter`: a set that answers "maybe" or "no".

use vm::sync::atomic::Ordering::Relaxed;

use spec::Errno;
use vm::{CellSlice, Cells};

use super::flags;
use super::resources::Resources;
use super::{Definition, Host, Operations, RunGuard, key};

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
    pub(super) fn new(map: &Definition, host: &Host) -> Result<BloomFilter, Errno> {
        let hashes = match map.params.extra {
            0 => 5,
            hashes => hashes as u32,
        };
        let mask = mask(map.params.max_entries, hashes);
        let cells = (mask as usize + 1).div_ceil(64);
        Ok(BloomFilter {
            bits: Cells::zeroed(cells).map_err(|_| Errno::ENOMEM)?,
            mask,
            hashes,
            seed: map.seed(host),
        })
    }

    /// The kernel's rules of creation.
    pub(super) fn check(map: &Definition) -> Result<(), Errno> {
        let params = &map.params;
        if params.value_size > super::KMALLOC_MAX {
            return Err(Errno::E2BIG);
        }
        if params.key_size != 0
            || params.value_size == 0
            || params.max_entries == 0
            || params.flags.0 & !(flags::NUMA_NODE | flags::ZERO_SEED | flags::ACCESS) != 0
            || !flags::access_is_consistent(params.flags.0)
            || params.extra > 15
        {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// The bits of a value: index of the cell and mask.
    fn bits_of<'a>(&'a self, value: &'a [u8]) -> impl Iterator<Item = (usize, u64)> + 'a {
        (0..self.hashes).map(move |number| {
            let hash = key::hash(value, self.seed.wrapping_add(number.into())) & self.mask;
            (hash as usize / 64, 1 << (hash % 64))
        })
    }
}

/// Number of bits less one: entries × hashes ÷ ln 2, rounded up to a power of two.
fn mask(entries: u32, hashes: u32) -> u32 {
    let bits = (entries.checked_mul(hashes))
        .and_then(|bits| (bits / 5).checked_mul(7))
        .filter(|bits| *bits <= 1 << 31);
    match bits {
        None => u32::MAX,
        Some(bits) => bits.max(64).next_power_of_two() - 1,
    }
}

impl Operations for BloomFilter {
    fn fixed_bytes(&self) -> u64 {
        size_of_val(self.bits.as_slice()) as u64
    }

    fn push(&self, value: &[u8], flags: u64) -> Result<(), Errno> {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        for (cell, bit) in self.bits_of(value) {
            self.bits.as_slice()[cell].fetch_or(bit, Relaxed);
        }
        Ok(())
    }

    fn peek(&self, value: &mut [u8]) -> Result<(), Errno> {
        let is_set =
            |(cell, bit): (usize, u64)| self.bits.as_slice()[cell].load(Relaxed) & bit != 0;
        match self.bits_of(value).all(is_set) {
            true => Ok(()),
            false => Err(Errno::ENOENT),
        }
    }

    fn pop(&self, _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn lookup<'g>(&'g self, _: &'g RunGuard, _: u32, _: &[u8]) -> Option<CellSlice<'g>> {
        None
    }

    fn update(&self, _: u32, _: &[u8], _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn copy(&self, _: &[u8], out: &mut [u8]) -> Result<(), Errno> {
        self.peek(out)
    }

    fn store(&self, _: &[u8], value: &[u8], flags: u64, _: &dyn Resources) -> Result<(), Errno> {
        self.push(value, flags)
    }

    fn next_key(&self, _: Option<&[u8]>, _: &mut [u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}
