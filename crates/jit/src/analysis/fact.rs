//! The result of the analysis for one slot.

use isa::ebpf::Reg;

use super::Rewrite;
use super::transfer::{Halves, Transfer};

/// What makes a slot more than the next of its kind, as a set.
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
    /// Control may go where its jump leads.
    pub(super) const JUMPS: Marks = Marks(128);
    /// Control does not go on to the next slot.
    pub(super) const STOPS: Marks = Marks(256);
    /// Control may leave it for elsewhere than the next slot.
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

/// What is known of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    pub(super) transfer: Transfer,
    /// What is live after it.
    pub(crate) after: Halves,
    /// Where a jump leads; for what is done in another way, the position in
    /// [`Analysis::rewrites`].
    link: u32,
    pub(super) marks: Marks,
}

impl Fact {
    /// Of a slot that no instruction stands in.
    pub(super) const NONE: Fact = Fact {
        transfer: Transfer::pure(Halves::NONE, Halves::NONE),
        after: Halves::NONE,
        link: 0,
        marks: Marks::NONE,
    };

    /// Notes an instruction from which control goes to the next slot, and what is
    /// live after it; what then is before it.
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

    /// Notes how control goes on from an instruction, and nothing else.
    #[inline(always)]
    pub(super) fn leave(&mut self, marks: Marks, target: usize) {
        self.marks = marks;
        self.link = target as u32;
    }

    /// Notes the rest of such an instruction, which is done in any case.
    #[inline(always)]
    pub(super) fn note_leaving(&mut self, transfer: Transfer, after: Halves) -> Halves {
        self.transfer = transfer;
        self.after = after;
        transfer.propagate(after).unwrap_or(after)
    }

    /// Adds to what makes it more than the next of its kind.
    #[inline(always)]
    pub(super) fn mark(&mut self, marks: Marks) {
        self.marks = self.marks.union(marks);
    }

    /// Notes what is live after it; what then is before it.
    #[inline(always)]
    pub(super) fn set_live_out(&mut self, after: Halves) -> Halves {
        self.after = after;
        let before = self.transfer.propagate(after);
        self.marks.set(Marks::DEAD, before.is_none());
        before.unwrap_or(after)
    }

    /// Notes that this is live after it, too; what is before it that was not, and
    /// perhaps more that was.
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

    /// Notes that it is done in another way.
    pub(super) fn rewrite(&mut self, rewrite: Rewrite, rewrites: &mut Vec<Rewrite>) {
        self.link = rewrites.len() as u32;
        self.transfer = rewrite.transfer();
        self.marks.set(Marks::REWRITTEN, true);
        rewrites.push(rewrite);
    }

    /// Its way to be done, if that is another than it is written.
    pub(super) fn rewritten(&self, rewrites: &[Rewrite]) -> Option<Rewrite> {
        self.is_rewritten().then(|| rewrites[self.link as usize])
    }

    /// Whether control may leave it for elsewhere than the next slot.
    #[inline(always)]
    pub(super) fn leaves(&self) -> bool {
        self.marks.overlap(Marks::LEAVES)
    }

    /// Whether control does not go on to the next slot.
    #[inline(always)]
    pub(super) fn stops(&self) -> bool {
        self.marks.overlap(Marks::STOPS)
    }

    /// Whether it is written as it stands, for those only that come from the slot
    /// before it.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        const OTHERWISE: Marks = Marks::TARGET
            .union(Marks::DEAD)
            .union(Marks::REWRITTEN)
            .union(Marks::LOOK_UP);
        !self.marks.overlap(OTHERWISE)
    }

    /// Whether nothing is to be done before it is written as it stands.
    #[inline(always)]
    pub(crate) fn is_unmarked(&self) -> bool {
        const MARKED: Marks = Marks(!Marks::SELECTION.union(Marks::LEAVES).0);
        !self.marks.overlap(MARKED)
    }

    /// Whether nothing but what is done for those that jump here is to be done before
    /// it is written as it stands.
    #[inline(always)]
    pub(crate) fn is_only_entered(&self) -> bool {
        const ENTERED: Marks = Marks::TARGET.union(Marks::LOOP);
        const KNOWN: Marks = ENTERED.union(Marks::SELECTION).union(Marks::LEAVES);
        !self.marks.overlap(Marks(!KNOWN.0))
    }

    /// Whether a jump leads here, other than one that is a selection, or a call.
    #[inline(always)]
    pub(crate) fn is_target(&self) -> bool {
        self.marks.overlap(Marks::TARGET)
    }

    /// Whether a jump backward leads here.
    pub(crate) fn is_loop(&self) -> bool {
        self.marks.overlap(Marks::LOOP)
    }

    /// Whether it is a branch over a single move: the move is done or not, without
    /// a jump.
    pub(crate) fn is_selection(&self) -> bool {
        self.marks.overlap(Marks::SELECTION)
    }

    /// Whether its result is not live.
    #[inline(always)]
    pub(crate) fn is_dead(&self) -> bool {
        self.marks.overlap(Marks::DEAD)
    }

    /// Whether it is done otherwise than it is written.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.marks.overlap(Marks::REWRITTEN)
    }

    /// Whether a look-up that does for a tree of comparisons begins here.
    pub(crate) fn is_look_up(&self) -> bool {
        self.marks.overlap(Marks::LOOK_UP)
    }

    /// Whether a look-up before it does what it does whenever control gets here.
    pub(crate) fn is_absorbed(&self) -> bool {
        self.marks.overlap(Marks::ABSORBED)
    }

    /// What is live before it.
    #[inline(always)]
    pub(crate) fn before(&self) -> Halves {
        self.transfer.propagate(self.after).unwrap_or(self.after)
    }

    /// Whether it reads any part of the register.
    #[inline(always)]
    pub(crate) fn reads(&self, reg: Reg) -> bool {
        self.transfer.uses(reg)
    }

    /// What it writes.
    pub(crate) fn written(&self) -> Halves {
        self.transfer.written()
    }

    /// Whether it writes the register.
    #[inline(always)]
    pub(crate) fn writes(&self, reg: Reg) -> bool {
        self.transfer.writes(reg)
    }

    /// Whether control may leave it for elsewhere and for the next slot.
    pub(crate) fn branches(&self) -> bool {
        self.marks.0 & Marks::LEAVES.0 == Marks::JUMPS.0
    }

    /// Where it jumps, always or sometimes.
    #[inline(always)]
    pub(crate) fn jump(&self) -> Option<usize> {
        self.marks
            .overlap(Marks::JUMPS)
            .then_some(self.link as usize)
    }
}
