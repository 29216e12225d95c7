//! Sums, products, quotients, long numbers, and constants.

use super::{Recipe, bits};
use crate::ebpf::scope::Scope;
use isa::ebpf::AluOp::{Add, And, Arsh, Div, Lsh, Mod, Mov, Mul, Or, Rsh, SDiv, SMod, Sub, Xor};
use isa::ebpf::Width::{W32, W64};
use isa::ebpf::{AluOp, Cond, Operand};

/// A copy with something added: one instruction that computes an address.
pub(super) fn address_sum(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, x, y] = s.numbers(0);
    let (copied, added) = (s.width(), s.width());
    let x = s.choices.pick(&[x, t]);
    let imm = s.choices.immediate();
    let mut r = Recipe::new();
    r.op(Mov, copied, t, x);
    match s.choices.below(4) {
        0 => r.op(Add, added, t, imm),
        1 => r.op(Sub, added, t, imm),
        2 => r.op(Add, added, t, y),
        _ => r.op(Add, added, t, y).op(Add, added, t, imm),
    };
    r.done()
}

/// `x << k + y + c`.
pub(super) fn scaled_sum(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, x, y] = s.numbers(0);
    let width = s.width();
    let by = s.choices.pick(&[0, 1, 2, 3, 4]);
    let imm = s.choices.immediate();
    let mut r = Recipe::new();
    r.op(Mov, width, t, x).op(Lsh, width, t, by);
    let y = s.choices.pick(&[x, y]);
    r.op(Add, width, t, y);
    if s.choices.one_in(2) {
        r.op(Add, width, t, imm);
    }
    r.done()
}

/// Products that need no multiplication, and some that do.
pub(super) fn multiply_small(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let factor = match s.choices.below(3) {
        0 => s
            .choices
            .pick(&[0, 1, 2, 3, 5, 9, 10, 15, -1, -2, 7, 6, 25, 27]),
        1 => 1i32.wrapping_shl(s.choices.below(32)),
        _ => s.choices.immediate(),
    };
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        r.op(Mov, width, t, x).op(Mul, width, t, factor);
    } else {
        r.op(Mul, width, x, factor);
    }
    r.done()
}

/// The subtraction of the least number, which has no opposite.
pub(super) fn subtract_least(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, x] = s.numbers(0);
    let width = s.width();
    let (first, second) = s.choices.pick(&[(Sub, Add), (Add, Sub), (Sub, Sub)]);
    Recipe::new()
        .op(Mov, width, t, x)
        .op(first, width, t, i32::MIN)
        .op(second, width, x, i32::MIN)
        .done()
}

/// A quotient or remainder that is a shift or a mask.
pub(super) fn divide_by_power(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let op = s.choices.pick(&[Div, Mod, SDiv, SMod]);
    let power = 1i32.wrapping_shl(s.choices.below(32));
    let divisor = s.choices.pick(&[power, power, power.wrapping_neg(), 1, -1]);
    let mut r = Recipe::new();
    if s.choices.one_in(3) {
        r.op(Mov, width, t, x).op(op, width, t, divisor);
    } else {
        r.op(op, width, x, divisor);
    }
    r.done()
}

/// The quotient and the remainder of the same division.
pub(super) fn divide_and_remainder(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [q, x, y, u] = s.numbers(0);
    let width = s.width();
    let (div, modulo) = s.choices.pick(&[(Div, Mod), (SDiv, SMod), (Div, SMod)]);
    let divisor = if s.choices.one_in(2) {
        Operand::Reg(y)
    } else {
        Operand::Imm(s.divisor())
    };
    let mut r = Recipe::new();
    r.op(Mov, width, q, x).op(div, width, q, divisor);
    if s.choices.one_in(2) {
        r.op(modulo, width, x, divisor);
    } else {
        r.op(Mov, width, u, q)
            .op(Mul, width, u, divisor)
            .op(Sub, width, x, u);
    }
    r.done()
}

/// A signed division by a power of two, by shifts.
pub(super) fn signed_divide(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let by = 1 + s.choices.below(bits(width) as u32 - 1) as i32;
    Recipe::new()
        .op(Mov, width, t, x)
        .op(Arsh, width, t, bits(width) - 1)
        .op(Rsh, width, t, bits(width) - by)
        .op(Add, width, x, t)
        .op(Arsh, width, x, by)
        .done()
}

/// The opposite or the complement, made of other operations.
pub(super) fn negate_by_hand(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let mut r = Recipe::new();
    match s.choices.below(4) {
        0 => r.op(Xor, width, x, -1).op(Add, width, x, 1),
        1 => r.op(Mov, width, t, 0).op(Sub, width, t, x),
        2 => r.neg(width, x).op(Add, width, x, -1),
        _ => r.neg(width, x).neg(width, x),
    };
    r.done()
}

/// A sum of two words each: the carry is a comparison.
pub(super) fn carry_chain(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [a, b, c, d, t] = s.numbers(0);
    let width = s.width();
    let out = s.label();
    Recipe::new()
        .op(Add, width, a, c)
        .op(Mov, W64, t, 1)
        .jump(Cond::Lt, width, a, c, out)
        .op(Mov, W64, t, 0)
        .place(out)
        .op(Add, width, b, d)
        .op(Add, width, b, t)
        .done()
}

/// A difference of two words each.
pub(super) fn borrow_chain(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [a, b, c, d, t] = s.numbers(0);
    let width = s.width();
    let out = s.label();
    Recipe::new()
        .op(Mov, W64, t, 1)
        .jump(Cond::Lt, width, a, c, out)
        .op(Mov, W64, t, 0)
        .place(out)
        .op(Sub, width, a, c)
        .op(Sub, width, b, d)
        .op(Sub, width, b, t)
        .done()
}

/// The whole product of two words, of halves.
pub(super) fn widening_multiply(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y, h, l] = s.numbers(0);
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        // 32 by 32 bits: one multiplication, and both halves of it.
        r.op(Mov, W32, l, x).op(Mov, W32, h, y).op(Mul, W64, l, h);
        r.mov(h, l).op(Rsh, W64, h, 32).op(Mov, W32, l, l);
    } else {
        r.mov(h, x)
            .op(Rsh, W64, h, 32)
            .mov(l, y)
            .op(Rsh, W64, l, 32);
        r.op(Mul, W64, h, l);
        r.op(Mov, W32, x, x).op(Mul, W64, l, x);
        r.op(Rsh, W64, l, 32).op(Add, W64, h, l);
    }
    r.done()
}

/// A constant made of parts.
pub(super) fn constant_in_parts(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x] = s.numbers(0);
    let (high, low) = (s.choices.immediate(), s.choices.immediate());
    let join = s.choices.pick(&[Or, Add, Xor]);
    let width = s.width();
    let by = s.count(W64);
    Recipe::new()
        .op(Mov, width, x, high)
        .op(Lsh, W64, x, by)
        .op(join, W64, x, low)
        .done()
}

/// Operations on constants alone.
pub(super) fn fold_constants(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y] = s.numbers(0);
    let mut r = Recipe::new();
    r.value(x, s.choices.value());
    if s.choices.one_in(2) {
        r.value(y, s.choices.value());
    } else {
        r.op(Mov, s.width(), y, s.choices.immediate());
    }
    for _ in 0..1 + s.choices.below(3) {
        let op = s.choices.pick(&[
            Add, Sub, Mul, Div, SDiv, Mod, SMod, Or, And, Xor, Lsh, Rsh, Arsh,
        ]);
        let width = s.width();
        let operand = match op {
            Lsh | Rsh | Arsh => {
                let count = Operand::Imm(s.count(width));
                s.choices.pick(&[Operand::Reg(y), count])
            }
            Div | SDiv | Mod | SMod => {
                let divisor = Operand::Imm(s.divisor());
                s.choices.pick(&[Operand::Reg(y), divisor])
            }
            _ => {
                let imm = Operand::Imm(s.choices.immediate());
                s.choices.pick(&[Operand::Reg(y), Operand::Reg(x), imm])
            }
        };
        r.op(op, width, x, operand);
    }
    r.done()
}

/// Two values exchanged without a third register.
pub(super) fn exclusive_swap(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y] = s.numbers(0);
    let width = s.width();
    Recipe::new()
        .op(Xor, width, x, y)
        .op(Xor, width, y, x)
        .op(Xor, width, x, y)
        .done()
}

/// Copies of copies, with the first changed meanwhile.
pub(super) fn copies(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y, z] = s.numbers(0);
    let (first, second) = (s.width(), s.width());
    let op = s.choices.pick(&[Add, Xor, Sub]);
    let imm = s.choices.immediate();
    Recipe::new()
        .op(Mov, first, y, x)
        .op(op, W64, x, imm)
        .op(Mov, second, z, y)
        .op(op, W64, y, z)
        .op(op, first, z, x)
        .done()
}

/// A shift by a register, whichever it is, of itself too.
pub(super) fn shift_by_register(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let n = s.scalar();
    let width = s.width();
    let op = s.choices.pick(&[Lsh, Rsh, Arsh]);
    let mut r = Recipe::new();
    match s.choices.below(3) {
        0 => r.op(Mov, width, t, x).op(op, width, t, n),
        1 => r.op(op, width, x, x).op(op, width, t, x),
        _ => r.op(op, width, x, n).op(op, width, t, n),
    };
    r.done()
}

/// Operations that change nothing, or everything.
pub(super) fn identities(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    const IDENTITIES: &[(AluOp, i32)] = &[
        (Add, 0),
        (Sub, 0),
        (Mul, 1),
        (Mul, 0),
        (Div, 1),
        (Mod, 1),
        (SDiv, 1),
        (SDiv, -1),
        (SMod, 1),
        (SMod, -1),
        (Or, 0),
        (Or, -1),
        (And, -1),
        (And, 0),
        (Xor, 0),
        (Xor, -1),
        (Lsh, 0),
        (Rsh, 0),
        (Arsh, 0),
    ];
    let [x] = s.numbers(0);
    let width = s.width();
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        let (op, imm) = s.choices.pick(IDENTITIES);
        r.op(op, width, x, imm);
    } else {
        let op = s
            .choices
            .pick(&[Mov, Sub, Xor, And, Or, Add, Div, Mod, SDiv, SMod]);
        r.op(op, width, x, x);
    }
    r.done()
}
