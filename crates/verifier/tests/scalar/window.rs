//! Small windows of the 64-bit values, laid over the places where ranges wrap.
//!
//! A window of `bits` bits holds the `2^bits` values around its centre, half of them
//! below it. Sets of its values are bit masks, so that the exact result of an operation
//! on two sets comes from precomputed tables instead of a walk over all pairs of members.

use beebox_verifier::domain::{Scalar, Tnum};

/// The centres: 0, the signs of the low half and of the value, the end of the low half,
/// and the sign of a sign-extended low half.
pub(crate) const CENTRES: [u64; 5] = [
    0,
    0x8000_0000,
    0x1_0000_0000,
    0x8000_0000_0000_0000,
    0xffff_ffff_8000_0000,
];

/// `2^bits` consecutive values, wrapping; at most 64.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    base: u64,
    size: u32,
}

/// An abstract value and the values of the window that it was made of, one bit each.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    pub(crate) scalar: Scalar,
    pub(crate) set: u64,
}

impl Window {
    pub(crate) fn new(bits: u32, centre: u64) -> Window {
        let size = 1 << bits;
        Window {
            base: centre.wrapping_sub(u64::from(size) / 2),
            size,
        }
    }

    /// The values, in the order of the bits of a set.
    pub(crate) fn values(self) -> impl Iterator<Item = u64> + Clone {
        (0..self.size).map(move |index| self.value(index))
    }

    pub(crate) fn value(self, index: u32) -> u64 {
        self.base.wrapping_add(index.into())
    }

    pub(crate) fn members(self, set: u64) -> impl Iterator<Item = u64> {
        bits(set).map(move |index| self.value(index))
    }

    /// The set as the smallest range of each kind and the smallest tnum.
    fn known(self, set: u64) -> Known {
        let scalar = self.members(set).map(Scalar::constant);
        let scalar = scalar.reduce(|a, b| a.union(&b)).expect("not empty");
        Known { scalar, set }
    }

    /// Every range.
    pub(crate) fn ranges(self) -> Vec<Known> {
        let ranges = (0..self.size).flat_map(|low| (low..self.size).map(move |high| (low, high)));
        ranges
            .map(|(low, high)| self.known(range_set(low, high)))
            .collect()
    }

    /// Every product of a range and a tnum that has a member.
    pub(crate) fn products(self) -> Vec<Known> {
        let mut sets = Vec::new();
        let size = u64::from(self.size);
        for mask in 0..size {
            for value in (0..size).filter(|value| value & mask == 0) {
                let tnum = Tnum { value, mask };
                let set = (0..self.size)
                    .filter(|&index| tnum.has(self.value(index) & (size - 1)))
                    .fold(0, |set, index| set | 1 << index);
                for low in 0..self.size {
                    sets.extend((low..self.size).map(|high| set & range_set(low, high)));
                }
            }
        }
        sets.sort_unstable();
        sets.dedup();
        sets.retain(|&set| set != 0);
        sets.into_iter().map(|set| self.known(set)).collect()
    }
}

impl Window {
    /// The window with its ranges.
    pub(crate) fn with_ranges(self) -> (Window, Vec<Known>) {
        (self, self.ranges())
    }

    /// The window with its products.
    pub(crate) fn with_products(self) -> (Window, Vec<Known>) {
        (self, self.products())
    }
}

/// The indices of the bits that are set, ascending.
pub(crate) fn bits(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let index = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (index < 64).then_some(index)
    })
}

fn range_set(low: u32, high: u32) -> u64 {
    (!0 >> (63 - high)) & (!0 << low)
}

/// Fails unless `value` is in `result`.
#[track_caller]
pub(crate) fn assert_has(result: &Scalar, value: u64, what: std::fmt::Arguments<'_>) {
    assert!(
        result.has(value),
        "{what}: {value:#x} is not in {result:x?}"
    );
}
