//! Transfer functions of arithmetic.
//!
//! Addition, subtraction, multiplication and the bitwise operations treat the
//! 64-bit and the 32-bit ranges independently, whatever the width of the
//! operation; shifts work on the ranges of their width and take the others from
//! the bits. A 32-bit operation then zero-extends its result. The range of a
//! division or a remainder is unknown, and so is that of a shift by an unknown
//! count.

use isa::ebpf::{AluOp, ByteOrder, Size, Width};
use spec::behaviour::{Behaviour, Behaviours};

use super::Scalar;

/// The ends of ranges, each made of one of both operands; a range is unknown if it is lost by what
/// overflowed at its ends.
macro_rules! combine_ranges {
    ($this:ident $operation:ident $other:ident:
        $($min:ident $low:ident, $max:ident $high:ident, $type:ident $is_lost:ident;)*) => {$(
        let (min, low) = $this.$min.$operation($other.$low);
        let (max, high) = $this.$max.$operation($other.$high);
        ($this.$min, $this.$max) = match $is_lost(low, high) {
            false => (min, max),
            true => ($type::MIN, $type::MAX),
        };
    )*};
}

impl Scalar {
    /// `self op other` at `width`, synchronised; `None` if the result is unknown: divisions,
    /// remainders, and shifts by a count that is not a constant below the width
    /// (`is_safe_to_compute_dst_reg_range`). `Mov` is the caller's (`adjust_scalar_min_max_vals`).
    #[doc(alias = "adjust_scalar_min_max_vals")]
    #[doc(alias = "is_safe_to_compute_dst_reg_range")]
    pub fn alu(
        mut self,
        op: AluOp,
        width: Width,
        other: &Scalar,
        rules: Behaviours,
    ) -> Option<Scalar> {
        let narrow = width == Width::W32;
        let varies = rules.has(Behaviour::VaryingOperands);
        if !varies && !is_operand(op, width, other) {
            return None;
        }
        match op {
            _ if rules.has(Behaviour::CircularRanges) => {
                self.alu_circular(op, width, other, rules)?;
            }
            AluOp::Add => self.add(other, rules),
            AluOp::Sub => self.sub(other, rules),
            AluOp::Mul => self.mul(other, rules),
            AluOp::And => self.and(other, rules),
            AluOp::Or => self.or(other, rules),
            AluOp::Xor => self.xor(other, rules),
            // Before, what is unknown of a constant operand had no upper half, either.
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod if !varies => {
                self = Scalar::UNKNOWN;
            }
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh
                if !varies && shift_count(width, other).is_none() =>
            {
                self = Scalar::UNKNOWN;
            }
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => {
                let count = shift_count(width, other)?;
                match (op, narrow) {
                    (AluOp::Lsh, false) => self.lsh64(count, rules),
                    (AluOp::Lsh, true) => self.lsh32(count),
                    (AluOp::Rsh, false) => self.rsh64(count, rules),
                    (AluOp::Rsh, true) => self.rsh32(count),
                    (_, false) => self.arsh64(count, rules),
                    (_, true) => self.arsh32(count),
                }
            }
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod
                if rules.has(Behaviour::DivisionRanges) =>
            {
                self.divide_circular(op, width, other)?;
            }
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod | AluOp::Mov => return None,
        }
        if narrow {
            self.zero_extend32();
        }
        self.sync(rules);
        Some(self)
    }

    /// `-self` at `width`, synchronised.
    pub fn neg(self, width: Width, rules: Behaviours) -> Scalar {
        let mut result = Scalar::ZERO;
        result.sub(&self, rules);
        if width == Width::W32 {
            result.zero_extend32();
        }
        result.sync(rules);
        result
    }

    /// The value in another byte order, synchronised (`scalar_byte_swap`).
    #[doc(alias = "scalar_byte_swap")]
    pub fn byte_order(mut self, order: ByteOrder, size: Size, rules: Behaviours) -> Scalar {
        if order != ByteOrder::Little {
            self.var_off = self.var_off.byte_swapped(size.bytes());
            self.unbound();
        }
        if size != Size::DW {
            self.truncate(size.bytes(), rules);
        }
        self.sync(rules);
        self
    }

    /// The sum with a constant, whose 32-bit form is zero-extended if `narrow`;
    /// synchronised. Used for scalars that are linked by a constant difference.
    pub fn offset_by(mut self, delta: i64, narrow: bool, rules: Behaviours) -> Scalar {
        self.add(&Scalar::constant(delta as u64), rules);
        if narrow {
            self.zero_extend32();
        }
        if rules.has(Behaviour::LinkedBitsAgree) {
            self.sync(rules);
        }
        self
    }

    /// Adds without synchronising, as pointer arithmetic needs it.
    pub(crate) fn add(&mut self, other: &Scalar, rules: Behaviours) {
        if rules.has(Behaviour::CircularRanges) {
            return self.add_circular(other);
        }
        self.add_ranges(other, rules.has(Behaviour::SumsWrap));
        self.var_off = self.var_off.add(other.var_off);
    }

    /// Subtracts without synchronising, as pointer arithmetic needs it (`scalar_min_max_sub`,
    /// `scalar32_min_max_sub`).
    #[doc(alias = "scalar32_min_max_sub")]
    #[doc(alias = "scalar_min_max_sub")]
    pub(crate) fn sub(&mut self, other: &Scalar, rules: Behaviours) {
        if rules.has(Behaviour::CircularRanges) {
            return self.sub_circular(other);
        }
        self.sub_ranges(other, rules.has(Behaviour::SumsWrap));
        self.var_off = self.var_off.sub(other.var_off);
    }

    /// The ranges of the sum (`scalar_min_max_add`, `scalar32_min_max_add`). Signed ranges are kept
    /// if neither end overflows, unsigned ones if neither does or, where sums wrap, both do.
    #[doc(alias = "scalar32_min_max_add")]
    #[doc(alias = "scalar_min_max_add")]
    #[inline]
    pub(crate) fn add_ranges(&mut self, other: &Scalar, wraps: bool) {
        let signed = |low, high| low | high;
        let unsigned = |low: bool, high: bool| high & !(wraps & low);
        combine_ranges! { self overflowing_add other:
            s32_min s32_min, s32_max s32_max, i32 signed;
            u32_min u32_min, u32_max u32_max, u32 unsigned;
            smin smin, smax smax, i64 signed;
            umin umin, umax umax, u64 unsigned;
        }
    }

    /// The ranges of the difference, likewise.
    #[inline]
    pub(crate) fn sub_ranges(&mut self, other: &Scalar, wraps: bool) {
        let signed = |low, high| low | high;
        let unsigned = |low: bool, high: bool| low & !(wraps & high);
        combine_ranges! { self overflowing_sub other:
            s32_min s32_max, s32_max s32_min, i32 signed;
            u32_min u32_max, u32_max u32_min, u32 unsigned;
            smin smax, smax smin, i64 signed;
            umin umax, umax umin, u64 unsigned;
        }
    }

    /// Linux's `scalar_min_max_mul` and `scalar32_min_max_mul`.
    #[doc(alias = "scalar32_min_max_mul")]
    #[doc(alias = "scalar_min_max_mul")]
    fn mul(&mut self, other: &Scalar, rules: Behaviours) {
        self.var_off = self.var_off.mul(other.var_off, rules);
        if !rules.has(Behaviour::SignedProducts) {
            self.mul_small32(other);
            self.mul_small64(other);
            return;
        }
        (self.u32_min, self.u32_max) = self
            .u32_min
            .checked_mul(other.u32_min)
            .zip(self.u32_max.checked_mul(other.u32_max))
            .unwrap_or((0, u32::MAX));
        let (low, high) = (self.s32_min, self.s32_max);
        let products = [
            low.checked_mul(other.s32_min),
            low.checked_mul(other.s32_max),
            high.checked_mul(other.s32_min),
            high.checked_mul(other.s32_max),
        ];
        (self.s32_min, self.s32_max) = extremes(products).unwrap_or((i32::MIN, i32::MAX));
        (self.umin, self.umax) = self
            .umin
            .checked_mul(other.umin)
            .zip(self.umax.checked_mul(other.umax))
            .unwrap_or((0, u64::MAX));
        let (low, high) = (self.smin, self.smax);
        let products = [
            low.checked_mul(other.smin),
            low.checked_mul(other.smax),
            high.checked_mul(other.smin),
            high.checked_mul(other.smax),
        ];
        (self.smin, self.smax) = extremes(products).unwrap_or((i64::MIN, i64::MAX));
    }

    /// The 32-bit ranges of a product of halves that are not negative and have at most 16 bits.
    fn mul_small32(&mut self, other: &Scalar) {
        let most = u32::from(u16::MAX);
        let is_negative = self.s32_min < 0 || other.s32_min < 0;
        if is_negative || self.u32_max > most || other.u32_max > most {
            self.unbound32();
            return;
        }
        self.u32_min *= other.u32_min;
        self.u32_max *= other.u32_max;
        (self.s32_min, self.s32_max) = match i32::try_from(self.u32_max) {
            Ok(max) => (self.u32_min as i32, max),
            Err(_) => (i32::MIN, i32::MAX),
        };
    }

    /// The 64-bit ranges of a product of numbers that are not negative and have at most 32 bits.
    fn mul_small64(&mut self, other: &Scalar) {
        let most = u64::from(u32::MAX);
        let is_negative = self.smin < 0 || other.smin < 0;
        if is_negative || self.umax > most || other.umax > most {
            self.unbound64();
            return;
        }
        self.umin *= other.umin;
        self.umax *= other.umax;
        (self.smin, self.smax) = match i64::try_from(self.umax) {
            Ok(max) => (self.umin as i64, max),
            Err(_) => (i64::MIN, i64::MAX),
        };
    }

    /// Linux's `scalar_min_max_and` and `scalar32_min_max_and`.
    #[doc(alias = "scalar32_min_max_and")]
    #[doc(alias = "scalar_min_max_and")]
    fn and(&mut self, other: &Scalar, rules: Behaviours) {
        self.var_off = self.var_off.and(other.var_off);
        // The smallest value has the known bits alone, the largest is at most
        // the smaller operand's.
        let (low, high) = (self.var_off.value, self.u32_max.min(other.u32_max));
        self.set_bitwise32(other, low as u32, high, rules);
        let high = self.umax.min(other.umax);
        self.set_bitwise64(other, low, high, rules);
    }

    /// Linux's `scalar_min_max_or` and `scalar32_min_max_or`.
    #[doc(alias = "scalar32_min_max_or")]
    #[doc(alias = "scalar_min_max_or")]
    fn or(&mut self, other: &Scalar, rules: Behaviours) {
        self.var_off = self.var_off.or(other.var_off);
        let (low, high) = (self.u32_min.max(other.u32_min), self.var_off.max());
        self.set_bitwise32(other, low, high as u32, rules);
        let low = self.umin.max(other.umin);
        self.set_bitwise64(other, low, high, rules);
    }

    /// Linux's `scalar_min_max_xor` and `scalar32_min_max_xor`.
    #[doc(alias = "scalar32_min_max_xor")]
    #[doc(alias = "scalar_min_max_xor")]
    fn xor(&mut self, other: &Scalar, rules: Behaviours) {
        self.var_off = self.var_off.xor(other.var_off);
        let (low, high) = (self.var_off.value, self.var_off.max());
        self.set_bitwise32(other, low as u32, high as u32, rules);
        self.set_bitwise64(other, low, high, rules);
    }

    /// The 32-bit ranges of a bitwise result, whose bits are known already: a
    /// constant if both low halves are, else `low..=high` and, where that does
    /// not cross the sign boundary, the same signed.
    #[inline]
    fn set_bitwise32(&mut self, other: &Scalar, low: u32, high: u32, rules: Behaviours) {
        if other.var_off.is_subreg_const() && self.var_off.is_subreg_const() {
            self.set_const32(self.var_off.value as u32);
            return;
        }
        self.u32_min = low;
        self.u32_max = high;
        let keeps_sign = match rules.has(Behaviour::BitwiseSigns) {
            true => low as i32 <= high as i32,
            false => self.s32_min >= 0 && other.s32_min >= 0,
        };
        (self.s32_min, self.s32_max) = match keeps_sign {
            true => (low as i32, high as i32),
            false => (i32::MIN, i32::MAX),
        };
    }

    /// The same of the 64-bit ranges, which then learn from the bits.
    #[inline]
    fn set_bitwise64(&mut self, other: &Scalar, low: u64, high: u64, rules: Behaviours) {
        if other.var_off.is_const() && self.var_off.is_const() {
            *self = Scalar::constant(self.var_off.value);
            return;
        }
        self.umin = low;
        self.umax = high;
        let keeps_sign = match rules.has(Behaviour::BitwiseSigns) {
            true => low as i64 <= high as i64,
            false => self.smin >= 0 && other.smin >= 0,
        };
        (self.smin, self.smax) = match keeps_sign {
            true => (low as i64, high as i64),
            false => (i64::MIN, i64::MAX),
        };
        self.update_from_bits(rules);
    }

    /// Linux's `scalar_min_max_lsh` and `__scalar64_min_max_lsh`.
    #[doc(alias = "scalar_min_max_lsh")]
    #[doc(alias = "__scalar64_min_max_lsh")]
    fn lsh64(&mut self, count: u32, rules: Behaviours) {
        // A shift by 32 is half of a sign extension: the low half's sign becomes
        // the value's.
        let keeps = |end: i32| count == 32 && (end >= 0 || rules.has(Behaviour::SignShifts));
        let moved = |end: i32| i64::from(end) << 32;
        self.smin = match keeps(self.s32_min) {
            true => moved(self.s32_min),
            false => i64::MIN,
        };
        self.smax = match keeps(self.s32_max) {
            true => moved(self.s32_max),
            false => i64::MAX,
        };
        if self.umax > 1 << (63 - count) {
            self.umin = 0;
            self.umax = u64::MAX;
        } else {
            self.umin <<= count;
            self.umax <<= count;
        }
        self.lsh32_ranges(count);
        self.var_off = self.var_off.lsh(count);
        self.update_from_bits(rules);
    }

    /// Linux's `scalar32_min_max_lsh`.
    #[doc(alias = "scalar32_min_max_lsh")]
    fn lsh32(&mut self, count: u32) {
        self.lsh32_ranges(count);
        self.var_off = self.var_off.subreg().lsh(count).subreg();
        self.unbound64();
        self.update32_from_bits();
    }

    /// Linux's `__scalar32_min_max_lsh`.
    #[doc(alias = "__scalar32_min_max_lsh")]
    #[inline]
    fn lsh32_ranges(&mut self, count: u32) {
        self.s32_min = i32::MIN;
        self.s32_max = i32::MAX;
        if count > 31 || self.u32_max > 1 << (31 - count) {
            self.u32_min = 0;
            self.u32_max = u32::MAX;
        } else {
            self.u32_min <<= count;
            self.u32_max <<= count;
        }
    }

    /// Linux's `scalar_min_max_rsh`.
    #[doc(alias = "scalar_min_max_rsh")]
    fn rsh64(&mut self, count: u32, rules: Behaviours) {
        self.smin = i64::MIN;
        self.smax = i64::MAX;
        self.umin >>= count;
        self.umax >>= count;
        self.var_off = self.var_off.rsh(count);
        self.unbound32();
        self.update_from_bits(rules);
    }

    /// Linux's `scalar32_min_max_rsh`.
    #[doc(alias = "scalar32_min_max_rsh")]
    fn rsh32(&mut self, count: u32) {
        self.s32_min = i32::MIN;
        self.s32_max = i32::MAX;
        self.u32_min >>= count;
        self.u32_max >>= count;
        self.var_off = self.var_off.subreg().rsh(count);
        self.unbound64();
        self.update32_from_bits();
    }

    /// Linux's `scalar_min_max_arsh`.
    #[doc(alias = "scalar_min_max_arsh")]
    fn arsh64(&mut self, count: u32, rules: Behaviours) {
        self.smin >>= count;
        self.smax >>= count;
        self.umin = 0;
        self.umax = u64::MAX;
        self.var_off = self.var_off.arsh(count);
        self.unbound32();
        self.update_from_bits(rules);
    }

    /// Linux's `scalar32_min_max_arsh`.
    #[doc(alias = "scalar32_min_max_arsh")]
    fn arsh32(&mut self, count: u32) {
        self.s32_min >>= count;
        self.s32_max >>= count;
        self.u32_min = 0;
        self.u32_max = u32::MAX;
        self.var_off = self.var_off.arsh32(count);
        self.unbound64();
        self.update32_from_bits();
    }
}

/// True if an operand was one with which kernels before [`Behaviour::VaryingOperands`] compute: its
/// ranges agree, and it is constant where the operation is none of those that take others.
fn is_operand(op: AluOp, width: Width, other: &Scalar) -> bool {
    let (is_const, agrees, is_range) = match width {
        Width::W64 => (
            other.is_const(),
            other.smin == other.smax && other.umin == other.umax,
            other.smin <= other.smax && other.umin <= other.umax,
        ),
        Width::W32 => (
            other.var_off.is_subreg_const(),
            other.s32_min == other.s32_max && other.u32_min == other.u32_max,
            other.s32_min <= other.s32_max && other.u32_min <= other.u32_max,
        ),
    };
    let takes_others = matches!(op, AluOp::Add | AluOp::Sub | AluOp::And);
    is_range && (agrees || !is_const) && (is_const || takes_others)
}

/// The shift count, if it is a constant that the width admits. A 32-bit shift
/// reads the low half, but the whole value has to be below 32.
#[inline]
pub(super) fn shift_count(width: Width, count: &Scalar) -> Option<u32> {
    let (is_const, value, limit) = match width {
        Width::W64 => (
            count.is_const() && count.smin == count.smax && count.umin == count.umax,
            count.umin,
            64,
        ),
        Width::W32 => (
            count.var_off.is_subreg_const()
                && count.s32_min == count.s32_max
                && count.u32_min == count.u32_max,
            u64::from(count.u32_min),
            32,
        ),
    };
    (is_const && count.umax < limit && value < limit).then_some(value as u32)
}

/// Smallest and largest of the products, unless one overflows.
#[inline]
pub(super) fn extremes<T: Ord + Copy>(products: [Option<T>; 4]) -> Option<(T, T)> {
    let [Some(a), Some(b), Some(c), Some(d)] = products else {
        return None;
    };
    Some((a.min(b).min(c).min(d), a.max(b).max(c).max(d)))
}
