//! Slots that the scan records for later passes, so that these need not visit every slot.

/// Slots for later passes, in descending order.
#[derive(Default)]
pub(super) struct SlotLists {
    /// Jumps.
    pub(super) jumps: Vec<u32>,
    /// Back edges: jumps to the same slot or an earlier one.
    pub(super) backward: Vec<u32>,
    /// Jumps whose successor may be another jump, as in comparison trees.
    pub(super) forks: Vec<u32>,
    /// Branches over one slot, and slots where a rewrite may end.
    pub(super) candidates: Vec<u32>,
}
