//! Functions that native code calls in place of a helper, each for one map. A panic of a map
//! does not leave them: see [`RunContext::panic`].

use std::any::Any;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use spec::Result;

use crate::{Call, CellAddress, CellSlice, RunContext};

/// A map whose keys are looked up as numbers.
pub trait WordLookup: Send + Sync + 'static {
    /// Bytes of a key.
    fn key_size(&self) -> usize;

    /// The address of the value of a key, as a program on this CPU gets it. The key is given
    /// in numbers of 8 bytes, the last one filled up with zeros.
    fn lookup_words<const N: usize>(
        &self,
        cpu: impl Fn() -> u32,
        key: [u64; N],
    ) -> Option<CellAddress<'_>>;
}

/// A ring buffer.
pub trait RecordOutput: Send + Sync + 'static {
    /// Adds a record of `len` bytes, which `fill` writes (`bpf_ringbuf_output`).
    fn output_with(&self, len: u64, flags: u64, fill: impl FnOnce(CellSlice<'_>)) -> Result;
}

/// A function that takes the place of a helper for one map.
#[derive(Clone)]
pub struct MapFunction {
    call: Call,
    address: u64,
    _map: Arc<dyn Any + Send + Sync>,
}

impl MapFunction {
    /// `bpf_map_lookup_elem`; `None` for sizes of keys that have no function.
    pub fn lookup<T: WordLookup>(map: Arc<T>) -> Option<MapFunction> {
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
        Some(MapFunction::new(call, map))
    }

    /// `bpf_ringbuf_output`.
    pub fn output<T: RecordOutput>(ring: Arc<T>) -> MapFunction {
        MapFunction::new(output::<T>, ring)
    }

    fn new<T: Send + Sync + 'static>(call: Call, map: Arc<T>) -> MapFunction {
        MapFunction {
            call,
            address: Arc::as_ptr(&map).expose_provenance() as u64,
            _map: map,
        }
    }

    /// The function: `r1` is [`MapFunction::address`], the other arguments and `r0` are the
    /// helper's.
    pub fn call(&self) -> Call {
        self.call
    }

    /// First argument of the function, in place of the pointer to the map.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl fmt::Debug for MapFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MapFunction")
    }
}

/// Looks up a key of `BYTES` bytes in `N` numbers.
///
/// # Safety
/// As for [`Call`]; `map` is the address of a `T` whose keys have `BYTES` bytes.
unsafe extern "C" fn lookup<T: WordLookup, const BYTES: usize, const N: usize>(
    map: u64,
    key: u64,
    r3: u64,
    r4: u64,
    r5: u64,
    cx: &mut RunContext<'_>,
) -> u64 {
    if !BYTES.is_multiple_of(4) || !key.is_multiple_of(4) {
        // SAFETY: as for this function.
        return unsafe { lookup_parts::<T, BYTES, N>(map, key, r3, r4, r5, cx) };
    }
    // SAFETY: code that calls this function keeps the map (`MapFunction`).
    let map = unsafe { &*ptr::with_exposed_provenance::<T>(map as usize) };
    // SAFETY: the verifier proved that the key has the map's size, and it is aligned to 4.
    let key = unsafe { read_halves::<BYTES, N>(key) };
    value_of(map, key, cx)
}

/// As [`lookup`], of keys at any address.
///
/// # Safety
/// As for [`lookup`].
#[cold]
#[inline(never)]
unsafe extern "C" fn lookup_parts<T: WordLookup, const BYTES: usize, const N: usize>(
    map: u64,
    key: u64,
    _: u64,
    _: u64,
    _: u64,
    cx: &mut RunContext<'_>,
) -> u64 {
    // SAFETY: as in `lookup`.
    let map = unsafe { &*ptr::with_exposed_provenance::<T>(map as usize) };
    // SAFETY: as in `lookup`.
    let key = unsafe { read_key::<BYTES, N>(key) };
    value_of(map, key, cx)
}

/// The address of the value of a key; 0 if it has none.
#[inline(always)]
fn value_of<T: WordLookup, const N: usize>(map: &T, key: [u64; N], cx: &mut RunContext<'_>) -> u64 {
    let value = panic::catch_unwind(AssertUnwindSafe(|| map.lookup_words(|| cx.cpu(), key)));
    let value = value.unwrap_or_else(|payload| {
        cx.panic.get_or_insert(payload);
        None
    });
    value.map_or(0, |address| address.get().expose_provenance() as u64)
}

/// Adds a record to a ring buffer.
///
/// # Safety
/// As for [`Call`]; `ring` is the address of a `T`.
unsafe extern "C" fn output<T: RecordOutput>(
    ring: u64,
    data: u64,
    len: u64,
    flags: u64,
    _: u64,
    cx: &mut RunContext<'_>,
) -> u64 {
    // SAFETY: code that calls this function keeps the map (`MapFunction`).
    let ring = unsafe { &*ptr::with_exposed_provenance::<T>(ring as usize) };
    let add = || {
        ring.output_with(len, flags, |record| {
            // SAFETY: the verifier proved that so many bytes are valid.
            unsafe { copy(data, record) };
        })
    };
    match panic::catch_unwind(AssertUnwindSafe(add)) {
        Ok(Ok(())) => 0,
        Ok(Err(errno)) => errno.negated(),
        Err(payload) => {
            cx.panic.get_or_insert(payload);
            0
        }
    }
}

/// Fills cells with the bytes at an address.
///
/// # Safety
/// As many bytes at the address are valid for reads.
#[inline]
unsafe fn copy(address: u64, into: CellSlice<'_>) {
    let mut copied = 0;
    if address.is_multiple_of(8) {
        for cell in into.whole_cells() {
            let place = ptr::with_exposed_provenance::<AtomicU64>(address as usize + copied);
            // SAFETY: the bytes are valid (above), the address is aligned.
            cell.store(unsafe { (*place).load(Relaxed) }, Relaxed);
            copied += 8;
        }
    }
    while copied < into.len() {
        let mut part = [0; 8];
        let len = part.len().min(into.len() - copied);
        for (at, byte) in (copied..).zip(&mut part[..len]) {
            let place = ptr::with_exposed_provenance::<AtomicU8>(address as usize + at);
            // SAFETY: the byte is valid (above).
            *byte = unsafe { (*place).load(Relaxed) };
        }
        into.write(copied, &part[..len]);
        copied += len;
    }
}

/// Reads a key in pieces of 4 bytes: larger ones would wait for the stores of its fields.
///
/// # Safety
/// `BYTES` bytes at the address are valid for reads; both are multiples of 4.
#[inline(always)]
unsafe fn read_halves<const BYTES: usize, const N: usize>(address: u64) -> [u64; N] {
    const { assert!(BYTES.div_ceil(8) == N) };
    let mut key = [0; N];
    for at in (0..BYTES / 4 * 4).step_by(4) {
        let place = ptr::with_exposed_provenance::<AtomicU32>(address as usize + at);
        // SAFETY: the bytes are valid (above), the address is aligned.
        let part: u64 = u32::from_le(unsafe { (*place).load(Relaxed) }).into();
        key[at / 8] |= part << (8 * (at % 8));
    }
    key
}

/// Reads a key at any address, in pieces of 2 bytes where that is possible.
///
/// # Safety
/// `BYTES` bytes at the address are valid for reads.
#[inline(always)]
unsafe fn read_key<const BYTES: usize, const N: usize>(address: u64) -> [u64; N] {
    const { assert!(BYTES.div_ceil(8) == N) };
    let mut key = [0; N];
    let mut put = |at: usize, part: u64| key[at / 8] |= part << (8 * (at % 8));
    if BYTES.is_multiple_of(2) && address.is_multiple_of(2) {
        for at in (0..BYTES).step_by(2) {
            let place = ptr::with_exposed_provenance::<AtomicU16>(address as usize + at);
            // SAFETY: the bytes are valid (above), the address is aligned.
            put(at, u16::from_le(unsafe { (*place).load(Relaxed) }).into());
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
    use crate::Cells;

    #[test]
    fn keys_are_the_same_at_every_address() {
        #[repr(align(8))]
        struct Bytes([u8; 40]);
        let mut bytes = Bytes(std::array::from_fn(|at| at as u8 + 1));
        let start = bytes.0.as_mut_ptr().expose_provenance() as u64;
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
                if skip % 4 == 0 {
                    assert_eq!(read_halves::<4, 1>(start + skip), expected(4)[..1]);
                    assert_eq!(read_halves::<20, 3>(start + skip), expected(20)[..3]);
                }
            }
        }
    }

    /// A map whose functions panic.
    struct Panicking;

    impl WordLookup for Panicking {
        fn key_size(&self) -> usize {
            4
        }

        fn lookup_words<const N: usize>(
            &self,
            _: impl Fn() -> u32,
            _: [u64; N],
        ) -> Option<CellAddress<'_>> {
            panic!("lookup of {N} words")
        }
    }

    impl RecordOutput for Panicking {
        fn output_with(&self, _: u64, _: u64, _: impl FnOnce(CellSlice<'_>)) -> Result {
            panic!("output")
        }
    }

    #[test]
    fn panics_of_maps_wait_for_the_end_of_the_run() {
        let function = MapFunction::lookup(Arc::new(Panicking)).expect("keys of 4 bytes");
        let output = MapFunction::output(Arc::new(Panicking));
        let mut key = [0u32; 2];
        let key = key.as_mut_ptr().expose_provenance() as u64;
        let cases = [
            (&function, key, "lookup of 1 words"),
            (&function, key + 1, "lookup of 1 words"),
            (&output, key, "output"),
        ];
        for (function, argument, expected) in cases {
            let packet = packet::Packet::whole(&[], &packet::Metadata::UNKNOWN);
            let mut random = spec::SplitMix::new(0);
            let mut cx = RunContext::new(&packet, &mut random, None);
            // SAFETY: the function is called with its own address, and a key of 4 bytes.
            let result =
                unsafe { (function.call())(function.address(), argument, 4, 0, 0, &mut cx) };
            assert_eq!(result, 0);
            let payload = cx.panic.take().expect("the panic");
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|it| it.to_string()));
            assert_eq!(text.as_deref(), Some(expected));
        }
    }

    #[test]
    fn bytes_are_copied_from_every_address() {
        #[repr(align(8))]
        struct Bytes([u8; 40]);
        let mut bytes = Bytes(std::array::from_fn(|at| at as u8 + 1));
        let start = bytes.0.as_mut_ptr().expose_provenance() as u64;
        let cells = Cells::zeroed(4).expect("32 bytes");
        for skip in 0..8 {
            for len in 0..=32 {
                cells.slice(0, 32).clear();
                let into = cells.slice(0, len);
                // SAFETY: the bytes are those of the array.
                unsafe { copy(start + skip as u64, into) };
                assert_eq!(into.to_vec(), bytes.0[skip..][..len]);
                assert!(
                    cells.slice(0, 32).to_vec()[len..]
                        .iter()
                        .all(|byte| *byte == 0)
                );
            }
        }
    }
}
