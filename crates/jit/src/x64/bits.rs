//! Bit operations, which programs call as kfuncs: instructions in place of the calls.
//!
//! A verified program reads none of `r1` to `r5` behind a call, so that what the operation
//! needs beside its result may be there.

use isa::ebpf::{Reg, Width};
use spec::bits::BitOp;

use super::asm::{Alu, Shift};
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Cc, Gpr};

impl Generator<'_> {
    /// Compiles `r0 = op(r1, r2)`.
    pub(super) fn bit_operation(&mut self, op: BitOp) {
        let (to, from) = (self.gpr(Reg::R0), self.gpr(Reg::R1));
        match op {
            BitOp::Ffs | BitOp::Ctz if self.features.bmi1 => self.buf.trailing_zeros(to, from),
            BitOp::Ffs | BitOp::Ctz => {
                self.buf.lowest_bit(to, from);
                self.replace_if_zero(to, 64);
            }
            BitOp::Clz if self.features.lzcnt => self.buf.leading_zeros(to, from),
            BitOp::Clz => {
                self.buf.highest_bit(to, from);
                // 127 with its low six bits inverted is 64.
                self.replace_if_zero(to, 127);
                self.buf.alu_imm(Alu::Xor, Width::W32, to, 63);
            }
            BitOp::Fls => {
                self.buf.highest_bit(to, from);
                self.replace_if_zero(to, u64::from(u32::MAX));
                self.buf.alu_imm(Alu::Add, Width::W32, to, 1);
            }
            BitOp::Popcnt if self.features.popcnt => self.buf.count_ones(to, from),
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
        self.buf.set_keeping_flags(SCRATCH, value);
        self.buf.mov_if(Cc::E, Width::W64, to, SCRATCH);
    }

    /// Adds up bits, pairs and nibbles, then the bytes by a multiplication.
    fn count_ones(&mut self, to: Gpr, from: Gpr) {
        let part = self.gpr(Reg::R2);
        if to != from {
            self.buf.mov(Width::W64, to, from);
        }
        self.buf.mov(Width::W64, part, to);
        self.buf.shift(Shift::Shr, Width::W64, part, 1);
        self.buf.set(SCRATCH, 0x5555_5555_5555_5555);
        self.buf.alu(Alu::And, Width::W64, part, SCRATCH);
        self.buf.alu(Alu::Sub, Width::W64, to, part);
        self.buf.set(SCRATCH, 0x3333_3333_3333_3333);
        self.buf.mov(Width::W64, part, to);
        self.buf.shift(Shift::Shr, Width::W64, part, 2);
        self.buf.alu(Alu::And, Width::W64, part, SCRATCH);
        self.buf.alu(Alu::And, Width::W64, to, SCRATCH);
        self.buf.alu(Alu::Add, Width::W64, to, part);
        self.buf.mov(Width::W64, part, to);
        self.buf.shift(Shift::Shr, Width::W64, part, 4);
        self.buf.alu(Alu::Add, Width::W64, to, part);
        self.buf.set(SCRATCH, 0x0f0f_0f0f_0f0f_0f0f);
        self.buf.alu(Alu::And, Width::W64, to, SCRATCH);
        self.buf.set(SCRATCH, 0x0101_0101_0101_0101);
        self.buf.multiply(Width::W64, to, SCRATCH);
        self.buf.shift(Shift::Shr, Width::W64, to, 56);
        self.set_known_bits(Reg::R2, 64);
    }

    /// Rotates by the count in `r2`, which `cl` must hold.
    fn rotate_by_reg(&mut self, op: Shift, to: Gpr, from: Gpr) {
        let (count, rcx) = (self.gpr(Reg::R2), Gpr::RCX);
        self.buf.mov(Width::W64, SCRATCH, from);
        if count == rcx {
            self.buf.shift_by_cl(op, Width::W64, SCRATCH);
            self.buf.mov(Width::W64, to, SCRATCH);
            return;
        }
        // The result may take the place of what it came from.
        self.buf.mov(Width::W64, to, rcx);
        self.buf.mov(Width::W32, rcx, count);
        self.buf.shift_by_cl(op, Width::W64, SCRATCH);
        self.buf.mov(Width::W64, rcx, to);
        self.buf.mov(Width::W64, to, SCRATCH);
    }
}
