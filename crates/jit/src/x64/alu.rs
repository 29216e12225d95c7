//! Instruction selection for arithmetic and constants.
//!
//! Operations are as narrow as what is live of the result: the 32-bit form is shorter and
//! zeroes the upper half, which also replaces most masks.

use isa::ebpf::facts::Halves;
use isa::ebpf::{AluOp, Insn, Operand, Reg, Size, Width};

use super::asm::{Alu, Shift, Unary};
use super::copy::short_sum;
use super::frame::SCRATCH;
use super::generator::{Generator, bits};
use super::reg::{Gpr, Mem};
use crate::Optimization;
use crate::analysis::{Fact, Halves as LiveHalves};

/// How many instructions after a constant another one may be chosen.
const FARTHEST_CHOICE: usize = 3;

/// How many bits there are.
#[inline(always)]
pub(super) const fn all(width: Width) -> u8 {
    match width {
        Width::W32 => 32,
        Width::W64 => 64,
    }
}

/// The machine's operation on two operands with flags, where there is one.
pub(super) const fn plain(op: AluOp) -> Option<Alu> {
    match op {
        AluOp::Add => Some(Alu::Add),
        AluOp::Sub => Some(Alu::Sub),
        AluOp::Or => Some(Alu::Or),
        AluOp::And => Some(Alu::And),
        AluOp::Xor => Some(Alu::Xor),
        AluOp::Mul
        | AluOp::Div
        | AluOp::SDiv
        | AluOp::Mod
        | AluOp::SMod
        | AluOp::Lsh
        | AluOp::Rsh
        | AluOp::Arsh
        | AluOp::Mov => None,
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

/// An arithmetic instruction in parts, at the width that is wanted of it.
#[derive(Clone, Copy)]
pub(super) struct Arithmetic {
    pub(super) op: AluOp,
    pub(super) width: Width,
    pub(super) dst: Reg,
    pub(super) src: Operand,
}

impl Generator<'_> {
    /// The width at which an operation is to be done, given what is live after it.
    #[inline(always)]
    pub(super) fn live_width(
        &self,
        after: LiveHalves,
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> Width {
        let narrow = width == Width::W64 && !after.has_upper(dst) && is_narrowable(op, src);
        if narrow && self.uses(Optimization::Narrowing) {
            Width::W32
        } else {
            width
        }
    }

    #[inline(always)]
    fn arithmetic_of(&self, insn: &Insn, after: LiveHalves) -> Option<Arithmetic> {
        match *insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => Some(Arithmetic {
                op,
                width: self.live_width(after, op, width, dst, src),
                dst,
                src,
            }),
            _ => None,
        }
    }

    /// The arithmetic at a slot that is looked at from the slots before it.
    #[inline(always)]
    pub(super) fn arithmetic(&self, slot: usize) -> Option<Arithmetic> {
        let after = self.plain_ahead(slot)?.after;
        self.arithmetic_of(&self.insns[slot], after)
    }

    /// The arithmetic at a slot, if it is such, at the width that is wanted.
    #[inline(always)]
    pub(super) fn arithmetic_at(&self, slot: usize) -> Option<Arithmetic> {
        self.arithmetic_of(&self.insns[slot], self.after(slot))
    }

    /// Performs the arithmetic at a slot and perhaps what follows it; how many
    /// slots that was.
    ///
    /// Each form is a function that writes its instruction last and leaves what is not
    /// common to others in its last call: so none has registers to save. For the same
    /// reason they get parts: an [`Arithmetic`] lies in memory.
    #[inline(always)]
    pub(super) fn alu(
        &mut self,
        slot: usize,
        op: AluOp,
        width: Width,
        dst: Reg,
        src: &Operand,
    ) -> usize {
        let this = || Arithmetic {
            op,
            width,
            dst,
            src: *src,
        };
        // By the operation first: the only jump that is hard to predict.
        match op {
            AluOp::Mov => match *src {
                Operand::Imm(imm) => return self.set_imm(slot, width, dst, imm),
                Operand::Reg(src) => return self.copy(slot, width, dst, src),
            },
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => match *src {
                Operand::Imm(imm) => return self.shift_imm(slot, op, width, dst, imm),
                Operand::Reg(src) => self.shift_by_reg(this(), self.gpr(dst), src),
            },
            AluOp::Mul => match *src {
                Operand::Imm(imm) => self.multiply_imm(width, dst, imm),
                Operand::Reg(src) => self.alu_reg(slot, this(), src),
            },
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => self.divide(slot, this()),
            AluOp::Add => return self.alu_plain(slot, Alu::Add, this()),
            AluOp::Sub => return self.alu_plain(slot, Alu::Sub, this()),
            AluOp::Or => return self.alu_plain(slot, Alu::Or, this()),
            AluOp::And => return self.alu_plain(slot, Alu::And, this()),
            AluOp::Xor => return self.alu_plain(slot, Alu::Xor, this()),
        }
        1
    }

    /// As [`Generator::alu`], for the operations that share their encodings.
    #[inline(always)]
    fn alu_plain(&mut self, slot: usize, op: Alu, this: Arithmetic) -> usize {
        let Arithmetic {
            width, dst, src, ..
        } = this;
        match (op, src) {
            (_, Operand::Imm(imm @ (-1..=1 | 128))) => self.alu_special(this, imm),
            (Alu::And, Operand::Imm(mask @ 2..)) => self.mask(width, dst, mask),
            (_, Operand::Imm(imm)) => self.alu_imm(op, width, dst, imm),
            (_, Operand::Reg(src)) => {
                let sums = op == Alu::Add && width == Width::W64;
                if src == dst || src == Reg::R10 {
                    self.alu_reg(slot, this, src);
                } else if !sums || !self.adds_address(slot, dst, src) {
                    self.operate(op, width, dst, self.gpr(src), self.known(src));
                }
            }
        }
        1
    }

    #[inline(never)]
    fn set_imm(&mut self, slot: usize, width: Width, reg: Reg, imm: i32) -> usize {
        let stored = matches!(
            self.insns.get(slot + 1),
            Some(Insn::Store { src: Operand::Reg(src), .. }) if *src == reg
        );
        let value = match width {
            Width::W32 => u64::from(imm as u32),
            Width::W64 => imm as i64 as u64,
        };
        match imm {
            _ if stored => self.store_constant(slot, reg, imm, value),
            0 | 1 => self.set_constant_or_condition(slot, reg, imm, value),
            _ => self.set_known(reg, value),
        }
    }

    /// `dst = imm`, which is perhaps how a condition comes out.
    #[inline(never)]
    fn set_constant_or_condition(&mut self, slot: usize, dst: Reg, imm: i32, value: u64) -> usize {
        if let Some(chosen) = self.condition_result(slot, dst, imm) {
            self.set_condition = Some(chosen);
            self.applies(Optimization::SetCondition);
            return self.set_known(dst, 0);
        }
        self.set_known(dst, value)
    }

    #[inline(always)]
    fn set_known(&mut self, dst: Reg, value: u64) -> usize {
        self.know(dst, bits(value));
        self.buf.set(self.frame.gpr(dst), value);
        1
    }

    /// `dst = imm` (64 bits)
    #[inline(never)]
    pub(super) fn set_imm64(&mut self, dst: Reg, value: u64) {
        self.set_known(dst, value);
    }

    /// The move a little later that makes 1 of `dst = 0`, or 0 of `dst = 1`, if a
    /// condition holds and nothing looks at `dst` before: then `dst` is how the
    /// condition comes out.
    #[inline(always)]
    fn condition_result(&self, slot: usize, dst: Reg, imm: i32) -> Option<usize> {
        if !matches!(imm, 0 | 1) || !self.uses(Optimization::SetCondition) {
            return None;
        }
        // Few constants have a choice so near, which is quickly seen.
        let near = self.facts.get(slot + 1..=slot + FARTHEST_CHOICE)?;
        if !near.iter().any(Fact::is_selection) {
            return None;
        }
        self.condition_result_near(slot, dst, imm)
    }

    #[inline(never)]
    fn condition_result_near(&self, slot: usize, dst: Reg, imm: i32) -> Option<usize> {
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

    /// `dst = imm; *(size *)(base + off) = dst`: only the store, where nothing else
    /// reads `dst`.
    #[inline(never)]
    fn store_constant(&mut self, slot: usize, dst: Reg, imm: i32, value: u64) -> usize {
        if let Some(Insn::Store {
            size, base, off, ..
        }) = self.peek(slot + 1)
            && base != dst
            && !self.after(slot + 1).has(dst)
            && (size != Size::DW || value == imm as i64 as u64)
            && self.uses(Optimization::ConstantStore)
        {
            self.applies(Optimization::ConstantStore);
            let mem = self.address(base, off);
            self.buf.store_imm(size, mem, imm);
            return 2;
        }
        self.set_constant_or_condition(slot, dst, imm, value)
    }

    /// Whether a sum of two registers is only an address, and so is not made.
    #[inline(always)]
    fn adds_address(&mut self, slot: usize, dst: Reg, src: Reg) -> bool {
        let sum = Mem::indexed(self.gpr(dst), self.gpr(src), 0);
        self.is_only_address(slot + 1, dst, [dst, src], sum)
    }

    /// `dst op= src` where that is not simply an instruction of two registers.
    #[inline(never)]
    fn alu_reg(&mut self, slot: usize, this: Arithmetic, src: Reg) {
        let Arithmetic { op, width, dst, .. } = this;
        if src == Reg::R10 {
            let top = self.frame.stack_top();
            self.buf.lea(Width::W64, SCRATCH, top);
            self.compute(op, width, dst, SCRATCH, self.known(src));
        } else if src == dst && matches!(op, AluOp::Or | AluOp::And) {
            self.zero_upper(slot, width, dst);
        } else {
            self.compute(op, width, dst, self.gpr(src), self.known(src));
        }
    }

    /// `dst op= from`, of which so many low bits may be set; neither a shift nor a
    /// division.
    pub(super) fn compute(&mut self, op: AluOp, width: Width, dst: Reg, from: Gpr, other: u8) {
        if let Some(op) = plain(op) {
            return self.operate(op, width, dst, from, other);
        }
        let known = self.known(dst).saturating_add(other);
        self.know(dst, known.min(all(width)));
        self.buf.multiply(width, self.frame.gpr(dst), from);
    }

    /// `dst op= from`, of which so many low bits may be set.
    #[inline(never)]
    fn operate(&mut self, op: Alu, width: Width, dst: Reg, from: Gpr, other: u8) {
        let this = self.known(dst);
        let known = match op {
            Alu::And => this.min(other),
            Alu::Or | Alu::Xor => this.max(other),
            Alu::Add => this.max(other) + 1,
            Alu::Sub | Alu::Sbb | Alu::Cmp => 64,
        };
        self.know(dst, known.min(all(width)));
        self.set_flags(dst, width);
        self.buf.alu(op, width, self.frame.gpr(dst), from);
    }

    #[inline(never)]
    fn alu_imm(&mut self, op: Alu, width: Width, reg: Reg, imm: i32) {
        let most = all(width);
        let known = match op {
            Alu::Or | Alu::Xor if imm >= 0 => self.known(reg).min(most).max(bits(imm as u64)),
            _ => most,
        };
        self.know(reg, known);
        self.set_flags(reg, width);
        self.buf.alu_imm(op, width, self.frame.gpr(reg), imm);
    }

    /// Arithmetic with a constant that often has a form of its own.
    fn alu_special(&mut self, this: Arithmetic, imm: i32) {
        let Arithmetic {
            op,
            width,
            dst: reg,
            ..
        } = this;
        let dst = self.gpr(reg);
        match (op, imm) {
            (AluOp::Xor, -1) => {
                self.buf.unary(Unary::Not, width, dst);
                self.know(reg, all(width));
                return;
            }
            (AluOp::And, 0) => {
                self.set_known(reg, 0);
                return;
            }
            (AluOp::And, -1) | (_, 0) => return self.change_nothing(width, reg),
            (AluOp::And, mask) => return self.mask(width, reg, mask),
            (AluOp::Add, 1) | (AluOp::Sub, -1) => self.buf.increment(width, dst),
            (AluOp::Add, -1) | (AluOp::Sub, 1) => self.buf.decrement(width, dst),
            // 128 takes four bytes, but -128 one.
            (AluOp::Add, _) => self.buf.alu_imm(Alu::Sub, width, dst, -imm),
            (AluOp::Sub, _) => self.buf.alu_imm(Alu::Add, width, dst, -imm),
            (AluOp::Or, _) => return self.alu_imm(Alu::Or, width, reg, imm),
            _ => return self.alu_imm(Alu::Xor, width, reg, imm),
        }
        self.set_flags(reg, width);
        self.know(reg, all(width));
    }

    /// An operation that changes nothing but, on 32 bits, what lies above them.
    fn change_nothing(&mut self, width: Width, reg: Reg) {
        let known = self.known(reg);
        if known > all(width) {
            let dst = self.gpr(reg);
            self.buf.mov(width, dst, dst);
        } else if width == Width::W32 {
            self.applies(Optimization::KnownBits);
        }
        self.know(reg, known.min(all(width)));
    }

    /// `dst *= imm`
    #[inline(never)]
    fn multiply_imm(&mut self, width: Width, reg: Reg, imm: i32) {
        let dst = self.gpr(reg);
        let most = all(width);
        match imm {
            0 => {
                self.buf.set(dst, 0);
                self.know(reg, 0);
                return;
            }
            1 => return self.change_nothing(width, reg),
            3 | 5 | 9 if self.uses(Optimization::Multiplication) => {
                self.applies(Optimization::Multiplication);
                let scale = (imm - 1).trailing_zeros() as u8;
                let product = Mem {
                    base: dst,
                    index: Some((dst, scale)),
                    disp: 0,
                };
                self.buf.lea(width, dst, short_sum(product));
            }
            _ if imm > 0 && imm.count_ones() == 1 && self.uses(Optimization::Multiplication) => {
                self.applies(Optimization::Multiplication);
                let count = imm.trailing_zeros() as u8;
                self.buf.shift(Shift::Shl, width, dst, count);
                self.set_flags(reg, width);
                let known = self.known(reg).saturating_add(count);
                self.know(reg, known.min(most));
                return;
            }
            _ => self.buf.multiply_imm(width, dst, dst, imm),
        }
        self.know(reg, most);
    }

    /// `dst &= mask`, a positive mask.
    #[inline(never)]
    fn mask(&mut self, width: Width, reg: Reg, mask: i32) {
        let dst = self.gpr(reg);
        let known = self.known(reg);
        let most = bits(mask as u64);
        let is_run = (mask as u32 + 1).is_power_of_two();
        if is_run && known <= most {
            self.applies(Optimization::KnownBits);
            return;
        }
        self.know(reg, known.min(most));
        match mask {
            0xff => self.buf.extend(Size::B, None, dst, dst),
            0xffff => self.buf.extend(Size::H, None, dst, dst),
            _ => {
                self.set_flags(reg, width);
                // The result has no upper half, whatever the width.
                self.buf.alu_imm(Alu::And, Width::W32, dst, mask);
            }
        }
    }

    /// An operation that changes nothing but, on 32 bits, zeroes the upper half.
    pub(super) fn zero_upper(&mut self, slot: usize, width: Width, reg: Reg) {
        if width == Width::W64 || !self.upper_wanted(slot, reg) {
            return;
        }
        if self.known(reg) <= 32 {
            self.applies(Optimization::KnownBits);
            return;
        }
        let dst = self.gpr(reg);
        self.buf.mov(Width::W32, dst, dst);
        self.know(reg, 32);
    }

    /// `dst = -dst`.
    #[inline(never)]
    pub(super) fn negate(&mut self, slot: usize, width: Width, dst: Reg) {
        let width = self.narrowed(slot, dst, width);
        let gpr = self.gpr(dst);
        self.buf.unary(Unary::Neg, width, gpr);
        self.set_flags(dst, width);
        self.know(dst, all(width));
    }

    /// The width at which an operation is to be done whose result's low half depends on
    /// low halves alone.
    pub(super) fn narrowed(&mut self, slot: usize, dst: Reg, width: Width) -> Width {
        let narrow = width == Width::W64 && !self.upper_wanted(slot, dst);
        if !narrow || !self.uses(Optimization::Narrowing) {
            return width;
        }
        self.applies(Optimization::Narrowing);
        Width::W32
    }
}
