//! The algebraic properties of arithmetic and of conditions against `eval`.

use beebox_isa::ebpf::properties::Halves;
use beebox_isa::ebpf::{AluOp, Cond, Width, eval};

const VALUES: [u64; 14] = [
    0,
    1,
    2,
    5,
    31,
    63,
    64,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x1234_5678_9abc_def0,
    1 << 63,
    u64::MAX - 4,
    u64::MAX,
];
const LOW: u64 = 0xffff_ffff;

fn compute(op: AluOp, a: u64, b: u64) -> u64 {
    eval::alu(op, Width::W64, a, b)
}

#[oracle::test]
fn operations_are_in_the_order_of_their_discriminants() {
    for (index, op) in AluOp::ALL.into_iter().enumerate() {
        assert_eq!(op as usize, index);
    }
    for (index, cond) in Cond::ALL.into_iter().enumerate() {
        assert_eq!(cond as usize, index);
    }
}

#[oracle::test]
fn exactly_the_shifts_mask_their_count() {
    for op in AluOp::ALL {
        let mut pairs = VALUES.iter().flat_map(|&a| VALUES.map(|b| (a, b)));
        let is_masked = pairs.all(|(a, b)| compute(op, a, b) == compute(op, a, b & 63));
        assert_eq!(is_masked, op.is_shift(), "{op:?}");
    }
}

#[oracle::test]
fn exactly_the_divisions_have_an_exception_for_zero() {
    for op in AluOp::ALL {
        let by_zero = VALUES.map(|a| compute(op, a, 0));
        let is_quotient = by_zero == [0; 14] && compute(op, 7, 3) == 2;
        let is_remainder = by_zero == VALUES && compute(op, 7, 3) == 1;
        assert_eq!(is_quotient || is_remainder, op.is_division(), "{op:?}");
    }
}

#[oracle::test]
fn exactly_the_idempotent_operations_keep_equal_operands() {
    for op in AluOp::ALL {
        let keeps = VALUES.iter().all(|&a| compute(op, a, a) == a);
        assert_eq!(keeps, op.is_idempotent(), "{op:?}");
    }
}

/// Which half of the result changes with the low and with the upper half of an operand.
fn dependencies(compute: impl Fn(u64) -> u64, seen: &mut [[bool; 2]; 2]) {
    for value in VALUES {
        for other in VALUES {
            for (half, mask) in [LOW, !LOW].into_iter().enumerate() {
                let changed = compute(value) ^ compute(value & !mask | other & mask);
                seen[half][0] |= changed & LOW != 0;
                seen[half][1] |= changed & !LOW != 0;
            }
        }
    }
}

fn check(op: AluOp, halves: Halves, [low, upper]: [[bool; 2]; 2]) {
    let found = match (low, upper) {
        ([false, false], [false, false]) => Halves::Neither,
        (_, [false, false]) => Halves::Low,
        (_, [false, true]) => Halves::Each,
        (_, [true, _]) => Halves::Both,
    };
    assert_eq!(found, halves, "{op:?}");
}

#[oracle::test]
fn operations_depend_on_the_halves_that_they_read() {
    for op in AluOp::ALL {
        let (mut dst, mut src) = ([[false; 2]; 2], [[false; 2]; 2]);
        for fixed in VALUES {
            dependencies(|a| compute(op, a, fixed), &mut dst);
            dependencies(|b| compute(op, fixed, b), &mut src);
        }
        check(op, op.reads_of_dst(), dst);
        check(op, op.reads_of_src(), src);
    }
}

const WIDTHS: [Width; 2] = [Width::W32, Width::W64];

/// All pairs of values.
fn pairs() -> impl Iterator<Item = (u64, u64)> {
    VALUES.iter().flat_map(|&a| VALUES.map(|b| (a, b)))
}

/// True if two conditions are equal on all pairs of values, or never equal without `same`; the
/// second gets the values exchanged on demand.
fn agree(cond: Cond, other: Cond, same: bool, exchange: bool) -> bool {
    WIDTHS.into_iter().all(|width| {
        pairs().all(|(a, b)| {
            let (c, d) = if exchange { (b, a) } else { (a, b) };
            let (one, two) = (
                eval::compare(cond, width, a, b),
                eval::compare(other, width, c, d),
            );
            (one == two) == same
        })
    })
}

#[oracle::test]
fn exactly_the_inverse_holds_where_a_condition_does_not() {
    for cond in Cond::ALL {
        let mut others = Cond::ALL.into_iter();
        let found = others.find(|&other| agree(cond, other, false, false));
        assert_eq!(cond.inverse(), found, "{cond:?}");
    }
}

#[oracle::test]
fn exactly_the_exchanged_condition_holds_of_exchanged_operands() {
    for cond in Cond::ALL {
        let mut others = Cond::ALL.into_iter();
        let found = others.find(|&other| agree(cond, other, true, true));
        assert_eq!(Some(cond.exchanged()), found, "{cond:?}");
    }
}

#[oracle::test]
fn signed_conditions_differ_from_unsigned_ones_on_negative_numbers_only() {
    for cond in Cond::ALL {
        let unsigned = cond.unsigned();
        assert_eq!(cond.is_signed(), unsigned != cond, "{cond:?}");
        assert!(!unsigned.is_signed());
        for (width, sign) in [(Width::W32, 1 << 31), (Width::W64, 1 << 63)] {
            let compare = |cond, (a, b)| eval::compare(cond, width, a, b);
            let is_negative = |value: u64| value & sign != 0;
            let differs = |&pair: &(u64, u64)| compare(cond, pair) != compare(unsigned, pair);
            assert_eq!(pairs().any(|pair| differs(&pair)), cond.is_signed());
            for (a, b) in pairs().filter(differs) {
                assert!(is_negative(a) || is_negative(b), "{cond:?} {a:#x} {b:#x}");
            }
        }
    }
}

#[oracle::test]
fn exactly_the_conditions_of_common_bits_test_bits() {
    for cond in Cond::ALL {
        let tests = pairs().all(|(a, b)| eval::compare(cond, Width::W64, a, b) == (a & b != 0));
        assert_eq!(tests, cond.tests_bits(), "{cond:?}");
    }
}
