//! Conditions, exhaustively: ranges of 6 bits, products of a range and a tnum of 4 bits.
//!
//! For each pair of abstract values and each outcome, the members that take part in a pair
//! with that outcome have to survive the refinement, and a decided condition must not have
//! a pair of the other outcome. Both sets come from tables: the values that are related to
//! one of `b`, cut by `a`, and the other way round.

use super::window::{CENTRES, Known, Window, bits};
use super::{NEWEST, RULES, WIDTHS};
use beebox_verifier::domain::{Scalar, Tnum, decide, refine, refine_synced};
use isa::ebpf::{Cond, Width, eval};

/// For each value, the union of the masks of its members.
fn related(all: &[Known], masks: &[u64]) -> Vec<u64> {
    let union = |known: &Known| bits(known.set).fold(0, |set, i| set | masks[i as usize]);
    all.iter().map(union).collect()
}

/// Checks every pair of a value of the first and one of the second list.
fn check(
    cond: Cond,
    width: Width,
    (at, left): (Window, &[Known]),
    (by, right): (Window, &[Known]),
) {
    for outcome in [true, false] {
        let holds = |x, y| eval::compare(cond, width, x, y) == outcome;
        let mask = |test: &dyn Fn(u64) -> bool, window: Window| {
            let pass = window.values().map(|value| u64::from(test(value)));
            pass.zip(0..).fold(0, |set, (pass, i)| set | pass << i)
        };
        let by_left: Vec<u64> = at.values().map(|x| mask(&|y| holds(x, y), by)).collect();
        let by_right: Vec<u64> = by.values().map(|y| mask(&|x| holds(x, y), at)).collect();
        let (by_left, by_right) = (related(left, &by_left), related(right, &by_right));
        for (a, of_a) in left.iter().zip(&by_left) {
            for (b, of_b) in right.iter().zip(&by_right) {
                let (stay_a, stay_b) = (a.set & of_b, b.set & of_a);
                if stay_a == 0 {
                    continue;
                }
                for rules in [RULES, NEWEST] {
                    let decided = decide(cond, width, (&a.scalar, &b.scalar), rules);
                    let (mut x, mut y) = (a.scalar, b.scalar);
                    refine_synced(cond, outcome, width, (&mut x, &mut y), rules);
                    let stays = covers(&x, at, stay_a) && covers(&y, by, stay_b);
                    assert!(
                        decided != Some(!outcome) && stays,
                        "{:x?} {cond:?} {:x?} {width:?} {outcome}: {decided:?} {x:x?} {y:x?}",
                        a.scalar,
                        b.scalar
                    );
                }
            }
        }
    }
}

/// True if every value of the set is in the scalar. Each half of a window ascends in every
/// order, so the ends of the halves tell about the ranges.
fn covers(scalar: &Scalar, window: Window, set: u64) -> bool {
    let lower = (1u64 << (window.values().count() / 2)) - 1;
    let ends = [set & lower, set & !lower]
        .into_iter()
        .filter(|half| *half != 0)
        .flat_map(|half| [half.trailing_zeros(), half.ilog2()]);
    let ranges = Scalar {
        var_off: Tnum::UNKNOWN,
        ..*scalar
    };
    ends.into_iter()
        .all(|index| ranges.has(window.value(index)))
        && (scalar.var_off.is_unknown()
            || bits(set).all(|index| scalar.var_off.has(window.value(index))))
}

/// The conditions that all others are by exchanging the operands, the outcomes or both.
const BASIC: [Cond; 4] = [Cond::Eq, Cond::Set, Cond::Lt, Cond::SLt];

/// Ranges around the sign of the width and around 0, by the basic conditions.
fn check_ranges(width: Width, centre: u64) {
    let (window, all) = Window::new(6, centre).with_ranges();
    for cond in BASIC {
        check(cond, width, (window, &all), (window, &all));
    }
}

#[test]
fn ranges_around_0() {
    check_ranges(Width::W64, 0);
}

#[test]
fn ranges_around_0_in_32_bits() {
    check_ranges(Width::W32, 0);
}

#[test]
fn ranges_around_the_sign() {
    check_ranges(Width::W64, 0x8000_0000_0000_0000);
}

#[test]
fn ranges_around_the_sign_in_32_bits() {
    check_ranges(Width::W32, 0x8000_0000);
}

#[test]
fn products_of_one_window() {
    for centre in CENTRES {
        let (window, all) = Window::new(4, centre).with_products();
        for cond in Cond::ALL {
            for width in WIDTHS {
                check(cond, width, (window, &all), (window, &all));
            }
        }
    }
}

/// Every pair of windows, at 3 bits.
#[test]
fn products_across_windows() {
    let windows = CENTRES.map(|centre| Window::new(3, centre).with_products());
    for (at, left) in &windows {
        for (by, right) in &windows {
            for cond in Cond::ALL {
                for width in WIDTHS {
                    check(cond, width, (*at, left), (*by, right));
                }
            }
        }
    }
}

#[test]
fn other_conditions_are_basic_ones_exchanged() {
    // Condition, basic condition, operands exchanged, outcomes exchanged.
    let others = [
        (Cond::Ne, Cond::Eq, false, true),
        (Cond::Gt, Cond::Lt, true, false),
        (Cond::Ge, Cond::Lt, false, true),
        (Cond::Le, Cond::Lt, true, true),
        (Cond::SGt, Cond::SLt, true, false),
        (Cond::SGe, Cond::SLt, false, true),
        (Cond::SLe, Cond::SLt, true, true),
    ];
    assert_eq!(others.len() + BASIC.len(), Cond::ALL.len());
    for centre in CENTRES {
        let all = Window::new(4, centre).products();
        let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
        for (a, b) in pairs.map(|(a, b)| (a.scalar, b.scalar)) {
            for (cond, basic, swapped, inverted) in others {
                for width in WIDTHS {
                    let (x, y) = if swapped { (b, a) } else { (a, b) };
                    let decided =
                        decide(basic, width, (&x, &y), RULES).map(|known| known != inverted);
                    assert_eq!(
                        decide(cond, width, (&a, &b), RULES),
                        decided,
                        "{cond:?} {width:?}"
                    );
                    for outcome in [true, false] {
                        let (mut left, mut right) = (a, b);
                        refine(cond, outcome, width, (&mut left, &mut right), RULES);
                        let (mut x, mut y) = (x, y);
                        refine(basic, outcome != inverted, width, (&mut x, &mut y), RULES);
                        let (x, y) = if swapped { (y, x) } else { (x, y) };
                        assert_eq!((left, right), (x, y), "{cond:?} {width:?} {outcome}");
                    }
                }
            }
        }
    }
}
