//! Tristate numbers: each bit is 0, 1 or unknown.
//!
//! A tnum is a pair (value, mask): bits set in `mask` are unknown, the others
//! are as in `value`, and no bit is set in both. It stands for the 2^k values
//! that agree on the known bits. The operations are those of the kernel's
//! tnum.c (Vishwanathan et al., "Sound, Precise, and Fast Abstract
//! Interpretation with Tristate Numbers", CGO 2022); multiplication is the long
//! multiplication with unions of Linux 6.18.

use spec::behaviour::{Behaviour, Behaviours};

/// A tristate number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tnum {
    /// The known bits; 0 where a bit is unknown.
    pub value: u64,
    /// The unknown bits.
    pub mask: u64,
}

impl Tnum {
    /// No bit known.
    pub const UNKNOWN: Tnum = Tnum { value: 0, mask: !0 };

    /// All bits known (`tnum_const`).
    #[doc(alias = "tnum_const")]
    #[inline]
    pub const fn constant(value: u64) -> Tnum {
        Tnum { value, mask: 0 }
    }

    /// The smallest tnum that contains every value of `min..=max` (`tnum_range`).
    #[doc(alias = "tnum_range")]
    #[inline]
    pub const fn range(min: u64, max: u64) -> Tnum {
        let differing = min ^ max;
        let mask = match differing.leading_zeros() {
            0 => return Tnum::UNKNOWN,
            zeros => (1u64 << (64 - zeros)) - 1,
        };
        Tnum {
            value: min & !mask,
            mask,
        }
    }

    /// True if every bit is known.
    #[inline]
    pub const fn is_const(self) -> bool {
        self.mask == 0
    }

    /// True if every bit of the low half is known.
    #[inline]
    pub const fn is_subreg_const(self) -> bool {
        self.mask as u32 == 0
    }

    /// True if no bit is known.
    #[inline]
    pub const fn is_unknown(self) -> bool {
        self.value == 0 && self.mask == !0
    }

    /// True if this is exactly `value`.
    #[inline]
    pub const fn equals(self, value: u64) -> bool {
        self.mask == 0 && self.value == value
    }

    /// Smallest member, unsigned.
    #[inline]
    pub const fn min(self) -> u64 {
        self.value
    }

    /// Largest member, unsigned.
    #[inline]
    pub const fn max(self) -> u64 {
        self.value | self.mask
    }

    /// True if `value` is a member.
    #[inline]
    pub const fn has(self, value: u64) -> bool {
        value & !self.mask == self.value
    }

    /// True if every member of `other` is a member of this (`tnum_in`).
    #[doc(alias = "tnum_in")]
    #[inline]
    pub const fn contains(self, other: Tnum) -> bool {
        other.mask & !self.mask == 0 && self.value == other.value & !self.mask
    }

    /// True if some value is a member of both (`tnum_overlap`).
    #[doc(alias = "tnum_overlap")]
    #[inline]
    pub const fn overlaps(self, other: Tnum) -> bool {
        (self.value ^ other.value) & !self.mask & !other.mask == 0
    }

    /// True if every member is a multiple of `size`, a power of two or 0 (`tnum_is_aligned`).
    #[doc(alias = "tnum_is_aligned")]
    #[inline]
    pub const fn is_aligned(self, size: u64) -> bool {
        size == 0 || self.max() & (size - 1) == 0
    }

    /// Shifted left (`tnum_lshift`).
    #[doc(alias = "tnum_lshift")]
    #[inline]
    pub const fn lsh(self, shift: u32) -> Tnum {
        Tnum {
            value: self.value << shift,
            mask: self.mask << shift,
        }
    }

    /// Shifted right, with zeroes from above (`tnum_rshift`).
    #[doc(alias = "tnum_rshift")]
    #[inline]
    pub const fn rsh(self, shift: u32) -> Tnum {
        Tnum {
            value: self.value >> shift,
            mask: self.mask >> shift,
        }
    }

    /// Shifted right, with copies of the sign bit from above (`tnum_arshift`).
    #[doc(alias = "tnum_arshift")]
    #[inline]
    pub const fn arsh(self, shift: u32) -> Tnum {
        Tnum {
            value: (self.value as i64 >> shift) as u64,
            mask: (self.mask as i64 >> shift) as u64,
        }
    }

    /// The low half shifted right with copies of bit 31; the upper half is 0.
    #[inline]
    pub const fn arsh32(self, shift: u32) -> Tnum {
        Tnum {
            value: (self.value as i32 >> shift) as u32 as u64,
            mask: (self.mask as i32 >> shift) as u32 as u64,
        }
    }

    /// The sum, wrapping (`tnum_add`).
    #[doc(alias = "tnum_add")]
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub const fn add(self, other: Tnum) -> Tnum {
        let sum = self.value.wrapping_add(other.value);
        let carries = self.mask.wrapping_add(other.mask).wrapping_add(sum) ^ sum;
        let mask = carries | self.mask | other.mask;
        Tnum {
            value: sum & !mask,
            mask,
        }
    }

    /// The difference, wrapping (`tnum_sub`).
    #[doc(alias = "tnum_sub")]
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub const fn sub(self, other: Tnum) -> Tnum {
        let difference = self.value.wrapping_sub(other.value);
        let largest = difference.wrapping_add(self.mask);
        let smallest = difference.wrapping_sub(other.mask);
        let mask = (largest ^ smallest) | self.mask | other.mask;
        Tnum {
            value: difference & !mask,
            mask,
        }
    }

    /// The two's complement (`tnum_neg`).
    #[doc(alias = "tnum_neg")]
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub const fn neg(self) -> Tnum {
        Tnum::constant(0).sub(self)
    }

    /// Bitwise and (`tnum_and`).
    #[doc(alias = "tnum_and")]
    #[inline]
    pub const fn and(self, other: Tnum) -> Tnum {
        let value = self.value & other.value;
        Tnum {
            value,
            mask: self.max() & other.max() & !value,
        }
    }

    /// Bitwise or (`tnum_or`).
    #[doc(alias = "tnum_or")]
    #[inline]
    pub const fn or(self, other: Tnum) -> Tnum {
        let value = self.value | other.value;
        Tnum {
            value,
            mask: (self.mask | other.mask) & !value,
        }
    }

    /// Bitwise exclusive or (`tnum_xor`).
    #[doc(alias = "tnum_xor")]
    #[inline]
    pub const fn xor(self, other: Tnum) -> Tnum {
        let mask = self.mask | other.mask;
        Tnum {
            value: (self.value ^ other.value) & !mask,
            mask,
        }
    }

    /// The product, wrapping, by long multiplication: for each bit of `self` the
    /// shifted `other` is added, or, where the bit is unknown, united with what
    /// results when it is not (`tnum_mul`).
    #[doc(alias = "tnum_mul")]
    pub const fn mul(self, other: Tnum, rules: Behaviours) -> Tnum {
        if !rules.has(Behaviour::ProductBits) {
            return self.mul_by_masks(other);
        }
        let (mut a, mut b) = (self, other);
        if a.mask == 0 && b.mask == 0 {
            return Tnum::constant(a.value.wrapping_mul(b.value));
        }
        let mut product = Tnum::constant(0);
        while a.max() != 0 {
            // Steps whose bit is a known 0 change nothing.
            let zeros = a.max().trailing_zeros();
            a = a.rsh(zeros);
            b = b.lsh(zeros);
            let sum = product.add(b);
            product = match a.value & 1 {
                0 => product.union(sum),
                _ => sum,
            };
            a = a.rsh(1);
            b = b.lsh(1);
        }
        product
    }

    /// The product, wrapping, as earlier kernels have it: that of the known bits, and a sum of what
    /// unknown bits may add.
    const fn mul_by_masks(self, other: Tnum) -> Tnum {
        let (mut a, mut b) = (self, other);
        let known = Tnum::constant(a.value.wrapping_mul(b.value));
        let mut added = Tnum::constant(0);
        while a.max() != 0 {
            let mask = match (a.value & 1, a.mask & 1) {
                (1, _) => b.mask,
                (_, 1) => b.max(),
                _ => 0,
            };
            added = added.add(Tnum { value: 0, mask });
            a = a.rsh(1);
            b = b.lsh(1);
        }
        known.add(added)
    }

    /// Bits that are known by either; where they disagree on a bit it becomes 1
    /// (`tnum_intersect`).
    #[doc(alias = "tnum_intersect")]
    #[inline]
    pub const fn intersect(self, other: Tnum) -> Tnum {
        let mask = self.mask & other.mask;
        Tnum {
            value: (self.value | other.value) & !mask,
            mask,
        }
    }

    /// The smallest tnum that contains the members of both (`tnum_union`).
    #[doc(alias = "tnum_union")]
    #[inline]
    pub const fn union(self, other: Tnum) -> Tnum {
        let mask = (self.value ^ other.value) | self.mask | other.mask;
        Tnum {
            value: self.value & !mask,
            mask,
        }
    }

    /// The low `bytes` bytes, 1, 2 or 4, with zeroes above (`tnum_cast`).
    #[doc(alias = "tnum_cast")]
    #[inline]
    pub const fn truncated(self, bytes: u32) -> Tnum {
        let keep = (1u64 << (bytes * 8)) - 1;
        Tnum {
            value: self.value & keep,
            mask: self.mask & keep,
        }
    }

    /// The low half, with zeroes above (`tnum_subreg`).
    #[doc(alias = "tnum_subreg")]
    #[inline]
    pub const fn subreg(self) -> Tnum {
        Tnum {
            value: self.value as u32 as u64,
            mask: self.mask as u32 as u64,
        }
    }

    /// This with the low half of `subreg` (`tnum_with_subreg`, `tnum_clear_subreg`).
    #[doc(alias = "tnum_with_subreg")]
    #[doc(alias = "tnum_clear_subreg")]
    #[inline]
    pub const fn with_subreg(self, subreg: Tnum) -> Tnum {
        const HIGH: u64 = 0xffff_ffff_0000_0000;
        Tnum {
            value: self.value & HIGH | subreg.value as u32 as u64,
            mask: self.mask & HIGH | subreg.mask as u32 as u64,
        }
    }

    /// The low `bytes` bytes (2, 4 or 8) in reverse order, with zeroes above (`tnum_bswap16`,
    /// `tnum_bswap32`, `tnum_bswap64`).
    #[doc(alias = "tnum_bswap16")]
    #[doc(alias = "tnum_bswap32")]
    #[doc(alias = "tnum_bswap64")]
    #[inline]
    pub const fn byte_swapped(self, bytes: u32) -> Tnum {
        let shift = 64 - bytes * 8;
        Tnum {
            value: self.value.swap_bytes() >> shift,
            mask: self.mask.swap_bytes() >> shift,
        }
    }

    /// The smallest member above `bound`, if `bound` lies between the smallest and the largest
    /// member; below them the smallest, above them the largest (`tnum_step`).
    #[doc(alias = "tnum_step")]
    #[inline]
    pub const fn next_above(self, bound: u64) -> u64 {
        if bound >= self.max() {
            return self.max();
        }
        if bound < self.value {
            return self.value;
        }
        // The highest known bit in which the bound is no member decides.
        let disagreement = (bound ^ self.value) & !self.mask;
        let below = match disagreement.leading_zeros() {
            64 => 0,
            zeros => !0 >> zeros,
        };
        let highest = below & !(below >> 1);
        if self.value & highest != 0 {
            return self.value | bound & self.mask & !below;
        }
        // Carry through the known bits and through all that is below.
        let next = (bound | !self.mask | below).wrapping_add(1);
        self.value | next & self.mask
    }
}
