//! Conditions of branches: which way a comparison of two values goes, and what
//! each way tells about them.

use isa::ebpf::{Cond, Width};
use spec::behaviour::{Behaviour, Behaviours};

use super::circular::{exclude, refine_arcs};
use super::{Scalar, Tnum};

/// Outcome of `a cond b`, if the values decide it. The two are different
/// registers, or a register and an immediate (`is_scalar_branch_taken`).
#[doc(alias = "is_scalar_branch_taken")]
pub fn decide(
    cond: Cond,
    width: Width,
    (a, b): (&Scalar, &Scalar),
    rules: Behaviours,
) -> Option<bool> {
    let decided = decide_by_ranges(cond, width, a, b);
    match decided.is_none() && rules.has(Behaviour::DeadBranches) {
        true => decide_by_refinement(cond, width, a, b, rules),
        false => decided,
    }
}

/// Outcome of `a cond a` of one register (`is_scalar_branch_taken`).
pub fn decide_same(cond: Cond, width: Width, a: &Scalar) -> Option<bool> {
    let narrow = width == Width::W32;
    match cond {
        Cond::Eq | Cond::Ge | Cond::Le | Cond::SGe | Cond::SLe => Some(true),
        Cond::Ne | Cond::Gt | Cond::Lt | Cond::SGt | Cond::SLt => Some(false),
        Cond::Set => {
            let bits = match narrow {
                true => a.var_off.subreg(),
                false => a.var_off,
            };
            let (min, max) = signed(narrow, a);
            match bits.is_const() {
                true => Some(bits.value != 0),
                false => (min > 0 || max < 0).then_some(true),
            }
        }
    }
}

/// The outcome that remains if the other leaves a value without members
/// (`simulate_both_branches_taken`).
#[doc(alias = "simulate_both_branches_taken")]
fn decide_by_refinement(
    cond: Cond,
    width: Width,
    a: &Scalar,
    b: &Scalar,
    rules: Behaviours,
) -> Option<bool> {
    let is_dead = |outcome| {
        let (mut a, mut b) = (*a, *b);
        refine_synced(cond, outcome, width, (&mut a, &mut b), rules);
        a.has_empty_range() || b.has_empty_range()
    };
    match (is_dead(false), is_dead(true)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

fn decide_by_ranges(cond: Cond, width: Width, a: &Scalar, b: &Scalar) -> Option<bool> {
    let narrow = width == Width::W32;
    let (bits_a, bits_b) = match narrow {
        true => (a.var_off.subreg(), b.var_off.subreg()),
        false => (a.var_off, b.var_off),
    };
    match cond {
        Cond::Eq => decide_equal(narrow, a, b, bits_a, bits_b),
        Cond::Ne => decide_equal(narrow, a, b, bits_a, bits_b).map(|equal| !equal),
        Cond::Set => {
            let (bits, test) = match (bits_a.is_const(), bits_b.is_const()) {
                (_, true) => (bits_a, bits_b.value),
                (true, false) => (bits_b, bits_a.value),
                (false, false) => return None,
            };
            if bits.value & test != 0 {
                Some(true)
            } else if bits.max() & test == 0 {
                Some(false)
            } else {
                None
            }
        }
        Cond::Gt => decide_greater(unsigned(narrow, a), unsigned(narrow, b)),
        Cond::Ge => decide_greater_equal(unsigned(narrow, a), unsigned(narrow, b)),
        Cond::Lt => decide_greater(unsigned(narrow, b), unsigned(narrow, a)),
        Cond::Le => decide_greater_equal(unsigned(narrow, b), unsigned(narrow, a)),
        Cond::SGt => decide_greater(signed(narrow, a), signed(narrow, b)),
        Cond::SGe => decide_greater_equal(signed(narrow, a), signed(narrow, b)),
        Cond::SLt => decide_greater(signed(narrow, b), signed(narrow, a)),
        Cond::SLe => decide_greater_equal(signed(narrow, b), signed(narrow, a)),
    }
}

/// As [`decide`] before [`Behaviour::NumbersCompared`]: only `b` that is a constant decides, and
/// equality with it by the known bits.
pub fn decide_by_constant(cond: Cond, width: Width, a: &Scalar, b: &Scalar) -> Option<bool> {
    let value = constant(width, b)?;
    match cond {
        Cond::Eq => Some(constant(width, a)? == value),
        Cond::Ne => Some(constant(width, a)? != value),
        _ => decide_by_ranges(cond, width, a, &Scalar::constant(value)),
    }
}

/// The value at the width, if it is known (`is_reg_const`, `reg_const_value`).
#[doc(alias = "is_reg_const")]
#[doc(alias = "reg_const_value")]
fn constant(width: Width, x: &Scalar) -> Option<u64> {
    match width {
        Width::W64 => x.as_const(),
        Width::W32 => x.as_const32().map(u64::from),
    }
}

/// Unsigned ends of the range at the width.
#[inline]
fn unsigned(narrow: bool, x: &Scalar) -> (u64, u64) {
    match narrow {
        true => (x.u32_min.into(), x.u32_max.into()),
        false => (x.umin, x.umax),
    }
}

/// Signed ends of the range at the width.
#[inline]
fn signed(narrow: bool, x: &Scalar) -> (i64, i64) {
    match narrow {
        true => (x.s32_min.into(), x.s32_max.into()),
        false => (x.smin, x.smax),
    }
}

#[inline]
fn decide_greater<T: Ord>(a: (T, T), b: (T, T)) -> Option<bool> {
    if a.0 > b.1 {
        Some(true)
    } else if a.1 <= b.0 {
        Some(false)
    } else {
        None
    }
}

#[inline]
fn decide_greater_equal<T: Ord>(a: (T, T), b: (T, T)) -> Option<bool> {
    if a.0 >= b.1 {
        Some(true)
    } else if a.1 < b.0 {
        Some(false)
    } else {
        None
    }
}

fn decide_equal(narrow: bool, a: &Scalar, b: &Scalar, bits_a: Tnum, bits_b: Tnum) -> Option<bool> {
    fn disjoint<T: Ord>(a: (T, T), b: (T, T)) -> bool {
        a.0 > b.1 || a.1 < b.0
    }
    if bits_a.is_const() && bits_b.is_const() {
        return Some(bits_a.value == bits_b.value);
    }
    let differ = !bits_a.overlaps(bits_b)
        || disjoint(unsigned(narrow, a), unsigned(narrow, b))
        || disjoint(signed(narrow, a), signed(narrow, b))
        || !narrow
            && (disjoint(unsigned(true, a), unsigned(true, b))
                || disjoint(signed(true, a), signed(true, b)));
    differ.then_some(false)
}

/// Narrows two values by `a cond b` having the given outcome. The values are not
/// synchronised afterwards and may contradict themselves
/// ([`Scalar::violation`]) (`reg_set_min_max`).
#[doc(alias = "reg_set_min_max")]
pub fn refine(
    cond: Cond,
    outcome: bool,
    width: Width,
    (a, b): (&mut Scalar, &mut Scalar),
    rules: Behaviours,
) {
    let mut pair = [*a, *b];
    refine_at(cond, outcome, width, &mut pair, (0, 1), rules);
    [*a, *b] = pair;
}

/// Narrows and synchronises two values by `a cond b` having the given outcome.
pub fn refine_synced(
    cond: Cond,
    outcome: bool,
    width: Width,
    (a, b): (&mut Scalar, &mut Scalar),
    rules: Behaviours,
) {
    if !rules.has(Behaviour::NumbersCompared) {
        return refine_by_constant(cond, outcome, width, (a, b), rules);
    }
    refine(cond, outcome, width, (a, b), rules);
    a.sync(rules);
    b.sync(rules);
}

/// As [`refine_synced`] before [`Behaviour::NumbersCompared`]: a constant narrows the other value, and
/// equality both at 64 bits.
fn refine_by_constant(
    cond: Cond,
    outcome: bool,
    width: Width,
    (a, b): (&mut Scalar, &mut Scalar),
    rules: Behaviours,
) {
    let (relation, _) = relation(cond, outcome);
    let (value, of_first) = match (constant(width, b), constant(width, a)) {
        (Some(value), _) => (value, true),
        (None, Some(value)) => (value, false),
        (None, None) => {
            if matches!(relation, Relation::Equal) && width == Width::W64 {
                refine(cond, outcome, width, (a, b), rules);
                a.sync(rules);
                b.sync(rules);
            }
            return;
        }
    };
    let known = Scalar::constant(value);
    let mut pair = if of_first { [*a, known] } else { [known, *b] };
    let narrowed = usize::from(!of_first);
    match (relation, width) {
        (Relation::Equal, Width::W64) => pair[narrowed] = known,
        (Relation::Equal, Width::W32) => pair[narrowed].set_const32(value as u32),
        (Relation::Differ, _) => {}
        _ => refine_at(cond, outcome, width, &mut pair, (0, 1), rules),
    }
    let x = &mut pair[narrowed];
    match width {
        Width::W64 => x.combine_wide(rules),
        Width::W32 => x.combine_low(rules),
    }
    *(if of_first { a } else { b }) = *x;
}

/// Narrows and synchronises a value by a comparison with itself, as the kernel does: it
/// takes the register for two, writes both results to it and synchronises it twice.
pub fn refine_same(cond: Cond, outcome: bool, width: Width, a: &mut Scalar, rules: Behaviours) {
    if !rules.has(Behaviour::NumbersCompared) {
        return;
    }
    let mut pair = [*a, *a];
    refine_at(cond, outcome, width, &mut pair, (0, 0), rules);
    *a = pair[0];
    a.sync(rules);
    a.sync(rules);
}

/// The comparisons that refinement distinguishes: greater becomes less with the
/// operands exchanged.
#[derive(Clone, Copy)]
pub(super) enum Relation {
    Equal,
    Differ,
    /// Some bit of the mask is set.
    AnySet,
    /// No bit of the mask is set.
    NoneSet,
    Less,
    LessEqual,
    SignedLess,
    SignedLessEqual,
}

/// The relation that holds if the condition has the outcome, and whether its
/// operands are exchanged.
pub(super) const fn relation(cond: Cond, outcome: bool) -> (Relation, bool) {
    match (cond, outcome) {
        (Cond::Eq, true) | (Cond::Ne, false) => (Relation::Equal, false),
        (Cond::Ne, true) | (Cond::Eq, false) => (Relation::Differ, false),
        (Cond::Set, true) => (Relation::AnySet, false),
        (Cond::Set, false) => (Relation::NoneSet, false),
        (Cond::Lt, true) | (Cond::Ge, false) => (Relation::Less, false),
        (Cond::Le, true) | (Cond::Gt, false) => (Relation::LessEqual, false),
        (Cond::Gt, true) | (Cond::Le, false) => (Relation::Less, true),
        (Cond::Ge, true) | (Cond::Lt, false) => (Relation::LessEqual, true),
        (Cond::SLt, true) | (Cond::SGe, false) => (Relation::SignedLess, false),
        (Cond::SLe, true) | (Cond::SGt, false) => (Relation::SignedLessEqual, false),
        (Cond::SGt, true) | (Cond::SLe, false) => (Relation::SignedLess, true),
        (Cond::SGe, true) | (Cond::SLt, false) => (Relation::SignedLessEqual, true),
    }
}

/// Refines `pair[a]` and `pair[b]`, which may be the same element (`regs_refine_cond_op`).
#[doc(alias = "regs_refine_cond_op")]
fn refine_at(
    cond: Cond,
    outcome: bool,
    width: Width,
    pair: &mut [Scalar; 2],
    (a, b): (usize, usize),
    rules: Behaviours,
) {
    let is_circular = rules.has(Behaviour::CircularRanges);
    if is_circular {
        refine_arcs(cond, outcome, width, pair, (a, b));
    }
    let (relation, exchanged) = relation(cond, outcome);
    let (a, b) = if exchanged { (b, a) } else { (a, b) };
    let narrow = width == Width::W32;
    match relation {
        Relation::Differ | Relation::AnySet | Relation::NoneSet => {
            // One operand has to be a constant; the other is refined.
            let constant = |x: &Scalar| match narrow {
                true => x.as_const32().map(u64::from),
                false => x.as_const(),
            };
            let (value, x) = match (constant(&pair[b]), constant(&pair[a])) {
                (Some(value), _) => (value, &mut pair[a]),
                (None, Some(value)) => (value, &mut pair[b]),
                (None, None) => return,
            };
            match relation {
                Relation::Differ if is_circular => exclude(narrow, x, value),
                Relation::Differ => refine_differ(narrow, x, value),
                Relation::AnySet => refine_any_set(narrow, x, value),
                _ => refine_none_set(narrow, x, value),
            }
        }
        _ if is_circular => {}
        Relation::Equal => refine_equal(narrow, pair, a, b),
        Relation::Less | Relation::LessEqual => {
            let strict = u64::from(matches!(relation, Relation::Less));
            if narrow {
                let strict = strict as u32;
                refine_order(
                    pair,
                    (a, b),
                    (|x| &mut x.u32_min, |x| &mut x.u32_max),
                    (|x| x.wrapping_add(strict), |x| x.wrapping_sub(strict)),
                );
            } else {
                refine_order(
                    pair,
                    (a, b),
                    (|x| &mut x.umin, |x| &mut x.umax),
                    (|x| x.wrapping_add(strict), |x| x.wrapping_sub(strict)),
                );
            }
        }
        Relation::SignedLess | Relation::SignedLessEqual => {
            let strict = i64::from(matches!(relation, Relation::SignedLess));
            if narrow {
                let strict = strict as i32;
                refine_order(
                    pair,
                    (a, b),
                    (|x| &mut x.s32_min, |x| &mut x.s32_max),
                    (|x| x.wrapping_add(strict), |x| x.wrapping_sub(strict)),
                );
            } else {
                refine_order(
                    pair,
                    (a, b),
                    (|x| &mut x.smin, |x| &mut x.smax),
                    (|x| x.wrapping_add(strict), |x| x.wrapping_sub(strict)),
                );
            }
        }
    }
}

/// An end of one of a value's ranges.
type End<T> = fn(&mut Scalar) -> &mut T;

/// Refines one range of `pair[a]` and `pair[b]` by the first being less. `next` and
/// `previous` are the neighbours of a value, or the value itself if both may be equal.
#[inline]
fn refine_order<T: Ord + Copy>(
    pair: &mut [Scalar; 2],
    (a, b): (usize, usize),
    (min, max): (End<T>, End<T>),
    (next, previous): (impl Fn(T) -> T, impl Fn(T) -> T),
) {
    let limit = previous(*max(&mut pair[b]));
    let end = max(&mut pair[a]);
    *end = (*end).min(limit);
    let limit = next(*min(&mut pair[a]));
    let end = min(&mut pair[b]);
    *end = (*end).max(limit);
}

fn refine_equal(narrow: bool, pair: &mut [Scalar; 2], a: usize, b: usize) {
    let (mut x, mut y) = (pair[a], pair[b]);
    if narrow {
        x.u32_min = x.u32_min.max(y.u32_min);
        x.u32_max = x.u32_max.min(y.u32_max);
        x.s32_min = x.s32_min.max(y.s32_min);
        x.s32_max = x.s32_max.min(y.s32_max);
        (y.u32_min, y.u32_max) = (x.u32_min, x.u32_max);
        (y.s32_min, y.s32_max) = (x.s32_min, x.s32_max);
        let low = x.var_off.subreg().intersect(y.var_off.subreg());
        x.var_off = x.var_off.with_subreg(low);
        y.var_off = y.var_off.with_subreg(low);
    } else {
        x.umin = x.umin.max(y.umin);
        x.umax = x.umax.min(y.umax);
        x.smin = x.smin.max(y.smin);
        x.smax = x.smax.min(y.smax);
        (y.umin, y.umax) = (x.umin, x.umax);
        (y.smin, y.smax) = (x.smin, x.smax);
        x.var_off = x.var_off.intersect(y.var_off);
        y.var_off = x.var_off;
    }
    pair[a] = x;
    pair[b] = y;
}

/// Excludes a value that is an end of a range.
fn refine_differ(narrow: bool, x: &mut Scalar, value: u64) {
    if narrow {
        let (unsigned, signed) = (value as u32, value as i32);
        if x.u32_min == unsigned {
            x.u32_min = x.u32_min.wrapping_add(1);
        }
        if x.u32_max == unsigned {
            x.u32_max = x.u32_max.wrapping_sub(1);
        }
        if x.s32_min == signed {
            x.s32_min = x.s32_min.wrapping_add(1);
        }
        if x.s32_max == signed {
            x.s32_max = x.s32_max.wrapping_sub(1);
        }
        return;
    }
    let signed = value as i64;
    if x.umin == value {
        x.umin = x.umin.wrapping_add(1);
    }
    if x.umax == value {
        x.umax = x.umax.wrapping_sub(1);
    }
    if x.smin == signed {
        x.smin = x.smin.wrapping_add(1);
    }
    if x.smax == signed {
        x.smax = x.smax.wrapping_sub(1);
    }
}

/// A mask of one bit says that this bit is set; one of more bits says nothing.
fn refine_any_set(narrow: bool, x: &mut Scalar, mask: u64) {
    if !mask.is_power_of_two() {
        return;
    }
    let set = x.var_off.or(Tnum::constant(mask));
    x.var_off = match narrow {
        true => x.var_off.with_subreg(set),
        false => set,
    };
}

/// Every bit of the mask is clear. The ranges are forgotten first, so that a
/// branch that cannot be taken does not leave contradictory ones.
fn refine_none_set(narrow: bool, x: &mut Scalar, mask: u64) {
    x.unbound();
    let clear = x.var_off.and(Tnum::constant(!mask));
    x.var_off = match narrow {
        true => x.var_off.with_subreg(clear),
        false => clear,
    };
}
