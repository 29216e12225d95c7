//! The stack of one frame: slots in chunks of eight, which states share until one of
//! them writes (copy on write).
//!
//! A copy of a stack shares the table of its chunks; a write copies the table if it is
//! shared, and then the one chunk if that is.
//!
//! Invariant: chunks are present as far as `len` reaches, and slots of the last one beyond
//! `len` are [`StackSlot::INVALID`].

use std::ops::Index;
use std::rc::Rc;

use super::slot::StackSlot;
use super::stack_object::Placed;
use spec::limits;

/// Most slots of a frame.
const MAX_SLOTS: usize = limits::STACK as usize / 8;

/// Slots of a chunk.
const CHUNK: usize = 8;

/// Slots of one frame from the frame pointer downwards, as deep as the stack was used
/// (`bpf_stack_state`).
#[doc(alias = "bpf_stack_state")]
#[derive(Clone, Debug, Default)]
pub struct Stack {
    pub(super) table: Rc<Table>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    len: usize,
    chunks: [Option<Rc<[StackSlot; CHUNK]>>; MAX_SLOTS / CHUNK],
    /// What occupies slots as a whole.
    pub(super) objects: Vec<Placed>,
}

impl Stack {
    /// Number of slots in use.
    #[inline]
    pub fn len(&self) -> usize {
        self.table.len
    }

    /// True if the function has not used its stack yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot of that number, if the stack was used so deep.
    #[inline]
    pub fn get(&self, spi: usize) -> Option<&StackSlot> {
        if spi >= self.len() {
            return None;
        }
        let chunk = self.table.chunks.get(spi / CHUNK)?.as_deref()?;
        Some(&chunk[spi % CHUNK])
    }

    /// The slots in use.
    pub fn iter(&self) -> impl Iterator<Item = &StackSlot> {
        let chunks = self.table.chunks.iter().flatten();
        chunks.flat_map(|chunk| chunk.iter()).take(self.len())
    }

    /// The slot of that number for writing; its chunk is copied first if another state
    /// shares it.
    ///
    /// # Panics
    ///
    /// If the stack was not used so deep.
    #[inline]
    pub fn slot_mut(&mut self, spi: usize) -> &mut StackSlot {
        assert!(spi < self.len(), "slot within the stack");
        let chunk = &mut Rc::make_mut(&mut self.table).chunks[spi / CHUNK];
        let chunk = chunk.as_mut().expect("chunk within the stack");
        &mut Rc::make_mut(chunk)[spi % CHUNK]
    }

    /// Extends the stack to at least so many slots, at most 64.
    pub(super) fn grow(&mut self, slots: usize) {
        let slots = slots.min(MAX_SLOTS);
        if slots <= self.len() {
            return;
        }
        let table = Rc::make_mut(&mut self.table);
        for chunk in &mut table.chunks[..slots.div_ceil(CHUNK)] {
            chunk.get_or_insert_with(|| Rc::new([StackSlot::INVALID; CHUNK]));
        }
        table.len = slots;
    }
}

impl Index<usize> for Stack {
    type Output = StackSlot;

    #[inline]
    fn index(&self, spi: usize) -> &StackSlot {
        self.get(spi).expect("slot within the stack")
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, MAX_SLOTS, Stack};
    use crate::state::{SlotKind, StackSlot};
    use std::rc::Rc;

    #[test]
    fn a_stack_grows_to_its_limit_and_is_unwritten_at_first() {
        let mut stack = Stack::default();
        assert!(stack.is_empty() && stack.get(0).is_none());
        stack.grow(CHUNK + 1);
        stack.grow(2);
        assert_eq!((stack.len(), stack.iter().count()), (CHUNK + 1, CHUNK + 1));
        assert!(stack.get(CHUNK + 1).is_none());
        stack.grow(1000);
        assert_eq!((stack.len(), stack.iter().count()), (MAX_SLOTS, MAX_SLOTS));
        assert!(stack.iter().all(|slot| *slot == StackSlot::INVALID));
    }

    #[test]
    fn a_write_copies_one_chunk() {
        let mut stack = Stack::default();
        stack.grow(MAX_SLOTS);
        let old = stack.clone();
        assert!(Rc::ptr_eq(&stack.table, &old.table));
        stack.slot_mut(CHUNK).kinds[0] = SlotKind::Misc;
        assert_eq!(old[CHUNK], StackSlot::INVALID);
        assert_eq!(stack[CHUNK].kinds[0], SlotKind::Misc);
        let pairs = stack.table.chunks.iter().zip(&old.table.chunks);
        let copied = pairs
            .map(|(new, old)| !Rc::ptr_eq(new.as_ref().unwrap(), old.as_ref().unwrap()))
            .collect::<Vec<_>>();
        let second = (0..MAX_SLOTS / CHUNK).map(|chunk| chunk == 1);
        assert_eq!(copied, second.collect::<Vec<_>>());
    }
}
