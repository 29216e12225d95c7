//! The abstract value: known bits and four ranges, with their reduction.
//!
//! Invariants after [`Scalar::sync`], unless the value is contradictory (which
//! [`Scalar::violation`] tells): each range is non-empty, a constant tnum has
//! constant ranges, and every concrete value lies in all five components.
//! A contradictory value arises where a condition was refined on a branch that
//! cannot be taken; the kernel goes on with unbounded ranges.

use spec::behaviour::{Behaviour, Behaviours};

use super::{Cnum32, Cnum64, Tnum};

/// Abstract 64-bit value: known bits and ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// Known bits.
    pub var_off: Tnum,
    /// Smallest value, signed.
    pub smin: i64,
    /// Largest value, signed.
    pub smax: i64,
    /// Smallest value, unsigned.
    pub umin: u64,
    /// Largest value, unsigned.
    pub umax: u64,
    /// Smallest low half, signed.
    pub s32_min: i32,
    /// Largest low half, signed.
    pub s32_max: i32,
    /// Smallest low half, unsigned.
    pub u32_min: u32,
    /// Largest low half, unsigned.
    pub u32_max: u32,
    /// Arc of the value that the ranges do not tell, of kernels with arcs: one that wraps both as
    /// unsigned and as signed numbers do, or none. Else every value.
    pub arc64: Cnum64,
    /// As `arc64`, of the low half.
    pub arc32: Cnum32,
}

/// Contradiction within an abstract value, in the kernel's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violation {
    /// A range is empty.
    Range,
    /// A constant tnum with other ranges (`const_tnum_range_mismatch`).
    #[doc(alias = "const_tnum_range_mismatch")]
    Constant,
    /// A tnum with a constant low half and other 32-bit ranges (`const_tnum_range_mismatch_32`).
    #[doc(alias = "const_tnum_range_mismatch_32")]
    ConstantSubreg,
}

impl Violation {
    /// The kernel's message.
    pub const fn message(self) -> &'static str {
        match self {
            Violation::Range => "range bounds violation",
            Violation::Constant => "const tnum out of sync with range bounds",
            Violation::ConstantSubreg => "const subreg tnum out of sync with range bounds",
        }
    }
}

const HIGH: u64 = 0xffff_ffff_0000_0000;

impl Scalar {
    /// Any value.
    pub const UNKNOWN: Scalar = Scalar {
        var_off: Tnum::UNKNOWN,
        smin: i64::MIN,
        smax: i64::MAX,
        umin: 0,
        umax: u64::MAX,
        s32_min: i32::MIN,
        s32_max: i32::MAX,
        u32_min: 0,
        u32_max: u32::MAX,
        arc64: Cnum64::UNBOUNDED,
        arc32: Cnum32::UNBOUNDED,
    };

    /// Zero.
    pub const ZERO: Scalar = Scalar::constant(0);

    /// One value (`___mark_reg_known`).
    #[doc(alias = "___mark_reg_known")]
    #[inline]
    pub const fn constant(value: u64) -> Scalar {
        Scalar {
            var_off: Tnum::constant(value),
            smin: value as i64,
            smax: value as i64,
            umin: value,
            umax: value,
            s32_min: value as i32,
            s32_max: value as i32,
            u32_min: value as u32,
            u32_max: value as u32,
            ..Scalar::UNKNOWN
        }
    }

    /// Every value with these bits, in ranges as narrow as they are.
    #[inline]
    pub const fn of_bits(bits: Tnum) -> Scalar {
        let (value, mask) = (bits.value, bits.mask);
        let (sign, sign32) = (mask & 1 << 63, mask as u32 & 1 << 31);
        Scalar {
            var_off: bits,
            smin: (value | sign) as i64,
            smax: (value | mask ^ sign) as i64,
            umin: value,
            umax: value | mask,
            s32_min: (value as u32 | sign32) as i32,
            s32_max: (value as u32 | mask as u32 ^ sign32) as i32,
            u32_min: value as u32,
            u32_max: (value | mask) as u32,
            ..Scalar::UNKNOWN
        }
    }

    /// Any value that is at most `most`.
    pub fn up_to(most: u64, rules: Behaviours) -> Scalar {
        let mut scalar = Scalar::UNKNOWN;
        scalar.umax = most;
        scalar.sync(rules);
        scalar
    }

    /// True if every bit is known.
    #[inline]
    pub const fn is_const(&self) -> bool {
        self.var_off.is_const()
    }

    /// The value, if every bit is known.
    #[inline]
    pub const fn as_const(&self) -> Option<u64> {
        if self.is_const() {
            Some(self.var_off.value)
        } else {
            None
        }
    }

    /// The low half, if every bit of it is known.
    #[inline]
    pub const fn as_const32(&self) -> Option<u32> {
        if self.var_off.is_subreg_const() {
            Some(self.var_off.value as u32)
        } else {
            None
        }
    }

    /// True if nothing is known.
    #[inline]
    pub fn is_unknown(&self) -> bool {
        self.var_off.is_unknown() && self.is_unbounded()
    }

    /// True if no range excludes a value.
    #[inline]
    pub fn is_unbounded(&self) -> bool {
        self.smin == i64::MIN
            && self.smax == i64::MAX
            && self.umin == 0
            && self.umax == u64::MAX
            && self.s32_min == i32::MIN
            && self.s32_max == i32::MAX
            && self.u32_min == 0
            && self.u32_max == u32::MAX
            && self.has_plain_arcs()
    }

    /// True if the ranges tell the arcs.
    #[inline]
    const fn has_plain_arcs(&self) -> bool {
        let is_plain64 = self.arc64.base == 0 && self.arc64.size == u64::MAX;
        is_plain64 && self.arc32.base == 0 && self.arc32.size == u32::MAX
    }

    /// True if `value` lies in every component.
    pub const fn has(&self, value: u64) -> bool {
        let (signed, low, signed_low) = (value as i64, value as u32, value as i32);
        self.var_off.has(value)
            && self.smin <= signed
            && signed <= self.smax
            && self.umin <= value
            && value <= self.umax
            && self.s32_min <= signed_low
            && signed_low <= self.s32_max
            && self.u32_min <= low
            && low <= self.u32_max
            && self.arc64.contains(value)
            && self.arc32.contains(low)
    }

    /// True if every range and the tnum of `other` lie within this one's (`range_within`).
    #[doc(alias = "range_within")]
    #[inline]
    pub fn contains(&self, other: &Scalar) -> bool {
        self.umin <= other.umin
            && self.umax >= other.umax
            && self.smin <= other.smin
            && self.smax >= other.smax
            && self.u32_min <= other.u32_min
            && self.u32_max >= other.u32_max
            && self.s32_min <= other.s32_min
            && self.s32_max >= other.s32_max
            && self.var_off.contains(other.var_off)
            && (self.has_plain_arcs()
                || self.arc64.covers(other.r64()) && self.arc32.covers(other.r32()))
    }

    /// Bits that the largest value needs, 0 to 64 (`get_reg_width`).
    #[doc(alias = "get_reg_width")]
    #[inline]
    pub const fn width(&self) -> u32 {
        64 - self.umax.leading_zeros()
    }

    /// Makes every range unbounded; known bits stay (`__mark_reg_unbounded`).
    #[doc(alias = "__mark_reg_unbounded")]
    #[inline]
    pub const fn unbound(&mut self) {
        *self = Scalar {
            var_off: self.var_off,
            ..Scalar::UNKNOWN
        };
    }

    /// Makes the 64-bit ranges unbounded (`__mark_reg64_unbounded`).
    #[doc(alias = "__mark_reg64_unbounded")]
    #[inline]
    pub const fn unbound64(&mut self) {
        self.smin = i64::MIN;
        self.smax = i64::MAX;
        self.umin = 0;
        self.umax = u64::MAX;
        self.arc64 = Cnum64::UNBOUNDED;
    }

    /// Makes the 32-bit ranges unbounded (`__mark_reg32_unbounded`).
    #[doc(alias = "__mark_reg32_unbounded")]
    #[inline]
    pub const fn unbound32(&mut self) {
        self.s32_min = i32::MIN;
        self.s32_max = i32::MAX;
        self.u32_min = 0;
        self.u32_max = u32::MAX;
        self.arc32 = Cnum32::UNBOUNDED;
    }

    /// Sets the low half to a constant; the 64-bit ranges stay as they are (`__mark_reg32_known`,
    /// `tnum_const_subreg`).
    #[doc(alias = "__mark_reg32_known")]
    #[doc(alias = "tnum_const_subreg")]
    #[inline]
    pub const fn set_const32(&mut self, value: u32) {
        self.var_off = self.var_off.with_subreg(Tnum::constant(value as u64));
        self.s32_min = value as i32;
        self.s32_max = value as i32;
        self.u32_min = value;
        self.u32_max = value;
        self.arc32 = Cnum32::UNBOUNDED;
    }

    /// Propagates knowledge between the components, as far as the kernel does:
    /// ranges from bits, three rounds of ranges from ranges, bits from ranges,
    /// and ranges from bits again (`reg_bounds_sync`).
    #[doc(alias = "reg_bounds_sync")]
    pub fn sync(&mut self, rules: Behaviours) {
        if rules.has(Behaviour::CircularRanges) {
            return self.sync_circular(rules);
        }
        // Ranges that are as narrow as the bits are a fixpoint; there are no arcs.
        let narrowest = Scalar {
            arc64: self.arc64,
            arc32: self.arc32,
            ..Scalar::of_bits(self.var_off)
        };
        if *self != narrowest {
            self.tighten(rules);
        }
    }

    fn tighten(&mut self, rules: Behaviours) {
        self.update_from_bits(rules);
        if !rules.has(Behaviour::RangesMeet) {
            self.deduce_signs();
            self.update_bits(rules);
            self.update_from_bits(rules);
            return;
        }
        // A round that changes nothing is a fixpoint.
        for _ in 0..3 {
            let before = *self;
            self.deduce_bounds(rules);
            if *self == before {
                break;
            }
        }
        self.update_bits(rules);
        self.update_from_bits(rules);
    }

    /// Tightens signed and unsigned ranges of a width by each other where the sign is known
    /// (`__reg32_deduce_bounds`, `__reg64_deduce_bounds` before [`Behaviour::RangesMeet`]).
    fn deduce_signs(&mut self) {
        if self.s32_min >= 0 || self.s32_max < 0 {
            self.u32_min = self.u32_min.max(self.s32_min as u32);
            self.u32_max = self.u32_max.min(self.s32_max as u32);
            (self.s32_min, self.s32_max) = (self.u32_min as i32, self.u32_max as i32);
        } else if self.u32_max as i32 >= 0 {
            self.s32_min = self.u32_min as i32;
            self.u32_max = self.u32_max.min(self.s32_max as u32);
            self.s32_max = self.u32_max as i32;
        } else if (self.u32_min as i32) < 0 {
            self.u32_min = self.u32_min.max(self.s32_min as u32);
            self.s32_min = self.u32_min as i32;
            self.s32_max = self.u32_max as i32;
        }
        if self.smin >= 0 || self.smax < 0 {
            self.umin = self.umin.max(self.smin as u64);
            self.umax = self.umax.min(self.smax as u64);
            (self.smin, self.smax) = (self.umin as i64, self.umax as i64);
        } else if self.umax as i64 >= 0 {
            self.smin = self.umin as i64;
            self.umax = self.umax.min(self.smax as u64);
            self.smax = self.umax as i64;
        } else if (self.umin as i64) < 0 {
            self.umin = self.umin.max(self.smin as u64);
            self.smin = self.umin as i64;
            self.smax = self.umax as i64;
        }
    }

    /// Takes the 64-bit ranges from the 32-bit ones if the upper half is zero, else from the bits;
    /// synchronises (`__reg_combine_32_into_64`).
    #[doc(alias = "__reg_combine_32_into_64")]
    pub(super) fn combine_low(&mut self, rules: Behaviours) {
        match self.var_off.max() <= u64::from(u32::MAX) {
            true => self.zero_extend32(),
            false => self.unbound64(),
        }
        self.sync(rules);
    }

    /// Takes the 32-bit ranges from the 64-bit ones where these fit, else from the bits; synchronises
    /// (`__reg_combine_64_into_32`).
    #[doc(alias = "__reg_combine_64_into_32")]
    pub(super) fn combine_wide(&mut self, rules: Behaviours) {
        self.unbound32();
        if let (Ok(min), Ok(max)) = (i32::try_from(self.smin), i32::try_from(self.smax)) {
            (self.s32_min, self.s32_max) = (min, max);
        }
        if let (Ok(min), Ok(max)) = (u32::try_from(self.umin), u32::try_from(self.umax)) {
            (self.u32_min, self.u32_max) = (min, max);
        }
        self.sync(rules);
    }

    /// Tightens the ranges by the known bits (`__update_reg_bounds`).
    #[doc(alias = "__update_reg_bounds")]
    #[inline]
    pub(super) fn update_from_bits(&mut self, rules: Behaviours) {
        self.update32_from_bits();
        self.update64_from_bits(rules);
    }

    /// Linux's `__update_reg32_bounds`.
    #[doc(alias = "__update_reg32_bounds")]
    #[inline]
    pub(super) fn update32_from_bits(&mut self) {
        let (value, mask) = (self.var_off.value as u32, self.var_off.mask as u32);
        let sign = mask & 0x8000_0000;
        self.s32_min = self.s32_min.max((value | sign) as i32);
        self.s32_max = self.s32_max.min((value | (mask ^ sign)) as i32);
        self.u32_min = self.u32_min.max(value);
        self.u32_max = self.u32_max.min(value | mask);
    }

    /// Linux's `__update_reg64_bounds`.
    #[doc(alias = "__update_reg64_bounds")]
    fn update64_from_bits(&mut self, rules: Behaviours) {
        let bits = self.var_off;
        let sign = bits.mask & (1 << 63);
        self.smin = self.smin.max((bits.value | sign) as i64);
        self.smax = self.smax.min((bits.value | (bits.mask ^ sign)) as i64);
        self.umin = self.umin.max(bits.value);
        self.umax = self.umax.min(bits.max());
        if rules.has(Behaviour::SingleMember) {
            self.meet_single_member();
        }
    }

    /// Takes a value of which one alone has the known bits and lies in the unsigned range.
    pub(super) fn meet_single_member(&mut self) {
        let bits = self.var_off;
        if bits.mask == !0 {
            // Every value is a member.
            if self.umin.saturating_add(1) > self.umax {
                *self = Scalar::constant(self.umin);
            }
            return;
        }
        // A single member within the unsigned range is the value.
        let next = bits.next_above(self.umin);
        let only = match bits.has(self.umin) {
            true => (next > self.umax).then_some(self.umin),
            false if next == bits.max() => Some(next),
            false => (next <= self.umax && bits.next_above(next) > self.umax).then_some(next),
        };
        if let Some(only) = only {
            *self = Scalar::constant(only);
        }
    }

    /// Tightens each range by the others (`__reg_deduce_bounds`).
    #[doc(alias = "__reg_deduce_bounds")]
    #[inline]
    fn deduce_bounds(&mut self, rules: Behaviours) {
        self.deduce32(rules);
        self.deduce64();
        self.deduce_mixed();
    }

    /// The 32-bit ranges from the 64-bit ranges and from each other (`__reg32_deduce_bounds`).
    #[doc(alias = "__reg32_deduce_bounds")]
    #[inline]
    fn deduce32(&mut self, rules: Behaviours) {
        let (umin, umax) = (self.umin, self.umax);
        let (smin, smax) = (self.smin as u64, self.smax as u64);
        // The upper halves of both ends are equal: the low halves are a range.
        if (umin ^ umax) & HIGH == 0 {
            self.meet_u32(umin as u32, umax as u32);
            if umin as i32 <= umax as i32 {
                self.meet_s32(umin as i32, umax as i32);
            }
        }
        if (smin ^ smax) & HIGH == 0 {
            if smin as u32 <= smax as u32 {
                self.meet_u32(smin as u32, smax as u32);
            }
            if smin as i32 <= smax as i32 {
                self.meet_s32(smin as i32, smax as i32);
            }
        }
        // The upper halves are successors and the low halves go from negative to
        // non-negative: they are a signed range around 0.
        if follows(umin, umax) {
            self.meet_s32(umin as i32, umax as i32);
        }
        if follows(smin, smax) {
            self.meet_s32(smin as i32, smax as i32);
        }
        if self.u32_min as i32 <= self.u32_max as i32 {
            self.meet_s32(self.u32_min as i32, self.u32_max as i32);
        }
        if self.s32_min as u32 <= self.s32_max as u32 {
            self.meet_u32(self.s32_min as u32, self.s32_max as u32);
        } else if rules.has(Behaviour::NarrowRangesMeet) {
            self.meet_at_zero32();
        }
    }

    /// The 32-bit ranges from each other, where the signed one crosses 0.
    #[inline]
    fn meet_at_zero32(&mut self) {
        if self.u32_max < self.s32_min as u32 {
            // The unsigned range meets the non-negative part alone.
            self.s32_min = self.u32_min as i32;
            self.u32_max = self.u32_max.min(self.s32_max as u32);
        } else if (self.s32_max as u32) < self.u32_min {
            // As above, with the negative part alone.
            self.s32_max = self.u32_max as i32;
            self.u32_min = self.u32_min.max(self.s32_min as u32);
        }
    }

    /// The 64-bit ranges from each other (`__reg64_deduce_bounds`).
    #[doc(alias = "__reg64_deduce_bounds")]
    #[inline]
    fn deduce64(&mut self) {
        if self.umin as i64 <= self.umax as i64 {
            self.smin = self.smin.max(self.umin as i64);
            self.smax = self.smax.min(self.umax as i64);
        }
        if self.smin as u64 <= self.smax as u64 {
            self.umin = self.umin.max(self.smin as u64);
            self.umax = self.umax.min(self.smax as u64);
        } else if self.umax < self.smin as u64 {
            self.smin = self.umin as i64;
            self.umax = self.umax.min(self.smax as u64);
        } else if (self.smax as u64) < self.umin {
            self.smax = self.umax as i64;
            self.umin = self.umin.max(self.smin as u64);
        }
    }

    /// The 64-bit ranges from the 32-bit ranges (`__reg_deduce_mixed_bounds`).
    #[doc(alias = "__reg_deduce_mixed_bounds")]
    #[inline]
    fn deduce_mixed(&mut self) {
        let (low, high) = (u64::from(self.u32_min), u64::from(self.u32_max));
        self.umin = self.umin.max(self.umin & HIGH | low);
        self.umax = self.umax.min(self.umax & HIGH | high);
        self.smin = self.smin.max((self.smin as u64 & HIGH | low) as i64);
        self.smax = self.smax.min((self.smax as u64 & HIGH | high) as i64);
        // A sign-extended or zero-extended value whose low half is not negative
        // is its low half.
        if self.s32_min >= 0 && self.smin >= i64::from(i32::MIN) && self.smax <= i64::from(i32::MAX)
        {
            self.smin = i64::from(self.s32_min);
            self.smax = i64::from(self.s32_max);
            self.umin = self.smin as u64;
            self.umax = self.smax as u64;
            self.var_off = self.var_off.intersect(Tnum::range(self.umin, self.umax));
        }
    }

    /// Tightens the known bits by the unsigned ranges (`__reg_bound_offset`).
    #[doc(alias = "__reg_bound_offset")]
    #[inline]
    pub(super) fn update_bits(&mut self, rules: Behaviours) {
        let bits = self.var_off.intersect(Tnum::range(self.umin, self.umax));
        let low = Tnum::range(self.u32_min.into(), self.u32_max.into());
        let of_low = match rules.has(Behaviour::LowBitsLearn) {
            true => bits,
            false => self.var_off,
        };
        self.var_off = bits.with_subreg(of_low.subreg().intersect(low));
    }

    #[inline]
    const fn meet_u32(&mut self, min: u32, max: u32) {
        if min > self.u32_min {
            self.u32_min = min;
        }
        if max < self.u32_max {
            self.u32_max = max;
        }
    }

    #[inline]
    const fn meet_s32(&mut self, min: i32, max: i32) {
        if min > self.s32_min {
            self.s32_min = min;
        }
        if max < self.s32_max {
            self.s32_max = max;
        }
    }

    /// True if a range has no value (`range_bounds_violation`).
    #[doc(alias = "range_bounds_violation")]
    pub(super) fn has_empty_range(&self) -> bool {
        self.umin > self.umax
            || self.smin > self.smax
            || self.u32_min > self.u32_max
            || self.s32_min > self.s32_max
            || self.has_empty_arc()
    }

    /// The contradiction in a synchronised value, if there is one (`reg_bounds_sanity_check`).
    #[doc(alias = "reg_bounds_sanity_check")]
    pub fn violation(&self) -> Option<Violation> {
        if self.has_empty_range() {
            return Some(Violation::Range);
        }
        let bits = self.var_off;
        if bits.is_const()
            && (self.umin != bits.value
                || self.umax != bits.value
                || self.smin != bits.value as i64
                || self.smax != bits.value as i64)
        {
            return Some(Violation::Constant);
        }
        let low = bits.value as u32;
        if bits.is_subreg_const()
            && (self.u32_min != low
                || self.u32_max != low
                || self.s32_min != low as i32
                || self.s32_max != low as i32)
        {
            return Some(Violation::ConstantSubreg);
        }
        None
    }

    /// Clears the upper half: the bits, and the 64-bit ranges from the 32-bit ranges
    /// (`__reg_assign_32_into_64`, `__reg32_bound_s64`). Does not synchronise (`zext_32_to_64`).
    #[doc(alias = "zext_32_to_64")]
    #[doc(alias = "__reg_assign_32_into_64")]
    #[doc(alias = "__reg32_bound_s64")]
    #[inline]
    pub const fn zero_extend32(&mut self) {
        self.arc64 = Cnum64::UNBOUNDED;
        self.var_off = self.var_off.subreg();
        self.umin = self.u32_min as u64;
        self.umax = self.u32_max as u64;
        if self.s32_min >= 0 && self.s32_max >= 0 {
            self.smin = self.s32_min as i64;
            self.smax = self.s32_max as i64;
        } else {
            self.smin = 0;
            self.smax = u32::MAX as i64;
        }
    }

    /// Keeps the low `bytes` bytes (1, 2 or 4) and clears the others, as a load
    /// of that size does. Synchronises (`coerce_reg_to_size`).
    #[doc(alias = "coerce_reg_to_size")]
    pub fn truncate(&mut self, bytes: u32, rules: Behaviours) {
        let keep = (1u64 << (bytes * 8)) - 1;
        self.var_off = self.var_off.truncated(bytes);
        if self.umin & !keep == self.umax & !keep {
            self.umin &= keep;
            self.umax &= keep;
        } else {
            self.umin = 0;
            self.umax = keep;
        }
        self.smin = self.umin as i64;
        self.smax = self.umax as i64;
        self.arc64 = Cnum64::UNBOUNDED;
        if bytes < 4 {
            match rules.has(Behaviour::RangesMeet) {
                true => self.unbound32(),
                false => self.combine_wide(rules),
            }
        }
        self.sync(rules);
    }

    /// Sign-extends the low `bytes` bytes (1, 2 or 4) to 64 bits (`set_sext64_default_val`). Does
    /// not synchronise (`coerce_reg_to_size_sx`).
    #[doc(alias = "coerce_reg_to_size_sx")]
    #[doc(alias = "set_sext64_default_val")]
    pub fn sign_extend64(&mut self, bytes: u32) {
        let bits = bytes * 8;
        let unused = 64 - bits;
        let extend = |value: u64| ((value << unused) as i64) >> unused;
        if self.is_const() {
            *self = Scalar::constant(extend(self.var_off.value) as u64);
            return;
        }
        if self.smin >> bits == self.smax >> bits {
            let (a, b) = (extend(self.smin as u64), extend(self.smax as u64));
            let (min, max) = (a.min(b), a.max(b));
            if (min >= 0) == (max >= 0) {
                *self = Scalar {
                    var_off: Tnum::range(min as u64, max as u64),
                    smin: min,
                    smax: max,
                    umin: min as u64,
                    umax: max as u64,
                    s32_min: min as i32,
                    s32_max: max as i32,
                    u32_min: min as u32,
                    u32_max: max as u32,
                    ..Scalar::UNKNOWN
                };
                return;
            }
        }
        let limit = 1i64 << (bits - 1);
        *self = Scalar {
            smin: -limit,
            smax: limit - 1,
            s32_min: -limit as i32,
            s32_max: (limit - 1) as i32,
            ..Scalar::UNKNOWN
        };
    }

    /// Sign-extends the low `bytes` bytes (1 or 2) to 32 bits, as the move with sign extension to a
    /// 32-bit register does (`set_sext32_default_val`). The upper half is left for
    /// [`Scalar::zero_extend32`]; does not synchronise (`coerce_subreg_to_size_sx`).
    #[doc(alias = "coerce_subreg_to_size_sx")]
    #[doc(alias = "set_sext32_default_val")]
    pub fn sign_extend32(&mut self, bytes: u32) {
        self.arc32 = Cnum32::UNBOUNDED;
        let bits = bytes * 8;
        let unused = 32 - bits;
        let extend = |value: u32| ((value << unused) as i32) >> unused;
        if self.is_const() {
            // Linux 6.18 keeps the sign extension to 64 bits here; the caller
            // clears the upper half.
            let value = extend(self.var_off.value as u32);
            self.var_off = Tnum::constant(value as i64 as u64);
            self.s32_min = value;
            self.s32_max = value;
            self.u32_min = value as u32;
            self.u32_max = value as u32;
            return;
        }
        if self.s32_min >> bits == self.s32_max >> bits {
            let (a, b) = (extend(self.s32_min as u32), extend(self.s32_max as u32));
            let (min, max) = (a.min(b), a.max(b));
            if (min >= 0) == (max >= 0) {
                self.s32_min = min;
                self.s32_max = max;
                self.u32_min = min as u32;
                self.u32_max = max as u32;
                self.var_off = Tnum::range(min as i64 as u64, max as i64 as u64).subreg();
                return;
            }
        }
        let limit = 1i32 << (bits - 1);
        self.s32_min = -limit;
        self.s32_max = limit - 1;
        self.u32_min = 0;
        self.u32_max = u32::MAX;
        self.var_off = Tnum::UNKNOWN.subreg();
    }
}

/// True if the upper half of `max` succeeds that of `min` and the low halves go
/// from negative to non-negative.
#[inline]
const fn follows(min: u64, max: u64) -> bool {
    ((min >> 32) as u32).wrapping_add(1) == (max >> 32) as u32
        && (min as i32) < 0
        && max as i32 >= 0
}

#[cfg(test)]
mod tests {
    use super::{Behaviours, Scalar, Tnum};

    #[test]
    fn ranges_as_narrow_as_the_bits_are_a_fixpoint() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for round in 0..200_000 {
            // From no unknown bit to all, and masks whose upper or lower half is known.
            let dense = (0..round % 5).fold(next(), |mask, _| mask & next());
            let mask = match round % 4 {
                0 => dense,
                1 => !dense,
                2 => dense >> 32,
                _ => dense << 32,
            };
            let scalar = Scalar::of_bits(Tnum {
                value: next() & !mask,
                mask,
            });
            let mut tightened = scalar;
            for rules in [Behaviours::LINUX_6_18, Behaviours::NONE] {
                tightened.tighten(rules);
                assert_eq!(scalar, tightened);
            }
        }
    }
}
