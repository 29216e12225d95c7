//! Arithmetic before selection: the width at which it is done, and what it forms with the
//! instructions behind it.
//!
//! 64-bit operations whose upper half is not live are narrowed to 32 bits.

use isa::ebpf::properties::Halves;
use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width};

use super::address::Between;
use super::generator::Generator;
use super::target::{Assembler, Target};
use crate::Optimization;
use crate::analysis::{Halves as LiveHalves, SlotInfo};
use AluOp::{Add, And, Arsh, Div, Lsh, Mod, Mov, Mul, Or, Rsh, SDiv, SMod, Sub, Xor};

/// Number of slots after a constant that are searched for a selection of the other
/// constant.
const FARTHEST_CHOICE: usize = 3;

/// Significant bits of a value.
pub(crate) const fn bits(value: u64) -> u8 {
    (64 - value.leading_zeros()) as u8
}

/// Width in bits.
pub(crate) const fn all(width: Width) -> u8 {
    match width {
        Width::W32 => 32,
        Width::W64 => 64,
    }
}

/// True if the low half of the 64-bit result is the result of the 32-bit operation.
const fn is_narrowable(op: AluOp, src: Operand) -> bool {
    let narrow_dst = match op.reads_of_dst() {
        Halves::Neither | Halves::Each => true,
        Halves::Low | Halves::Both => false,
    };
    let narrow_src = match op.reads_of_src() {
        Halves::Neither | Halves::Each => true,
        // A shift count, which the 32-bit operation takes modulo 32.
        Halves::Low => matches!(src, Operand::Imm(count) if count & 63 < 32),
        Halves::Both => false,
    };
    narrow_dst && narrow_src
}

/// An arithmetic instruction at the width that is live.
#[derive(Clone, Copy)]
pub(crate) struct Arithmetic {
    pub(crate) op: AluOp,
    pub(crate) width: Width,
    pub(crate) dst: Reg,
    pub(crate) src: Operand,
}

/// The effect of a left shift and a right shift back: the low bits are extended, and
/// shifted right by `by`.
#[derive(Clone, Copy)]
pub(crate) struct Extension {
    pub(crate) from: Size,
    /// Sign extension to this width; zero extension otherwise.
    pub(crate) sign: Option<Width>,
    pub(crate) width: Width,
    pub(crate) by: u8,
}

impl<T: Target> Generator<'_, T> {
    /// The width at which an operation is done, given its live-out set.
    pub(crate) fn live_width(
        &self,
        live_out: LiveHalves,
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> Width {
        let narrow = width == Width::W64 && !live_out.has_upper(dst) && is_narrowable(op, src);
        if narrow && self.uses(Optimization::Narrowing) {
            Width::W32
        } else {
            width
        }
    }

    fn arithmetic_of(&self, insn: &Insn, live_out: LiveHalves) -> Option<Arithmetic> {
        match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => Some(Arithmetic {
                op,
                width: self.live_width(live_out, op, width, dst, src),
                dst,
                src,
            }),
            _ => None,
        }
    }

    /// The arithmetic at a slot within the peephole window.
    pub(crate) fn arithmetic(&self, slot: usize) -> Option<Arithmetic> {
        let live_out = self.plain_ahead(slot)?.live_out;
        self.arithmetic_of(&self.insns[slot], live_out)
    }

    /// The arithmetic at a slot, at the width that is live.
    pub(crate) fn arithmetic_at(&self, slot: usize) -> Option<Arithmetic> {
        self.arithmetic_of(&self.insns[slot], self.live_out(slot))
    }

    /// The width of an operation whose low result half depends on low halves only.
    pub(crate) fn narrowed(&mut self, slot: usize, dst: Reg, width: Width) -> Width {
        let narrow = width == Width::W64 && !self.upper_live(slot, dst);
        if !narrow || !self.uses(Optimization::Narrowing) {
            return width;
        }
        self.applies(Optimization::Narrowing);
        Width::W32
    }

    /// `dst = value`; returns 1, the number of slots.
    pub(crate) fn set_known(&mut self, dst: Reg, value: u64) -> usize {
        self.set_known_bits(dst, bits(value));
        self.asm.set(self.gpr(dst), value);
        1
    }

    /// The selection that replaces `dst = 0` by 1, or `dst = 1` by 0, if `dst` is not used
    /// in between: then `dst` is the result of its condition.
    pub(crate) fn condition_result(&self, slot: usize, dst: Reg, imm: i32) -> Option<usize> {
        if !matches!(imm, 0 | 1) || !self.uses(Optimization::SetCondition) {
            return None;
        }
        // A quick check before the search.
        let near = self.infos.get(slot + 1..=slot + FARTHEST_CHOICE)?;
        if !near.iter().any(SlotInfo::is_selection) {
            return None;
        }
        self.condition_result_near(slot, dst, imm)
    }

    fn condition_result_near(&self, slot: usize, dst: Reg, imm: i32) -> Option<usize> {
        for at in slot + 1..=slot + FARTHEST_CHOICE {
            let insn = self.peek(at)?;
            let info = &self.infos[at];
            if info.reads(dst) || info.writes(dst) {
                return None;
            }
            if info.is_selection() {
                let chosen = self.arithmetic(at + 1)?;
                let flips = chosen.dst == dst && chosen.src == Operand::Imm(imm ^ 1);
                return flips.then_some(at + 1);
            }
            match Between::of(insn) {
                Between::Arithmetic | Between::Load | Between::Store => {}
                Between::Barrier => return None,
            }
        }
        None
    }

    /// True if a slot compares a register with 0 and may use the flags of the slot before it.
    pub(crate) fn is_compared_with_zero(&self, slot: usize, reg: Reg) -> bool {
        let is_compared = matches!(
            self.peek(slot),
            Some(Insn::Jump {
                cond: Cond::Eq | Cond::Ne,
                dst,
                src: Operand::Imm(0),
                ..
            }) if dst == reg
        );
        is_compared && self.uses(Optimization::FlagReuse)
    }

    /// The extension that `dst <<= count` and the right shift at a slot form.
    pub(crate) fn extension(
        &self,
        slot: usize,
        dst: Reg,
        width: Width,
        count: i32,
    ) -> Option<Extension> {
        if !self.uses(Optimization::Extension) {
            return None;
        }
        let from = match (width, count) {
            (Width::W64, 32) => Size::W,
            (Width::W64, 48) | (Width::W32, 16) => Size::H,
            (Width::W64, 56) | (Width::W32, 24) => Size::B,
            _ => return None,
        };
        let back = self.arithmetic(slot)?;
        let Operand::Imm(by) = back.src else {
            return None;
        };
        let sign = match back.op {
            Rsh => None,
            Arsh => Some(width),
            Mov | Add | Sub | And | Or | Xor | Lsh | Mul | Div | SDiv | Mod | SMod => return None,
        };
        let fits = back.dst == dst && back.width == width && (count..64).contains(&by);
        (fits && by < all(width).into()).then(|| Extension {
            from,
            sign,
            width,
            by: (by - count) as u8,
        })
    }
}
