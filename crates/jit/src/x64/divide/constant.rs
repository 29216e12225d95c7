//! Division and remainder by constants: shifts and masks for powers of two, a
//! multiplication by a [`Reciprocal`] for 32-bit dividends, a division instruction for the
//! rest.

use isa::ebpf::{Reg, Size, Width};

use super::super::alu::{Arithmetic, all};
use super::super::asm::{Alu, Shift, Unary};
use super::super::frame::SCRATCH;
use super::super::generator::{Generator, bits};
use super::super::reg::{Gpr, Mem};
use super::reciprocal::{Before, Reciprocal};
use crate::Optimization;

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
        let has_reciprocal = !signed && known_bits <= 32 && bits(divisor) < most;
        let left = if divisor <= 1 || !signed && bits(divisor) > known_bits {
            self.divide_trivially(division)
        } else if !signed && divisor.is_power_of_two() {
            self.divide_by_power(this.dst, division);
            match remainder {
                true => known_bits.min(bits(divisor - 1)),
                false => known_bits.saturating_sub(divisor.ilog2() as u8),
            }
        } else if has_reciprocal && self.uses(Optimization::ReciprocalDivision) {
            self.applies(Optimization::ReciprocalDivision);
            self.divide_by_reciprocal(division);
            self.set_flags(this.dst, Width::W32);
            match remainder {
                true => known_bits.min(bits(divisor - 1)),
                false => known_bits.saturating_sub(divisor.ilog2() as u8),
            }
        } else {
            if division.dst != division.src {
                self.buf.mov(width, division.dst, division.src);
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
            self.buf.set(this.dst, 0);
            return 0;
        }
        if this.dst != this.src {
            self.buf.mov(this.width, this.dst, this.src);
        } else if this.dirty {
            self.buf.mov(Width::W32, this.dst, this.dst);
        }
        if this.divisor == 1 && this.negative {
            self.buf.unary(Unary::Neg, this.width, this.dst);
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
            0x100 if this.remainder => self.buf.extend(Size::B, None, dst, src),
            0x1_0000 if this.remainder => self.buf.extend(Size::H, None, dst, src),
            divisor => {
                if dst != src {
                    self.buf.mov(width, dst, src);
                }
                if this.remainder {
                    let mask = (divisor - 1) as i32;
                    self.buf.alu_imm(Alu::And, Width::W32, dst, mask);
                } else {
                    let count = divisor.ilog2() as u8;
                    self.buf.shift(Shift::Shr, width, dst, count);
                }
                self.set_flags(reg, width);
            }
        }
    }

    /// Multiplies a dividend of up to 32 bits by the reciprocal, on 64 bits.
    fn divide_by_reciprocal(&mut self, this: Division) {
        let Division {
            remainder,
            dst,
            mut src,
            known_bits,
            ..
        } = this;
        if this.dirty {
            self.buf.mov(Width::W32, dst, src);
            src = dst;
        }
        let Reciprocal {
            factor,
            exponent,
            before,
        } = Reciprocal::of(this.divisor as u32, known_bits);
        let quotient = if remainder { SCRATCH } else { dst };
        let mut incremented = src;
        if before == Before::Increment {
            // A factor that does not fit an immediate operand needs the scratch register.
            incremented = match self.multiplies_by(factor) {
                true => quotient,
                false => dst,
            };
            if incremented == src {
                self.buf.increment(Width::W64, src);
            } else {
                self.buf.lea(Width::W64, incremented, Mem::at(src, 1));
            }
        }
        let width = match known_bits + bits(factor) {
            ..=32 => Width::W32,
            _ => Width::W64,
        };
        self.multiply_by(width, quotient, incremented, factor);
        self.buf.shift(Shift::Shr, width, quotient, exponent);
        if remainder {
            let divisor = this.divisor as i32;
            self.buf.multiply_imm(Width::W32, SCRATCH, SCRATCH, divisor);
            if dst != src && dst != incremented {
                self.buf.mov(Width::W32, dst, src);
            }
            self.buf.alu(Alu::Sub, Width::W32, dst, SCRATCH);
            if dst == incremented && before == Before::Increment {
                self.buf.decrement(Width::W32, dst);
            }
        }
    }

    /// True if the factor can be an immediate operand.
    fn multiplies_by(&self, factor: u64) -> bool {
        factor <= i32::MAX as u64 && !self.blinds()
    }

    /// `dst = src * factor`; overwrites the scratch register if `src` is `dst`.
    fn multiply_by(&mut self, width: Width, dst: Gpr, src: Gpr, factor: u64) {
        if self.multiplies_by(factor) {
            self.buf.multiply_imm(width, dst, src, factor as i32);
        } else if dst == src {
            self.set_constant(SCRATCH, factor);
            self.buf.multiply(width, dst, SCRATCH);
        } else {
            self.set_constant(dst, factor);
            self.buf.multiply(width, dst, src);
        }
    }
}
