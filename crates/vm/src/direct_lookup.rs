//! Lookups of native code that does not call the helper: an address computed from the key,
//! or a function for one kind of map and one size of key.

use std::any::Any;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering::Relaxed};

use crate::{Call, CellSlice, Cells, RunContext};

/// How native code looks up a key in one map.
#[derive(Clone, Debug)]
pub enum DirectLookup {
    /// Values at equal distances, by index.
    Elements(Elements),
    /// Values as before, which are addresses of [`MapHandle`](crate::MapHandle)s or 0: the maps
    /// of a map of maps.
    Maps(Elements),
    /// A function.
    Function(LookupFunction),
}

/// The values of an array: for each index one, or one for each CPU.
#[derive(Clone, Debug)]
pub struct Elements {
    cells: Arc<Cells>,
    entries: u32,
    copies: u32,
    /// Cells of one value.
    value_cells: usize,
}

impl Elements {
    /// Values of `value_cells` cells, `copies` for each of `entries` indices, one after the
    /// other; `None` if there are fewer cells.
    pub fn new(
        cells: Arc<Cells>,
        entries: u32,
        copies: u32,
        value_cells: usize,
    ) -> Option<Elements> {
        let needed = (entries as usize)
            .checked_mul(copies as usize)?
            .checked_mul(value_cells)?;
        (copies > 0 && needed <= cells.as_slice().len()).then_some(Elements {
            cells,
            entries,
            copies,
            value_cells,
        })
    }

    /// Address of the first value.
    pub fn address(&self) -> u64 {
        let cells = self.cells.as_slice();
        CellSlice::new(cells, 0).address().expose_provenance() as u64
    }

    /// Number of indices.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Values of an index: the possible CPUs, or 1.
    pub fn copies(&self) -> u32 {
        self.copies
    }

    /// Bytes from an index to the next one.
    pub fn stride(&self) -> u64 {
        self.copy_stride() * u64::from(self.copies)
    }

    /// Bytes from the value of a CPU to that of the next one.
    pub fn copy_stride(&self) -> u64 {
        8 * self.value_cells as u64
    }
}

/// A map whose keys are looked up as numbers.
pub trait WordLookup: Send + Sync + 'static {
    /// Bytes of a key.
    fn key_size(&self) -> usize;

    /// The value of a key, as a program on this CPU gets it. The key is given in numbers of
    /// 8 bytes, the last one filled up with zeros. A panic ends the process.
    fn lookup_words<const N: usize>(&self, cpu: u32, key: [u64; N]) -> Option<CellSlice<'_>>;
}

/// A function that looks up keys in one map.
#[derive(Clone)]
pub struct LookupFunction {
    call: Call,
    address: u64,
    _map: Arc<dyn Any + Send + Sync>,
}

impl LookupFunction {
    /// The function for a map; `None` for sizes of keys that have none.
    pub fn of<T: WordLookup>(map: Arc<T>) -> Option<LookupFunction> {
        let call: Call = match map.key_size() {
            2 => lookup::<T, 2, 1>,
            4 => lookup::<T, 4, 1>,
            6 => lookup::<T, 6, 1>,
            8 => lookup::<T, 8, 1>,
            12 => lookup::<T, 12, 2>,
            16 => lookup::<T, 16, 2>,
            20 => lookup::<T, 20, 3>,
            24 => lookup::<T, 24, 3>,
            32 => lookup::<T, 32, 4>,
            36 => lookup::<T, 36, 5>,
            40 => lookup::<T, 40, 5>,
            48 => lookup::<T, 48, 6>,
            _ => return None,
        };
        Some(LookupFunction {
            call,
            address: Arc::as_ptr(&map).expose_provenance() as u64,
            _map: map,
        })
    }

    /// The function: `r1` is [`LookupFunction::address`], `r2` the address of the key; `r0`
    /// that of the value, or 0.
    pub fn call(&self) -> Call {
        self.call
    }

    /// What the function gets in place of the pointer to the map.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl fmt::Debug for LookupFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LookupFunction")
    }
}

/// Looks up a key of `BYTES` bytes in `N` numbers.
///
/// # Safety
/// As for [`Call`]; `map` is the address of a `T` whose keys have `BYTES` bytes.
unsafe extern "C" fn lookup<T: WordLookup, const BYTES: usize, const N: usize>(
    map: u64,
    key: u64,
    _: u64,
    _: u64,
    _: u64,
    cx: &mut RunContext<'_>,
) -> u64 {
    // SAFETY: code that calls this function keeps the map (`LookupFunction`).
    let map = unsafe { &*ptr::with_exposed_provenance::<T>(map as usize) };
    // SAFETY: the verifier proved that the key has the map's size.
    let key = unsafe { read_key::<BYTES, N>(key) };
    let value = map.lookup_words(cx.cpu(), key);
    value.map_or(0, |cells| cells.address().expose_provenance() as u64)
}

/// Reads a key in pieces of 4 bytes, or smaller ones if its address is not aligned so. Larger
/// ones would wait for the stores of its fields.
///
/// # Safety
/// `BYTES` bytes at the address are valid for reads.
#[inline(always)]
unsafe fn read_key<const BYTES: usize, const N: usize>(address: u64) -> [u64; N] {
    const { assert!(BYTES.div_ceil(8) == N) };
    let mut key = [0; N];
    let mut put = |at: usize, part: u64| key[at / 8] |= part << (8 * (at % 8));
    let is_multiple_of =
        |size: usize| BYTES.is_multiple_of(size) && address.is_multiple_of(size as u64);
    if is_multiple_of(4) {
        for at in (0..BYTES).step_by(4) {
            let place = ptr::with_exposed_provenance::<AtomicU32>(address as usize + at);
            // SAFETY: the bytes are valid (above), the address is aligned.
            put(at, unsafe { (*place).load(Relaxed) }.into());
        }
    } else if is_multiple_of(2) {
        for at in (0..BYTES).step_by(2) {
            let place = ptr::with_exposed_provenance::<AtomicU16>(address as usize + at);
            // SAFETY: as before.
            put(at, unsafe { (*place).load(Relaxed) }.into());
        }
    } else {
        for at in 0..BYTES {
            let place = ptr::with_exposed_provenance::<AtomicU8>(address as usize + at);
            // SAFETY: the byte is valid (above).
            put(at, unsafe { (*place).load(Relaxed) }.into());
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_at_every_address() {
        #[repr(align(8))]
        struct Bytes([u8; 40]);
        let bytes = Bytes(std::array::from_fn(|at| at as u8 + 1));
        let start = bytes.0.as_ptr().expose_provenance() as u64;
        for skip in 0..8u64 {
            let expected = |count: usize| {
                let mut padded = [0; 32];
                padded[..count].copy_from_slice(&bytes.0[skip as usize..][..count]);
                let words = padded
                    .chunks(8)
                    .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
                words.collect::<Vec<u64>>()
            };
            // SAFETY: the bytes are those of the array.
            unsafe {
                assert_eq!(read_key::<6, 1>(start + skip), expected(6)[..1]);
                assert_eq!(read_key::<12, 2>(start + skip), expected(12)[..2]);
                assert_eq!(read_key::<24, 3>(start + skip), expected(24)[..3]);
            }
        }
    }

    #[test]
    fn elements_need_their_cells() {
        let cells = Arc::new(Cells::zeroed(12).unwrap());
        let elements = Elements::new(cells.clone(), 3, 2, 2).unwrap();
        assert_eq!((elements.stride(), elements.copy_stride()), (32, 16));
        assert!(Elements::new(cells.clone(), 4, 2, 2).is_none());
        assert!(Elements::new(cells, u32::MAX, u32::MAX, usize::MAX).is_none());
    }
}
