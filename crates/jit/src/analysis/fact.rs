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
    pub(super) const LOOK_UP: Marks = Marks(32);
    pub(super) const ABSORBED: Marks = Marks(64);
    /// It may jump.
    pub(super) const JUMPS: Marks = Marks(128);
    /// It does not fall through.
    pub(super) const STOPS: Marks = Marks(256);
    /// It may jump or does not fall through.
    pub(super) const LEAVES: Marks = Marks::JUMPS.union(Marks::STOPS);

    pub(super) const fn union(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    pub(super) const fn overlap(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    #[inline(always)]
    pub(super) fn set(&mut self, mark: Marks, holds: bool) {
        self.0 = self.0 & !mark.0 | if holds { mark.0 } else { 0 };
    }
}

/// The result of the analysis for one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(super) transfer: Transfer,
    /// Its live-out set.
    pub(crate) after: Halves,
    /// The target of a jump; of a rewritten slot, the position in
    /// [`Analysis::rewrites`].
    link: u32,
    pub(super) marks: Marks,
}

impl Fact {
    /// The fact of a slot before the scan.
    pub(super) const NONE: Fact = Fact {
        transfer: Transfer::pure(Halves::NONE, Halves::NONE),
        after: Halves::NONE,
        link: 0,
        marks: Marks::NONE,
    };

    /// Records an instruction that falls through and its live-out set; returns its
    /// live-in set.
    #[inline(always)]
    pub(super) fn note(&mut self, transfer: Transfer, after: Halves) -> Halves {
        self.transfer = transfer;
        self.after = after;
        let before = transfer.propagate(after);
        self.marks = match before {
            Some(_) => Marks::NONE,
            None => Marks::DEAD,
        };
        before.unwrap_or(after)
    }

    /// Records the control flow of an instruction.
    #[inline(always)]
    pub(super) fn leave(&mut self, marks: Marks, target: usize) {
        self.marks = marks;
        self.link = target as u32;
    }

    /// Records the rest of such an instruction, which is never dead.
    #[inline(always)]
    pub(super) fn note_leaving(&mut self, transfer: Transfer, after: Halves) -> Halves {
        self.transfer = transfer;
        self.after = after;
        transfer.propagate(after).unwrap_or(after)
    }

    /// Adds properties.
    #[inline(always)]
    pub(super) fn mark(&mut self, marks: Marks) {
        self.marks = self.marks.union(marks);
    }

    /// Sets the live-out set; returns the live-in set.
    #[inline(always)]
    pub(super) fn set_live_out(&mut self, after: Halves) -> Halves {
        self.after = after;
        let before = self.transfer.propagate(after);
        self.marks.set(Marks::DEAD, before.is_none());
        before.unwrap_or(after)
    }

    /// Adds to the live-out set; returns a superset of what that adds to the live-in set.
    #[inline(always)]
    pub(super) fn add_live_out(&mut self, more: Halves) -> Halves {
        self.after = self.after.union(more);
        match self.transfer.propagate(more) {
            Some(before) => {
                self.marks.set(Marks::DEAD, false);
                before
            }
            None => more,
        }
    }

    /// Replaces the instruction.
    pub(super) fn rewrite(&mut self, rewrite: Rewrite, rewrites: &mut Vec<Rewrite>) {
        self.link = rewrites.len() as u32;
        self.transfer = rewrite.transfer();
        self.marks.set(Marks::REWRITTEN, true);
        rewrites.push(rewrite);
    }

    /// The replacement of the instruction, if it has one.
    pub(super) fn rewritten(&self, rewrites: &[Rewrite]) -> Option<Rewrite> {
        self.is_rewritten().then(|| rewrites[self.link as usize])
    }

    /// True if it may jump or does not fall through.
    #[inline(always)]
    pub(super) fn leaves(&self) -> bool {
        self.marks.overlap(Marks::LEAVES)
    }

    /// True if it does not fall through.
    #[inline(always)]
    pub(super) fn stops(&self) -> bool {
        self.marks.overlap(Marks::STOPS)
    }

    /// True if it is translated as it stands, and only reached from the slot before it.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        const OTHERWISE: Marks = Marks::TARGET
            .union(Marks::DEAD)
            .union(Marks::REWRITTEN)
            .union(Marks::LOOK_UP);
        !self.marks.overlap(OTHERWISE)
    }

    /// True if it is translated as it stands and nothing needs to precede it.
    #[inline(always)]
    pub(crate) fn is_unmarked(&self) -> bool {
        const MARKED: Marks = Marks(!Marks::SELECTION.union(Marks::LEAVES).0);
        !self.marks.overlap(MARKED)
    }

    /// True if it is translated as it stands, perhaps as a jump target or loop header.
    #[inline(always)]
    pub(crate) fn is_only_entered(&self) -> bool {
        const ENTERED: Marks = Marks::TARGET.union(Marks::LOOP);
        const KNOWN: Marks = ENTERED.union(Marks::SELECTION).union(Marks::LEAVES);
        !self.marks.overlap(Marks(!KNOWN.0))
    }

    /// True if a jump other than a selection, or a call, leads here.
    #[inline(always)]
    pub(crate) fn is_target(&self) -> bool {
        self.marks.overlap(Marks::TARGET)
    }

    /// True if a back edge leads here.
    pub(crate) fn is_loop(&self) -> bool {
        self.marks.overlap(Marks::LOOP)
    }

    /// True if it is a branch over a single move that becomes a conditional move.
    pub(crate) fn is_selection(&self) -> bool {
        self.marks.overlap(Marks::SELECTION)
    }

    /// True if its result is dead.
    #[inline(always)]
    pub(crate) fn is_dead(&self) -> bool {
        self.marks.overlap(Marks::DEAD)
    }

    /// True if it is replaced by a [`Rewrite`].
    pub(crate) fn is_rewritten(&self) -> bool {
        self.marks.overlap(Marks::REWRITTEN)
    }

    /// True if a comparison tree that becomes a lookup starts here.
    pub(crate) fn is_look_up(&self) -> bool {
        self.marks.overlap(Marks::LOOK_UP)
    }

    /// True if this comparison is subsumed by a dominating lookup.
    pub(crate) fn is_absorbed(&self) -> bool {
        self.marks.overlap(Marks::ABSORBED)
    }

    /// Its live-in set.
    #[inline(always)]
    pub(crate) fn before(&self) -> Halves {
        self.transfer.propagate(self.after).unwrap_or(self.after)
    }

    /// True if it reads any part of the register.
    #[inline(always)]
    pub(crate) fn reads(&self, reg: Reg) -> bool {
        self.transfer.uses(reg)
    }

    /// The register halves that it writes.
    pub(crate) fn written(&self) -> Halves {
        self.transfer.written()
    }

    /// True if it writes the register.
    #[inline(always)]
    pub(crate) fn writes(&self, reg: Reg) -> bool {
        self.transfer.writes(reg)
    }

    /// True if it may jump and may fall through.
    pub(crate) fn branches(&self) -> bool {
        self.marks.0 & Marks::LEAVES.0 == Marks::JUMPS.0
    }

    /// Its jump target.
    #[inline(always)]
    pub(crate) fn jump(&self) -> Option<usize> {
        self.marks
            .overlap(Marks::JUMPS)
            .then_some(self.link as usize)
    }
}
