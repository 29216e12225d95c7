//! Numbers: what is known of a 64-bit value.

/// Known and unknown bits of a value (tristate number).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tnum {
    /// Values of the known bits; 0 where a bit is unknown.
    pub value: u64,
    /// 1 where a bit is unknown.
    pub mask: u64,
}

impl Tnum {
    /// Every value.
    pub const UNKNOWN: Tnum = Tnum {
        value: 0,
        mask: u64::MAX,
    };

    /// One value.
    pub const fn constant(value: u64) -> Tnum {
        Tnum { value, mask: 0 }
    }

    /// True if exactly one value is possible.
    pub const fn is_const(self) -> bool {
        self.mask == 0
    }
}

/// Bits and ranges of a 64-bit value and its low half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Scalar {
    pub var_off: Tnum,
    pub smin: i64,
    pub smax: i64,
    pub umin: u64,
    pub umax: u64,
    pub s32_min: i32,
    pub s32_max: i32,
    pub u32_min: u32,
    pub u32_max: u32,
}

impl Scalar {
    /// Every value.
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
    };

    /// One value.
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
        }
    }
}
