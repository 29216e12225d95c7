//! Hash table layout for inlined lookups.
//!
//! The table has *buckets* of 32 bytes ([`CellGroup`](crate::CellGroup)): five slots, each
//! with the number of an element, and a *tag cell*. Byte `i` of the tag cell is 0 if slot
//! `i` is empty, otherwise [`HashLookup::tag`] of the hash of its key. Bit 63 of the cell is
//! set if the bucket has elements elsewhere. *Elements* have equal size; the key is behind
//! the first cell.
//!
//! The bucket of a key is its hash modulo the number of buckets. If no slot has its tag and
//! bit 63 is 0, the key is absent. If the first slot with its tag has an element of the
//! memory with its key, that is the one; otherwise the function of the map finds out.

use std::sync::Arc;

use crate::sync::atomic::AtomicBool;
use crate::{CellGroups, CellSlice, Cells, MapFunction};

/// Multiplier of the hash.
pub const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a key in its bytes by eight, the last ones filled up with zeros: a multiplication of
/// 64 by 64 bits for each two of them, of which both halves are combined. It starts with the
/// [`hash_start`] of the map's seed, and is the same on every machine: entries have one order.
#[inline(always)]
pub fn hash_words(words: impl Iterator<Item = u64>, start: u64) -> u32 {
    let mut words = words.map(u64::to_le);
    let mut hash = start;
    while let Some(first) = words.next() {
        let second = words.next().unwrap_or(0);
        let product = u128::from(hash ^ first) * u128::from(second ^ HASH_MULTIPLIER);
        hash = (product as u64) ^ (product >> 64) as u64;
    }
    hash as u32
}

/// The start of [`hash_words`] for a seed.
pub const fn hash_start(seed: u64) -> u64 {
    seed ^ HASH_MULTIPLIER.rotate_left(32)
}

/// Parameters of a lookup in a hash table that native code makes without a call.
#[derive(Clone, Debug)]
pub struct HashLookup {
    parts: HashParts,
    function: MapFunction,
    /// Words of the key that are stored in parts.
    parted_words: u8,
}

/// The parts of a hash table.
#[derive(Clone, Debug)]
pub struct HashParts {
    /// Bytes of a key, a multiple of 4 up to [`HashLookup::MOST_KEY_BYTES`].
    pub key_size: usize,
    /// Start of the hash.
    pub hash_start: u64,
    /// The buckets, their number a power of two.
    pub buckets: CellGroups,
    /// The elements that are found at once.
    pub elements: Cells,
    /// Number of these elements.
    pub count: u32,
    /// Cells of an element.
    pub stride: usize,
    /// Cell of an element at which the value starts.
    pub value: usize,
    /// For each element, whether it was found lately; for maps that evict others.
    pub marks: Option<Arc<[AtomicBool]>>,
}

impl HashLookup {
    /// Largest size of keys.
    pub const MOST_KEY_BYTES: usize = 48;
    /// Bytes of a bucket.
    pub const BUCKET: u32 = 32;
    /// Offset of the tag cell in a bucket.
    pub const TAGS: usize = 24;
    /// The lowest bit of each slot's tag.
    pub const LOW_BITS: u64 = 0x01_0101_0101;
    /// The bit of each slot's tag that is set if the slot has an element.
    pub const OCCUPIED: u64 = 0x80_8080_8080;
    /// The tag of a hash is the number of these upper bits of it, and the highest bit.
    pub const TAG_BITS: u32 = 7;
    /// Offset of the key in an element.
    pub const KEY: usize = 8;

    /// A lookup, if the parts are within the limits and fit each other; `function` does it
    /// for all keys.
    pub fn new(parts: HashParts, function: MapFunction) -> Option<HashLookup> {
        let HashParts {
            key_size,
            buckets,
            elements,
            count,
            stride,
            value,
            marks,
            ..
        } = &parts;
        let groups = buckets.as_slice().len();
        let needed = (*count as usize).checked_mul(*stride)?;
        let fits = groups.is_power_of_two()
            && groups <= 1 << 26
            && key_size.is_multiple_of(4)
            && (4..=Self::MOST_KEY_BYTES).contains(key_size)
            && value * 8 >= Self::KEY + key_size
            && value < stride
            && i32::try_from(stride * 8).is_ok()
            && i32::try_from(*count).is_ok()
            && needed <= elements.as_slice().len()
            && marks
                .as_ref()
                .is_none_or(|marks| marks.len() >= *count as usize);
        fits.then_some(HashLookup {
            parts,
            function,
            parted_words: 0,
        })
    }

    /// The lookup of keys whose words with these bits were stored in parts of 4 bytes
    /// lately: the processor forwards a store to a load that it covers.
    #[must_use]
    pub fn with_parted_words(self, parted_words: u8) -> HashLookup {
        HashLookup {
            parted_words,
            ..self
        }
    }

    /// True if a word of the key, counted from 0, is to be read in parts of 4 bytes.
    pub fn is_parted(&self, word: usize) -> bool {
        self.parted_words >> word & 1 != 0
    }

    /// The function that looks up any key.
    pub fn function(&self) -> &MapFunction {
        &self.function
    }

    /// Bytes of a key.
    pub fn key_size(&self) -> usize {
        self.parts.key_size
    }

    /// Start of [`hash_words`].
    pub fn hash_start(&self) -> u64 {
        self.parts.hash_start
    }

    /// Address of the first bucket.
    pub fn buckets(&self) -> u64 {
        self.parts.buckets.as_slice().as_ptr().expose_provenance() as u64
    }

    /// The bits of a hash that are the number of its bucket, at most 26.
    pub fn bucket_mask(&self) -> u32 {
        self.parts.buckets.as_slice().len() as u32 - 1
    }

    /// Address of the first element.
    pub fn elements(&self) -> u64 {
        CellSlice::new(self.parts.elements.as_slice(), 0)
            .address()
            .expose_provenance() as u64
    }

    /// Number of elements from there on, below 2^31.
    pub fn count(&self) -> u32 {
        self.parts.count
    }

    /// Bytes of an element, below 2^31.
    pub fn stride(&self) -> u32 {
        8 * self.parts.stride as u32
    }

    /// Offset of the value in an element.
    pub fn value(&self) -> u32 {
        8 * self.parts.value as u32
    }

    /// Address of the mark of the first element, a byte that becomes 1 when it is found.
    pub fn marks(&self) -> Option<u64> {
        let marks = self.parts.marks.as_ref()?;
        Some(marks.as_ptr().expose_provenance() as u64)
    }

    /// The tag of a hash.
    #[inline(always)]
    pub const fn tag(hash: u32) -> u64 {
        (1 << Self::TAG_BITS | hash >> (32 - Self::TAG_BITS)) as u64
    }
}
