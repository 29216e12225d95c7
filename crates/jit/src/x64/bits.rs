//! Bit operations, which programs call as kfuncs: instructions in place of the calls.
//!
//! A verified program reads none of `r1` to `r5` behind a call, so that what the operation
//! needs beside its result may be there.

use isa::ebpf::{Reg, Width};
use spec::bits::BitOp;

use super::Generator;
use super::reg::{Gpr, SCRATCH};
use crate::codegen::{Alu, Assembler, Cc, Shift};

impl Generator<'_> {
    /// Compiles `r0 = op(r1, r2)`.
    pub(super) fn bit_operation(&mut self, op: BitOp) {
        let (to, from) = (self.gpr(Reg::R0), self.gpr(Reg::R1));
        match op {
            BitOp::Ffs | BitOp::Ctz if self.target.features.bmi1 => {
                self.asm.trailing_zeros(to, from)
            }
            BitOp::Ffs | BitOp::Ctz => {
                self.asm.lowest_bit(to, from);
                self.replace_if_zero(to, 64);
            }
            BitOp::Clz if self.target.features.lzcnt => self.asm.leading_zeros(to, from),
            BitOp::Clz => {
                self.asm.highest_bit(to, from);
                // 127 with its low six bits inverted is 64.
                self.replace_if_zero(to, 127);
                self.asm.alu_imm(Alu::Xor, Width::W32, to, 63);
            }
            BitOp::Fls => {
                self.asm.highest_bit(to, from);
                self.replace_if_zero(to, u64::from(u32::MAX));
                self.asm.alu_imm(Alu::Add, Width::W32, to, 1);
            }
            BitOp::Popcnt if self.target.features.popcnt => self.asm.count_ones(to, from),
            BitOp::Popcnt => self.count_ones(to, from),
            BitOp::Rol => self.rotate_by_reg(Shift::Rol, to, from),
            BitOp::Ror => self.rotate_by_reg(Shift::Ror, to, from),
            BitOp::Bitrev => unreachable!("lowering or a call reverses bits"),
        }
        let known_bits = match op.most() {
            Some(_) => 7,
            None => 64,
        };
        self.set_known_bits(Reg::R0, known_bits);
    }

    /// Sets a register to a value if the instruction before found no bit.
    fn replace_if_zero(&mut self, to: Gpr, value: u64) {
        self.asm.set_keeping_flags(SCRATCH, value);
        self.asm.mov_if(Cc::Equal, Width::W64, to, SCRATCH);
    }

    /// Adds up bits, pairs and nibbles, then the bytes by a multiplication.
    fn count_ones(&mut self, to: Gpr, from: Gpr) {
        let part = self.gpr(Reg::R2);
        if to != from {
            self.asm.mov(Width::W64, to, from);
        }
        self.asm.mov(Width::W64, part, to);
        self.asm.shift(Shift::Shr, Width::W64, part, 1);
        self.asm.set(SCRATCH, 0x5555_5555_5555_5555);
        self.asm.alu(Alu::And, Width::W64, part, SCRATCH);
        self.asm.alu(Alu::Sub, Width::W64, to, part);
        self.asm.set(SCRATCH, 0x3333_3333_3333_3333);
        self.asm.mov(Width::W64, part, to);
        self.asm.shift(Shift::Shr, Width::W64, part, 2);
        self.asm.alu(Alu::And, Width::W64, part, SCRATCH);
        self.asm.alu(Alu::And, Width::W64, to, SCRATCH);
        self.asm.alu(Alu::Add, Width::W64, to, part);
        self.asm.mov(Width::W64, part, to);
        self.asm.shift(Shift::Shr, Width::W64, part, 4);
        self.asm.alu(Alu::Add, Width::W64, to, part);
        self.asm.set(SCRATCH, 0x0f0f_0f0f_0f0f_0f0f);
        self.asm.alu(Alu::And, Width::W64, to, SCRATCH);
        self.asm.set(SCRATCH, 0x0101_0101_0101_0101);
        self.asm.multiply(Width::W64, to, SCRATCH);
        self.asm.shift(Shift::Shr, Width::W64, to, 56);
        self.set_known_bits(Reg::R2, 64);
    }

    /// Rotates by the count in `r2`, which `cl` must hold.
    fn rotate_by_reg(&mut self, op: Shift, to: Gpr, from: Gpr) {
        let (count, rcx) = (self.gpr(Reg::R2), Gpr::RCX);
        self.asm.mov(Width::W64, SCRATCH, from);
        if count == rcx {
            self.asm.shift_by_cl(op, Width::W64, SCRATCH);
            self.asm.mov(Width::W64, to, SCRATCH);
            return;
        }
        // The result may take the place of what it came from.
        self.asm.mov(Width::W64, to, rcx);
        self.asm.mov(Width::W32, rcx, count);
        self.asm.shift_by_cl(op, Width::W64, SCRATCH);
        self.asm.mov(Width::W64, rcx, to);
        self.asm.mov(Width::W64, to, SCRATCH);
    }
}
