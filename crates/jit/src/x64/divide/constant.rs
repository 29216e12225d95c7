//! Division and remainder by constants: shifts and masks for powers of two, a
//! multiplication by a [`Reciprocal`] for others.

use isa::ebpf::{AluOp, Reg, Size, Width};

use super::super::alu::{Arithmetic, all};
use super::super::asm::{Alu, Shift, Unary};
use super::super::frame::SCRATCH;
use super::super::generator::{Generator, bits};
use super::super::reg::{Cc, Gpr, Mem};
use super::reciprocal::{Before, Reciprocal};
use crate::Optimization;

/// A division by a constant.
#[derive(Clone, Copy)]
struct Division {
    remainder: bool,
    width: Width,
    dst: Gpr,
    /// Where the dividend is, perhaps `dst`.
    src: Gpr,
    /// How many of the dividend's low bits may be set.
    known: u8,
    /// There may be others above the width.
    dirty: bool,
    /// Without its sign.
    divisor: u64,
    negative: bool,
}

impl Division {
    /// The optimization that does it; `None` where nothing is to be divided or a shift
    /// does it.
    fn method(&self, signed: bool, width: u8) -> Option<Optimization> {
        let divisor = self.divisor;
        if divisor <= 1 || !signed && bits(divisor) > self.known {
            return None;
        }
        match (signed, divisor.is_power_of_two()) {
            (true, true) => Some(Optimization::SignedDivisionByPower),
            (true, false) if width == 32 => Some(Optimization::SignedDivision32),
            (true, false) => Some(Optimization::SignedDivision64),
            (false, true) => None,
            (false, false) if bits(divisor) == width => Some(Optimization::DivisionByLarge),
            (false, false) if self.known <= 32 => Some(Optimization::Division32),
            (false, false) => Some(Optimization::Division64),
        }
    }
}

impl Generator<'_> {
    /// `dst = src op imm`, where `src` may be `dst` and stays as it was if it is not.
    pub(in super::super) fn divide_by_constant(
        &mut self,
        slot: usize,
        this: Arithmetic,
        src: Reg,
        imm: i32,
    ) {
        let width = this.width;
        let most = if width == Width::W32 { 32 } else { 64 };
        let known = self.known(src).min(most);
        let (dst, from) = (self.gpr(this.dst), self.gpr(src));
        // The sign does not matter if there is none.
        let is_signed = matches!(this.op, AluOp::SDiv | AluOp::SMod);
        let signed = is_signed && (imm < 0 || known == most);
        let division = Division {
            remainder: matches!(this.op, AluOp::Mod | AluOp::SMod),
            width,
            dst,
            src: from,
            known,
            dirty: self.known(src) > most,
            divisor: match width {
                _ if signed => imm.unsigned_abs().into(),
                Width::W32 => u64::from(imm as u32),
                Width::W64 => imm as i64 as u64,
            },
            negative: signed && imm < 0,
        };
        let Division {
            divisor, remainder, ..
        } = division;
        let method = division.method(signed, most);
        if let Some(method) = method {
            if !self.uses(method) {
                return self.divide_by_loaded(slot, this, src, imm);
            }
            self.applies(method);
        }
        let power = divisor.is_power_of_two();
        let log = divisor.checked_ilog2().unwrap_or(0) as u8;
        let mut left = match remainder {
            _ if signed => most,
            true => known.min(bits(divisor.wrapping_sub(1))),
            false => known.saturating_sub(log),
        };
        if divisor <= 1 || !signed && bits(divisor) > known {
            // By 0, the quotient is 0 and the remainder the dividend, as by a number that
            // is too large; by 1, it is the other way round.
            if remainder == (divisor == 1) {
                self.buf.set(dst, 0);
                left = 0;
            } else {
                self.take_dividend(division);
                if divisor == 1 && division.negative {
                    self.buf.unary(Unary::Neg, width, dst);
                } else {
                    left = known;
                }
            }
        } else if signed && power {
            self.divide_signed_by_power(division, log);
        } else if signed && width == Width::W32 {
            self.divide_signed_half(division);
        } else if signed {
            self.divide_signed(slot, division);
        } else if power {
            self.divide_by_power(this.dst, division, log);
        } else if log == most - 1 {
            self.divide_by_large(division, imm);
        } else if known <= 32 {
            self.divide_half(division);
            self.set_flags(this.dst, Width::W32);
        } else if self.features.bmi2 && dst != Gpr::RDX && !(remainder && from == Gpr::RDX) {
            self.divide_whole_apart(slot, division);
        } else {
            self.divide_whole(slot, division);
        }
        self.know(this.dst, left);
    }

    /// `dst = src op imm` by the machine's division; the divisor is neither 0 nor -1.
    fn divide_by_loaded(&mut self, slot: usize, this: Arithmetic, src: Reg, imm: i32) {
        let (dst, from) = (self.gpr(this.dst), self.gpr(src));
        if dst != from {
            self.buf.mov(this.width, dst, from);
        }
        self.divide_by_scratch(slot, this, imm);
        self.know(this.dst, all(this.width));
    }

    /// Has the dividend in `dst`, with nothing above the width.
    fn take_dividend(&mut self, this: Division) {
        if this.dst != this.src {
            self.buf.mov(this.width, this.dst, this.src);
        } else if this.dirty {
            self.buf.mov(Width::W32, this.dst, this.dst);
        }
    }

    fn divide_by_power(&mut self, reg: Reg, this: Division, log: u8) {
        let Division { dst, src, .. } = this;
        let width = if this.known <= 32 {
            Width::W32
        } else {
            this.width
        };
        match log {
            8 if this.remainder => self.buf.extend(Size::B, None, dst, src),
            16 if this.remainder => self.buf.extend(Size::H, None, dst, src),
            _ => {
                if dst != src {
                    self.buf.mov(width, dst, src);
                }
                if this.remainder {
                    let mask = (this.divisor - 1) as i32;
                    self.buf.alu_imm(Alu::And, Width::W32, dst, mask);
                } else {
                    self.buf.shift(Shift::Shr, width, dst, log);
                }
                self.set_flags(reg, width);
            }
        }
    }

    /// Negative dividends are moved up by the divisor less 1, for the shift to round
    /// towards zero.
    fn divide_signed_by_power(&mut self, this: Division, log: u8) {
        let Division {
            width, dst, src, ..
        } = this;
        let sign = if width == Width::W32 { 31 } else { 63 };
        if dst != src {
            self.buf.mov(width, dst, src);
        }
        self.buf.mov(width, SCRATCH, dst);
        if log > 1 {
            self.buf.shift(Shift::Sar, width, SCRATCH, sign);
        }
        self.buf.shift(Shift::Shr, width, SCRATCH, sign + 1 - log);
        self.buf.alu(Alu::Add, width, dst, SCRATCH);
        if this.remainder {
            let mask = (this.divisor - 1) as i32;
            self.buf.alu_imm(Alu::And, Width::W32, dst, mask);
            self.buf.alu(Alu::Sub, width, dst, SCRATCH);
        } else {
            self.buf.shift(Shift::Sar, width, dst, log);
            if this.negative {
                self.buf.unary(Unary::Neg, width, dst);
            }
        }
    }

    /// By a number of as many bits as the width has: the quotient is 0 or 1.
    fn divide_by_large(&mut self, this: Division, imm: i32) {
        let Division {
            width, dst, src, ..
        } = this;
        if this.remainder {
            self.buf.mov(width, SCRATCH, src);
            self.buf.alu_imm(Alu::Sub, width, SCRATCH, imm);
            if dst != src {
                self.buf.mov(width, dst, src);
            }
            self.buf.mov_if(Cc::Ae, width, dst, SCRATCH);
        } else {
            self.buf.alu_imm(Alu::Cmp, width, src, imm);
            self.buf.alu(Alu::Sbb, Width::W32, dst, dst);
            self.buf.increment(Width::W32, dst);
        }
    }

    /// A dividend of up to 32 bits: one multiplication on 64.
    fn divide_half(&mut self, this: Division) {
        let Division {
            remainder,
            dst,
            mut src,
            known,
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
        } = Reciprocal::of(this.divisor as u32, known);
        let quotient = if remainder { SCRATCH } else { dst };
        let mut incremented = src;
        if before == Before::Increment {
            // A factor that is no immediate operand needs the scratch register.
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
        let width = match known + bits(factor) {
            ..=32 => Width::W32,
            _ => Width::W64,
        };
        self.multiply_by(width, quotient, incremented, factor);
        self.buf.shift(Shift::Shr, width, quotient, exponent);
        if remainder {
            self.multiply_back(Width::W32, SCRATCH, this.divisor);
            if dst != src && dst != incremented {
                self.buf.mov(Width::W32, dst, src);
            }
            self.buf.alu(Alu::Sub, Width::W32, dst, SCRATCH);
            if dst == incremented && before == Before::Increment {
                self.buf.decrement(Width::W32, dst);
            }
        }
    }

    /// Whether the factor can be an immediate operand.
    fn multiplies_by(&self, factor: u64) -> bool {
        factor <= i32::MAX as u64 && !self.blinds()
    }

    /// `dst = src * factor`; the scratch register is lost if `src` is `dst`.
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

    /// What a quotient stands for.
    fn multiply_back(&mut self, width: Width, quotient: Gpr, divisor: u64) {
        match divisor {
            3 | 5 | 9 => {
                let scale = (divisor - 1).trailing_zeros() as u8;
                let mem = Mem {
                    base: quotient,
                    index: Some((quotient, scale)),
                    disp: 0,
                };
                self.buf.lea(width, quotient, mem);
            }
            _ => {
                self.buf
                    .multiply_imm(width, quotient, quotient, divisor as i32);
            }
        }
    }

    /// A dividend of up to 64 bits: the upper half of a product of 128. A loop takes a
    /// fifth of the time of one with the machine's division, two fifths where each
    /// remainder is wanted for the next.
    fn divide_whole(&mut self, slot: usize, this: Division) {
        let Division { dst, src, .. } = this;
        let (rax, rdx) = (Gpr::RAX, Gpr::RDX);
        let saved = self.save_product(slot, dst);
        let mut dividend = src;
        if this.remainder && (src == rax || src == rdx) {
            dividend = SCRATCH;
            self.buf.mov(Width::W64, SCRATCH, src);
        }
        let Reciprocal {
            factor,
            exponent,
            before,
        } = Reciprocal::of(this.divisor as u32, this.known);
        if before == Before::Nothing && src != rax {
            self.set_constant(rax, factor);
            self.buf.unary(Unary::Mul, Width::W64, src);
        } else {
            if src != rax {
                self.buf.mov(Width::W64, rax, src);
            }
            match before {
                Before::Nothing => {}
                Before::Increment => {
                    self.buf.alu_imm(Alu::Add, Width::W64, rax, 1);
                    self.buf.alu_imm(Alu::Sbb, Width::W64, rax, 0);
                }
                Before::ShiftRight(count) => self.buf.shift(Shift::Shr, Width::W64, rax, count),
            }
            self.set_constant(rdx, factor);
            self.buf.unary(Unary::Mul, Width::W64, rdx);
        }
        if exponent > 64 {
            self.buf.shift(Shift::Shr, Width::W64, rdx, exponent - 64);
        }
        if this.remainder {
            self.subtract_multiple(this, rdx, dividend);
        } else if dst != rdx {
            self.buf.mov(Width::W64, dst, rdx);
        }
        self.restore_product(saved);
    }

    /// The same where neither the result nor what a remainder is taken of stands in
    /// `rdx`, with an operation that leaves the product in any register: `rax` is not
    /// touched. A token bucket with one quotient takes 0.96 of the time.
    fn divide_whole_apart(&mut self, slot: usize, this: Division) {
        let Division {
            remainder,
            dst,
            src,
            ..
        } = this;
        let rdx = Gpr::RDX;
        let quotient = if remainder { SCRATCH } else { dst };
        let Reciprocal {
            factor,
            exponent,
            before,
        } = Reciprocal::of(this.divisor as u32, this.known);
        let moves = before != Before::Nothing || src == rdx;
        if moves && quotient != src {
            self.buf.mov(Width::W64, quotient, src);
        }
        match before {
            Before::Nothing => {}
            Before::Increment => {
                self.buf.alu_imm(Alu::Add, Width::W64, quotient, 1);
                self.buf.alu_imm(Alu::Sbb, Width::W64, quotient, 0);
            }
            Before::ShiftRight(count) => self.buf.shift(Shift::Shr, Width::W64, quotient, count),
        }
        let saves = self.is_held(slot, rdx);
        match saves {
            true if remainder => self.buf.push(rdx),
            true => self.buf.mov(Width::W64, SCRATCH, rdx),
            false => {}
        }
        self.set_constant(rdx, factor);
        let dividend = if moves { quotient } else { src };
        self.buf.multiply_high(Width::W64, quotient, dividend);
        match saves {
            true if remainder => self.buf.pop(rdx),
            true => self.buf.mov(Width::W64, rdx, SCRATCH),
            false => {}
        }
        if exponent > 64 {
            self.buf
                .shift(Shift::Shr, Width::W64, quotient, exponent - 64);
        }
        if remainder {
            self.subtract_multiple(this, quotient, src);
        }
    }

    /// The dividend less a quotient's multiple of the divisor.
    fn subtract_multiple(&mut self, this: Division, quotient: Gpr, dividend: Gpr) {
        let dst = this.dst;
        if dst == dividend {
            self.multiply_back(Width::W64, quotient, this.divisor);
            self.buf.alu(Alu::Sub, Width::W64, dst, quotient);
        } else {
            let opposite = -(this.divisor as i32);
            self.buf.multiply_imm(Width::W64, dst, quotient, opposite);
            self.buf.alu(Alu::Add, Width::W64, dst, dividend);
        }
    }

    fn divide_signed_half(&mut self, this: Division) {
        let Division { dst, src, .. } = this;
        let Reciprocal {
            factor, exponent, ..
        } = Reciprocal::signed(this.divisor as u32, 31);
        self.buf.extend(Size::W, Some(Width::W64), dst, src);
        self.multiply_by(Width::W64, SCRATCH, dst, factor);
        self.buf.shift(Shift::Sar, Width::W64, SCRATCH, exponent);
        self.finish_signed(this, dst, SCRATCH);
    }

    fn divide_signed(&mut self, slot: usize, this: Division) {
        let Division { dst, src, .. } = this;
        let (rax, rdx) = (Gpr::RAX, Gpr::RDX);
        let saved = self.save_product(slot, dst);
        let dividend = match dst == rax || dst == rdx {
            true => SCRATCH,
            false => dst,
        };
        if dividend != src {
            self.buf.mov(Width::W64, dividend, src);
        }
        let Reciprocal {
            factor, exponent, ..
        } = Reciprocal::signed(this.divisor as u32, 63);
        self.set_constant(rax, factor);
        self.buf.unary(Unary::Imul, Width::W64, dividend);
        // A factor that is negative to the machine is 2^64 less than it should be.
        if (factor as i64) < 0 {
            self.buf.alu(Alu::Add, Width::W64, rdx, dividend);
        }
        if exponent > 64 {
            self.buf.shift(Shift::Sar, Width::W64, rdx, exponent - 64);
        }
        self.finish_signed(this, dividend, rdx);
        if dst != dividend {
            self.buf.mov(Width::W64, dst, dividend);
        }
        self.restore_product(saved);
    }

    /// Makes the result of a dividend, in its place, and of a quotient that is 1 less
    /// than it should be if the dividend is negative.
    fn finish_signed(&mut self, this: Division, dividend: Gpr, quotient: Gpr) {
        let width = this.width;
        let sign = if width == Width::W32 { 31 } else { 63 };
        if this.remainder {
            self.buf.test_bit(width, dividend, sign);
            self.buf.alu_imm(Alu::Adc, width, quotient, 0);
            self.multiply_back(width, quotient, this.divisor);
            self.buf.alu(Alu::Sub, width, dividend, quotient);
        } else if this.negative {
            self.buf.shift(Shift::Sar, width, dividend, sign);
            self.buf.alu(Alu::Sub, width, dividend, quotient);
        } else {
            self.buf.shift(Shift::Shr, width, dividend, sign);
            self.buf.alu(Alu::Add, width, dividend, quotient);
        }
    }
}
