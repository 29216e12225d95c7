//! Arithmetic and constants.
//!
//! What is written is as narrow as what is wanted of the result: the low half's form
//! is shorter and zeroes the upper half, which also replaces most masks.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size, Width};

use super::asm::{Alu, Shift, Unary};
use super::copy::short_sum;
use super::frame::SCRATCH;
use super::generator::{Generator, bits};
use super::reg::{Gpr, Mem};
use crate::analysis::{Count, Fact};

/// How many instructions after a constant another one may be chosen.
const FARTHEST_CHOICE: usize = 3;

/// The operation's encoding, if it is one of the eight that share theirs.
pub(super) const fn plain(op: AluOp) -> Option<Alu> {
    Some(match op {
        AluOp::Add => Alu::Add,
        AluOp::Sub => Alu::Sub,
        AluOp::Or => Alu::Or,
        AluOp::And => Alu::And,
        AluOp::Xor => Alu::Xor,
        _ => return None,
    })
}

/// Whether the low half of the result depends on the low halves alone.
const fn is_narrowable(op: AluOp, src: Operand) -> bool {
    match op {
        AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::And | AluOp::Or | AluOp::Xor | AluOp::Mov => {
            true
        }
        AluOp::Lsh => matches!(src, Operand::Imm(count) if count & 63 < 32),
        _ => false,
    }
}

/// An arithmetic instruction in parts, at the width that is wanted of it.
#[derive(Clone, Copy)]
pub(super) struct Arithmetic {
    pub(super) op: AluOp,
    pub(super) width: Width,
    pub(super) dst: Reg,
    pub(super) src: Operand,
}

impl Generator<'_> {
    /// The arithmetic at a slot that is looked at from the slots before it.
    #[inline(always)]
    pub(super) fn arithmetic(&self, slot: usize) -> Option<Arithmetic> {
        self.peek(slot)?;
        self.arithmetic_at(slot)
    }

    /// The arithmetic at a slot, if it is such, at the width that is wanted.
    #[inline(always)]
    pub(super) fn arithmetic_at(&self, slot: usize) -> Option<Arithmetic> {
        match self.insns[slot] {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => Some(self.wanted(slot, op, width, dst, src)),
            _ => None,
        }
    }

    /// The arithmetic at a slot, at the width that is wanted.
    #[inline(always)]
    pub(super) fn wanted(
        &self,
        slot: usize,
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> Arithmetic {
        let narrow =
            width == Width::W64 && !self.after(slot).has_upper(dst) && is_narrowable(op, src);
        Arithmetic {
            op,
            width: if narrow { Width::W32 } else { width },
            dst,
            src,
        }
    }

    /// Performs the arithmetic at a slot and perhaps what follows it; how many
    /// slots that was.
    #[inline(always)]
    pub(super) fn alu(&mut self, slot: usize, this: Arithmetic) -> usize {
        let Arithmetic {
            op,
            width,
            dst,
            src,
        } = this;
        match (op, src) {
            (AluOp::Mov, Operand::Imm(imm)) => self.set_imm(slot, width, dst, imm),
            (AluOp::Mov, Operand::Reg(src)) => self.copy(slot, width, dst, src),
            (AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod, _) => {
                self.divide(slot, this);
                1
            }
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Imm(count)) => {
                self.shift_imm(slot, op, width, dst, count)
            }
            (AluOp::Lsh | AluOp::Rsh | AluOp::Arsh, Operand::Reg(count)) => {
                self.shift_by_reg(this, self.gpr(dst), count);
                1
            }
            (AluOp::Xor, Operand::Imm(-1)) => self.invert(slot, this),
            (_, Operand::Imm(imm)) => {
                self.alu_imm(op, width, dst, imm);
                1
            }
            (_, Operand::Reg(src)) => {
                if src == dst || src == Reg::R10 || op == AluOp::Add && width == Width::W64 {
                    self.alu_reg(slot, this, src);
                } else {
                    self.operate(this, self.gpr(src));
                }
                1
            }
        }
    }

    #[inline(never)]
    fn set_imm(&mut self, slot: usize, width: Width, reg: Reg, imm: i32) -> usize {
        let value = match width {
            Width::W32 => u64::from(imm as u32),
            Width::W64 => imm as i64 as u64,
        };
        if let Some(stored) = self.store_constant(slot, reg, imm, value) {
            return stored;
        }
        let dst = self.gpr(reg);
        let value = match self.truth_of(slot, reg, imm) {
            Some(chosen) => {
                self.truth = Some(chosen);
                0
            }
            None => value,
        };
        self.buf.set(dst, value);
        self.know(reg, bits(value));
        1
    }

    /// The move a little later that makes 1 of `dst = 0`, or 0 of `dst = 1`, if a
    /// condition holds and nothing looks at `dst` before: then `dst` is how the
    /// condition comes out.
    fn truth_of(&self, slot: usize, dst: Reg, imm: i32) -> Option<usize> {
        if !matches!(imm, 0 | 1) {
            return None;
        }
        // Few constants have a choice so near, which is quickly seen.
        let near = self.facts.get(slot + 1..=slot + FARTHEST_CHOICE)?;
        if !near.iter().any(Fact::is_selection) {
            return None;
        }
        for at in slot + 1..=slot + FARTHEST_CHOICE {
            let insn = self.peek(at)?;
            let fact = &self.facts[at];
            if fact.reads(dst) || fact.writes(dst) {
                return None;
            }
            match insn {
                Insn::Jump { .. } if fact.is_selection() => {
                    let chosen = self.arithmetic(at + 1)?;
                    let flips = chosen.dst == dst && chosen.src == Operand::Imm(imm ^ 1);
                    return flips.then_some(at + 1);
                }
                Insn::Alu { .. } | Insn::Load { .. } | Insn::Store { .. } => {}
                _ => return None,
            }
        }
        None
    }

    /// `dst = imm; *(size *)(base + off) = dst`, where nothing else reads `dst`.
    fn store_constant(&mut self, slot: usize, dst: Reg, imm: i32, value: u64) -> Option<usize> {
        let Insn::Store {
            size,
            base,
            off,
            src: Operand::Reg(src),
        } = self.peek(slot + 1)?
        else {
            return None;
        };
        let same = size != Size::DW || value == imm as i64 as u64;
        if src != dst || base == dst || self.after(slot + 1).has(dst) || !same {
            return None;
        }
        let mem = self.address(base, off);
        self.buf.store_imm(size, mem, imm);
        Some(2)
    }

    #[inline(never)]
    fn alu_reg(&mut self, slot: usize, this: Arithmetic, src: Reg) {
        let dst = self.gpr(this.dst);
        if src == Reg::R10 {
            let top = self.frame.stack_top();
            self.buf.lea(Width::W64, SCRATCH, top);
            return self.operate(this, SCRATCH);
        }
        let from = self.gpr(src);
        match this.op {
            AluOp::Or | AluOp::And if src == this.dst => {
                self.zero_upper(slot, this.width, this.dst)
            }
            AluOp::Add
                if this.width == Width::W64
                    && src != this.dst
                    && self.is_only_address(
                        slot + 1,
                        this.dst,
                        [this.dst, src],
                        Mem::indexed(dst, from, 0),
                    ) => {}
            _ => self.operate(this, from),
        }
    }

    /// `dst op= from`, and what is then known.
    #[inline(always)]
    pub(super) fn operate(&mut self, this: Arithmetic, from: Gpr) {
        let dst = self.gpr(this.dst);
        let (a, b) = (self.known(this.dst), self.known_of(this.src));
        match plain(this.op) {
            Some(op) => {
                self.buf.alu(op, this.width, dst, from);
                self.set_flags(this.dst, this.width);
            }
            None => self.buf.multiply(this.width, dst, from),
        }
        let most = if this.width == Width::W32 { 32 } else { 64 };
        let known = match this.op {
            AluOp::And => a.min(b),
            AluOp::Or | AluOp::Xor => a.max(b),
            AluOp::Add => a.max(b).saturating_add(1),
            AluOp::Mul => a.saturating_add(b),
            _ => 64,
        };
        self.know(this.dst, known.min(most));
    }

    #[inline(never)]
    fn alu_imm(&mut self, op: AluOp, width: Width, reg: Reg, imm: i32) {
        let dst = self.gpr(reg);
        let known = self.known(reg);
        let most: u8 = if width == Width::W32 { 32 } else { 64 };
        let fits = known <= most;
        match (op, imm) {
            (AluOp::Mul, 0) | (AluOp::And, 0) => {
                self.buf.set(dst, 0);
                self.know(reg, 0);
                return;
            }
            (AluOp::Add | AluOp::Sub | AluOp::Or | AluOp::Xor, 0)
            | (AluOp::And, -1)
            | (AluOp::Mul, 1) => {
                if !fits {
                    self.buf.mov(width, dst, dst);
                }
                self.know(reg, known.min(most));
                return;
            }
            (AluOp::And, mask) if mask > 0 => {
                self.mask(width, reg, mask);
                return;
            }
            (AluOp::Mul, imm) if imm > 0 && imm.count_ones() == 1 => {
                let count = imm.trailing_zeros() as u8;
                self.buf.shift(Shift::Shl, width, dst, count);
                self.set_flags(reg, width);
                self.know(reg, known.saturating_add(count).min(most));
                return;
            }
            (AluOp::Mul, 3 | 5 | 9) => {
                let scale = (imm - 1).trailing_zeros() as u8;
                let mem = Mem {
                    base: dst,
                    index: Some((dst, scale)),
                    disp: 0,
                };
                self.buf.lea(width, dst, short_sum(mem));
                self.know(reg, most);
                return;
            }
            (AluOp::Mul, imm) => {
                self.buf.multiply_imm(width, dst, dst, imm);
                self.know(reg, most);
                return;
            }
            (AluOp::Add, 1) | (AluOp::Sub, -1) => self.buf.increment(width, dst),
            (AluOp::Add, -1) | (AluOp::Sub, 1) => self.buf.decrement(width, dst),
            (AluOp::Add, 128) => self.buf.alu_imm(Alu::Sub, width, dst, -128),
            (AluOp::Sub, 128) => self.buf.alu_imm(Alu::Add, width, dst, -128),
            _ => {
                let op = plain(op).expect("multiplications are done above");
                self.buf.alu_imm(op, width, dst, imm);
            }
        }
        self.set_flags(reg, width);
        let known = match op {
            AluOp::Or | AluOp::Xor if imm >= 0 => known.min(most).max(bits(imm as u64)),
            _ => most,
        };
        self.know(reg, known);
    }

    /// `dst = !dst`, together with an `and` that takes the result.
    fn invert(&mut self, slot: usize, this: Arithmetic) -> usize {
        if let Some(count) = self.and_inverse(slot, this) {
            return count;
        }
        let dst = self.gpr(this.dst);
        self.buf.unary(Unary::Not, this.width, dst);
        let most = if this.width == Width::W32 { 32 } else { 64 };
        self.know(this.dst, most);
        1
    }

    fn and_inverse(&mut self, slot: usize, this: Arithmetic) -> Option<usize> {
        let next = self.arithmetic(slot + 1)?;
        let Operand::Reg(src) = next.src else {
            return None;
        };
        let other = if next.dst == this.dst { src } else { next.dst };
        let takes = next.op == AluOp::And
            && (next.dst == this.dst || src == this.dst && !self.after(slot + 1).has(src))
            && other != this.dst
            && other != Reg::R10;
        if !takes || !self.features.bmi1 {
            return None;
        }
        // If one of them has no upper half, the result has none.
        let (width, most) = match (this.width, next.width) {
            (Width::W64, Width::W64) => (Width::W64, 64),
            _ => (Width::W32, 32),
        };
        let known = self.known(other).min(most);
        let [dst, not, other] = [next.dst, this.dst, other].map(|reg| self.gpr(reg));
        self.buf.and_not(width, dst, not, other);
        self.set_flags(next.dst, width);
        self.know(next.dst, known);
        Some(2)
    }

    /// `dst &= mask`, a positive mask.
    fn mask(&mut self, width: Width, reg: Reg, mask: i32) {
        let dst = self.gpr(reg);
        let known = self.known(reg);
        let most = bits(mask as u64);
        let is_run = (mask as u32 + 1).is_power_of_two();
        if is_run && known <= most {
            return;
        }
        match mask {
            0xff => self.buf.extend(Size::B, None, dst, dst),
            0xffff => self.buf.extend(Size::H, None, dst, dst),
            _ => {
                // The result has no upper half, whatever the width.
                self.buf.alu_imm(Alu::And, Width::W32, dst, mask);
                self.set_flags(reg, width);
            }
        }
        self.know(reg, known.min(most));
    }

    /// An operation that changes nothing but, on 32 bits, zeroes the upper half.
    pub(super) fn zero_upper(&mut self, slot: usize, width: Width, reg: Reg) {
        let wanted = self.known(reg) > 32 && self.upper_wanted(slot, reg);
        if width == Width::W32 && wanted {
            let dst = self.gpr(reg);
            self.buf.mov(Width::W32, dst, dst);
            self.know(reg, 32);
        }
    }

    /// `dst = -dst`.
    pub(super) fn negate(&mut self, slot: usize, width: Width, dst: Reg) {
        let narrow = !self.upper_wanted(slot, dst);
        let width = if narrow { Width::W32 } else { width };
        let gpr = self.gpr(dst);
        self.buf.unary(Unary::Neg, width, gpr);
        self.set_flags(dst, width);
        self.know(dst, if width == Width::W32 { 32 } else { 64 });
    }

    /// `dst` is a count of bits of `src`, at most 64.
    pub(super) fn count(&mut self, what: Count, width: Width, dst: Reg, src: Reg) {
        let (to, from) = (self.gpr(dst), self.gpr(src));
        if to != from {
            // Many processors wait for what it held, as if it were read.
            self.buf.set(to, 0);
        }
        match what {
            Count::Ones => self.buf.count_ones(width, to, from),
            Count::TrailingZeros => self.buf.count_trailing_zeros(width, to, from),
            Count::LeadingZeros => self.buf.count_leading_zeros(width, to, from),
        }
        self.know(dst, bits(64));
    }
}
