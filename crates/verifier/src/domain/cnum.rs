//! Circular numbers (`cnum`): arcs on the circle of all values of a width.
//!
//! An arc begins at `base` and goes `size` values on, upwards, over the end of the unsigned or of the
//! signed numbers if it gets there. It says in one what a signed and an unsigned range say, and more
//! where it goes over both ends. Every operation takes constant time.

/// Defines the arcs of a width: name, unsigned and signed type.
macro_rules! cnum {
    ($name:ident, $unsigned:ident, $signed:ident, $text:literal) => {
        #[doc = $text]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            /// First value.
            pub base: $unsigned,
            /// Values behind the first.
            pub size: $unsigned,
        }

        impl $name {
            /// Every value.
            pub const UNBOUNDED: $name = $name {
                base: 0,
                size: $unsigned::MAX,
            };

            /// No value.
            pub const EMPTY: $name = $name {
                base: $unsigned::MAX,
                size: $unsigned::MAX,
            };

            /// The values from `min` to `max`, over the largest unsigned one if `max` is below `min`.
            #[inline]
            pub const fn of_unsigned((min, max): ($unsigned, $unsigned)) -> $name {
                let size = max.wrapping_sub(min);
                match size {
                    $unsigned::MAX => $name::UNBOUNDED,
                    _ => $name { base: min, size },
                }
            }

            /// The values from `min` to `max`, over the largest signed one if `max` is below `min`.
            #[inline]
            pub const fn of_signed((min, max): ($signed, $signed)) -> $name {
                $name::of_unsigned((min as $unsigned, max as $unsigned))
            }

            /// Every value but one.
            #[inline]
            pub const fn without(value: $unsigned) -> $name {
                $name {
                    base: value.wrapping_add(1),
                    size: $unsigned::MAX - 1,
                }
            }

            /// True if it has no value.
            #[inline]
            pub const fn is_empty(self) -> bool {
                self.base == $unsigned::MAX && self.size == $unsigned::MAX
            }

            /// True if it goes over the largest unsigned value to 0.
            #[inline]
            pub const fn wraps_unsigned(self) -> bool {
                self.size > $unsigned::MAX - self.base
            }

            /// True if it goes over the largest signed value to the smallest.
            #[inline]
            pub const fn wraps_signed(self) -> bool {
                self.contains($signed::MAX as $unsigned) && self.contains($signed::MIN as $unsigned)
            }

            /// Last value.
            #[inline]
            const fn last(self) -> $unsigned {
                self.base.wrapping_add(self.size)
            }

            /// Ends of the unsigned range around it.
            #[inline]
            pub const fn unsigned(self) -> ($unsigned, $unsigned) {
                match self.wraps_unsigned() {
                    true => (0, $unsigned::MAX),
                    false => (self.base, self.last()),
                }
            }

            /// Ends of the signed range around it.
            #[inline]
            pub const fn signed(self) -> ($signed, $signed) {
                let (first, last) = (self.base as $signed, self.last() as $signed);
                match self.wraps_signed() {
                    true => ($signed::MIN, $signed::MAX),
                    false if first < last => (first, last),
                    false => (last, first),
                }
            }

            /// True if it has the value.
            #[inline]
            pub const fn contains(self, value: $unsigned) -> bool {
                !self.is_empty() && value.wrapping_sub(self.base) <= self.size
            }

            /// True if it has every value of `other` (`cnum_is_subset`).
            #[inline]
            pub const fn covers(self, other: $name) -> bool {
                if other.is_empty() || self.is_empty() {
                    return other.is_empty();
                }
                let first = other.base.wrapping_sub(self.base);
                let fits = other.size <= $unsigned::MAX - first;
                self.size == $unsigned::MAX || fits && first + other.size <= self.size
            }

            /// The values of both; of two that meet at both ends, the smaller (`cnum_intersect`).
            #[must_use]
            pub fn intersect(self, other: $name) -> $name {
                if self.is_empty() || other.is_empty() {
                    return $name::EMPTY;
                }
                let first = other.base.wrapping_sub(self.base);
                let begins_inside = first <= self.size;
                let goes_round = other.size > $unsigned::MAX - first;
                match (begins_inside, goes_round) {
                    (true, false) => $name {
                        base: other.base,
                        size: other.size.min(self.size - first),
                    },
                    (false, true) => $name {
                        base: self.base,
                        size: self.size.min(first.wrapping_add(other.size)),
                    },
                    (false, false) => $name::EMPTY,
                    (true, true) if self.size == other.size => match self.base < other.base {
                        true => self,
                        false => other,
                    },
                    (true, true) => match self.size < other.size {
                        true => self,
                        false => other,
                    },
                }
            }

            /// The sums of a value of each (`cnum_add`).
            #[must_use]
            pub const fn add(self, other: $name) -> $name {
                if self.is_empty() || other.is_empty() {
                    return $name::EMPTY;
                }
                match self.size.checked_add(other.size) {
                    Some($unsigned::MAX) | None => $name::UNBOUNDED,
                    Some(size) => $name {
                        base: self.base.wrapping_add(other.base),
                        size,
                    },
                }
            }

            /// The values negated (`cnum_negate`).
            #[must_use]
            pub const fn negate(self) -> $name {
                if self.is_empty() {
                    return $name::EMPTY;
                }
                match self.size {
                    $unsigned::MAX => $name::UNBOUNDED,
                    size => $name {
                        base: self.last().wrapping_neg(),
                        size,
                    },
                }
            }
        }
    };
}

cnum!(Cnum32, u32, i32, "Arc of values of 32 bits.");
cnum!(Cnum64, u64, i64, "Arc of values of 64 bits.");

impl Cnum32 {
    /// The low halves of the values of an arc of 64 bits (`cnum32_from_cnum64`).
    #[doc(alias = "cnum32_from_cnum64")]
    pub const fn of_low_halves(arc: Cnum64) -> Cnum32 {
        if arc.is_empty() {
            return Cnum32::EMPTY;
        }
        match arc.size >= u32::MAX as u64 {
            true => Cnum32::UNBOUNDED,
            false => Cnum32 {
                base: arc.base as u32,
                size: arc.size as u32,
            },
        }
    }
}

impl Cnum64 {
    /// From the first to the last of its values whose low half is one of `low`
    /// (`cnum64_cnum32_intersect`).
    #[doc(alias = "cnum64_cnum32_intersect")]
    #[must_use]
    pub const fn with_low_halves(self, low: Cnum32) -> Cnum64 {
        if self.is_empty() || low.is_empty() {
            return Cnum64::EMPTY;
        }
        if low.size == u32::MAX {
            return self;
        }
        // Steps from the base, of whose low halves those of `low` are an arc, too.
        let low = Cnum32 {
            base: low.base.wrapping_sub(self.base as u32),
            size: low.size,
        };
        let first = match low.contains(0) {
            true => 0,
            false => low.base as u64,
        };
        if first > self.size {
            return Cnum64::EMPTY;
        }
        let end = self.size as u32;
        let behind = match low.contains(end) {
            true => 0,
            false => end.wrapping_sub(low.last()),
        };
        match (self.size - first).checked_sub(behind as u64) {
            Some(size) => Cnum64 {
                base: self.base.wrapping_add(first),
                size,
            },
            None => Cnum64::EMPTY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cnum32, Cnum64};

    /// Values where unsigned and signed numbers wrap, and some beside them.
    fn edges() -> Vec<u32> {
        let around =
            |centre: u32| (0..5).map(move |step| centre.wrapping_add(step).wrapping_sub(2));
        [0, 7, 1 << 31].into_iter().flat_map(around).collect()
    }

    fn arcs() -> Vec<Cnum32> {
        let ends = edges();
        let all = ends.iter().flat_map(|&a| ends.iter().map(move |&b| (a, b)));
        let mut arcs: Vec<Cnum32> = all.map(Cnum32::of_unsigned).collect();
        arcs.extend([Cnum32::UNBOUNDED, Cnum32::EMPTY]);
        arcs.extend(ends.into_iter().map(Cnum32::without));
        arcs
    }

    /// The arc of 64 bits around the same places.
    fn wide(arc: Cnum32) -> Cnum64 {
        match arc.is_empty() {
            true => Cnum64::EMPTY,
            false => Cnum64::of_signed((
                i64::from(arc.base as i32),
                i64::from(arc.base.wrapping_add(arc.size) as i32),
            )),
        }
    }

    #[test]
    fn an_intersection_has_what_both_have_and_no_more_than_one() {
        for a in arcs() {
            for b in arcs() {
                let both = a.intersect(b);
                assert_eq!(both, b.intersect(a));
                assert!(a.covers(both) || b.covers(both), "{a:?} {b:?}: {both:?}");
                for value in edges() {
                    let is_common = a.contains(value) && b.contains(value);
                    assert!(!is_common || both.contains(value), "{a:?} {b:?}: {both:?}");
                    assert!(!a.covers(b) || !b.contains(value) || a.contains(value));
                }
            }
        }
    }

    #[test]
    fn sums_and_ranges_have_every_value() {
        for a in arcs() {
            for b in arcs() {
                let (sum, difference) = (a.add(b), a.add(b.negate()));
                for x in edges().into_iter().filter(|&x| a.contains(x)) {
                    for y in edges().into_iter().filter(|&y| b.contains(y)) {
                        assert!(sum.contains(x.wrapping_add(y)));
                        assert!(difference.contains(x.wrapping_sub(y)));
                    }
                }
            }
            let ((min, max), (least, most)) = (a.unsigned(), a.signed());
            for x in edges().into_iter().filter(|&x| a.contains(x)) {
                assert!((min..=max).contains(&x) && (least..=most).contains(&(x as i32)));
            }
        }
    }

    #[test]
    fn halves_of_arcs_have_every_value() {
        let highs = [0u64, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
        let values = || {
            highs.into_iter().flat_map(|high| {
                edges()
                    .into_iter()
                    .map(move |low| high << 32 | u64::from(low))
            })
        };
        for a in arcs().into_iter().map(wide) {
            let halves = Cnum32::of_low_halves(a);
            for low in arcs() {
                let narrowed = a.with_low_halves(low);
                for x in values().filter(|&x| a.contains(x)) {
                    assert!(halves.contains(x as u32));
                    assert!(
                        !low.contains(x as u32) || narrowed.contains(x),
                        "{a:x?} {low:x?}: {narrowed:x?}"
                    );
                }
            }
        }
    }
}
