//! Idioms of comparisons: minima, truth values, ranges, flags.

use super::{Recipe, bits};
use crate::ebpf::draft::Label;
use crate::ebpf::scope::Scope;
use isa::ebpf::AluOp::{Add, And, Arsh, Mov, Or, Sub, Xor};
use isa::ebpf::Cond;
use isa::ebpf::Width::{W32, W64};

/// `if a > b { a = b }`, by any comparison.
pub(super) fn minimum_or_maximum(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [a, b, t] = s.numbers(0);
    let (compared, copied) = (s.width(), s.width());
    let cond = s.choices.pick(&Cond::ALL);
    let out = s.label();
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        r.jump(cond, compared, a, b, out).op(Mov, copied, a, b);
    } else {
        r.op(Mov, copied, t, a)
            .jump(cond, compared, a, b, out)
            .op(Mov, copied, t, b);
    }
    r.place(out).done()
}

/// One of two values.
pub(super) fn select(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, a, b] = s.numbers(0);
    let (compared, copied) = (s.width(), s.width());
    let cond = s.choices.pick(&Cond::ALL);
    let (otherwise, out) = (s.label(), s.label());
    let (limit, first, second) = (s.operand(), s.operand(), s.operand());
    let compared_register = s.choices.pick(&[x, a, b]);
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        r.op(Mov, copied, x, first);
        r.jump(cond, compared, compared_register, limit, out);
        r.op(Mov, copied, x, second);
    } else {
        r.jump(cond, compared, compared_register, limit, otherwise);
        r.op(Mov, copied, x, first).goto(out).place(otherwise);
        r.op(Mov, copied, x, second);
    }
    r.place(out).done()
}

/// The absolute value, by a jump or without.
pub(super) fn absolute_value(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let out = s.label();
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        let (cond, limit) = s
            .choices
            .pick(&[(Cond::SGt, -1), (Cond::SGe, 0), (Cond::SLt, 0)]);
        r.jump(cond, width, x, limit, out).neg(width, x).place(out);
    } else {
        r.op(Mov, width, t, x).op(Arsh, width, t, bits(width) - 1);
        r.op(Xor, width, x, t).op(Sub, width, x, t);
    }
    r.done()
}

/// 0 or 1 by a comparison, and what is made of it.
pub(super) fn truth_value(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [t, x, y] = s.numbers(0);
    let (width, set) = (s.width(), s.width());
    let cond = s.choices.pick(&Cond::ALL);
    let limit = s.operand();
    let out = s.label();
    let (yes, no) = s
        .choices
        .pick(&[(1, 0), (0, 1), (-1, 0), (1, 2), (8, 4), (1, -1)]);
    let mut r = Recipe::new();
    r.op(Mov, set, t, yes).jump(cond, width, x, limit, out);
    r.op(Mov, set, t, no).place(out);
    match s.choices.below(4) {
        0 => r.op(Add, W64, y, t),
        1 => r.op(Xor, W64, t, 1),
        2 => r.neg(W64, t).op(And, W64, y, t),
        _ => &mut r,
    };
    r.done()
}

/// A comparison of a result with zero right after it was computed.
pub(super) fn flags_after_alu(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y, t] = s.numbers(0);
    let (computed, compared) = (s.width(), s.width());
    let op = s.choices.pick(&[Add, Sub, Sub, And, And, Or, Xor]);
    let operand = s.operand();
    let cond = s.choices.pick(&Cond::ALL);
    let limit = s.choices.pick(&[0, 0, 0, 1, -1]);
    let out = s.label();
    let mut r = Recipe::new();
    match s.choices.below(6) {
        0 => r.neg(computed, x),
        1 => r.op(Mov, computed, t, x).op(op, computed, t, operand),
        _ => r.op(op, computed, x, operand),
    };
    let tested = s.choices.pick(&[x, x, t]);
    r.jump(cond, compared, tested, limit, out);
    r.op(Xor, W64, y, x).place(out).done()
}

/// A mask and a comparison, which is a test.
pub(super) fn test_mask(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, y] = s.numbers(0);
    let (masked, compared) = (s.width(), s.width());
    let mask = s.choices.immediate();
    let cond = s.choices.pick(&[Cond::Eq, Cond::Ne, Cond::SLt, Cond::Gt]);
    let out = s.label();
    let mut r = Recipe::new();
    if s.choices.one_in(3) {
        r.jump(Cond::Set, compared, x, mask, out);
    } else {
        r.op(Mov, masked, t, x).op(And, masked, t, mask);
        let limit = s.choices.pick(&[0, 0, mask]);
        r.jump(cond, compared, t, limit, out);
    }
    r.op(Add, W64, y, 1).place(out).done()
}

/// Two comparisons of the same operands: less, equal, greater.
pub(super) fn three_way(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let limit = s.operand();
    let (first, second) = (s.width(), s.width());
    let (a, b) = (s.choices.pick(&Cond::ALL), s.choices.pick(&Cond::ALL));
    let (less, out) = (s.label(), s.label());
    Recipe::new()
        .jump(a, first, x, limit, less)
        .jump(b, second, x, limit, out)
        .op(Add, W64, t, 1)
        .goto(out)
        .place(less)
        .op(Add, W64, t, -1)
        .place(out)
        .done()
}

/// A range check: one comparison after a subtraction.
pub(super) fn clamp_range(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t, y] = s.numbers(0);
    let width = s.width();
    let (low, len) = (s.choices.immediate(), s.choices.immediate());
    let out = s.label();
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        r.op(Mov, width, t, x).op(Add, width, t, low.wrapping_neg());
        r.jump(Cond::Gt, width, t, len, out);
    } else {
        r.jump(Cond::SLt, width, x, low, out);
        r.jump(Cond::SGt, width, x, low.wrapping_add(len & 0xff), out);
    }
    r.op(Xor, W64, y, t).place(out).done()
}

/// A value that depends on which of some constants another is.
pub(super) fn switch_of_constants(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let width = s.width();
    let first = s.choices.immediate();
    let out = s.label();
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        r.op(And, width, x, 7);
    }
    let near = s.choices.one_in(2);
    for number in 0..2 + s.choices.below(4) as i32 {
        let next = s.label();
        let key = if near {
            number
        } else {
            first.wrapping_add(number)
        };
        r.jump(Cond::Ne, width, x, key, next);
        r.op(Mov, W64, t, number).goto(out).place(next);
    }
    r.op(Mov, W64, t, -1).place(out).done()
}

/// `a && b || c`.
pub(super) fn short_circuit(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, y, t] = s.numbers(0);
    let (no, yes, out) = (s.label(), s.label(), s.label());
    let mut condition = || (s.choices.pick(&Cond::ALL), s.width(), s.operand());
    let ((a, u, p), (b, v, q), (c, w, z)) = (condition(), condition(), condition());
    Recipe::new()
        .jump(a, u, x, p, no)
        .jump(b, v, y, q, yes)
        .place(no)
        .jump(c, w, t, z, out)
        .place(yes)
        .op(Xor, W64, t, x)
        .place(out)
        .done()
}

/// A `switch` as a tree of comparisons, which perhaps ends where it was not begun.
pub(super) fn switch_as_tree(s: &mut Scope<'_, '_>) -> Option<Recipe> {
    let [x, t] = s.numbers(0);
    let first = s.choices.pick(&[0, 0, 0, 1, 7, -3, 1 << 20]);
    let apart = 1 + s.choices.below(3) as i32;
    let count = 4 + s.choices.below(28) as i32;
    let (above, width) = (
        s.choices.pick(&[Cond::SGt, Cond::Gt]),
        s.choices.pick(&[W32, W32, W64]),
    );
    let keys: Vec<i32> = (0..count).map(|number| first + apart * number).collect();
    let leaves: Vec<Label> = keys.iter().map(|_| s.label()).collect();
    let (default, out) = (s.label(), s.label());
    let mut r = Recipe::new();
    if s.choices.one_in(2) {
        r.op(And, width, x, 31);
    }
    // Work list of key ranges, the lowest last.
    let mut open = vec![(None, 0..keys.len())];
    while let Some((label, part)) = open.pop() {
        if let Some(label) = label {
            r.place(label);
        }
        if part.len() > 2 {
            let middle = part.start + part.len() / 2;
            let upper = s.label();
            r.jump(above, width, x, keys[middle] - 1, upper);
            open.push((Some(upper), middle..part.end));
            open.push((None, part.start..middle));
            continue;
        }
        for at in part {
            r.jump(Cond::Eq, width, x, keys[at], leaves[at]);
        }
        r.goto(default);
    }
    for (number, leaf) in (3..).zip(leaves) {
        r.place(leaf).op(Add, W64, t, number).goto(out);
    }
    r.place(default).op(Xor, W64, t, x).place(out).done()
}
