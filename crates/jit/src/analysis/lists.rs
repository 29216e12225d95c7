//! Slots that the scan records for later passes, so that these need not visit every slot.

use crate::spare::bytes_of;

/// Slots to look at again, the last one first.
#[derive(Default)]
pub(super) struct Lists {
    /// Those that jump.
    pub(super) jumps: Vec<u32>,
    /// Those of them that lead backward.
    pub(super) backward: Vec<u32>,
    /// Those of them behind which, or where they lead, there may be another, as in trees
    /// of comparisons.
    pub(super) forks: Vec<u32>,
    /// Those that may be selections, and those where idioms may end.
    pub(super) candidates: Vec<u32>,
}

impl Lists {
    pub(super) fn clear(&mut self) {
        self.jumps.clear();
        self.backward.clear();
        self.forks.clear();
        self.candidates.clear();
    }

    /// How many bytes they hold.
    pub(super) fn bytes(&self) -> usize {
        let lists = [&self.jumps, &self.backward, &self.forks, &self.candidates];
        lists.map(bytes_of).iter().sum()
    }

    /// Adds a slot that jumps.
    #[inline(always)]
    pub(super) fn push_jump(&mut self, slot: usize) {
        push(&mut self.jumps, slot as u32);
    }

    /// The same of one that leads backward.
    #[inline(never)]
    pub(super) fn push_backward(&mut self, slot: usize) {
        push(&mut self.backward, slot as u32);
        self.push_fork(slot);
    }

    /// The same of one over a single slot.
    #[inline(never)]
    pub(super) fn push_short(&mut self, slot: usize) {
        self.push_candidate(slot as u32);
        self.push_fork(slot);
    }

    /// The same of one that may belong to a tree.
    #[inline(never)]
    pub(super) fn push_fork(&mut self, slot: usize) {
        push(&mut self.forks, slot as u32);
        self.push_jump(slot);
    }

    /// Adds a slot that may be a selection, or where an idiom may end.
    #[inline(never)]
    pub(super) fn push_candidate(&mut self, slot: u32) {
        push(&mut self.candidates, slot);
    }
}

/// Adds to a list, which has room nearly always, as the last act of a function that
/// then saves no registers.
#[inline(always)]
fn push<T>(list: &mut Vec<T>, item: T) {
    #[cold]
    #[inline(never)]
    fn grow<T>(list: &mut Vec<T>, item: T) {
        list.push(item);
    }
    if list.len() == list.capacity() {
        return grow(list, item);
    }
    list.push(item);
}
