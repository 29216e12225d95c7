//! Soundness of the reduced product, on windows of small width laid over the
//! places where ranges wrap: 0, the sign of the low half, the end of the low
//! half, the sign of the value.

use beebox_verifier::domain::{Scalar, Tnum, decide, refine_synced};
use isa::ebpf::{AluOp, ByteOrder, Cond, Size, Width, eval};

/// First values of the windows.
const BASES: [u64; 6] = [
    0,
    8u64.wrapping_neg(),
    0x8000_0000 - 8,
    0x1_0000_0000 - 8,
    0x8000_0000_0000_0000 - 8,
    0xffff_ffff_8000_0000 - 8,
];

const ARITHMETIC: [AluOp; 6] = [
    AluOp::Add,
    AluOp::Sub,
    AluOp::Mul,
    AluOp::And,
    AluOp::Or,
    AluOp::Xor,
];
const SHIFTS: [AluOp; 3] = [AluOp::Lsh, AluOp::Rsh, AluOp::Arsh];
const WIDTHS: [Width; 2] = [Width::W32, Width::W64];

/// An abstract value with the concrete values that it was made of.
struct Known {
    scalar: Scalar,
    members: Vec<u64>,
}

/// The value that is known to be one of `members`, as the smallest range of each
/// kind and the smallest tnum.
fn abstraction(members: Vec<u64>) -> Known {
    let mut scalar = Scalar::constant(members[0]);
    for &x in &members {
        scalar.var_off = scalar.var_off.union(Tnum::constant(x));
        scalar.umin = scalar.umin.min(x);
        scalar.umax = scalar.umax.max(x);
        scalar.smin = scalar.smin.min(x as i64);
        scalar.smax = scalar.smax.max(x as i64);
        scalar.u32_min = scalar.u32_min.min(x as u32);
        scalar.u32_max = scalar.u32_max.max(x as u32);
        scalar.s32_min = scalar.s32_min.min(x as i32);
        scalar.s32_max = scalar.s32_max.max(x as i32);
    }
    Known { scalar, members }
}

/// Every product of a range and a tnum of `bits` bits, over each base.
fn products(bits: u32) -> Vec<Known> {
    let size = 1u64 << bits;
    let mut all = Vec::new();
    for base in BASES {
        for low in 0..size {
            for high in low..size {
                for mask in 0..size {
                    for value in (0..size).filter(|value| value & mask == 0) {
                        let tnum = Tnum { value, mask };
                        let members: Vec<u64> = (low..=high)
                            .filter(|x| tnum.has(*x))
                            .map(|x| base.wrapping_add(x))
                            .collect();
                        if !members.is_empty() {
                            all.push(abstraction(members));
                        }
                    }
                }
            }
        }
    }
    all.sort_by(|a, b| a.members.cmp(&b.members));
    all.dedup_by(|a, b| a.members == b.members);
    all
}

/// Every range of `bits` bits over each base.
fn ranges(bits: u32) -> Vec<Known> {
    let size = 1u64 << bits;
    BASES
        .iter()
        .flat_map(|base| {
            (0..size).flat_map(move |low| {
                (low..size).map(move |high| {
                    abstraction((low..=high).map(|x| base.wrapping_add(x)).collect())
                })
            })
        })
        .collect()
}

fn assert_has(result: &Scalar, value: u64, what: std::fmt::Arguments<'_>) {
    assert!(
        result.has(value),
        "{what}: {value:#x} is not in {result:x?}"
    );
}

fn check_binary(op: AluOp, width: Width, a: &Known, b: &Known) {
    let Some(result) = a.scalar.alu(op, width, &b.scalar) else {
        return;
    };
    assert_eq!(
        result.violation(),
        None,
        "{:x?} {op:?} {:x?}",
        a.members,
        b.members
    );
    for &x in &a.members {
        for &y in &b.members {
            let value = eval::alu(op, width, x, y);
            assert_has(
                &result,
                value,
                format_args!("{x:#x} {op:?} {y:#x} {width:?}"),
            );
        }
    }
}

#[test]
fn synchronisation_keeps_every_value() {
    for known in products(4) {
        let mut scalar = known.scalar;
        scalar.sync();
        assert!(known.scalar.contains(&scalar));
        for &x in &known.members {
            assert_has(&scalar, x, format_args!("sync"));
        }
        // Components known one by one.
        for mask in 1..32u32 {
            let mut part = Scalar::UNKNOWN;
            let whole = &known.scalar;
            if mask & 1 != 0 {
                part.var_off = whole.var_off;
            }
            if mask & 2 != 0 {
                (part.umin, part.umax) = (whole.umin, whole.umax);
            }
            if mask & 4 != 0 {
                (part.smin, part.smax) = (whole.smin, whole.smax);
            }
            if mask & 8 != 0 {
                (part.u32_min, part.u32_max) = (whole.u32_min, whole.u32_max);
            }
            if mask & 16 != 0 {
                (part.s32_min, part.s32_max) = (whole.s32_min, whole.s32_max);
            }
            part.sync();
            assert_eq!(part.violation(), None);
            for &x in &known.members {
                assert_has(&part, x, format_args!("sync of components {mask:#b}"));
            }
        }
    }
}

#[test]
fn arithmetic_on_ranges_is_sound() {
    // Width 3 against width 3 over every pair of bases, width 6 against constants.
    let small = ranges(3);
    for op in ARITHMETIC {
        for width in WIDTHS {
            for a in small.iter() {
                for b in small.iter() {
                    check_binary(op, width, a, b);
                }
            }
        }
    }
    let constants: Vec<Known> = BASES
        .iter()
        .flat_map(|base| [0, 1, 5, 8, 9, 15].map(|x| abstraction(vec![base.wrapping_add(x)])))
        .collect();
    for a in ranges(6) {
        for b in &constants {
            for op in ARITHMETIC {
                for width in WIDTHS {
                    check_binary(op, width, &a, b);
                }
            }
        }
    }
}

#[test]
fn arithmetic_on_products_is_sound() {
    let all = products(3);
    for op in ARITHMETIC {
        for width in WIDTHS {
            for (index, a) in all.iter().enumerate() {
                for b in all.iter().skip(index % 7).step_by(7) {
                    check_binary(op, width, a, b);
                }
            }
        }
    }
}

#[test]
fn shifts_are_sound() {
    let products = products(4);
    for width in WIDTHS {
        let counts: &[u64] = match width {
            Width::W32 => &[0, 1, 4, 8, 16, 30, 31],
            Width::W64 => &[0, 1, 4, 16, 31, 32, 33, 60, 63],
        };
        for &count in counts {
            let count = abstraction(vec![count]);
            for a in &products {
                for op in SHIFTS {
                    check_binary(op, width, a, &count);
                }
            }
        }
    }
    let unknown = Scalar::UNKNOWN;
    assert_eq!(unknown.alu(AluOp::Lsh, Width::W64, &unknown), None);
    assert_eq!(
        unknown.alu(AluOp::Lsh, Width::W64, &Scalar::constant(64)),
        None
    );
    assert_eq!(
        unknown.alu(AluOp::Rsh, Width::W32, &Scalar::constant(32)),
        None
    );
}

#[test]
fn unary_operations_are_sound() {
    for known in products(4) {
        let scalar = known.scalar;
        for &x in &known.members {
            for width in WIDTHS {
                assert_has(
                    &scalar.neg(width),
                    eval::neg(width, x),
                    format_args!("neg {width:?}"),
                );
            }
            for order in [ByteOrder::Little, ByteOrder::Big, ByteOrder::Swap] {
                for size in [Size::H, Size::W, Size::DW] {
                    let value = eval::endian(order, size, x);
                    assert_has(
                        &scalar.byte_order(order, size),
                        value,
                        format_args!("{order:?} {size:?}"),
                    );
                }
            }
            for bytes in [1, 2, 4] {
                let unused = 64 - bytes * 8;
                let mut truncated = scalar;
                truncated.truncate(bytes);
                assert_has(
                    &truncated,
                    x << unused >> unused,
                    format_args!("truncate {bytes}"),
                );
                let extended = ((x << unused) as i64 >> unused) as u64;
                let mut result = scalar;
                result.sign_extend64(bytes);
                assert_has(&result, extended, format_args!("sign_extend64 {bytes}"));
                if bytes < 4 {
                    let mut result = scalar;
                    result.sign_extend32(bytes);
                    result.zero_extend32();
                    result.sync();
                    assert_has(
                        &result,
                        extended as u32 as u64,
                        format_args!("sign_extend32 {bytes}"),
                    );
                }
            }
        }
    }
}

#[test]
fn branches_are_sound() {
    let all = products(3);

    for cond in Cond::ALL {
        for width in WIDTHS {
            for (index, a) in all.iter().enumerate() {
                for b in all.iter().skip(index % 5).step_by(5) {
                    let decided = decide(cond, width, &a.scalar, &b.scalar);
                    let outcomes = [true, false].map(|outcome| {
                        let (mut x, mut y) = (a.scalar, b.scalar);
                        refine_synced(cond, outcome, width, &mut x, &mut y);
                        (x, y)
                    });
                    for &x in &a.members {
                        for &y in &b.members {
                            let outcome = eval::compare(cond, width, x, y);
                            assert!(
                                decided.is_none_or(|decided| decided == outcome),
                                "{x:#x} {cond:?} {y:#x} {width:?}"
                            );
                            let (left, right) = &outcomes[usize::from(!outcome)];
                            assert_has(left, x, format_args!("{x:#x} {cond:?} {y:#x} {width:?}"));
                            assert_has(right, y, format_args!("{x:#x} {cond:?} {y:#x} {width:?}"));
                        }
                    }
                }
            }
        }
    }
}
