//! The result of the analysis for one slot.

use std::ops::Deref;

use lower::flow::{Node, OfSlot};

use super::Rewrite;

/// A set of properties of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks(u8);

impl Marks {
    const NONE: Marks = Marks(0);
    pub(super) const TARGET: Marks = Marks(1);
    pub(super) const SELECTION: Marks = Marks(2);
    const REWRITTEN: Marks = Marks(4);
    pub(super) const TREE_ROOT: Marks = Marks(8);
    pub(super) const SUBSUMED: Marks = Marks(16);

    const fn union(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    pub(super) const fn overlap(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn set(&mut self, mark: Marks, holds: bool) {
        self.0 = self.0 & !mark.0 | if holds { mark.0 } else { 0 };
    }
}

/// The result of the analysis for one slot: its node in the program's graph, changed by
/// rewrites, and what instruction selection does with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotInfo {
    node: Node,
    /// For a rewritten slot, the index into [`Analysis::rewrites`](super::Analysis).
    rewrite: u32,
    pub(super) marks: Marks,
}

impl Deref for SlotInfo {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl OfSlot for SlotInfo {
    fn node(&self) -> &Node {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
}

impl SlotInfo {
    /// The info of a slot with this node that is compiled by itself.
    pub(super) fn new(node: Node) -> SlotInfo {
        SlotInfo {
            node,
            rewrite: 0,
            marks: Marks::NONE,
        }
    }

    /// Adds marks.
    pub(super) fn mark(&mut self, marks: Marks) {
        self.marks = self.marks.union(marks);
    }

    /// Replaces the instruction by a rewrite.
    pub(super) fn rewrite(&mut self, rewrite: Rewrite, rewrites: &mut Vec<Rewrite>) {
        self.rewrite = rewrites.len() as u32;
        self.node.replace(rewrite.transfer());
        self.marks.set(Marks::REWRITTEN, true);
        rewrites.push(rewrite);
    }

    /// The rewrite that replaces the instruction.
    pub(super) fn rewritten(&self, rewrites: &[Rewrite]) -> Option<Rewrite> {
        self.is_rewritten().then(|| rewrites[self.rewrite as usize])
    }

    /// True if the instruction is translated unchanged and its only predecessor is the slot
    /// before it.
    pub(crate) fn is_plain(&self) -> bool {
        const OTHERWISE: Marks = Marks::TARGET
            .union(Marks::REWRITTEN)
            .union(Marks::TREE_ROOT);
        !self.marks.overlap(OTHERWISE) && !self.is_dead()
    }

    /// True if the instruction is translated unchanged, without a label or a loop check.
    pub(crate) fn is_unmarked(&self) -> bool {
        const MARKED: Marks = Marks(!Marks::SELECTION.0);
        !self.marks.overlap(MARKED) && !self.is_dead()
    }

    /// True if the instruction is translated unchanged, whether or not it is a jump target
    /// or loop header.
    pub(crate) fn is_only_entered(&self) -> bool {
        const KNOWN: Marks = Marks::TARGET.union(Marks::SELECTION);
        !self.marks.overlap(Marks(!KNOWN.0)) && !self.is_dead()
    }

    /// True if the slot is the target of a call or of a jump that is not a selection.
    pub(crate) fn is_target(&self) -> bool {
        self.marks.overlap(Marks::TARGET)
    }

    /// True if the slot is a branch over a single move that becomes a conditional move.
    pub(crate) fn is_selection(&self) -> bool {
        self.marks.overlap(Marks::SELECTION)
    }

    /// True if the instruction is replaced by a [`Rewrite`].
    pub(crate) fn is_rewritten(&self) -> bool {
        self.marks.overlap(Marks::REWRITTEN)
    }

    /// True if the slot is the root of a comparison tree.
    pub(crate) fn is_tree_root(&self) -> bool {
        self.marks.overlap(Marks::TREE_ROOT)
    }

    /// True if this comparison belongs to a comparison tree and is not its root.
    pub(crate) fn is_subsumed(&self) -> bool {
        self.marks.overlap(Marks::SUBSUMED)
    }
}
