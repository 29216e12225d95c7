//! Slots by index that hold shared objects; readers never wait.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwapOption, Guard};
use spec::{Errno, Result};

use super::flags::{EXIST, NOEXIST};
use super::key;

/// Slots of a block. A block is allocated when one of its slots is first filled.
const BLOCK: usize = 1024;

/// A fixed number of slots.
#[derive(Debug)]
pub(super) struct Slots<T> {
    count: u32,
    blocks: Box<[OnceLock<Block<T>>]>,
}

type Block<T> = Box<[ArcSwapOption<T>]>;

impl<T> Slots<T> {
    /// Empty slots. ENOMEM if the list of blocks finds no memory.
    pub(super) fn new(count: u32) -> Result<Slots<T>> {
        let mut blocks = Vec::new();
        let needed = (count as usize).div_ceil(BLOCK);
        (blocks.try_reserve_exact(needed)).map_err(|_| Errno::ENOMEM)?;
        blocks.resize_with(needed, OnceLock::new);
        Ok(Slots {
            count,
            blocks: blocks.into(),
        })
    }

    /// The slots that hold something, with it.
    pub(super) fn filled(&self) -> impl Iterator<Item = (u32, Arc<T>)> {
        let blocks = self.blocks.iter().zip((0..).step_by(BLOCK));
        let blocks = blocks.filter_map(|(block, first)| Some((block.get()?, first)));
        blocks.flat_map(|(block, first)| {
            let slots = block.iter().zip(first..);
            slots.filter_map(|(slot, index)| Some((index, slot.load_full()?)))
        })
    }

    /// The index that a key is, if it is in range.
    pub(super) fn index(&self, key: &[u8]) -> Option<u32> {
        let index = u32::from_le_bytes(key.try_into().ok()?);
        (index < self.count).then_some(index)
    }

    /// The index of an update whose flags are at most `most`. EINVAL for other flags, E2BIG for
    /// an index out of range.
    pub(super) fn index_to_store(&self, key: &[u8], flags: u64, most: u64) -> Result<u32> {
        Errno::EINVAL.when(flags > most)?;
        self.index(key).ok_or(Errno::E2BIG)
    }

    /// Number of slots.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Contents of all slots.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<T>> {
        let blocks = self.blocks.iter().filter_map(OnceLock::get);
        blocks.flat_map(|block| block.iter().filter_map(ArcSwapOption::load_full))
    }

    /// Contents of a slot. Slots out of range are empty.
    pub(super) fn get(&self, index: u32) -> Option<Arc<T>> {
        let block = self.blocks.get(index as usize / BLOCK)?.get()?;
        block[index as usize % BLOCK].load_full()
    }

    /// Fills a slot in range or empties it; returns what it held.
    pub(super) fn set(&self, index: u32, object: Option<Arc<T>>) -> Option<Arc<T>> {
        match object {
            None => {
                let block = self.blocks.get(index as usize / BLOCK)?.get()?;
                block[index as usize % BLOCK].swap(None)
            }
            Some(object) => self.slot(index)?.swap(Some(object)),
        }
    }

    /// Fills a slot in range as the flags of an update allow, in one step; returns what it
    /// held. EEXIST or ENOENT if the flags do not fit what it holds.
    pub(super) fn put(&self, index: u32, object: Arc<T>, flags: u64) -> Result<Option<Arc<T>>> {
        let slot = self.slot(index).ok_or(Errno::E2BIG)?;
        let mut held = slot.load_full();
        loop {
            check_flags(held.is_some(), flags)?;
            let before = slot.compare_and_swap(&held, Some(Arc::clone(&object)));
            let before = Guard::into_inner(before);
            let is_same = match (&before, &held) {
                (Some(before), Some(held)) => Arc::ptr_eq(before, held),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if is_same {
                return Ok(before);
            }
            held = before;
        }
    }

    /// A slot in range, whose block is allocated.
    fn slot(&self, index: u32) -> Option<&ArcSwapOption<T>> {
        let block = self.blocks.get(index as usize / BLOCK)?;
        let fill = || (0..BLOCK).map(|_| ArcSwapOption::empty()).collect();
        Some(&block.get_or_init(fill)[index as usize % BLOCK])
    }

    /// The index after this one; the first after none and after one out of range. ENOENT
    /// after the last.
    pub(super) fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        let index = key.and_then(|key| self.index(key));
        key::write_next_index(index, self.count, next)
    }

    /// `BPF_MAP_DELETE_ELEM` of arrays of descriptors.
    pub(super) fn delete(&self, key: &[u8]) -> Result {
        let index = self.index(key).ok_or(Errno::E2BIG)?;
        self.set(index, None).map(drop).ok_or(Errno::ENOENT)
    }
}

/// The flags of an update of an element that is there or not: EEXIST if it may only be
/// added, ENOENT if it may only be changed.
pub(super) fn check_flags(is_there: bool, flags: u64) -> Result {
    match is_there {
        true if flags == NOEXIST => Err(Errno::EEXIST),
        false if flags == EXIST => Err(Errno::ENOENT),
        true | false => Ok(()),
    }
}

/// A value of 4 bytes: a descriptor or an id.
pub(super) fn number(value: &[u8]) -> Result<u32> {
    let bytes = value.try_into().map_err(|_| Errno::EINVAL)?;
    Ok(u32::from_le_bytes(bytes))
}
