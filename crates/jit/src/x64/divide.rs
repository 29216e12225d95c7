//! Division and remainder.
//!
//! The machine divides `rdx:rax` and traps on a zero divisor and on the most
//! negative number divided by -1; here the former gives 0 (the remainder: the
//! dividend), the latter wraps. By constants, powers of two are shifts and masks,
//! and others are a multiplication by a reciprocal: the quotient of an n-bit
//! number by d is the upper part of its product with ceil(2^(n+s) / d), where
//! 2^s >= d (Granlund and Montgomery, "Division by invariant integers using
//! multiplication").

use isa::ebpf::{AluOp, Operand, Reg, Width};

use super::alu::Arithmetic;
use super::asm::{Alu, Shift, Unary};
use super::buffer::Label;
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};

impl Generator<'_> {
    /// `dst = dst op src`, a division or a remainder.
    pub(super) fn divide(&mut self, slot: usize, this: Arithmetic) {
        let done = match this.src {
            Operand::Imm(imm) if self.shows(imm) => self.divide_by_constant(slot, this, imm),
            _ => false,
        };
        if !done {
            self.divide_by_any(slot, this);
        }
        self.flags = None;
        let bits = if this.width == Width::W32 { 32 } else { 64 };
        self.know(this.dst, bits);
    }

    /// Without a division, if there is a way.
    fn divide_by_constant(&mut self, slot: usize, this: Arithmetic, imm: i32) -> bool {
        let dst = self.gpr(this.dst);
        let Arithmetic { op, width, .. } = this;
        let divisor = match width {
            Width::W32 => u64::from(imm as u32),
            Width::W64 => imm as i64 as u64,
        };
        match op {
            AluOp::Div | AluOp::SDiv if imm == 0 => self.buf.set(dst, 0),
            AluOp::Mod | AluOp::SMod if imm == 0 => self.zero_above(this),
            AluOp::Div | AluOp::SDiv if imm == 1 => self.zero_above(this),
            AluOp::Mod | AluOp::SMod if imm == 1 || imm == -1 && op == AluOp::SMod => {
                self.buf.set(dst, 0);
            }
            AluOp::SDiv if imm == -1 => self.buf.unary(Unary::Neg, width, dst),
            AluOp::Div if divisor.is_power_of_two() => {
                let count = divisor.trailing_zeros() as u8;
                self.buf.shift(Shift::Shr, width, dst, count);
            }
            AluOp::Mod if divisor.is_power_of_two() && divisor <= 1 << 31 => {
                let mask = (divisor - 1) as i32;
                self.buf.alu_imm(Alu::And, Width::W32, dst, mask);
            }
            AluOp::Div | AluOp::Mod if width == Width::W32 => {
                self.divide_by_reciprocal(this, imm as u32);
            }
            AluOp::Div | AluOp::Mod if imm > 0 && self.known(this.dst) <= 32 => {
                self.divide_by_reciprocal(this, imm as u32);
            }
            AluOp::Div | AluOp::Mod if imm > 0 => {
                self.divide_all_by_reciprocal(slot, this, imm);
            }
            _ => return false,
        }
        true
    }

    /// A 32-bit operation that keeps the low half.
    fn zero_above(&mut self, this: Arithmetic) {
        if this.width == Width::W32 {
            let dst = self.gpr(this.dst);
            self.buf.mov(Width::W32, dst, dst);
        }
    }

    /// The low half by a constant that is no power of two: one multiplication on
    /// 64 bits where the reciprocal has 32, and a correction where it has 33.
    fn divide_by_reciprocal(&mut self, this: Arithmetic, divisor: u32) {
        let dst = self.gpr(this.dst);
        let Reciprocal { factor, shift } = Reciprocal::of(divisor, 32);
        let remainder = this.op == AluOp::Mod;
        let spare = self.frame.spare();
        let copy = spare.unwrap_or(if dst == Gpr::RAX { Gpr::RDX } else { Gpr::RAX });
        if spare.is_none() {
            self.buf.push(copy);
        }
        // The scratch register becomes the quotient; `copy` holds the dividend.
        self.buf.mov(Width::W32, copy, dst);
        match u32::try_from(factor) {
            Ok(factor) => {
                self.buf.set(SCRATCH, factor.into());
                self.buf.multiply(Width::W64, SCRATCH, copy);
                self.buf.shift(Shift::Shr, Width::W64, SCRATCH, 32 + shift);
            }
            Err(_) => {
                // q = (x * (factor - 2^32)) >> 32; ((x - q) / 2 + q) >> (shift - 1)
                self.buf.set(SCRATCH, u64::from(factor as u32));
                self.buf.multiply(Width::W64, SCRATCH, copy);
                self.buf.shift(Shift::Shr, Width::W64, SCRATCH, 32);
                self.buf.mov(Width::W32, dst, copy);
                self.buf.alu(Alu::Sub, Width::W32, dst, SCRATCH);
                self.buf.shift(Shift::Shr, Width::W32, dst, 1);
                self.buf.alu(Alu::Add, Width::W32, SCRATCH, dst);
                if shift > 1 {
                    self.buf.shift(Shift::Shr, Width::W32, SCRATCH, shift - 1);
                }
            }
        }
        if remainder {
            self.buf
                .multiply_imm(Width::W32, SCRATCH, SCRATCH, divisor as i32);
            self.buf.mov(Width::W32, dst, copy);
            self.buf.alu(Alu::Sub, Width::W32, dst, SCRATCH);
        } else {
            self.buf.mov(Width::W32, dst, SCRATCH);
        }
        if spare.is_none() {
            self.buf.pop(copy);
        }
    }

    /// All 64 bits by a positive constant that is no power of two: as on 32 bits,
    /// by the upper half of a product of 128. A loop takes a fifth of the time of
    /// one with the machine's division, two fifths where each remainder is wanted
    /// for the next.
    fn divide_all_by_reciprocal(&mut self, slot: usize, this: Arithmetic, divisor: i32) {
        let target = self.gpr(this.dst);
        let Reciprocal { factor, shift } = Reciprocal::of(divisor as u32, 64);
        let (rax, rdx) = (Gpr::RAX, Gpr::RDX);
        let saved = self.save_product(slot, target);
        self.buf.mov(Width::W64, SCRATCH, target);
        self.buf.set(rax, factor as u64);
        self.buf.unary(Unary::Mul, Width::W64, SCRATCH);
        let mut left = shift;
        if factor > u128::from(u64::MAX) {
            self.buf.mov(Width::W64, rax, SCRATCH);
            self.buf.alu(Alu::Sub, Width::W64, rax, rdx);
            self.buf.shift(Shift::Shr, Width::W64, rax, 1);
            self.buf.alu(Alu::Add, Width::W64, rdx, rax);
            left -= 1;
        }
        if left > 0 {
            self.buf.shift(Shift::Shr, Width::W64, rdx, left);
        }
        let mut result = rdx;
        if this.op == AluOp::Mod {
            self.buf.multiply_imm(Width::W64, rax, rdx, divisor);
            self.buf.alu(Alu::Sub, Width::W64, SCRATCH, rax);
            result = SCRATCH;
        }
        if target != result {
            self.buf.mov(Width::W64, target, result);
        }
        self.restore_product(saved);
    }

    /// Saves what `rax` and `rdx` hold, if that is wanted after an operation that
    /// writes them and then `target`; which of them it saved.
    fn save_product(&mut self, slot: usize, target: Gpr) -> [Option<Gpr>; 2] {
        let after = self.after(slot);
        [Gpr::RAX, Gpr::RDX].map(|gpr| {
            let mut regs = (0..10).filter_map(Reg::new);
            let wanted = regs.any(|reg| self.frame.holds(reg, gpr) && after.has(reg));
            let saves = gpr != target && (wanted || self.frame.is_special(gpr));
            if saves {
                self.buf.push(gpr);
            }
            saves.then_some(gpr)
        })
    }

    fn restore_product(&mut self, saved: [Option<Gpr>; 2]) {
        for gpr in saved.into_iter().rev().flatten() {
            self.buf.pop(gpr);
        }
    }

    /// The machine's division, with the divisor looked at first.
    fn divide_by_any(&mut self, slot: usize, this: Arithmetic) {
        let Arithmetic {
            op,
            width,
            dst,
            src,
        } = this;
        let signed = matches!(op, AluOp::SDiv | AluOp::SMod);
        let remainder = matches!(op, AluOp::Mod | AluOp::SMod);
        let (rax, rdx) = (Gpr::RAX, Gpr::RDX);
        let target = self.gpr(dst);
        match src {
            Operand::Imm(imm) => {
                let value = match width {
                    Width::W32 => u64::from(imm as u32),
                    Width::W64 => imm as i64 as u64,
                };
                self.set_constant(SCRATCH, value);
            }
            Operand::Reg(Reg::R10) => {
                let top = self.frame.stack_top();
                self.buf.lea(Width::W64, SCRATCH, top);
            }
            Operand::Reg(src) => {
                let src = self.gpr(src);
                self.buf.mov(width, SCRATCH, src);
            }
        }
        let done = self.buf.new_label();
        let by_zero = self.buf.new_label();
        let by_minus_one = self.buf.new_label();
        let checks = matches!(src, Operand::Reg(reg) if reg != Reg::R10);
        debug_assert!(src != Operand::Imm(0), "that is a constant to show");
        if checks {
            if signed {
                // 0 and -1 are the two values that adding 1 makes at most 1.
                self.buf.lea(width, SCRATCH, Mem::at(SCRATCH, 1));
                self.buf.alu_imm(Alu::Cmp, width, SCRATCH, 1);
                self.buf.jump_if(Cc::Be, by_minus_one);
                self.buf.alu_imm(Alu::Sub, width, SCRATCH, 1);
            } else {
                self.buf.test(width, SCRATCH, SCRATCH);
                self.buf.jump_if(Cc::E, by_zero);
            }
        }
        let saved = self.save_product(slot, target);
        if target != rax {
            self.buf.mov(width, rax, target);
        }
        if signed {
            self.buf.sign_into_rdx(width);
            self.buf.unary(Unary::Idiv, width, SCRATCH);
        } else {
            self.buf.alu(Alu::Xor, Width::W32, rdx, rdx);
            self.buf.unary(Unary::Div, width, SCRATCH);
        }
        let result = if remainder { rdx } else { rax };
        if target != result {
            self.buf.mov(width, target, result);
        }
        self.restore_product(saved);
        if checks {
            self.write_exceptions(this, [done, by_zero, by_minus_one], signed);
        }
    }

    /// What 0 and -1 give, behind a jump over it.
    fn write_exceptions(&mut self, this: Arithmetic, labels: [Label; 3], signed: bool) {
        let [done, by_zero, by_minus_one] = labels;
        let target = self.gpr(this.dst);
        let remainder = matches!(this.op, AluOp::Mod | AluOp::SMod);
        self.buf.jump(done);
        if signed {
            self.buf.bind(by_minus_one);
            // Equal to 1: the divisor was 0.
            self.buf.jump_if(Cc::E, by_zero);
            if remainder {
                self.buf.set(target, 0);
            } else {
                self.buf.unary(Unary::Neg, this.width, target);
            }
            self.buf.jump(done);
        }
        self.buf.bind(by_zero);
        if !remainder {
            self.buf.set(target, 0);
        } else if this.width == Width::W32 {
            self.buf.mov(Width::W32, target, target);
        }
        self.buf.bind(done);
    }
}

/// A multiplication and a shift that divide numbers of so many bits: `(x *
/// factor) >> (bits + shift)`; the factor has up to one bit more than they.
struct Reciprocal {
    factor: u128,
    shift: u8,
}

impl Reciprocal {
    /// Of a divisor that is at least 3 and no power of two, for 32 or 64 bits.
    fn of(divisor: u32, bits: u8) -> Reciprocal {
        let mut shift = 32 - divisor.leading_zeros() as u8;
        let mut factor = (1u128 << (bits + shift)).div_ceil(divisor.into());
        // A smaller one may do: halve while the error stays in bounds.
        while shift > 0 {
            let power = 1u128 << (bits - 1 + shift);
            let smaller = power.div_ceil(divisor.into());
            let error = smaller * u128::from(divisor) - power;
            if error > 1 << (shift - 1) {
                break;
            }
            factor = smaller;
            shift -= 1;
        }
        Reciprocal { factor, shift }
    }
}
