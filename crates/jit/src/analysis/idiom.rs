//! Rewrites of several instructions that BPF compilers emit for one operation.
//!
//! Rotations: two shifts of one value by constants that an `or` joins. For each operation
//! that may join them the shifts are searched backward in straight-line code, and the value
//! that they shift is followed through copies to its definition.
//!
//! A rewrite needs no further register. If a register still holds the whole value, the
//! rotation reads it, and the shifts are dead where nothing else reads them. If the value
//! was shifted in place, that shift is left out, provided that nothing else reads its
//! result, so that the register still holds the value at the rotation.
//!
//! Common header lengths of packet filters are in `header_length.rs`.
//!
//! Cost: linear: a search looks at no more than [`REACH`] instructions.

mod header_length;

pub(super) use header_length::find as find_header_lengths;

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};

use super::transfer::{Halves, Transfer};
use super::{Fact, liveness};

/// How many instructions back a search goes.
const REACH: usize = 24;

/// Another way to do an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// Not at all: what it makes is only live as part of a later rewrite.
    Skip,
    /// `dst` is `src` rotated left; a rotation of the low half zeroes the upper
    /// one.
    Rotate {
        width: Width,
        dst: Reg,
        src: Reg,
        left: u8,
    },
    /// `dst` is the low half of `src`.
    Copy { dst: Reg, src: Reg },
}

impl Rewrite {
    /// What it reads and writes.
    pub(super) fn transfer(self) -> Transfer {
        match self {
            Rewrite::Skip => Transfer::pure(Halves::NONE, Halves::NONE),
            Rewrite::Copy { dst, src } => Transfer::pure(Halves::low(src), Halves::both(dst)),
            Rewrite::Rotate {
                width, dst, src, ..
            } => {
                let reads = Halves::operand(Operand::Reg(src), width);
                Transfer::pure(reads, Halves::both(dst))
            }
        }
    }
}

/// A shift by a constant, not zero.
#[derive(Clone, Copy)]
struct Shift {
    slot: usize,
    reg: Reg,
    width: Width,
    left: bool,
    count: i32,
}

/// What a register holds just before a slot.
#[derive(Clone, Copy)]
struct Holding {
    slot: usize,
    reg: Reg,
}

/// The last operation looked at that may join two shifts to a rotation, in a pass
/// backward, for as long as it may. Nearly all that join two registers are told apart
/// from those that join shifts without a search of their own. Only arithmetic and
/// loads are looked at: what else writes a register only keeps a slot in question.
#[derive(Default)]
pub(super) struct Sought {
    slot: u32,
    /// Registers whose last write before it has not been met.
    regs: Halves,
}

impl Sought {
    /// Whether an operation on two registers may join two shifts.
    #[inline(always)]
    pub(super) fn may_join(op: AluOp) -> bool {
        /// Bit `n`: operation `n` may.
        const JOINS: u16 = 1 << AluOp::Or as u16 | 1 << AluOp::Xor as u16 | 1 << AluOp::Add as u16;
        JOINS >> op as u16 & 1 != 0
    }

    /// Takes such an operation, once it was taken as one that writes a register. Where
    /// a rotation may end that no more will be known of, if there is such a slot.
    #[inline(always)]
    pub(super) fn join(&mut self, slot: usize, transfer: Transfer) -> Option<u32> {
        let end = (self.regs != Halves::NONE).then_some(self.slot);
        self.slot = slot as u32;
        self.regs = transfer.read();
        end
    }

    /// Takes an operation on a register and a constant, most of which have nothing to
    /// do with what is sought. Where a rotation may end, if it is the last one missing.
    #[inline(always)]
    pub(super) fn shift_or_forget(&mut self, op: AluOp, transfer: Transfer) -> Option<u32> {
        if !self.regs.overlaps(transfer.effects()) {
            return None;
        }
        if !matches!(op, AluOp::Lsh | AluOp::Rsh) {
            self.regs = Halves::NONE;
            return None;
        }
        self.regs = self.regs.without(transfer.written());
        (self.regs == Halves::NONE).then_some(self.slot)
    }

    /// Takes another instruction that writes a register.
    #[inline(always)]
    pub(super) fn forget(&mut self, transfer: Transfer) {
        if self.regs.overlaps(transfer.effects()) {
            self.regs = Halves::NONE;
        }
    }
}

struct Finder<'a> {
    insns: &'a [Insn],
    facts: &'a mut [Fact],
    rewrites: &'a mut Vec<Rewrite>,
}

/// Finds rotations that end at one of these slots; notes them in `facts`, with
/// transfers of their own, and what is live then. Says whether that is not known and
/// all of it has to be carried again.
pub(super) fn find_rotations(
    insns: &[Insn],
    slots: impl ExactSizeIterator<Item = usize>,
    facts: &mut [Fact],
    rewrites: &mut Vec<Rewrite>,
) -> bool {
    let mut needs_propagation = false;
    rewrites.reserve(2 * slots.len());
    let mut finder = Finder {
        insns,
        facts,
        rewrites,
    };
    for slot in slots {
        if let Insn::Alu {
            op: AluOp::Or | AluOp::Xor | AluOp::Add,
            width,
            dst,
            src: Operand::Reg(src),
        } = insns[slot]
            && let Some(first) = finder.rotate(slot, width, dst, src)
        {
            needs_propagation |= !liveness::propagate_change(first, slot, finder.facts);
        }
    }
    needs_propagation
}

impl Finder<'_> {
    /// Whether an operation joins two shifts, of the register that it writes and of
    /// another, to a rotation; then it becomes one. The first slot that is changed.
    fn rotate(&mut self, slot: usize, width: Width, dst: Reg, src: Reg) -> Option<usize> {
        let a = self.shift_before(slot, dst)?;
        let b = self.shift_before(slot, src)?;
        let bits = match a.width {
            Width::W32 => 32,
            Width::W64 => 64,
        };
        // Halves shifted as such have nothing above them to join.
        let joins = a.left != b.left
            && a.width == b.width
            && (a.width == width || width == Width::W64)
            && a.count + b.count == bits;
        if !joins {
            return None;
        }
        let value = self.original(a);
        let other = self.original(b);
        let (first, last) = (value.slot.min(other.slot), value.slot.max(other.slot));
        if value.reg != other.reg || !self.keeps(first, last, value.reg) {
            return None;
        }
        let (from, changed) = if self.keeps(first, slot, value.reg) {
            (value.reg, slot)
        } else if self.is_unread(a, slot) {
            // Only `dst` held it, until it was shifted there.
            self.rewrite(a.slot, Rewrite::Skip);
            (dst, a.slot)
        } else {
            return None;
        };
        let left = if a.left { a.count } else { b.count };
        self.rewrite(
            slot,
            Rewrite::Rotate {
                width: a.width,
                dst,
                src: from,
                left: left as u8,
            },
        );
        Some(changed)
    }

    /// The last slot before this one that writes the register, if it surely does, and
    /// straight-line code leads from there.
    fn write_before(&self, slot: usize, reg: Reg) -> Option<usize> {
        let mut entered = self.facts[slot].is_target();
        for (steps, fact) in self.facts[..slot].iter().rev().take(REACH).enumerate() {
            if entered {
                break;
            }
            if fact.writes(reg) {
                let at = slot - 1 - steps;
                return (!self.is_chosen(at)).then_some(at);
            }
            entered = fact.is_target();
        }
        None
    }

    /// Whether the slot is the move of a selection, which may not be done.
    fn is_chosen(&self, at: usize) -> bool {
        at > 0 && self.facts[at - 1].is_selection()
    }

    /// The shift that last wrote the register before a slot, if it is done in any case
    /// and as it is written.
    fn shift_before(&self, slot: usize, reg: Reg) -> Option<Shift> {
        let at = self.write_before(slot, reg)?;
        let Insn::Alu {
            op: op @ (AluOp::Lsh | AluOp::Rsh),
            width,
            src: Operand::Imm(count),
            ..
        } = self.insns[at]
        else {
            return None;
        };
        let most = match width {
            Width::W32 => 31,
            Width::W64 => 63,
        };
        let plain = (1..=most).contains(&count) && !self.facts[at].is_rewritten();
        plain.then_some(Shift {
            slot: at,
            reg,
            width,
            left: op == AluOp::Lsh,
            count,
        })
    }

    /// What is shifted, followed back through copies.
    fn original(&self, shift: Shift) -> Holding {
        let (mut slot, mut reg) = (shift.slot, shift.reg);
        while let Some(at) = self.write_before(slot, reg) {
            match self.insns[at] {
                Insn::Alu {
                    op: AluOp::Mov,
                    width,
                    src: Operand::Reg(src),
                    ..
                } if width == shift.width || width == Width::W64 => (slot, reg) = (at, src),
                _ => break,
            }
        }
        Holding { slot, reg }
    }

    /// Whether the register holds the same before both slots, and straight-line
    /// code leads from one to the other.
    fn keeps(&self, from: usize, to: usize, reg: Reg) -> bool {
        (from..to).all(|at| !self.facts[at + 1].is_target() && !self.facts[at].transfer.writes(reg))
    }

    /// Whether nothing needs the result of the shift before a slot: no instruction
    /// reads it, and none leads elsewhere.
    fn is_unread(&self, shift: Shift, slot: usize) -> bool {
        (shift.slot + 1..slot)
            .all(|at| !self.facts[at].transfer.uses(shift.reg) && !self.facts[at].branches())
    }

    fn rewrite(&mut self, slot: usize, rewrite: Rewrite) {
        self.facts[slot].rewrite(rewrite, self.rewrites);
    }
}
