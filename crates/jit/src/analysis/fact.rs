//! The result of the analysis for one slot.

use isa::ebpf::Reg;

use super::Rewrite;
use super::transfer::{Halves, Transfer};

/// A set of properties of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    pub(super) const NONE: Marks = Marks(0);
    pub(super) const TARGET: Marks = Marks(1);
    pub(super) const LOOP: Marks = Marks(2);
    pub(super) const SELECTION: Marks = Marks(4);
    pub(super) const DEAD: Marks = Marks(8);
    const REWRITTEN: Marks = Marks(16);
    pub(super) const TREE_ROOT: Marks = Marks(32);
    pub(super) const SUBSUMED: Marks = Marks(64);
    /// Has a jump target.
    pub(super) const JUMPS: Marks = Marks(128);
    /// Does not fall through to the next slot.
    pub(super) const STOPS: Marks = Marks(256);
    /// Has a jump target or does not fall through.
    pub(super) const LEAVES: Marks = Marks::JUMPS.union(Marks::STOPS);

    pub(super) const fn union(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    pub(super) const fn overlap(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn set(&mut self, mark: Marks, holds: bool) {
        self.0 = self.0 & !mark.0 | if holds { mark.0 } else { 0 };
    }
}

/// The result of the analysis for one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(super) transfer: Transfer,
    /// Live-out set.
    pub(crate) live_out: Halves,
    /// Jump target; for a rewritten slot, the index into [`Analysis::rewrites`].
    link: u32,
    pub(super) marks: Marks,
}

impl Fact {
    /// The fact of a slot before the scan.
    pub(super) const NONE: Fact = Fact {
        transfer: Transfer::pure(Halves::NONE, Halves::NONE),
        live_out: Halves::NONE,
        link: 0,
        marks: Marks::NONE,
    };

    /// Records the transfer function and the live-out set of an instruction that falls
    /// through; returns its live-in set.
    pub(super) fn record(&mut self, transfer: Transfer, live_out: Halves) -> Halves {
        self.transfer = transfer;
        self.live_out = live_out;
        let before = transfer.propagate(live_out);
        self.marks = match before {
            Some(_) => Marks::NONE,
            None => Marks::DEAD,
        };
        before.unwrap_or(live_out)
    }

    /// Records the control flow of an instruction.
    pub(super) fn set_control_flow(&mut self, marks: Marks, target: usize) {
        self.marks = marks;
        self.link = target as u32;
    }

    /// Records the transfer function and the live-out set of an instruction with control
    /// flow, which is never dead; returns its live-in set.
    pub(super) fn record_control_flow(&mut self, transfer: Transfer, live_out: Halves) -> Halves {
        self.transfer = transfer;
        self.live_out = live_out;
        transfer.propagate(live_out).unwrap_or(live_out)
    }

    /// Adds marks.
    pub(super) fn mark(&mut self, marks: Marks) {
        self.marks = self.marks.union(marks);
    }

    /// Sets the live-out set; returns the live-in set.
    pub(super) fn set_live_out(&mut self, live_out: Halves) -> Halves {
        self.live_out = live_out;
        let before = self.transfer.propagate(live_out);
        self.marks.set(Marks::DEAD, before.is_none());
        before.unwrap_or(live_out)
    }

    /// Adds to the live-out set; returns a superset of what that adds to the live-in set.
    pub(super) fn add_live_out(&mut self, more: Halves) -> Halves {
        self.live_out = self.live_out.union(more);
        match self.transfer.propagate(more) {
            Some(before) => {
                self.marks.set(Marks::DEAD, false);
                before
            }
            None => more,
        }
    }

    /// Replaces the instruction by a rewrite.
    pub(super) fn rewrite(&mut self, rewrite: Rewrite, rewrites: &mut Vec<Rewrite>) {
        self.link = rewrites.len() as u32;
        self.transfer = rewrite.transfer();
        self.marks.set(Marks::REWRITTEN, true);
        rewrites.push(rewrite);
    }

    /// The rewrite that replaces the instruction.
    pub(super) fn rewritten(&self, rewrites: &[Rewrite]) -> Option<Rewrite> {
        self.is_rewritten().then(|| rewrites[self.link as usize])
    }

    /// True if it may jump or does not fall through.
    pub(super) fn leaves(&self) -> bool {
        self.marks.overlap(Marks::LEAVES)
    }

    /// True if it does not fall through.
    pub(super) fn stops(&self) -> bool {
        self.marks.overlap(Marks::STOPS)
    }

    /// True if the instruction is translated unchanged and its only predecessor is the slot
    /// before it.
    pub(crate) fn is_plain(&self) -> bool {
        const OTHERWISE: Marks = Marks::TARGET
            .union(Marks::DEAD)
            .union(Marks::REWRITTEN)
            .union(Marks::TREE_ROOT);
        !self.marks.overlap(OTHERWISE)
    }

    /// True if the instruction is translated unchanged, without a label or a loop check.
    pub(crate) fn is_unmarked(&self) -> bool {
        const MARKED: Marks = Marks(!Marks::SELECTION.union(Marks::LEAVES).0);
        !self.marks.overlap(MARKED)
    }

    /// True if the instruction is translated unchanged, whether or not it is a jump target
    /// or loop header.
    pub(crate) fn is_only_entered(&self) -> bool {
        const ENTERED: Marks = Marks::TARGET.union(Marks::LOOP);
        const KNOWN: Marks = ENTERED.union(Marks::SELECTION).union(Marks::LEAVES);
        !self.marks.overlap(Marks(!KNOWN.0))
    }

    /// True if the slot is the target of a call or of a jump that is not a selection.
    pub(crate) fn is_target(&self) -> bool {
        self.marks.overlap(Marks::TARGET)
    }

    /// True if the slot is a loop header: the target of a back edge.
    pub(crate) fn is_loop(&self) -> bool {
        self.marks.overlap(Marks::LOOP)
    }

    /// True if the slot is a branch over a single move that becomes a conditional move.
    pub(crate) fn is_selection(&self) -> bool {
        self.marks.overlap(Marks::SELECTION)
    }

    /// True if the result of the instruction is dead.
    pub(crate) fn is_dead(&self) -> bool {
        self.marks.overlap(Marks::DEAD)
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

    /// Live-in set.
    pub(crate) fn live_in(&self) -> Halves {
        self.transfer
            .propagate(self.live_out)
            .unwrap_or(self.live_out)
    }

    /// True if the instruction reads either half of the register.
    pub(crate) fn reads(&self, reg: Reg) -> bool {
        self.transfer.uses(reg)
    }

    /// The register halves that the instruction writes.
    pub(crate) fn written(&self) -> Halves {
        self.transfer.written()
    }

    /// True if the instruction writes the register.
    pub(crate) fn writes(&self, reg: Reg) -> bool {
        self.transfer.writes(reg)
    }

    /// True if the instruction is a conditional branch: it has a target and falls through.
    pub(crate) fn branches(&self) -> bool {
        self.marks.0 & Marks::LEAVES.0 == Marks::JUMPS.0
    }

    /// Jump target.
    pub(crate) fn jump(&self) -> Option<usize> {
        self.marks
            .overlap(Marks::JUMPS)
            .then_some(self.link as usize)
    }
}
