//! Soundness of the numeric domain.
//!
//! Values are 64 bits wide, so small widths are windows over the places where ranges wrap
//! (`window`). Exhaustive: arithmetic and conditions on ranges of 6 bits around 0 and
//! around the sign of the width; on products of a range and a tnum of 4 bits in every
//! window; on products of 3 bits over every pair of windows; shifts by every count and
//! unary operations on products of 4 bits. Sampled: products of 8 bits and whole values.

mod arithmetic;
mod branches;
mod monotone;
mod sampled;
mod window;

use beebox_verifier::domain::Scalar;
use isa::ebpf::{AluOp, ByteOrder, Size, Width, eval};
use spec::behaviour::{Behaviour, Behaviours};
use spec::kernel::KernelVersion;
use window::{CENTRES, Known, Window, assert_has};

const ARITHMETIC: [AluOp; 6] = [
    AluOp::Add,
    AluOp::Sub,
    AluOp::Mul,
    AluOp::And,
    AluOp::Or,
    AluOp::Xor,
];
const SHIFTS: [AluOp; 3] = [AluOp::Lsh, AluOp::Rsh, AluOp::Arsh];
/// Rules of the built-in kernel.
const RULES: Behaviours = Behaviours::LINUX_6_18;
/// Rules of the newest kernel, with arcs in place of ranges.
const NEWEST: Behaviours = Behaviours::of(KernelVersion::new(7, 3, 4));
/// Rules of each era, and those that no change has touched.
const ERAS: [Behaviours; 7] = [
    NEWEST,
    RULES,
    Behaviours::of(KernelVersion::new(6, 18, 15)),
    Behaviours::of(KernelVersion::new(6, 12, 117)),
    Behaviours::of(KernelVersion::new(6, 1, 192)),
    Behaviours::of(KernelVersion::new(5, 10, 262)),
    Behaviours::NONE,
];
const WIDTHS: [Width; 2] = [Width::W32, Width::W64];

/// Every product of 4 bits around each centre, with its members.
fn products() -> impl Iterator<Item = (Scalar, Vec<u64>)> {
    CENTRES.into_iter().flat_map(|centre| {
        let (window, all) = Window::new(4, centre).with_products();
        let with_members = move |known: Known| (known.scalar, window.members(known.set).collect());
        all.into_iter().map(with_members)
    })
}

#[test]
fn synchronisation_keeps_every_value() {
    for (whole, members) in products() {
        for rules in ERAS {
            let mut scalar = whole;
            scalar.sync(rules);
            // An arc may have more than the ranges that it is made of.
            let is_circular = rules.has(Behaviour::CircularRanges);
            assert!(is_circular || whole.contains(&scalar));
            for &x in &members {
                assert_has(&scalar, x, format_args!("sync"));
            }
        }
        // Components known one by one.
        for mask in 1..32u32 {
            let mut part = Scalar::UNKNOWN;
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
            for rules in ERAS {
                let mut part = part;
                part.sync(rules);
                assert_eq!(part.violation(), None);
                for &x in &members {
                    assert_has(&part, x, format_args!("sync of components {mask:#b}"));
                }
            }
        }
    }
}

#[test]
fn unary_operations_are_sound() {
    for (scalar, members) in products() {
        for &x in &members {
            for width in WIDTHS {
                assert_has(
                    &scalar.neg(width, RULES),
                    eval::neg(width, x),
                    format_args!("neg {width:?}"),
                );
            }
            for order in [ByteOrder::Little, ByteOrder::Big, ByteOrder::Swap] {
                for size in [Size::H, Size::W, Size::DW] {
                    let value = eval::endian(order, size, x);
                    assert_has(
                        &scalar.byte_order(order, size, RULES),
                        value,
                        format_args!("{order:?} {size:?}"),
                    );
                }
            }
            for bytes in [1, 2, 4] {
                let unused = 64 - bytes * 8;
                let mut truncated = scalar;
                truncated.truncate(bytes, RULES);
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
                    result.sync(RULES);
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
