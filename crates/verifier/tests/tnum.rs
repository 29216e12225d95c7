//! Soundness of the operations on tnums, exhaustively at width 8.
//!
//! A tnum of 8 bits is split at its lowest unknown bit into two. An operation is
//! sound if constants give the constant result and the results of both halves
//! lie in the result of the whole: induction over the number of unknown bits
//! then covers every pair of members without listing them. The same condition is
//! monotony along splits.

use beebox_verifier::domain::Tnum;

/// Every tnum of `bits` bits.
fn tnums(bits: u32) -> Vec<Tnum> {
    let size = 1u64 << bits;
    (0..size)
        .flat_map(|mask| {
            (0..size)
                .filter(move |value| value & mask == 0)
                .map(move |value| Tnum { value, mask })
        })
        .collect()
}

/// The two halves at the lowest unknown bit.
fn halves(t: Tnum) -> Option<[Tnum; 2]> {
    let bit = t.mask & t.mask.wrapping_neg();
    (bit != 0).then(|| {
        [0, bit].map(|set| Tnum {
            value: t.value | set,
            mask: t.mask & !bit,
        })
    })
}

fn check(bits: u32, abstractly: impl Fn(Tnum, Tnum) -> Tnum, concretely: impl Fn(u64, u64) -> u64) {
    let all = tnums(bits);
    for &a in &all {
        for &b in &all {
            let result = abstractly(a, b);
            assert_eq!(result.value & result.mask, 0, "{a:x?} {b:x?}");
            match (halves(a), halves(b)) {
                (None, None) => {
                    assert_eq!(result, Tnum::constant(concretely(a.value, b.value)));
                }
                (Some(parts), _) => {
                    for part in parts {
                        assert!(result.contains(abstractly(part, b)), "{a:x?} {b:x?}");
                    }
                }
                (None, Some(parts)) => {
                    for part in parts {
                        assert!(result.contains(abstractly(a, part)), "{a:x?} {b:x?}");
                    }
                }
            }
        }
    }
}

#[test]
fn addition_is_sound() {
    check(8, Tnum::add, u64::wrapping_add);
}

#[test]
fn subtraction_is_sound() {
    check(8, Tnum::sub, u64::wrapping_sub);
}

#[test]
fn multiplication_is_sound() {
    // The union of both cases of an unknown bit is not monotone in the kernel
    // either, so soundness is checked by members.
    let all = tnums(6);
    for &a in &all {
        for &b in &all {
            let product = a.mul(b);
            for x in members(a) {
                for y in members(b) {
                    assert!(
                        product.has(x.wrapping_mul(y)),
                        "{a:x?} * {b:x?} lacks {x} * {y}"
                    );
                }
            }
        }
    }
    let all = tnums(8);
    for (index, &a) in all.iter().enumerate() {
        for &b in all.iter().skip(index % 61).step_by(61) {
            let product = a.mul(b);
            for (x, y) in [
                (a.min(), b.min()),
                (a.max(), b.max()),
                (a.min(), b.max()),
                (a.max(), b.min()),
            ] {
                assert!(product.has(x.wrapping_mul(y)));
            }
        }
    }
}

#[test]
fn bitwise_operations_are_sound() {
    check(8, Tnum::and, |a, b| a & b);
    check(8, Tnum::or, |a, b| a | b);
    check(8, Tnum::xor, |a, b| a ^ b);
}

/// The members of a tnum of few unknown bits.
fn members(t: Tnum) -> impl Iterator<Item = u64> {
    let mut next = Some(t.value);
    std::iter::from_fn(move || {
        let current = next?;
        let above = t.value | (((current | !t.mask).wrapping_add(1)) & t.mask);
        next = (above > current).then_some(above);
        Some(current)
    })
}

/// The tnums of 8 bits moved to where shifts and extensions cut.
fn placed() -> impl Iterator<Item = Tnum> {
    tnums(8)
        .into_iter()
        .flat_map(|t| [0, 12, 28, 56].map(|place| t.lsh(place)))
}

#[test]
fn shifts_are_sound() {
    for t in placed() {
        for count in [0, 1, 3, 7, 31] {
            for x in members(t) {
                assert!(t.lsh(count).has(x << count));
                assert!(t.rsh(count).has(x >> count));
                assert!(t.arsh(count).has((x as i64 >> count) as u64));
                assert!(t.arsh32(count).has((x as i32 >> count) as u32 as u64));
            }
        }
    }
}

#[test]
fn unary_operations_are_sound() {
    for t in placed() {
        for x in members(t) {
            assert!(t.neg().has(x.wrapping_neg()));
            assert!(t.byte_swapped(2).has((x as u16).swap_bytes().into()));
            assert!(t.byte_swapped(4).has((x as u32).swap_bytes().into()));
            assert!(t.byte_swapped(8).has(x.swap_bytes()));
            assert!(t.subreg().has(x as u32 as u64));
            for bytes in [1, 2, 4] {
                assert!(t.truncated(bytes).has(x & ((1 << (bytes * 8)) - 1)));
            }
        }
    }
}

#[test]
fn ranges_have_their_members() {
    for min in 0..256u64 {
        for max in min..256 {
            let t = Tnum::range(min, max);
            assert!((min..=max).all(|x| t.has(x)), "{min} {max}");
            // One bit less is too small.
            assert!(
                t.mask == 0
                    || !Tnum {
                        value: t.value,
                        mask: t.mask >> 1
                    }
                    .contains(t)
            );
        }
    }
    assert_eq!(Tnum::range(0, u64::MAX), Tnum::UNKNOWN);
    assert_eq!(
        Tnum::range(1 << 63, u64::MAX),
        Tnum {
            value: 1 << 63,
            mask: !0 >> 1
        }
    );
}

#[test]
fn set_operations_are_those_of_sets() {
    let all = tnums(6);
    for &a in &all {
        for &b in &all {
            let inside = members(b).all(|x| a.has(x));
            assert_eq!(a.contains(b), inside, "{a:x?} {b:x?}");
            let common = members(a).any(|x| b.has(x));
            assert_eq!(a.overlaps(b), common, "{a:x?} {b:x?}");
            let (meet, join) = (a.intersect(b), a.union(b));
            if common {
                for x in 0..64 {
                    assert_eq!(meet.has(x), a.has(x) && b.has(x), "{a:x?} {b:x?} {x}");
                }
            }
            assert!(members(a).chain(members(b)).all(|x| join.has(x)));
        }
    }
}

#[test]
fn the_next_member_is_the_smallest_above() {
    for t in tnums(8) {
        for bound in 0..260 {
            let expected = match bound {
                bound if bound >= t.max() => t.max(),
                bound => members(t).find(|x| *x > bound).unwrap(),
            };
            assert_eq!(t.next_above(bound), expected, "{t:x?} {bound}");
        }
    }
}
