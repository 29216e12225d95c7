//! Def-use node of one slot: definitions, uses, the live-out set and the edges.

use isa::ebpf::{Flow, Insn, Reg};

use super::transfer::{Halves, Transfer};

/// A set of properties of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks(u8);

impl Marks {
    const NONE: Marks = Marks(0);
    /// Is the first slot of a function or the target of a jump.
    const TARGET: Marks = Marks(1);
    /// Is the target of a back edge.
    const LOOP: Marks = Marks(2);
    /// Has a jump target.
    const JUMPS: Marks = Marks(4);
    /// Does not fall through to the next slot.
    const STOPS: Marks = Marks(8);
    /// Has a jump target or does not fall through.
    const LEAVES: Marks = Marks::JUMPS.union(Marks::STOPS);

    const fn union(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    const fn overlap(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }
}

/// Definitions, uses and control flow of one slot.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    transfer: Transfer,
    /// Live-out set.
    pub live_out: Halves,
    /// Jump target.
    target: u32,
    marks: Marks,
}

impl Node {
    /// The node of a slot before the analysis.
    pub(super) const NONE: Node = Node {
        transfer: Transfer::pure(Halves::NONE, Halves::NONE),
        live_out: Halves::NONE,
        target: 0,
        marks: Marks::NONE,
    };

    /// The node of an instruction of a program whose jumps lead to slots; its live-out set is not
    /// known yet.
    #[inline]
    pub(super) fn new(insn: &Insn, slot: usize, transfer: Transfer) -> Node {
        let (marks, distance) = match insn.flow() {
            Flow::Branch(distance) => (Marks::JUMPS, distance),
            Flow::Goto(distance) => (Marks::LEAVES, distance),
            Flow::Exit => (Marks::STOPS, 0),
            Flow::Next | Flow::SkipOne | Flow::Call(_) | Flow::GotoReg(_) | Flow::Nowhere => {
                (Marks::NONE, 0)
            }
        };
        let target = (slot as u32).wrapping_add(1).wrapping_add_signed(distance);
        Node {
            transfer,
            live_out: Halves::NONE,
            target,
            marks,
        }
    }

    /// Marks the target of a jump, which is that of a back edge or not.
    #[inline]
    pub(super) fn mark_target(&mut self, is_loop: bool) {
        self.marks = self.marks.union(match is_loop {
            true => Marks::TARGET.union(Marks::LOOP),
            false => Marks::TARGET,
        });
    }

    /// Moves the target of a jump to its new place.
    pub(super) fn move_target(&mut self, places: &[u32]) {
        self.target = places[self.target as usize];
    }

    /// Replaces the definitions and uses by those of another instruction without control flow.
    #[inline]
    pub fn replace(&mut self, transfer: Transfer) {
        self.transfer = transfer;
    }

    /// Sets the live-out set; returns the live-in set.
    #[inline]
    pub(super) fn set_live_out(&mut self, live_out: Halves) -> Halves {
        self.live_out = live_out;
        self.live_in()
    }

    /// Adds to the live-out set; returns a superset of what that adds to the live-in set.
    #[inline]
    pub(super) fn add_live_out(&mut self, more: Halves) -> Halves {
        self.live_out = self.live_out.union(more);
        self.transfer.propagate(more).unwrap_or(more)
    }

    /// Live-in set.
    #[inline]
    pub fn live_in(&self) -> Halves {
        self.transfer
            .propagate(self.live_out)
            .unwrap_or(self.live_out)
    }

    /// True if nothing uses what the instruction makes: it has no effect but results that are
    /// not live.
    #[inline]
    pub fn is_dead(&self) -> bool {
        !self.live_out.overlaps(self.transfer.effects())
    }

    /// Definitions and uses.
    #[inline]
    pub fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// True if the instruction reads either half of the register.
    #[inline]
    pub fn reads(&self, reg: Reg) -> bool {
        self.transfer.uses(reg)
    }

    /// The register halves that the instruction writes.
    #[inline]
    pub fn written(&self) -> Halves {
        self.transfer.written()
    }

    /// True if the instruction writes the register.
    #[inline]
    pub fn writes(&self, reg: Reg) -> bool {
        self.transfer.writes(reg)
    }

    /// True if the slot is the first of a function or the target of a jump.
    #[inline]
    pub fn is_target(&self) -> bool {
        self.marks.overlap(Marks::TARGET)
    }

    /// True if the slot is a loop header: the target of a back edge.
    #[inline]
    pub fn is_loop(&self) -> bool {
        self.marks.overlap(Marks::LOOP)
    }

    /// True if it may jump or does not fall through.
    #[inline]
    pub fn leaves(&self) -> bool {
        self.marks.overlap(Marks::LEAVES)
    }

    /// True if it does not fall through.
    #[inline]
    pub fn stops(&self) -> bool {
        self.marks.overlap(Marks::STOPS)
    }

    /// True if the slot is a loop header or does not fall through.
    #[inline]
    pub(super) fn is_rare(&self) -> bool {
        self.marks.overlap(Marks::LOOP.union(Marks::STOPS))
    }

    /// True if the instruction is a conditional branch: it has a target and falls through.
    #[inline]
    pub fn branches(&self) -> bool {
        self.marks.0 & Marks::LEAVES.0 == Marks::JUMPS.0
    }

    /// Jump target.
    #[inline]
    pub fn jump(&self) -> Option<usize> {
        self.marks
            .overlap(Marks::JUMPS)
            .then_some(self.target as usize)
    }
}
