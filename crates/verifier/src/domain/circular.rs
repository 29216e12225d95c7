//! Values of kernels with circular numbers: the reduction and the transfer functions of arithmetic.
//!
//! These kernels have one arc of each width in place of a signed and an unsigned range
//! ([`Cnum64`], [`Cnum32`]). The four ranges of a [`Scalar`] are then those around its arcs; an arc that
//! they do not tell stands beside them. Quotients and remainders have ranges, too.

use isa::ebpf::{AluOp, Cond, Width};
use spec::behaviour::Behaviours;

use super::alu::{extremes, shift_count};
use super::branch::{Relation, relation};
use super::{Cnum32, Cnum64, Scalar, Tnum};

impl Scalar {
    /// The arc of the value.
    #[inline]
    pub fn r64(&self) -> Cnum64 {
        if self.arc64 != Cnum64::UNBOUNDED {
            return self.arc64;
        }
        let signed = Cnum64::of_signed((self.smin, self.smax));
        match (self.umin, self.umax) {
            (0, u64::MAX) => signed,
            ends => Cnum64::of_unsigned(ends).intersect(signed),
        }
    }

    /// The arc of the low half.
    #[inline]
    pub fn r32(&self) -> Cnum32 {
        if self.arc32 != Cnum32::UNBOUNDED {
            return self.arc32;
        }
        let signed = Cnum32::of_signed((self.s32_min, self.s32_max));
        match (self.u32_min, self.u32_max) {
            (0, u32::MAX) => signed,
            ends => Cnum32::of_unsigned(ends).intersect(signed),
        }
    }

    /// Sets the arc of the value, and the ranges around it.
    #[inline]
    pub(super) fn set_r64(&mut self, arc: Cnum64) {
        (self.umin, self.umax) = arc.unsigned();
        (self.smin, self.smax) = arc.signed();
        self.arc64 = match arc.is_empty() || arc.wraps_unsigned() && arc.wraps_signed() {
            true => arc,
            false => Cnum64::UNBOUNDED,
        };
    }

    /// Sets the arc of the low half, and the ranges around it.
    #[inline]
    pub(super) fn set_r32(&mut self, arc: Cnum32) {
        (self.u32_min, self.u32_max) = arc.unsigned();
        (self.s32_min, self.s32_max) = arc.signed();
        self.arc32 = match arc.is_empty() || arc.wraps_unsigned() && arc.wraps_signed() {
            true => arc,
            false => Cnum32::UNBOUNDED,
        };
    }

    /// True if an arc has no value.
    #[inline]
    pub(super) fn has_empty_arc(&self) -> bool {
        self.arc64.is_empty() || self.arc32.is_empty()
    }

    /// Propagates knowledge between the arcs and the bits (`reg_bounds_sync`,
    /// `deduce_bounds_32_from_64`, `deduce_bounds_64_from_32`).
    #[doc(alias = "reg_bounds_sync")]
    #[doc(alias = "deduce_bounds_32_from_64")]
    #[doc(alias = "deduce_bounds_64_from_32")]
    pub(super) fn sync_circular(&mut self, rules: Behaviours) {
        if self.has_empty_arc() {
            return;
        }
        self.meet_bits();
        for _ in 0..2 {
            self.set_r32(self.r32().intersect(Cnum32::of_low_halves(self.r64())));
            self.set_r64(self.r64().with_low_halves(self.r32()));
        }
        self.update_bits(rules);
        self.meet_bits();
    }

    /// Tightens the arcs by the known bits (`__update_reg_bounds`).
    #[doc(alias = "__update_reg_bounds")]
    pub(super) fn meet_bits(&mut self) {
        self.meet_bits32();
        self.set_r64(self.r64().intersect(arc_of_bits(self.var_off)));
        self.meet_single_member();
    }

    /// Tightens the arc of the low half by the known bits (`__update_reg32_bounds`).
    #[doc(alias = "__update_reg32_bounds")]
    pub(crate) fn meet_bits32(&mut self) {
        self.set_r32(self.r32().intersect(arc_of_low_bits(self.var_off)));
    }

    /// The result of an operation, before a result of 32 bits is extended; `None` if it is unknown.
    pub(super) fn alu_circular(
        &mut self,
        op: AluOp,
        width: Width,
        other: &Scalar,
        rules: Behaviours,
    ) -> Option<()> {
        match op {
            AluOp::Add => self.add_circular(other),
            AluOp::Sub => self.sub_circular(other),
            AluOp::Mul => {
                self.var_off = self.var_off.mul(other.var_off, rules);
                self.mul_circular(other);
            }
            AluOp::And | AluOp::Or | AluOp::Xor => self.bitwise_circular(op, other),
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => {
                self.shift_circular(op, width, shift_count(width, other)?);
            }
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => {
                self.divide_circular(op, width, other)?;
            }
            AluOp::Mov => return None,
        }
        Some(())
    }

    /// Adds (`scalar_min_max_add`).
    #[doc(alias = "scalar_min_max_add")]
    pub(super) fn add_circular(&mut self, other: &Scalar) {
        self.set_r32(self.r32().add(other.r32()));
        self.set_r64(self.r64().add(other.r64()));
        self.var_off = self.var_off.add(other.var_off);
    }

    /// Subtracts (`scalar_min_max_sub`).
    #[doc(alias = "scalar_min_max_sub")]
    pub(super) fn sub_circular(&mut self, other: &Scalar) {
        self.set_r32(self.r32().add(other.r32().negate()));
        self.set_r64(self.r64().add(other.r64().negate()));
        self.var_off = self.var_off.sub(other.var_off);
    }

    /// The arcs of a product: where the range of the unsigned ends meets that of the signed.
    fn mul_circular(&mut self, other: &Scalar) {
        let (low, high) = (
            self.u32_min.checked_mul(other.u32_min),
            self.u32_max.checked_mul(other.u32_max),
        );
        let unsigned = low.zip(high).unwrap_or((0, u32::MAX));
        let (low, high) = (self.s32_min, self.s32_max);
        let signed = extremes([
            low.checked_mul(other.s32_min),
            low.checked_mul(other.s32_max),
            high.checked_mul(other.s32_min),
            high.checked_mul(other.s32_max),
        ]);
        let signed = signed.unwrap_or((i32::MIN, i32::MAX));
        self.set_r32(Cnum32::of_unsigned(unsigned).intersect(Cnum32::of_signed(signed)));
        let (low, high) = (
            self.umin.checked_mul(other.umin),
            self.umax.checked_mul(other.umax),
        );
        let unsigned = low.zip(high).unwrap_or((0, u64::MAX));
        let (low, high) = (self.smin, self.smax);
        let signed = extremes([
            low.checked_mul(other.smin),
            low.checked_mul(other.smax),
            high.checked_mul(other.smin),
            high.checked_mul(other.smax),
        ]);
        let signed = signed.unwrap_or((i64::MIN, i64::MAX));
        self.set_r64(Cnum64::of_unsigned(unsigned).intersect(Cnum64::of_signed(signed)));
    }

    /// The result of `and`, `or` and `xor`.
    fn bitwise_circular(&mut self, op: AluOp, other: &Scalar) {
        let bits = match op {
            AluOp::And => self.var_off.and(other.var_off),
            AluOp::Or => self.var_off.or(other.var_off),
            _ => self.var_off.xor(other.var_off),
        };
        self.var_off = bits;
        let (ends32, ends64) = match op {
            AluOp::And => (
                (bits.value as u32, self.u32_max.min(other.u32_max)),
                (bits.value, self.umax.min(other.umax)),
            ),
            AluOp::Or => (
                (self.u32_min.max(other.u32_min), bits.max() as u32),
                (self.umin.max(other.umin), bits.max()),
            ),
            _ => (
                (bits.value as u32, bits.max() as u32),
                (bits.value, bits.max()),
            ),
        };
        match other.var_off.is_subreg_const() && bits.is_subreg_const() {
            true => self.set_const32(bits.value as u32),
            false => self.set_r32(Cnum32::of_unsigned(ends32)),
        }
        if other.var_off.is_const() && bits.is_const() {
            *self = Scalar::constant(bits.value);
            return;
        }
        self.set_r64(Cnum64::of_unsigned(ends64));
        if op != AluOp::Xor {
            self.meet_bits();
        }
    }

    /// The result of a shift by a constant.
    fn shift_circular(&mut self, op: AluOp, width: Width, count: u32) {
        let bits = self.var_off;
        match (op, width) {
            (AluOp::Lsh, _) => {
                let mut arc = Cnum64::UNBOUNDED;
                if count == 32 {
                    let (low, high) = (i64::from(self.s32_min), i64::from(self.s32_max));
                    arc = Cnum64::of_signed((low << 32, high << 32));
                }
                let mut unsigned = Cnum64::UNBOUNDED;
                if self.umax <= 1 << (63 - count) {
                    unsigned = Cnum64::of_unsigned((self.umin << count, self.umax << count));
                }
                let mut low = Cnum32::UNBOUNDED;
                if count <= 31 && self.u32_max <= 1 << (31 - count) {
                    low = Cnum32::of_unsigned((self.u32_min << count, self.u32_max << count));
                }
                self.set_r64(unsigned.intersect(arc));
                self.set_r32(low);
            }
            (AluOp::Rsh, Width::W64) => {
                self.set_r64(Cnum64::of_unsigned((
                    self.umin >> count,
                    self.umax >> count,
                )));
            }
            (AluOp::Rsh, Width::W32) => {
                let ends = (self.u32_min >> count, self.u32_max >> count);
                self.set_r32(Cnum32::of_unsigned(ends));
            }
            (_, Width::W64) => {
                self.set_r64(Cnum64::of_signed((self.smin >> count, self.smax >> count)));
            }
            (_, Width::W32) => {
                let ends = (self.s32_min >> count, self.s32_max >> count);
                self.set_r32(Cnum32::of_signed(ends));
            }
        }
        self.var_off = match (op, width) {
            (AluOp::Lsh, Width::W64) => bits.lsh(count),
            (AluOp::Lsh, Width::W32) => bits.subreg().lsh(count).subreg(),
            (AluOp::Rsh, Width::W64) => bits.rsh(count),
            (AluOp::Rsh, Width::W32) => bits.subreg().rsh(count),
            (_, Width::W64) => bits.arsh(count),
            (_, Width::W32) => bits.arsh32(count),
        };
        match width {
            Width::W32 => {
                self.unbound64();
                self.meet_bits32();
            }
            Width::W64 => {
                if op != AluOp::Lsh {
                    self.unbound32();
                }
                self.meet_bits();
            }
        }
    }

    /// The quotient or the remainder by a constant; `None` if the divisor is none
    /// (`scalar_min_max_udiv`, `scalar32_min_max_udiv`, `scalar_min_max_sdiv`,
    /// `scalar32_min_max_sdiv`, `scalar_min_max_umod`, `scalar32_min_max_umod`,
    /// `scalar_min_max_smod`, `scalar32_min_max_smod`).
    #[doc(alias = "scalar_min_max_udiv")]
    #[doc(alias = "scalar32_min_max_udiv")]
    #[doc(alias = "scalar_min_max_sdiv")]
    #[doc(alias = "scalar32_min_max_sdiv")]
    #[doc(alias = "scalar_min_max_umod")]
    #[doc(alias = "scalar32_min_max_umod")]
    #[doc(alias = "scalar_min_max_smod")]
    #[doc(alias = "scalar32_min_max_smod")]
    fn divide_circular(&mut self, op: AluOp, width: Width, divisor: &Scalar) -> Option<()> {
        let (is_const, by, signed_by) = match width {
            Width::W64 => (divisor.is_const(), divisor.umin, divisor.smin),
            Width::W32 => (
                divisor.as_const32().is_some(),
                divisor.u32_min.into(),
                divisor.s32_min.into(),
            ),
        };
        if !is_const {
            return None;
        }
        let is_division = matches!(op, AluOp::Div | AluOp::SDiv);
        if by == 0 {
            // The quotient is 0, the remainder the dividend.
            if is_division {
                *self = Scalar::constant(0);
            }
            return Some(());
        }
        let (min, max, smin, smax, lowest) = match width {
            Width::W64 => (self.umin, self.umax, self.smin, self.smax, i64::MIN),
            Width::W32 => (
                self.u32_min.into(),
                self.u32_max.into(),
                self.s32_min.into(),
                self.s32_max.into(),
                i32::MIN.into(),
            ),
        };
        match op {
            AluOp::Div => self.set_unsigned_alone(width, (min / by, max / by)),
            AluOp::Mod if max < by => {}
            AluOp::Mod => self.set_unsigned_alone(width, (0, max.min(by - 1))),
            AluOp::SDiv if smin == lowest && signed_by == -1 => {
                // The quotient of the smallest number alone overflows, to itself.
                let most = match smax == lowest {
                    true => lowest,
                    false => !lowest,
                };
                self.set_signed_alone(width, (lowest, most));
            }
            AluOp::SDiv => {
                let (a, b) = (smin / signed_by, smax / signed_by);
                self.set_signed_alone(width, (a.min(b), a.max(b)));
            }
            _ => {
                let most = (signed_by.unsigned_abs() - 1) as i64;
                if smin >= -most && smax <= most {
                    return Some(());
                }
                let ends = match (smin >= 0, smax <= 0) {
                    (true, _) => (0, smax.min(most)),
                    (false, true) => (smin.max(-most), 0),
                    (false, false) => (-most, most),
                };
                self.set_signed_alone(width, ends);
            }
        }
        Some(())
    }

    /// Keeps of the value an unsigned range of its width alone (`reset_reg64_and_tnum`,
    /// `reset_reg32_and_tnum`).
    #[doc(alias = "reset_reg64_and_tnum")]
    #[doc(alias = "reset_reg32_and_tnum")]
    fn set_unsigned_alone(&mut self, width: Width, (min, max): (u64, u64)) {
        *self = Scalar::UNKNOWN;
        match width {
            Width::W64 => self.set_r64(Cnum64::of_unsigned((min, max))),
            Width::W32 => self.set_r32(Cnum32::of_unsigned((min as u32, max as u32))),
        }
    }

    /// Keeps of the value a signed range of its width alone.
    fn set_signed_alone(&mut self, width: Width, (min, max): (i64, i64)) {
        self.set_unsigned_alone(width, (min as u64, max as u64));
    }
}

/// Ends of the range of the values with these bits, signed if some may be negative
/// (`cnum64_from_tnum`).
#[doc(alias = "cnum64_from_tnum")]
fn arc_of_bits(bits: Tnum) -> Cnum64 {
    let sign = 1 << 63;
    match (bits.value | bits.mask) & sign {
        0 => Cnum64::of_unsigned((bits.value, bits.max())),
        _ => Cnum64::of_signed((
            (bits.value | bits.mask & sign) as i64,
            (bits.value | bits.mask & !sign) as i64,
        )),
    }
}

/// As [`arc_of_bits`], of the low half (`cnum32_from_tnum`).
#[doc(alias = "cnum32_from_tnum")]
fn arc_of_low_bits(bits: Tnum) -> Cnum32 {
    let (value, mask, sign) = (bits.value as u32, bits.mask as u32, 1 << 31);
    match (value | mask) & sign {
        0 => Cnum32::of_unsigned((value, value | mask)),
        _ => Cnum32::of_signed(((value | mask & sign) as i32, (value | mask & !sign) as i32)),
    }
}

/// Refines the arcs of `pair[a]` and `pair[b]`, which may be the same element, by `a cond b` having the
/// outcome, except of tests of bits (`regs_refine_cond_op`).
#[doc(alias = "regs_refine_cond_op")]
pub(super) fn refine_arcs(
    cond: Cond,
    outcome: bool,
    width: Width,
    pair: &mut [Scalar; 2],
    (a, b): (usize, usize),
) {
    let (relation, exchanged) = relation(cond, outcome);
    let (a, b) = if exchanged { (b, a) } else { (a, b) };
    let narrow = width == Width::W32;
    match relation {
        Relation::Equal if narrow => {
            let arc = pair[a].r32().intersect(pair[b].r32());
            let low = (pair[a].var_off.subreg()).intersect(pair[b].var_off.subreg());
            for index in [a, b] {
                pair[index].set_r32(arc);
                pair[index].var_off = pair[index].var_off.with_subreg(low);
            }
        }
        Relation::Equal => {
            let arc = pair[a].r64().intersect(pair[b].r64());
            let bits = pair[a].var_off.intersect(pair[b].var_off);
            for index in [a, b] {
                pair[index].set_r64(arc);
                pair[index].var_off = bits;
            }
        }
        Relation::Less | Relation::LessEqual => {
            let strict = u64::from(matches!(relation, Relation::Less));
            if narrow {
                let strict = strict as u32;
                let most = pair[b].u32_max.wrapping_sub(strict);
                meet32(&mut pair[a], Cnum32::of_unsigned((0, most)));
                let least = pair[a].u32_min.wrapping_add(strict);
                meet32(&mut pair[b], Cnum32::of_unsigned((least, u32::MAX)));
            } else {
                let most = pair[b].umax.wrapping_sub(strict);
                meet64(&mut pair[a], Cnum64::of_unsigned((0, most)));
                let least = pair[a].umin.wrapping_add(strict);
                meet64(&mut pair[b], Cnum64::of_unsigned((least, u64::MAX)));
            }
        }
        Relation::SignedLess | Relation::SignedLessEqual => {
            let strict = i64::from(matches!(relation, Relation::SignedLess));
            if narrow {
                let strict = strict as i32;
                let most = pair[b].s32_max.wrapping_sub(strict);
                meet32(&mut pair[a], Cnum32::of_signed((i32::MIN, most)));
                let least = pair[a].s32_min.wrapping_add(strict);
                meet32(&mut pair[b], Cnum32::of_signed((least, i32::MAX)));
            } else {
                let most = pair[b].smax.wrapping_sub(strict);
                meet64(&mut pair[a], Cnum64::of_signed((i64::MIN, most)));
                let least = pair[a].smin.wrapping_add(strict);
                meet64(&mut pair[b], Cnum64::of_signed((least, i64::MAX)));
            }
        }
        Relation::Differ | Relation::AnySet | Relation::NoneSet => {}
    }
}

/// Excludes a value (`BPF_JNE` of `regs_refine_cond_op`).
pub(super) fn exclude(narrow: bool, x: &mut Scalar, value: u64) {
    match narrow {
        true => meet32(x, Cnum32::without(value as u32)),
        false => meet64(x, Cnum64::without(value)),
    }
}

fn meet64(x: &mut Scalar, arc: Cnum64) {
    x.set_r64(x.r64().intersect(arc));
}

fn meet32(x: &mut Scalar, arc: Cnum32) {
    x.set_r32(x.r32().intersect(arc));
}
