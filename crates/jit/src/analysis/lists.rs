//! Slots that the scan records for later passes, so that these need not visit every slot.

/// Slots for later passes, in ascending order.
#[derive(Default)]
pub(super) struct SlotLists {
    /// Branches over one slot, and slots where a rewrite may end.
    pub(super) candidates: Vec<u32>,
    /// Some jump may be the root of a comparison tree.
    pub(super) may_have_trees: bool,
}
