//! Instruction selection for arithmetic and constants.
//!
//! The 32-bit form of an operation is shorter and zeroes the upper half, which also replaces most
//! masks.

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size, Width};

use super::Generator;
use super::asm::Unary;
use super::form::Form;
use super::reg::{Gpr, Mem, SCRATCH};
use crate::Optimization;
use crate::codegen::{Alu, Arithmetic, Assembler, all, bits};

impl Arithmetic {
    /// True if the operation, a division, is signed; true if its result is the remainder.
    pub(super) fn division(self) -> (bool, bool) {
        match Form::of(self.op) {
            Form::Divide { signed, remainder } => (signed, remainder),
            Form::Move | Form::Plain(_) | Form::Multiply | Form::Shift(_) => {
                unreachable!("{:?} is no division", self.op)
            }
        }
    }
}

/// The size whose zero extension a mask is. It has a shorter form than the mask, which sets the
/// flags.
pub(super) const fn extended(mask: i32) -> Option<Size> {
    match mask {
        0xff => Some(Size::B),
        0xffff => Some(Size::H),
        _ => None,
    }
}

impl Generator<'_> {
    /// Compiles the arithmetic at a slot, and following slots where they are fused; returns
    /// the number of slots.
    pub(super) fn alu(&mut self, slot: usize, this: Arithmetic) -> usize {
        let Arithmetic {
            op,
            width,
            dst,
            src,
        } = this;
        match Form::of(op) {
            Form::Move => match src {
                Operand::Imm(imm) => return self.set_imm(slot, width, dst, imm),
                Operand::Reg(src) => return self.copy(slot, width, dst, src),
            },
            Form::Shift(op) => match src {
                Operand::Imm(imm) => return self.shift_imm(slot, op, width, dst, imm),
                Operand::Reg(src) => self.shift_by_reg(op, width, dst, src),
            },
            Form::Multiply => match src {
                Operand::Imm(imm) => self.multiply_imm(width, dst, imm),
                Operand::Reg(src) => self.alu_reg(slot, this, src),
            },
            Form::Divide { .. } => self.divide(slot, this),
            Form::Plain(op) => return self.alu_plain(slot, op, this),
        }
        1
    }

    /// As [`Generator::alu`], for operations of the ADD group.
    fn alu_plain(&mut self, slot: usize, op: Alu, this: Arithmetic) -> usize {
        let Arithmetic {
            width, dst, src, ..
        } = this;
        match (op, src) {
            (_, Operand::Imm(imm @ (-1..=1 | 128))) => self.alu_special(slot, op, this, imm),
            (Alu::And, Operand::Imm(mask @ 2..)) => self.mask(slot, width, dst, mask),
            (_, Operand::Imm(imm)) => self.alu_imm(op, width, dst, imm),
            (_, Operand::Reg(src)) => {
                let sums = op == Alu::Add && width == Width::W64;
                if src == dst || src == Reg::R10 {
                    self.alu_reg(slot, this, src);
                } else if !sums || !self.fold_sum(slot, dst, src) {
                    self.operate(op, width, dst, self.gpr(src), self.known_bits(src));
                }
            }
        }
        1
    }

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

    /// `dst = imm`, where a selection between 0 and 1 becomes `setcc`.
    fn set_constant_or_condition(&mut self, slot: usize, dst: Reg, imm: i32, value: u64) -> usize {
        if let Some(chosen) = self.condition_result(slot, dst, imm) {
            self.set_condition = Some(chosen);
            self.applies(Optimization::SetCondition);
            return self.set_known(dst, 0);
        }
        self.set_known(dst, value)
    }

    /// `dst = imm; *(size *)(base + off) = dst`: a store of an immediate, if `dst` is dead
    /// afterwards.
    fn store_constant(&mut self, slot: usize, dst: Reg, imm: i32, value: u64) -> usize {
        if let Some(Insn::Store {
            size, base, off, ..
        }) = self.peek(slot + 1)
            && base != dst
            && !self.live_out(slot + 1).has(dst)
            && (size != Size::DW || value == imm as i64 as u64)
            && self.uses(Optimization::ConstantStore)
        {
            self.applies(Optimization::ConstantStore);
            let mem = self.address(base, off);
            self.asm.store_imm(size, mem, imm);
            return 2;
        }
        self.set_constant_or_condition(slot, dst, imm, value)
    }

    /// Folds `dst += src` into its accesses if the sum is only an address. True if it did.
    fn fold_sum(&mut self, slot: usize, dst: Reg, src: Reg) -> bool {
        let sum = Mem::indexed(self.gpr(dst), self.gpr(src), 0);
        self.fold_address(slot + 1, dst, [dst, src], sum)
    }

    /// `dst op= src` for multiplication, `r10` and equal operands.
    fn alu_reg(&mut self, slot: usize, this: Arithmetic, src: Reg) {
        let Arithmetic { op, width, dst, .. } = this;
        if src == Reg::R10 {
            let top = self.frame.stack_top();
            self.asm.lea(Width::W64, SCRATCH, top);
            self.compute(op, width, dst, SCRATCH, self.known_bits(src));
        } else if src == dst && op.is_idempotent() {
            self.zero_upper(slot, width, dst);
        } else {
            self.compute(op, width, dst, self.gpr(src), self.known_bits(src));
        }
    }

    /// `dst op= from`, for an operation other than a shift or a division; `from` has
    /// `other` significant bits.
    fn compute(&mut self, op: AluOp, width: Width, dst: Reg, from: Gpr, other: u8) {
        match Form::of(op) {
            Form::Plain(op) => self.operate(op, width, dst, from, other),
            Form::Multiply => {
                let known_bits = self.known_bits(dst).saturating_add(other);
                self.set_known_bits(dst, known_bits.min(all(width)));
                self.asm.multiply(width, self.frame.gpr(dst), from);
            }
            Form::Move | Form::Divide { .. } | Form::Shift(_) => {
                unreachable!("{op:?} has code of its own")
            }
        }
    }

    /// `dst op= from`; `from` has `other` significant bits.
    fn operate(&mut self, op: Alu, width: Width, dst: Reg, from: Gpr, other: u8) {
        let this = self.known_bits(dst);
        let known_bits = match op {
            Alu::And => this.min(other),
            Alu::Or | Alu::Xor => this.max(other),
            Alu::Add => this.max(other) + 1,
            Alu::Sub | Alu::Cmp => 64,
        };
        self.set_known_bits(dst, known_bits.min(all(width)));
        self.set_flags(dst, width);
        self.asm.alu(op, width, self.frame.gpr(dst), from);
    }

    fn alu_imm(&mut self, op: Alu, width: Width, reg: Reg, imm: i32) {
        let most = all(width);
        let known_bits = match op {
            Alu::Or | Alu::Xor if imm >= 0 => self.known_bits(reg).min(most).max(bits(imm as u64)),
            Alu::Or | Alu::Xor | Alu::Add | Alu::Sub | Alu::And | Alu::Cmp => most,
        };
        self.set_known_bits(reg, known_bits);
        self.set_flags(reg, width);
        self.asm.alu_imm(op, width, self.frame.gpr(reg), imm);
    }

    /// Arithmetic with a constant that often has a shorter encoding.
    fn alu_special(&mut self, slot: usize, op: Alu, this: Arithmetic, imm: i32) {
        let Arithmetic {
            width, dst: reg, ..
        } = this;
        let dst = self.gpr(reg);
        match (op, imm) {
            (Alu::Xor, -1) => {
                self.asm.unary(Unary::Not, width, dst);
                self.set_known_bits(reg, all(width));
                return;
            }
            (Alu::And, 0) => {
                self.set_known(reg, 0);
                return;
            }
            (Alu::And, -1) | (Alu::Add | Alu::Sub | Alu::Or | Alu::Xor, 0) => {
                return self.zero_extend_only(width, reg);
            }
            (Alu::And, mask) => return self.mask(slot, width, reg, mask),
            (Alu::Add, 1) | (Alu::Sub, -1) => self.asm.increment(width, dst),
            (Alu::Add, -1) | (Alu::Sub, 1) => self.asm.decrement(width, dst),
            // 128 needs a 32-bit immediate, -128 one byte.
            (Alu::Add, _) => self.asm.alu_imm(Alu::Sub, width, dst, -imm),
            (Alu::Sub, _) => self.asm.alu_imm(Alu::Add, width, dst, -imm),
            (Alu::Or | Alu::Xor | Alu::Cmp, _) => {
                return self.alu_imm(op, width, reg, imm);
            }
        }
        self.set_flags(reg, width);
        self.set_known_bits(reg, all(width));
    }

    /// An operation without effect but the zero-extension of its 32-bit form.
    fn zero_extend_only(&mut self, width: Width, reg: Reg) {
        let known_bits = self.known_bits(reg);
        if known_bits > all(width) {
            let dst = self.gpr(reg);
            self.asm.mov(width, dst, dst);
        } else if width == Width::W32 {
            self.applies(Optimization::KnownBits);
        }
        self.set_known_bits(reg, known_bits.min(all(width)));
    }

    /// `dst *= imm`
    fn multiply_imm(&mut self, width: Width, reg: Reg, imm: i32) {
        let dst = self.gpr(reg);
        let most = all(width);
        match imm {
            0 => {
                self.asm.set(dst, 0);
                self.set_known_bits(reg, 0);
                return;
            }
            1 => return self.zero_extend_only(width, reg),
            _ => self.asm.multiply_imm(width, dst, dst, imm),
        }
        self.set_known_bits(reg, most);
    }

    /// `dst &= mask`, a positive mask.
    fn mask(&mut self, slot: usize, width: Width, reg: Reg, mask: i32) {
        let dst = self.gpr(reg);
        let known_bits = self.known_bits(reg);
        let most = bits(mask as u64);
        let is_run = (mask as u32 + 1).is_power_of_two();
        if is_run && known_bits <= most {
            self.applies(Optimization::KnownBits);
            return;
        }
        self.set_known_bits(reg, known_bits.min(most));
        match extended(mask) {
            Some(size) if !self.is_compared_with_zero(slot + 1, reg) => {
                self.asm.extend(size, None, dst, dst);
            }
            Some(_) | None => {
                self.set_flags(reg, width);
                // The upper half of the result is zero at either width.
                self.asm.alu_imm(Alu::And, Width::W32, dst, mask);
            }
        }
    }

    /// Zero-extends a register live_out a 32-bit operation, if the upper half is live and may
    /// be nonzero.
    pub(super) fn zero_upper(&mut self, slot: usize, width: Width, reg: Reg) {
        if width == Width::W64 || !self.upper_live(slot, reg) {
            return;
        }
        if self.known_bits(reg) <= 32 {
            self.applies(Optimization::KnownBits);
            return;
        }
        let dst = self.gpr(reg);
        self.asm.mov(Width::W32, dst, dst);
        self.set_known_bits(reg, 32);
    }

    /// `dst = -dst`.
    pub(super) fn negate(&mut self, slot: usize, width: Width, dst: Reg) {
        let width = self.narrowed(slot, dst, width);
        let gpr = self.gpr(dst);
        self.asm.unary(Unary::Neg, width, gpr);
        self.set_flags(dst, width);
        self.set_known_bits(dst, all(width));
    }
}
