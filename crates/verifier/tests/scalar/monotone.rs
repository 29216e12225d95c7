//! Monotony of the operations: a part of an operand gives a part of the result.
//!
//! Exhaustive over the products of a range and a tnum of 3 bits (4 bits for operations of
//! one operand), each operand in turn. Conditions are compared where a pair of members of
//! the part has the outcome; elsewhere the refined values contradict themselves. One
//! refinement is not monotone: that of a test of bits that found none set.

use super::window::{CENTRES, Known, Window};
use super::{ARITHMETIC, RULES, WIDTHS};
use beebox_verifier::domain::{Scalar, refine_synced};
use isa::ebpf::{AluOp, ByteOrder, Cond, Size, Width, eval};

/// Every pair of a value and one that contains it.
fn parts(all: &[Known]) -> Vec<(Known, Known)> {
    let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b)));
    pairs
        .filter(|(a, b)| a.set != b.set && b.scalar.contains(&a.scalar))
        .collect()
}

/// Number of cases in which a part of an operand refines to more than the whole does.
fn refinements(cond: Cond, outcome: bool, width: Width) -> usize {
    let mut count = 0;
    for centre in CENTRES {
        let (window, all) = Window::new(3, centre).with_products();
        let holds = |x, y| eval::compare(cond, width, x, y) == outcome;
        for (part, whole) in parts(&all) {
            for b in &all {
                let taken = window
                    .members(part.set)
                    .any(|x| window.members(b.set).any(|y| holds(x, y)));
                if !taken {
                    continue;
                }
                let refined = |a: Scalar| {
                    let (mut x, mut y) = (a, b.scalar);
                    refine_synced(cond, outcome, width, (&mut x, &mut y), RULES);
                    (x, y)
                };
                let (inner, outer) = (refined(part.scalar), refined(whole.scalar));
                let monotone = outer.0.contains(&inner.0) && outer.1.contains(&inner.1);
                count += usize::from(!monotone);
            }
        }
    }
    count
}

/// All but the one where no bit is set: if an operand is a constant, the ranges of the
/// other are forgotten, while they stay where the operand is less known.
#[test]
fn refinements_but_of_clear_bits_are_monotone() {
    for cond in Cond::ALL {
        for outcome in [false, true] {
            for width in WIDTHS {
                let is_monotone = (cond, outcome) != (Cond::Set, false);
                let violations = refinements(cond, outcome, width);
                assert_eq!(violations == 0, is_monotone, "{cond:?} {outcome} {width:?}");
            }
        }
    }
}

/// Addition, subtraction, multiplication and the bitwise operations are monotone in both
/// operands.
#[test]
fn arithmetic_is_monotone() {
    let zero = Window::new(3, 0).products();
    for centre in CENTRES {
        for (part, whole) in parts(&Window::new(3, centre).products()) {
            for (op, width) in ARITHMETIC
                .into_iter()
                .flat_map(|op| WIDTHS.map(|width| (op, width)))
            {
                for b in &zero {
                    let results = |a: &Scalar| {
                        [
                            a.alu(op, width, &b.scalar, RULES),
                            b.scalar.alu(op, width, a, RULES),
                        ]
                    };
                    for (inner, outer) in results(&part.scalar).iter().zip(results(&whole.scalar)) {
                        let (inner, outer) = (inner.expect("known"), outer.expect("known"));
                        assert!(
                            outer.contains(&inner),
                            "{op:?} {width:?}: {:x?} within {:x?}, with {:x?}: {inner:x?} {outer:x?}",
                            part.scalar,
                            whole.scalar,
                            b.scalar
                        );
                    }
                }
            }
        }
    }
}

/// Shifts, negation, byte order, truncation and sign extension.
#[test]
fn unary_operations_are_monotone() {
    type Operation = (&'static str, fn(Scalar) -> Scalar);
    let operations: [Operation; 9] = [
        ("shift left", |a| {
            a.alu(AluOp::Lsh, Width::W64, &Scalar::constant(29), RULES)
                .expect("known")
        }),
        ("shift right", |a| {
            a.alu(AluOp::Rsh, Width::W64, &Scalar::constant(2), RULES)
                .expect("known")
        }),
        ("arithmetic shift", |a| {
            a.alu(AluOp::Arsh, Width::W64, &Scalar::constant(2), RULES)
                .expect("known")
        }),
        ("shift left 32", |a| {
            a.alu(AluOp::Lsh, Width::W32, &Scalar::constant(2), RULES)
                .expect("known")
        }),
        ("arithmetic shift 32", |a| {
            a.alu(AluOp::Arsh, Width::W32, &Scalar::constant(2), RULES)
                .expect("known")
        }),
        ("negation", |a| a.neg(Width::W64, RULES)),
        ("byte order", |a| {
            a.byte_order(ByteOrder::Big, Size::W, RULES)
        }),
        ("truncation", |mut a| {
            a.truncate(2, RULES);
            a
        }),
        ("sign extension", |mut a| {
            a.sign_extend64(2);
            a.sync(RULES);
            a
        }),
    ];
    for centre in CENTRES {
        for (part, whole) in parts(&Window::new(4, centre).products()) {
            for (name, operation) in operations {
                let (inner, outer) = (operation(part.scalar), operation(whole.scalar));
                assert!(
                    outer.contains(&inner),
                    "{name}: {:x?} within {:x?}: {inner:x?} {outer:x?}",
                    part.scalar,
                    whole.scalar
                );
            }
        }
    }
}
