//! The least abstract value that covers two.

use super::{Cnum32, Cnum64, Scalar};

impl Scalar {
    /// Covers every value that one of the two covers.
    #[must_use]
    pub fn union(&self, other: &Scalar) -> Scalar {
        Scalar {
            var_off: self.var_off.union(other.var_off),
            smin: self.smin.min(other.smin),
            smax: self.smax.max(other.smax),
            umin: self.umin.min(other.umin),
            umax: self.umax.max(other.umax),
            s32_min: self.s32_min.min(other.s32_min),
            s32_max: self.s32_max.max(other.s32_max),
            u32_min: self.u32_min.min(other.u32_min),
            u32_max: self.u32_max.max(other.u32_max),
            arc64: match self.arc64 == other.arc64 {
                true => self.arc64,
                false => Cnum64::UNBOUNDED,
            },
            arc32: match self.arc32 == other.arc32 {
                true => self.arc32,
                false => Cnum32::UNBOUNDED,
            },
        }
    }
}
