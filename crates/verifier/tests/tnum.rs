//! Soundness of the operations on tnums, exhaustively at width 8.
//!
//! A tnum of 8 bits is split at its lowest unknown bit into two. An operation is
//! sound if constants give the constant result and the results of both halves
//! lie in the result of the whole: induction over the number of unknown bits
//! then covers every pair of members without listing them. Multiplication and the
//! operations on sets are compared with exact results, at width 8 too. Arithmetic,
//! bitwise operations, shifts and the union are monotone, exhaustively at width 6.

use beebox_verifier::domain::Tnum;
use spec::behaviour::Behaviours;

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

/// The exact product of a pair of tnums is the union of the exact products of their
/// halves, kept in a table; the computed one has to contain it.
#[test]
fn multiplication_is_sound() {
    let all = tnums(8);
    let index = |t: Tnum| all.iter().position(|&other| other == t).expect("of 8 bits");
    let split: Vec<_> = all
        .iter()
        .map(|&t| halves(t).map(|h| h.map(index)))
        .collect();
    // The factors as they are, and moved so that the product wraps.
    for (left, right) in [(0, 0), (0, 56), (30, 29)] {
        // Constants are first, and the halves of a tnum come before it.
        let mut exact = vec![Tnum::constant(0); all.len()];
        for &a in &all {
            let a = a.lsh(left);
            for (i, &b) in all.iter().enumerate() {
                let b = b.lsh(right);
                exact[i] = match split[i] {
                    None => {
                        let products = members(a).map(|x| x.wrapping_mul(b.value));
                        let products = products.map(Tnum::constant);
                        products.reduce(Tnum::union).expect("not empty")
                    }
                    Some([low, high]) => exact[low].union(exact[high]),
                };
                for rules in [Behaviours::LINUX_6_18, Behaviours::NONE] {
                    let product = a.mul(b, rules);
                    assert_eq!(product.value & product.mask, 0, "{a:x?} * {b:x?}");
                    assert!(product.contains(exact[i]), "{a:x?} * {b:x?}: {product:x?}");
                }
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
    let all = tnums(8);
    let set = |t: Tnum| {
        members(t).fold([0u64; 4], |mut set, x| {
            set[x as usize / 64] |= 1 << (x % 64);
            set
        })
    };
    let all: Vec<_> = all.into_iter().map(|t| (t, set(t))).collect();
    for &(a, of_a) in &all {
        for &(b, of_b) in &all {
            let common: [u64; 4] = std::array::from_fn(|i| of_a[i] & of_b[i]);
            assert_eq!(a.contains(b), common == of_b, "{a:x?} {b:x?}");
            assert_eq!(a.overlaps(b), common != [0; 4], "{a:x?} {b:x?}");
            let (meet, join) = (a.intersect(b), a.union(b));
            assert!(common == [0; 4] || set(meet) == common, "{a:x?} {b:x?}");
            // The join is an upper bound, and the bits that it loses differ.
            assert!(join.contains(a) && join.contains(b), "{a:x?} {b:x?}");
            let differ = a.value ^ b.value | a.mask | b.mask;
            assert_eq!(join.mask, differ, "{a:x?} {b:x?}");
        }
    }
}

/// Every operand is narrowed by one bit at a time, which chains to every part.
#[test]
fn operations_are_monotone() {
    type Operation = (&'static str, fn(Tnum, Tnum) -> Tnum);
    let operations: [Operation; 7] = [
        ("add", Tnum::add),
        ("sub", Tnum::sub),
        ("mul", |a, b| a.mul(b, Behaviours::LINUX_6_18)),
        ("and", Tnum::and),
        ("or", Tnum::or),
        ("xor", Tnum::xor),
        ("union", Tnum::union),
    ];
    let parts = |t: Tnum| {
        let unknown = members(Tnum {
            value: 0,
            mask: t.mask,
        })
        .filter(|bit| bit.is_power_of_two());
        unknown.flat_map(move |bit| {
            [0, bit].map(|set| Tnum {
                value: t.value | set,
                mask: t.mask & !bit,
            })
        })
    };
    let all = tnums(6);
    for &a in &all {
        for &b in &all {
            for (name, operation) in operations {
                let whole = operation(a, b);
                let left = parts(a).map(|part| operation(part, b));
                let right = parts(b).map(|part| operation(a, part));
                for part in left.chain(right) {
                    assert!(whole.contains(part), "{name} {a:x?} {b:x?}: {part:x?}");
                }
            }
        }
        for part in parts(a) {
            assert!(a.neg().contains(part.neg()));
            for count in 0..8 {
                assert!(a.lsh(count).contains(part.lsh(count)));
                assert!(a.rsh(count).contains(part.rsh(count)));
                assert!(a.lsh(58).arsh(count).contains(part.lsh(58).arsh(count)));
            }
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
