//! Division and remainder by constants: shifts and masks for powers of two, a division
//! instruction for the rest.

use isa::ebpf::{Reg, Size, Width};

use super::super::Generator;
use super::super::asm::Unary;
use super::super::reg::Gpr;
use crate::codegen::{Alu, Arithmetic, Assembler, Shift, all, bits};

/// A division by a constant.
#[derive(Clone, Copy)]
struct Division {
    remainder: bool,
    width: Width,
    dst: Gpr,
    /// The dividend's register, perhaps `dst`.
    src: Gpr,
    /// Significant bits of the dividend.
    known_bits: u8,
    /// True if bits above the width may be set.
    dirty: bool,
    /// The divisor's absolute value.
    divisor: u64,
    negative: bool,
}

impl Generator<'_> {
    /// `dst = src op imm`, where `src` may be `dst` and keeps its value if it is not.
    pub(in super::super) fn divide_by_constant(
        &mut self,
        slot: usize,
        this: Arithmetic,
        src: Reg,
        imm: i32,
    ) {
        let width = this.width;
        let most = all(width);
        let known_bits = self.known_bits(src).min(most);
        let (is_signed, remainder) = this.division();
        // Without a sign bit, signed division is unsigned division.
        let signed = is_signed && (imm < 0 || known_bits == most);
        let division = Division {
            remainder,
            width,
            dst: self.gpr(this.dst),
            src: self.gpr(src),
            known_bits,
            dirty: self.known_bits(src) > most,
            divisor: match width {
                _ if signed => imm.unsigned_abs().into(),
                Width::W32 => u64::from(imm as u32),
                Width::W64 => imm as i64 as u64,
            },
            negative: signed && imm < 0,
        };
        let divisor = division.divisor;
        let left = if divisor <= 1 || !signed && bits(divisor) > known_bits {
            self.divide_trivially(division)
        } else if !signed && divisor.is_power_of_two() {
            self.divide_by_power(this.dst, division);
            match remainder {
                true => known_bits.min(bits(divisor - 1)),
                false => known_bits.saturating_sub(divisor.ilog2() as u8),
            }
        } else {
            if division.dst != division.src {
                self.asm.mov(width, division.dst, division.src);
            }
            self.divide_by_scratch(slot, this, imm);
            most
        };
        self.set_known_bits(this.dst, left);
    }

    /// Divides by 0, 1, -1, or an unsigned number greater than the dividend; returns the
    /// significant bits of the result.
    fn divide_trivially(&mut self, this: Division) -> u8 {
        // For 0 and for divisors greater than the dividend, the quotient is 0 and the
        // remainder the dividend; for 1, vice versa.
        if this.remainder == (this.divisor == 1) {
            self.asm.set(this.dst, 0);
            return 0;
        }
        if this.dst != this.src {
            self.asm.mov(this.width, this.dst, this.src);
        } else if this.dirty {
            self.asm.mov(Width::W32, this.dst, this.dst);
        }
        if this.divisor == 1 && this.negative {
            self.asm.unary(Unary::Neg, this.width, this.dst);
            return all(this.width);
        }
        this.known_bits
    }

    fn divide_by_power(&mut self, reg: Reg, this: Division) {
        let Division { dst, src, .. } = this;
        let width = match this.known_bits <= 32 {
            true => Width::W32,
            false => this.width,
        };
        match this.divisor {
            0x100 if this.remainder => self.asm.extend(Size::B, None, dst, src),
            0x1_0000 if this.remainder => self.asm.extend(Size::H, None, dst, src),
            divisor => {
                if dst != src {
                    self.asm.mov(width, dst, src);
                }
                if this.remainder {
                    let mask = (divisor - 1) as i32;
                    self.asm.alu_imm(Alu::And, Width::W32, dst, mask);
                } else {
                    let count = divisor.ilog2() as u8;
                    self.asm.shift(Shift::Shr, width, dst, count);
                }
                self.set_flags(reg, width);
            }
        }
    }
}
