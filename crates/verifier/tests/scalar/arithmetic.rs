//! Arithmetic on two values, exhaustively: ranges of 6 bits, products of a range and a
//! tnum of 4 bits.
//!
//! For each pair of abstract values the exact result, the smallest abstract value that
//! contains `x op y` for all members `x` and `y`, has to lie in the computed one. It is
//! the union of the results for the rows `{x op y : x in a}` of the members `y` of `b`;
//! the union for `b` extends the one for `b` without its largest member.

use super::window::{CENTRES, Known, Window, assert_has, bits};
use super::{ARITHMETIC, ERAS, RULES, SHIFTS, WIDTHS};
use beebox_verifier::domain::{Cnum32, Cnum64, Scalar};
use isa::ebpf::{AluOp, Width, eval};
use std::collections::HashMap;

/// Checks `op` on every pair of a value of the first and one of the second list.
fn check(op: AluOp, width: Width, (at, left): (Window, &[Known]), (by, right): (Window, &[Known])) {
    let position: HashMap<u64, usize> = right.iter().zip(0..).map(|(b, i)| (b.set, i)).collect();
    // Sets without their largest member come first.
    let mut order: Vec<usize> = (0..right.len()).collect();
    order.sort_by_key(|&i| right[i].set.count_ones());
    let steps: Vec<(usize, usize, Option<usize>)> = order
        .into_iter()
        .map(|i| {
            let last = right[i].set.ilog2();
            let rest = right[i].set & !(1 << last);
            (i, last as usize, (rest != 0).then(|| position[&rest]))
        })
        .collect();
    let mut exact = vec![Scalar::ZERO; right.len()];
    for a in left {
        let rows: Vec<Scalar> = by
            .values()
            .map(|y| {
                let results = at.members(a.set).map(|x| eval::alu(op, width, x, y));
                let row = results.map(Scalar::constant).reduce(|a, b| a.union(&b));
                row.expect("not empty")
            })
            .collect();
        for &(i, last, rest) in &steps {
            exact[i] = match rest {
                Some(rest) => exact[rest].union(&rows[last]),
                None => rows[last],
            };
            let b = &right[i];
            for rules in ERAS {
                let Some(result) = a.scalar.alu(op, width, &b.scalar, rules) else {
                    continue;
                };
                // Members of arcs that ranges do not tell are sampled.
                let ranges = Scalar {
                    arc64: Cnum64::UNBOUNDED,
                    arc32: Cnum32::UNBOUNDED,
                    ..result
                };
                assert!(
                    ranges.contains(&exact[i]),
                    "{:x?} {op:?} {:x?} {width:?}: {result:x?} lacks values of {:x?}",
                    a.scalar,
                    b.scalar,
                    exact[i],
                );
                assert_eq!(result.violation(), None);
            }
        }
    }
}

/// Centre 0 and the sign at the width: all places where a range of that width wraps.
fn centres(width: Width) -> [u64; 2] {
    match width {
        Width::W32 => [0, 0x8000_0000],
        Width::W64 => [0, 0x8000_0000_0000_0000],
    }
}

fn check_ranges(op: AluOp) {
    let zero = Window::new(6, 0);
    let right = zero.ranges();
    for width in WIDTHS {
        for centre in centres(width) {
            let window = Window::new(6, centre);
            check(op, width, (window, &window.ranges()), (zero, &right));
        }
    }
}

#[test]
fn addition_of_ranges() {
    check_ranges(AluOp::Add);
}

#[test]
fn subtraction_of_ranges() {
    check_ranges(AluOp::Sub);
}

#[test]
fn multiplication_of_ranges() {
    check_ranges(AluOp::Mul);
}

#[test]
fn conjunction_of_ranges() {
    check_ranges(AluOp::And);
}

#[test]
fn disjunction_of_ranges() {
    check_ranges(AluOp::Or);
}

#[test]
fn exclusive_disjunction_of_ranges() {
    check_ranges(AluOp::Xor);
}

/// Every window with the one around 0 and with itself.
#[test]
fn arithmetic_on_products() {
    let zero = Window::new(4, 0);
    let around_zero = zero.products();
    for centre in CENTRES {
        let window = Window::new(4, centre);
        let all = window.products();
        for op in ARITHMETIC {
            for width in WIDTHS {
                check(op, width, (window, &all), (zero, &around_zero));
                if centre != 0 {
                    check(op, width, (window, &all), (window, &all));
                }
            }
        }
    }
}

/// Every pair of windows, at 3 bits.
#[test]
fn arithmetic_across_windows() {
    let windows = CENTRES.map(|centre| {
        let window = Window::new(3, centre);
        (window, window.products())
    });
    for (at, left) in &windows {
        for (by, right) in &windows {
            for op in ARITHMETIC {
                for width in WIDTHS {
                    check(op, width, (*at, left), (*by, right));
                }
            }
        }
    }
}

/// Ranges of 6 bits and products of 4 bits, by every count.
#[test]
fn shifts_by_constants() {
    for centre in CENTRES {
        for (window, all) in [
            Window::new(6, centre).with_ranges(),
            Window::new(4, centre).with_products(),
        ] {
            for (op, width) in SHIFTS
                .into_iter()
                .flat_map(|op| WIDTHS.map(|width| (op, width)))
            {
                let limit = match width {
                    Width::W32 => 32,
                    Width::W64 => 64,
                };
                for count in 0..limit {
                    let constant = Scalar::constant(count);
                    for a in &all {
                        let result = a
                            .scalar
                            .alu(op, width, &constant, RULES)
                            .expect("count is known");
                        assert_eq!(result.violation(), None);
                        for x in bits(a.set).map(|index| window.value(index)) {
                            let value = eval::alu(op, width, x, count);
                            assert_has(&result, value, format_args!("{x:#x} {op:?} {count}"));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn shifts_by_other_counts_are_unknown() {
    for op in SHIFTS {
        for (width, limit) in [(Width::W32, 32), (Width::W64, 64)] {
            let shifted = |count: &Scalar| Scalar::UNKNOWN.alu(op, width, count, RULES);
            assert_eq!(shifted(&Scalar::UNKNOWN), None);
            assert_eq!(shifted(&Scalar::constant(limit)), None);
            assert!(shifted(&Scalar::constant(limit - 1)).is_some());
        }
    }
}
