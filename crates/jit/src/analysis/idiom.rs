//! What compilers write in several instructions because BPF has no single one.
//!
//! Two shifts of one value by constants that meet again in an `or` are a
//! rotation. Wherever two registers are joined, the shifts are looked for
//! backward, in straight-line code, and the value that they shift is followed
//! through copies to where it was made.
//!
//! A rewrite never needs a register that the program did not give it. Often the
//! whole value is still in one, and is rotated from there; the shifts are left out
//! as dead where nothing else reads them. Where it was shifted in place, that
//! shift is left out, if nothing else reads its result, so that the register still
//! holds the whole value when the rotation is made in it.
//!
//! Capture filters compute the length of a header again and again
//! (`header_length.rs`). Counts of bits are sought once it is known what is wanted (`count.rs`).
//!
//! Cost: linear: each search looks at no more than [`REACH`] instructions.

mod constants;
mod count;
mod header_length;

pub(super) use count::find as find_counts;
pub(crate) use count::{Count, Counts};
pub(super) use header_length::find as find_header_lengths;

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};

use super::Fact;
use super::transfer::{Halves, Transfer};

/// How many instructions back a search goes.
const REACH: usize = 24;

/// Another way to do an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// Not at all: what it makes is only wanted as part of a later rewrite.
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
    /// `dst` is a count of bits of `src`, or of its low half.
    Count {
        what: Count,
        width: Width,
        dst: Reg,
        src: Reg,
    },
    /// As it is written, once the two registers have changed places.
    Exchange { dst: Reg, src: Reg },
    /// `dst` is `src`, which it is once they have changed places again. If `src` is
    /// wanted still, it is copied; `late`, where the loop is left.
    Exchanged {
        width: Width,
        dst: Reg,
        src: Reg,
        late: bool,
    },
}

impl Rewrite {
    /// What it reads and writes, if that is not what the instruction does.
    pub(super) fn transfer(self) -> Option<Transfer> {
        Some(match self {
            Rewrite::Exchange { .. } | Rewrite::Exchanged { .. } => return None,
            Rewrite::Skip => Transfer::pure(Halves::NONE, Halves::NONE),
            Rewrite::Copy { dst, src } => Transfer::pure(Halves::low(src), Halves::both(dst)),
            Rewrite::Rotate {
                width, dst, src, ..
            }
            | Rewrite::Count {
                width, dst, src, ..
            } => {
                let reads = Halves::operand(Operand::Reg(src), width);
                Transfer::pure(reads, Halves::both(dst))
            }
        })
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

/// A slot that joins two registers that were both shifted last, one to the left and
/// one to the right.
struct Meeting {
    slot: u32,
    /// Where its `dst` and its `src` were shifted.
    shifts: [u32; 2],
}

/// Where idioms may end.
#[derive(Default)]
pub(super) struct Candidates {
    /// Rotations.
    meetings: Vec<Meeting>,
    /// Counts: the last byte of a number is shifted down, and there was a
    /// multiplication.
    sums: Vec<usize>,
    multiplies: bool,
    /// Header lengths: a byte of the packet is loaded.
    pub(super) byte_loads: Vec<usize>,
    /// Registers whose last write was a shift: to the left in low halves, to the
    /// right in upper ones.
    shifted: Halves,
    /// Where registers were shifted that are in `shifted`; with more places than
    /// registers.
    shifts: [u32; 16],
}

impl Candidates {
    /// Takes the next instruction, which is arithmetic.
    #[inline(always)]
    pub(super) fn visit_alu(&mut self, slot: usize, op: AluOp, dst: Reg, src: Operand) {
        const MATTERS: u32 = 1 << AluOp::Lsh as u32
            | 1 << AluOp::Rsh as u32
            | 1 << AluOp::Or as u32
            | 1 << AluOp::Xor as u32
            | 1 << AluOp::Add as u32
            | 1 << AluOp::Mul as u32;
        let before = self.shifted;
        self.forget(Halves::both(dst));
        if MATTERS >> op as u32 & 1 == 0 {
            return;
        }
        match (op, src) {
            (AluOp::Lsh, Operand::Imm(_)) => self.note_shift(slot, dst, Halves::low(dst)),
            (AluOp::Rsh, Operand::Imm(count)) => {
                self.note_shift(slot, dst, Halves::upper(dst));
                if self.multiplies && matches!(count, 24 | 56) {
                    self.sums.push(slot);
                }
            }
            (AluOp::Or | AluOp::Xor | AluOp::Add, Operand::Reg(src)) if before.has(src) => {
                let meet = |left, right| before.has_low(left) && before.has_upper(right);
                if meet(dst, src) || meet(src, dst) {
                    let shifts = [dst, src].map(|reg| self.shifts[reg.index() & 15]);
                    let slot = slot as u32;
                    self.meetings.push(Meeting { slot, shifts });
                }
            }
            (AluOp::Mul, _) => self.multiplies = true,
            _ => {}
        }
    }

    #[inline(always)]
    fn note_shift(&mut self, slot: usize, reg: Reg, half: Halves) {
        self.shifted = self.shifted.and(half);
        self.shifts[reg.index() & 15] = slot as u32;
    }

    /// Takes the next instruction, which writes this and is no arithmetic.
    #[inline(always)]
    pub(super) fn forget(&mut self, written: Halves) {
        self.shifted = self.shifted.without(written);
    }
}

struct Finder<'a> {
    insns: &'a [Insn],
    facts: &'a mut [Fact],
    rewrites: Vec<Rewrite>,
}

/// Finds rewrites; notes them in `facts`, with transfers of their own.
pub(super) fn find(insns: &[Insn], candidates: &Candidates, facts: &mut [Fact]) -> Vec<Rewrite> {
    let mut finder = Finder {
        insns,
        facts,
        rewrites: Vec::with_capacity(2 * candidates.meetings.len()),
    };
    for meeting in &candidates.meetings {
        let slot = meeting.slot as usize;
        if let Insn::Alu {
            width,
            dst,
            src: Operand::Reg(src),
            ..
        } = insns[slot]
        {
            let [a, b] = meeting.shifts;
            let shifts = [(a as usize, dst), (b as usize, src)];
            finder.rotate(slot, width, shifts);
        }
    }
    finder.rewrites
}

impl Finder<'_> {
    /// Whether an operation joins two shifts, of the register that it writes and of
    /// another, to a rotation; then it becomes one.
    fn rotate(&mut self, slot: usize, width: Width, shifts: [(usize, Reg); 2]) -> Option<()> {
        let dst = shifts[0].1;
        let first = shifts[0].0.min(shifts[1].0);
        let joined = first + 1..slot + 1;
        if slot - first > REACH || self.facts[joined].iter().any(Fact::is_target) {
            return None;
        }
        let [a, b] = shifts.map(|(at, reg)| self.shift_at(at, reg));
        let (a, b) = (a?, b?);
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
        let from = if self.keeps(first, slot, value.reg) {
            value.reg
        } else if self.is_unread(a, slot) {
            // Only `dst` held it, until it was shifted there.
            self.rewrite(a.slot, Rewrite::Skip);
            dst
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
        Some(())
    }

    /// The slots before this one in straight-line code, the nearest first.
    fn before(&self, slot: usize) -> impl Iterator<Item = usize> {
        let facts = &*self.facts;
        (slot.saturating_sub(REACH)..slot)
            .rev()
            .take_while(move |&at| !facts[at + 1].is_target())
    }

    /// The last slot before this one that writes the register, if it surely does.
    fn write_before(&self, slot: usize, reg: Reg) -> Option<usize> {
        let at = self
            .before(slot)
            .find(|&at| self.facts[at].transfer.writes(reg))?;
        (!self.is_chosen(at)).then_some(at)
    }

    /// Whether the slot is the move of a selection, which may not be done.
    fn is_chosen(&self, at: usize) -> bool {
        at > 0 && self.facts[at - 1].is_selection()
    }

    /// The shift at a slot, if it is done in any case and as it is written.
    fn shift_at(&self, at: usize, reg: Reg) -> Option<Shift> {
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
        (plain && !self.is_chosen(at)).then_some(Shift {
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
        self.facts[slot].rewrite(rewrite, &mut self.rewrites);
    }
}
