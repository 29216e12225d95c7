//! Rotations, extensions, byte orders, fields and counts of bits.

use super::{Recipe, bits};
use crate::ebpf::scope::Scope;
use isa::ebpf::AluOp::{Add, And, Arsh, Lsh, Mul, Or, Rsh, Sub, Xor};
use isa::ebpf::ByteOrder::{Big, Little, Swap};
use isa::ebpf::Width::{W32, W64};
use isa::ebpf::{AluOp, Cond, Size, Width};

const SIZES: [Size; 3] = [Size::H, Size::W, Size::DW];

/// `x << k | x >> width - k`.
pub(super) fn rotate_by_constant(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let mut r = Recipe::new();
    // A rotation of 32 bits in registers of 64, whose upper half is clear.
    let within = s.choices.one_in(4);
    let width = if within { W64 } else { s.width() };
    let size = if within { 32 } else { bits(width) };
    if within {
        r.op(AluOp::Mov, W32, x, x);
    }
    let by = 1 + s.choices.below(size as u32 - 1) as i32;
    let (left, right) = s.choices.pick(&[(Lsh, Rsh), (Rsh, Lsh), (Lsh, Arsh)]);
    let join = s.choices.pick(&[Or, Or, Or, Add, Xor]);
    match s.choices.below(4) {
        0 => r
            .op(AluOp::Mov, width, t, x)
            .op(left, width, t, by)
            .op(right, width, x, size - by)
            .op(join, width, x, t),
        1 => r
            .op(AluOp::Mov, width, t, x)
            .op(right, width, x, size - by)
            .op(left, width, t, by)
            .op(join, width, x, t),
        // The result in the other register.
        2 => r
            .op(AluOp::Mov, width, t, x)
            .op(left, width, x, by)
            .op(right, width, t, size - by)
            .op(join, width, t, x),
        _ => r
            .mov(t, x)
            .op(left, width, t, by)
            .op(right, width, x, size - by)
            .op(join, width, t, x),
    };
    if within && s.choices.one_in(2) {
        r.op(AluOp::Mov, W32, x, x);
    }
    r.done()
}

/// `x << n | x >> -n`.
pub(super) fn rotate_by_register(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, n, m] = s.numbers(0);
    let width = s.width();
    let mut r = Recipe::new();
    if s.choices.one_in(3) {
        r.op(And, W64, n, bits(width) - 1);
    }
    let (left, right) = s.choices.pick(&[(Lsh, Rsh), (Rsh, Lsh)]);
    r.op(AluOp::Mov, width, t, x).op(left, width, t, n);
    if s.choices.one_in(2) {
        r.op(AluOp::Mov, width, m, n).neg(width, m);
    } else {
        r.op(AluOp::Mov, width, m, bits(width)).op(Sub, width, m, n);
    }
    if s.choices.one_in(3) {
        r.op(And, W64, m, bits(width) - 1);
    }
    r.op(right, width, x, m);
    let (dst, src) = s.choices.pick(&[(x, t), (t, x)]);
    r.op(Or, width, dst, src).done()
}

/// Two registers shifted as one.
pub(super) fn funnel_shift(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y] = s.numbers(0);
    let width = s.width();
    let by = 1 + s.choices.below(bits(width) as u32 - 1) as i32;
    Recipe::new()
        .op(Lsh, width, x, by)
        .op(Rsh, width, y, bits(width) - by)
        .op(Or, width, x, y)
        .done()
}

/// The upper bits cleared, in one of many ways.
pub(super) fn zero_extend(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let cleared = s.choices.pick(&[32, 48, 56, 16, 31, 33]);
    let mut r = Recipe::new();
    if s.choices.one_in(3) {
        r.mov(x, t);
    }
    match s.choices.below(4) {
        0 => r.op(Lsh, W64, x, cleared).op(Rsh, W64, x, cleared),
        1 => r.op(AluOp::Mov, W32, x, x),
        2 => r.value(t, u64::MAX >> cleared).op(And, W64, x, t),
        _ => r
            .op(AluOp::Mov, W32, x, t)
            .op(Lsh, W64, x, 32)
            .op(Rsh, W64, x, 32),
    };
    r.done()
}

/// The sign in the upper bits, by shifts or by the instruction.
pub(super) fn sign_extend(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let cleared = bits(width) - s.choices.pick(&[8, 16, 24, 31]);
    let mut r = Recipe::new();
    match s.choices.below(4) {
        0 => r.op(Lsh, width, x, cleared).op(Arsh, width, x, cleared),
        1 => r.op(Lsh, W64, x, 32).op(Arsh, W64, x, 32),
        2 => {
            let from = s.choices.pick(&[Size::B, Size::H]);
            r.mov_sx(width, from, x, t)
        }
        _ => r.mov_sx(W64, Size::W, x, x).op(Rsh, W64, x, 32),
    };
    r.done()
}

/// `x >> k & mask`, and the other way round.
pub(super) fn mask_field(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let by = s.choices.below(bits(width) as u32) as i32;
    let mask = match s.choices.below(4) {
        0 => s.choices.immediate(),
        1 => s
            .choices
            .pick(&[0xff, 0xffff, -1, -256, i32::MAX, i32::MIN]),
        _ => (1i32.wrapping_shl(s.choices.below(32))).wrapping_sub(1),
    };
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        r.op(AluOp::Mov, width, t, x);
        r.op(Rsh, width, t, by).op(And, width, t, mask);
    } else {
        r.op(And, width, x, mask).op(Rsh, width, x, by);
    }
    r.done()
}

/// A test of one bit, and a statement if it is set.
pub(super) fn test_bit(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, u] = s.numbers(0);
    let width = s.width();
    let at = s.choices.below(bits(width) as u32) as i32;
    let out = s.label();
    let mut r = Recipe::new();
    match s.choices.below(3) {
        0 => r
            .op(AluOp::Mov, width, t, x)
            .op(Rsh, width, t, at)
            .op(And, width, t, 1)
            .jump(Cond::Eq, width, t, 0, out),
        1 => r
            .number(width, t, 1 << at)
            .jump(Cond::Set, width, x, t, out),
        _ => r
            .number(width, t, 1)
            .op(Lsh, width, t, u)
            .op(And, width, t, x)
            .jump(Cond::Ne, width, t, 0, out),
    };
    r.op(Xor, W64, u, x).place(out).done()
}

/// Bytes put into the other order by shifts and masks.
pub(super) fn swap_by_shifts(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, u] = s.numbers(0);
    let mut r = Recipe::new();
    match s.choices.below(3) {
        0 => {
            let width = s.width();
            r.op(AluOp::Mov, width, t, x)
                .op(Rsh, width, t, 8)
                .op(And, width, t, 0xff)
                .op(And, width, x, 0xff)
                .op(Lsh, width, x, 8)
                .op(Or, width, x, t);
        }
        1 => {
            let width = s.width();
            r.op(AluOp::Mov, width, t, x).op(Rsh, W32, t, 24);
            r.op(AluOp::Mov, width, u, x).op(Rsh, W32, u, 8);
            r.op(And, W32, u, 0xff00).op(Or, W32, t, u);
            r.op(AluOp::Mov, width, u, x).op(Lsh, W32, u, 8);
            r.op(And, W32, u, 0xff_0000).op(Or, W32, t, u);
            r.op(Lsh, W32, x, 24).op(Or, W32, x, t);
        }
        _ => {
            // Halves exchanged, then quarters, then bytes.
            for (by, mask) in [(8, 0x00ff_00ff_00ff_00ff), (16, 0x0000_ffff_0000_ffff)] {
                r.value(u, mask).mov(t, x).op(Rsh, W64, t, by);
                r.op(And, W64, t, u).op(And, W64, x, u);
                r.op(Lsh, W64, x, by).op(Or, W64, x, t);
            }
            r.mov(t, x)
                .op(Rsh, W64, t, 32)
                .op(Lsh, W64, x, 32)
                .op(Or, W64, x, t);
        }
    }
    r.done()
}

/// A swap of more bytes than are kept.
pub(super) fn swap_and_shift(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x] = s.numbers(0);
    let order = s.choices.pick(&[Big, Swap]);
    let size = s.choices.pick(&SIZES);
    let width = s.width();
    let by = s.choices.pick(&[16, 32, 48, 8, 24, 31]) % bits(width);
    let right = s.choices.pick(&[Rsh, Rsh, Arsh]);
    let mut r = Recipe::new();
    r.endian(order, size, x).op(right, width, x, by);
    if s.choices.one_in(3) {
        r.op(And, W64, x, 0xffff);
    }
    r.done()
}

/// Byte orders one after the other.
pub(super) fn swap_twice(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x] = s.numbers(0);
    let orders = [Big, Swap, Little];
    let (first, second) = (s.choices.pick(&orders), s.choices.pick(&orders));
    let (wide, narrow) = (s.choices.pick(&SIZES), s.choices.pick(&SIZES));
    Recipe::new()
        .endian(first, wide, x)
        .endian(second, narrow, x)
        .done()
}

/// The number of the first bit that is set, by halves.
pub(super) fn find_first_ladder(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, n, t] = s.numbers(0);
    let width = s.width();
    let mut r = Recipe::new();
    r.op(AluOp::Mov, W64, n, 0);
    let mut step = bits(width) / 2;
    while step >= 1 {
        let found = s.label();
        let mask = u64::MAX >> (64 - step);
        match (step, s.choices.below(2)) {
            (32, _) => r.op(AluOp::Mov, W32, t, x).jump(Cond::Ne, W64, t, 0, found),
            (_, 0) => r.jump(Cond::Set, width, x, mask as i32, found),
            _ => r
                .op(AluOp::Mov, width, t, x)
                .op(And, width, t, mask as i32)
                .jump(Cond::Ne, width, t, 0, found),
        };
        r.op(Add, W64, n, step).op(Rsh, width, x, step).place(found);
        step /= 2;
    }
    r.done()
}

/// The number of the last bit that is set, by halves.
pub(super) fn find_last_ladder(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, n, t] = s.numbers(0);
    let width = s.width();
    let all = bits(width);
    let mut r = Recipe::new();
    r.op(AluOp::Mov, W64, n, all - 1);
    let mut step = all / 2;
    while step >= 1 {
        let found = s.label();
        let high = (u64::MAX << (64 - step)) >> (64 - all);
        r.number(width, t, high).op(And, width, t, x);
        r.jump(Cond::Ne, width, t, 0, found);
        r.op(Sub, W64, n, step).op(Lsh, width, x, step).place(found);
        step /= 2;
    }
    r.done()
}

/// Adds up the bits of `x`, which holds 64, in registers that may be lost.
fn count_bits(
    r: &mut Recipe,
    width: Width,
    x: isa::ebpf::Reg,
    t: isa::ebpf::Reg,
    m: isa::ebpf::Reg,
) {
    let spread = |pattern: u64| match width {
        W32 => pattern & 0xffff_ffff,
        W64 => pattern,
    };
    r.op(AluOp::Mov, width, t, x).op(Rsh, width, t, 1);
    r.number(width, m, spread(0x5555_5555_5555_5555));
    r.op(And, width, t, m).op(Sub, width, x, t);
    r.number(width, m, spread(0x3333_3333_3333_3333));
    r.op(AluOp::Mov, width, t, x).op(And, width, t, m);
    r.op(Rsh, width, x, 2).op(And, width, x, m);
    r.op(Add, width, x, t);
    r.op(AluOp::Mov, width, t, x)
        .op(Rsh, width, t, 4)
        .op(Add, width, x, t);
    r.number(width, m, spread(0x0f0f_0f0f_0f0f_0f0f))
        .op(And, width, x, m);
    r.number(width, m, spread(0x0101_0101_0101_0101))
        .op(Mul, width, x, m);
    r.op(Rsh, width, x, bits(width) - 8);
}

/// Population count of 64 bits.
pub(super) fn population_count(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, m] = s.numbers(0);
    let mut r = Recipe::new();
    count_bits(&mut r, W64, x, t, m);
    r.done()
}

/// Population count of 32 bits.
pub(super) fn population_count_32(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, m] = s.numbers(0);
    let mut r = Recipe::new();
    count_bits(&mut r, W32, x, t, m);
    r.done()
}

/// The bits below the lowest that is set, counted.
pub(super) fn trailing_zeros(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, m] = s.numbers(0);
    let width = s.width();
    let mut r = Recipe::new();
    r.op(AluOp::Mov, width, t, x).op(Add, width, t, -1);
    r.op(Xor, width, x, -1).op(And, width, x, t);
    count_bits(&mut r, width, x, t, m);
    r.done()
}

/// The bits above the highest that is set, counted.
pub(super) fn leading_zeros(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, m] = s.numbers(0);
    let width = s.width();
    let mut r = Recipe::new();
    let mut by = 1;
    while by < bits(width) {
        r.op(AluOp::Mov, width, t, x)
            .op(Rsh, width, t, by)
            .op(Or, width, x, t);
        by *= 2;
    }
    r.op(Xor, width, x, -1);
    count_bits(&mut r, width, x, t, m);
    r.done()
}

/// The lowest bit alone, or all but it, or up to it.
pub(super) fn lowest_bit(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let mut r = Recipe::new();
    r.op(AluOp::Mov, width, t, x);
    match s.choices.below(3) {
        0 => r.neg(width, t),
        1 => r.op(Add, width, t, -1),
        _ => r.op(Sub, width, t, 1),
    };
    let join = s.choices.pick(&[And, And, Xor]);
    let (dst, src) = s.choices.pick(&[(t, x), (x, t)]);
    r.op(join, width, dst, src).done()
}

/// `~x & y`.
pub(super) fn and_not(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y] = s.numbers(0);
    let width = s.width();
    let (dst, src) = s.choices.pick(&[(x, y), (y, x)]);
    Recipe::new()
        .op(Xor, width, x, -1)
        .op(And, width, dst, src)
        .done()
}

/// `x & (1 << n) - 1`.
pub(super) fn low_bits_by_register(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, n, t] = s.numbers(0);
    let width = s.width();
    let mut r = Recipe::new();
    match s.choices.below(3) {
        0 => r
            .op(AluOp::Mov, width, t, 1)
            .op(Lsh, width, t, n)
            .op(Add, width, t, -1)
            .op(And, width, x, t),
        1 => r
            .op(AluOp::Mov, width, t, -1)
            .op(Lsh, width, t, n)
            .op(Xor, width, t, -1)
            .op(And, width, x, t),
        _ => r.op(Lsh, width, x, n).op(Rsh, width, x, n),
    };
    r.done()
}

/// An extension of what is extended already: needed on no way, or on one.
pub(super) fn extend_again(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let out = s.label();
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        let cond = s.choices.pick(&[Cond::Gt, Cond::SLt, Cond::Eq]);
        r.jump(cond, W64, t, 0, out);
    }
    let op = s.choices.pick(&[Add, Sub, Or, And, Xor, Mul, Lsh, Arsh]);
    let operand = s.count(W32);
    r.op(op, W32, x, operand).place(out);
    match s.choices.below(4) {
        0 => r.op(AluOp::Mov, W32, x, x),
        1 => r.op(Lsh, W64, x, 32).op(Rsh, W64, x, 32),
        2 => r.mov_sx(W64, Size::W, x, x),
        _ => r.op(AluOp::Mov, W32, t, x).op(Add, W64, t, x),
    };
    r.done()
}

/// Shifts one after the other, in one direction or back.
pub(super) fn shift_pair(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x] = s.numbers(0);
    let (first, second) = (s.width(), s.width());
    let ops = [Lsh, Rsh, Arsh];
    let (a, b) = (s.choices.pick(&ops), s.choices.pick(&ops));
    let (m, n) = (s.count(first), s.count(second));
    Recipe::new().op(a, first, x, m).op(b, second, x, n).done()
}
