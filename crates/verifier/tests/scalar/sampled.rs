//! Samples with a fixed seed: products of 8 bits with all members, and values of 64 bits
//! with one member each.

use super::window::{CENTRES, assert_has};
use super::{ARITHMETIC, ERAS, NEWEST, RULES, SHIFTS, WIDTHS};
use beebox_verifier::domain::{Scalar, Tnum, decide, refine_synced};
use isa::ebpf::{AluOp, Cond, Width, eval};
use spec::behaviour::Behaviour;

/// The generator of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators" (OOPSLA 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A number of any magnitude: runs of equal bits, near a power of two, or any bits.
    fn value(&mut self) -> u64 {
        let near = self.below(9).wrapping_sub(4);
        let power = 1u64 << self.below(64);
        match self.below(4) {
            0 => power.wrapping_add(near),
            1 => power.wrapping_neg().wrapping_add(near),
            2 => near.wrapping_add(CENTRES[self.below(CENTRES.len() as u64) as usize]),
            _ => self.next() >> self.below(64),
        }
    }

    /// A synchronised scalar that has `value`, each component known or not.
    fn scalar_with(&mut self, value: u64) -> Scalar {
        let mut scalar = Scalar::UNKNOWN;
        if self.below(2) == 0 {
            let mask = match self.below(3) {
                0 => self.next() & self.next(),
                1 => self.next() | self.next(),
                _ => self.value(),
            };
            scalar.var_off = Tnum {
                value: value & !mask,
                mask,
            };
        }
        let other = |random: &mut SplitMix| match random.below(3) {
            0 => value,
            1 => value.wrapping_add(random.below(64)).wrapping_sub(32),
            _ => random.value(),
        };
        if self.below(2) == 0 {
            let (a, b) = (other(self), other(self));
            scalar.umin = a.min(b).min(value);
            scalar.umax = a.max(b).max(value);
        }
        if self.below(2) == 0 {
            let (a, b, value) = (other(self) as i64, other(self) as i64, value as i64);
            scalar.smin = a.min(b).min(value);
            scalar.smax = a.max(b).max(value);
        }
        if self.below(2) == 0 {
            let (a, b, value) = (other(self) as u32, other(self) as u32, value as u32);
            scalar.u32_min = a.min(b).min(value);
            scalar.u32_max = a.max(b).max(value);
        }
        if self.below(2) == 0 {
            let (a, b, value) = (other(self) as i32, other(self) as i32, value as i32);
            scalar.s32_min = a.min(b).min(value);
            scalar.s32_max = a.max(b).max(value);
        }
        scalar.sync(RULES);
        scalar
    }

    /// A value with a random product of a range and a tnum of 8 bits around a centre.
    fn product(&mut self) -> (Scalar, Vec<u64>) {
        let base = CENTRES[self.below(CENTRES.len() as u64) as usize].wrapping_sub(128);
        loop {
            let (a, b) = (self.below(256), self.below(256));
            let mask = self.below(256) & (self.next() | self.next());
            let tnum = Tnum {
                value: self.below(256) & !mask,
                mask,
            };
            let members: Vec<u64> = (a.min(b)..=a.max(b))
                .map(|x| base.wrapping_add(x))
                .filter(|x| tnum.has(x & 255))
                .collect();
            let constants = members.iter().map(|x| Scalar::constant(*x));
            if let Some(scalar) = constants.reduce(|a, b| a.union(&b)) {
                return (scalar, members);
            }
        }
    }
}

fn operations() -> impl Iterator<Item = (AluOp, Width)> {
    ARITHMETIC
        .into_iter()
        .flat_map(|op| WIDTHS.map(|width| (op, width)))
}

#[test]
fn arithmetic_on_products_of_8_bits() {
    let mut random = SplitMix(15);
    for _ in 0..40_000 {
        let ((a, left), (b, right)) = (random.product(), random.product());
        for (op, width) in operations() {
            let results = [RULES, NEWEST].map(|rules| {
                let result = a.alu(op, width, &b, rules).expect("arithmetic is known");
                assert_eq!(result.violation(), None);
                result
            });
            for &x in &left {
                for &y in &right {
                    let value = eval::alu(op, width, x, y);
                    for result in &results {
                        assert_has(
                            result,
                            value,
                            format_args!("{a:x?} {op:?} {b:x?} {width:?}"),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn branches_on_products_of_8_bits() {
    let mut random = SplitMix(16);
    for _ in 0..20_000 {
        let ((a, left), (b, right)) = (random.product(), random.product());
        for cond in Cond::ALL {
            for width in WIDTHS {
                for rules in [RULES, NEWEST] {
                    let outcomes = [false, true].map(|outcome| {
                        let (mut x, mut y) = (a, b);
                        refine_synced(cond, outcome, width, (&mut x, &mut y), rules);
                        (x, y)
                    });
                    let decided = decide(cond, width, (&a, &b), rules);
                    for &x in &left {
                        for &y in &right {
                            let outcome = eval::compare(cond, width, x, y);
                            let refined = &outcomes[usize::from(outcome)];
                            assert!(
                                decided.is_none_or(|decided| decided == outcome)
                                    && refined.0.has(x)
                                    && refined.1.has(y),
                                "{a:x?} {cond:?} {b:x?} {width:?}: {x:#x} {y:#x}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn operations_on_values_of_64_bits() {
    let mut random = SplitMix(17);
    for _ in 0..200_000 {
        let (x, y) = (random.value(), random.value());
        let (a, b) = (random.scalar_with(x), random.scalar_with(y));
        for (scalar, value) in [(&a, x), (&b, y)] {
            assert_has(scalar, value, format_args!("sync"));
            assert_eq!(scalar.violation(), None, "{scalar:x?}");
        }
        for (op, width) in operations() {
            let value = eval::alu(op, width, x, y);
            for rules in ERAS {
                // Kernels that compute with constants alone know nothing of other results.
                let Some(result) = a.alu(op, width, &b, rules) else {
                    assert!(
                        !rules.has(Behaviour::VaryingOperands),
                        "arithmetic is known"
                    );
                    continue;
                };
                assert_has(
                    &result,
                    value,
                    format_args!("{a:x?} {op:?} {b:x?} {width:?}"),
                );
            }
        }
        let count = y % 64;
        for (op, width) in SHIFTS
            .into_iter()
            .flat_map(|op| WIDTHS.map(|width| (op, width)))
        {
            for rules in [RULES, NEWEST] {
                if let Some(result) = a.alu(op, width, &Scalar::constant(count), rules) {
                    let value = eval::alu(op, width, x, count);
                    assert_has(
                        &result,
                        value,
                        format_args!("{a:x?} {op:?} {count} {width:?}"),
                    );
                }
            }
        }
        for op in [AluOp::Div, AluOp::SDiv, AluOp::Mod, AluOp::SMod] {
            for (width, by) in WIDTHS
                .into_iter()
                .flat_map(|width| [(width, y), (width, count)])
            {
                let result = a.alu(op, width, &Scalar::constant(by), NEWEST);
                let value = eval::alu(op, width, x, by);
                assert_has(
                    &result.expect("quotients by constants are known"),
                    value,
                    format_args!("{a:x?} {op:?} {by:#x} {width:?}"),
                );
            }
        }
        for cond in Cond::ALL {
            for width in WIDTHS {
                let outcome = eval::compare(cond, width, x, y);
                for rules in [RULES, NEWEST] {
                    let decided = decide(cond, width, (&a, &b), rules);
                    assert!(decided.is_none_or(|decided| decided == outcome));
                    let (mut left, mut right) = (a, b);
                    refine_synced(cond, outcome, width, (&mut left, &mut right), rules);
                    assert!(
                        left.has(x) && right.has(y),
                        "{a:x?} {cond:?} {b:x?} {width:?} {outcome}: {x:#x} {y:#x}"
                    );
                    // Arcs that comparisons leave behind are operands, too.
                    let sum = left.alu(AluOp::Add, width, &right, rules);
                    let value = eval::alu(AluOp::Add, width, x, y);
                    assert_has(
                        &sum.expect("sums are known"),
                        value,
                        format_args!("{left:x?} + {right:x?}"),
                    );
                }
            }
        }
    }
}

/// The operations on tnums at width 64: each has the results of the members, and
/// parts of the operands give a part of the result.
#[test]
fn operations_on_tnums_of_64_bits() {
    type Operation = (fn(Tnum, Tnum) -> Tnum, fn(u64, u64) -> u64);
    let operations: [Operation; 6] = [
        (Tnum::add, u64::wrapping_add),
        (Tnum::sub, u64::wrapping_sub),
        (Tnum::and, |a, b| a & b),
        (Tnum::or, |a, b| a | b),
        (Tnum::xor, |a, b| a ^ b),
        (|a, b| a.mul(b, RULES), u64::wrapping_mul),
    ];
    let mut random = SplitMix(18);
    let tnum_with = |random: &mut SplitMix, x: u64| {
        let mask = random.value() & (random.next() | random.next());
        Tnum {
            value: x & !mask,
            mask,
        }
    };
    for _ in 0..200_000 {
        let (x, y) = (random.value(), random.value());
        let (a, b) = (tnum_with(&mut random, x), tnum_with(&mut random, y));
        let narrower = |random: &mut SplitMix, t: Tnum, x: u64| {
            let mask = t.mask & random.next();
            Tnum {
                value: x & !mask,
                mask,
            }
        };
        let (part_a, part_b) = (narrower(&mut random, a, x), narrower(&mut random, b, y));
        for (index, (abstractly, concretely)) in operations.iter().enumerate() {
            let result = abstractly(a, b);
            assert!(result.has(concretely(x, y)), "{index}: {a:x?} {b:x?}");
            let part = abstractly(part_a, part_b);
            assert!(result.contains(part), "{index}: {a:x?} {b:x?} {part:x?}");
        }
    }
}
