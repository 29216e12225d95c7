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
//! Cost: linear: a search looks at no more than [`REACH`] instructions.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};
use lower::flow::{DefUse, Halves, Transfer};

use super::SlotInfo;

/// Number of instructions that a backward search visits at most.
const REACH: usize = 24;

/// Replacement of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// No code: the result is only used by instructions that are rewritten too.
    Skip,
    /// `dst` = `src` rotated left by a constant; the 32-bit form zeroes the upper half.
    Rotate {
        width: Width,
        dst: Reg,
        src: Reg,
        left: u8,
    },
}

impl Rewrite {
    /// Transfer function of the replacement.
    pub(super) fn transfer(self) -> Transfer {
        match self {
            Rewrite::Skip => Transfer::pure(Halves::NONE, Halves::NONE),
            Rewrite::Rotate {
                width, dst, src, ..
            } => {
                let reads = match width {
                    Width::W32 => Halves::low(src),
                    Width::W64 => Halves::both(src),
                };
                Transfer::pure(reads, Halves::both(dst))
            }
        }
    }
}

/// A shift by a nonzero constant.
#[derive(Clone, Copy)]
struct Shift {
    slot: usize,
    reg: Reg,
    width: Width,
    left: bool,
    count: i32,
}

/// The value of a register before a slot.
#[derive(Clone, Copy)]
struct ValueAt {
    slot: usize,
    reg: Reg,
}

struct Finder<'a> {
    insns: &'a [Insn],
    infos: &'a mut [SlotInfo],
    rewrites: &'a mut Vec<Rewrite>,
}

/// Rewrites the rotations that end at one of these slots and propagates the change of
/// liveness. True if some change was not propagated to its end, so that liveness must be
/// computed again.
pub(super) fn find_rotations(
    insns: &[Insn],
    slots: impl Iterator<Item = usize>,
    def_use: &DefUse,
    infos: &mut [SlotInfo],
    rewrites: &mut Vec<Rewrite>,
) -> bool {
    let mut needs_propagation = false;
    let mut finder = Finder {
        insns,
        infos,
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
            needs_propagation |= !def_use.propagate_change(first, slot, finder.infos);
        }
    }
    needs_propagation
}

impl Finder<'_> {
    /// Rewrites an operation to a rotation if it combines a left and a right shift of one
    /// value; returns the first slot that changed.
    fn rotate(&mut self, slot: usize, width: Width, dst: Reg, src: Reg) -> Option<usize> {
        let a = self.shift_before(slot, dst)?;
        let b = self.shift_before(slot, src)?;
        let bits = match a.width {
            Width::W32 => 32,
            Width::W64 => 64,
        };
        // A 32-bit shift clears the upper half, so its result can be combined on 64 bits.
        let joins = a.left != b.left
            && a.width == b.width
            && (a.width == width || width == Width::W64)
            && a.count + b.count == bits;
        if !joins {
            return None;
        }
        let value = self.shifted_value(a);
        let other = self.shifted_value(b);
        let (first, last) = (value.slot.min(other.slot), value.slot.max(other.slot));
        if value.reg != other.reg || !self.is_unchanged(first, last, value.reg) {
            return None;
        }
        let (from, changed) = if self.is_unchanged(first, slot, value.reg) {
            (value.reg, slot)
        } else if self.is_unread(a, slot) {
            // `dst` is the only register that held the value, and it was shifted in place.
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

    /// The definition of the register that reaches this slot, if it lies in the same basic
    /// block and is unconditional.
    fn write_before(&self, slot: usize, reg: Reg) -> Option<usize> {
        let mut entered = self.infos[slot].is_target();
        for (steps, info) in self.infos[..slot].iter().rev().take(REACH).enumerate() {
            if entered {
                break;
            }
            if info.writes(reg) {
                let at = slot - 1 - steps;
                return (!self.is_conditional_move(at)).then_some(at);
            }
            entered = info.is_target();
        }
        None
    }

    /// True if the slot is the move of a selection, which is conditional.
    fn is_conditional_move(&self, at: usize) -> bool {
        at > 0 && self.infos[at - 1].is_selection()
    }

    /// The shift that defines the register before a slot, if it is unconditional and not
    /// rewritten.
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
        let plain = (1..=most).contains(&count) && !self.infos[at].is_rewritten();
        plain.then_some(Shift {
            slot: at,
            reg,
            width,
            left: op == AluOp::Lsh,
            count,
        })
    }

    /// The value that is shifted, followed back through copies.
    fn shifted_value(&self, shift: Shift) -> ValueAt {
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
        ValueAt { slot, reg }
    }

    /// True if both slots are in one basic block and no slot between them writes the
    /// register.
    fn is_unchanged(&self, from: usize, to: usize, reg: Reg) -> bool {
        (from..to).all(|at| !self.infos[at + 1].is_target() && !self.infos[at].writes(reg))
    }

    /// True if the result of the shift is dead before a slot: no instruction between them
    /// reads it or branches.
    fn is_unread(&self, shift: Shift, slot: usize) -> bool {
        (shift.slot + 1..slot)
            .all(|at| !self.infos[at].reads(shift.reg) && !self.infos[at].branches())
    }

    fn rewrite(&mut self, slot: usize, rewrite: Rewrite) {
        self.infos[slot].rewrite(rewrite, self.rewrites);
    }
}
