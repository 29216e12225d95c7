//! Branches: each compares, then jumps or falls through.

use std::marker::PhantomData;

use isa::ebpf::{Cond, Operand, Reg, Width, eval};

use super::operand::{Bits, Condition, Get, Read};
use super::{choose_cond, choose_reg, choose_source, choose_width};
use crate::op::{Distance, Flow, Op, Operation, Run, Step, step};

/// Direction of a branch.
pub(crate) trait Way {
    fn take(run: Run) -> Flow;
}

/// A branch to a later instruction.
pub(crate) struct Forward;
/// A backward branch, which consumes budget of the meter.
pub(crate) struct Back;

impl Way for Forward {
    #[inline(always)]
    fn take(run: Run) -> Flow {
        let distance = run.op().t;
        run.jump(distance)
    }
}

impl Way for Back {
    #[inline(always)]
    fn take(mut run: Run) -> Flow {
        let meter = run.meter();
        meter.jumps -= 1;
        if meter.jumps >= 0 {
            Forward::take(run)
        } else {
            run.continue_as::<Renew>()
        }
    }
}

/// A backward jump with an exhausted count: renews it, or ends the run.
struct Renew;

impl Operation for Renew {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        if run.meter().renew_jumps() {
            Forward::take(run)
        } else {
            run.finish(0)
        }
    }
}

/// `if dst cond src goto t`.
pub(super) struct If<C, W, D, S, T = Forward>(PhantomData<(C, W, D, S, T)>);

impl<C: Condition, W: Bits, D: Get, S: Read, T: Way> Operation for If<C, W, D, S, T> {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        if eval::compare(C::COND, W::WIDTH, D::get(&run), S::read(&run)) {
            T::take(run)
        } else {
            run.next()
        }
    }
}

/// A conditional branch, forward or backward; the target is patched later.
pub(crate) fn conditional(cond: Cond, width: Width, dst: Reg, src: Operand, back: bool) -> Op {
    let step = choose_cond!(
        cond,
        C,
        choose_width!(
            width,
            W,
            choose_reg!(
                dst,
                D,
                choose_source!(
                    src,
                    S,
                    if back {
                        step::<If<C, W, D, S, Back>> as Step
                    } else {
                        step::<If<C, W, D, S, Forward>> as Step
                    }
                )
            )
        )
    );
    Op {
        uses_run: back,
        ..Op::new(step).dst(dst).operand(src)
    }
}

/// Two 32-bit comparisons of one register with constants:
/// `if dst C1 a goto t; if dst C2 b goto u`.
pub(super) struct IfPair<C1, C2, D>(PhantomData<(C1, C2, D)>);

impl<C1: Condition, C2: Condition, D: Get> Operation for IfPair<C1, C2, D> {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let value = D::get(&run);
        let Op { a, b, t, u, .. } = *run.op();
        if eval::compare(C1::COND, Width::W32, value, u64::from(a)) {
            return run.jump(t);
        }
        if eval::compare(C2::COND, Width::W32, value, u64::from(b)) {
            return run.jump(u);
        }
        run.next()
    }
}

/// Two comparisons of one register in one operation.
pub(crate) fn pair(first: (Cond, i32), second: (Cond, i32), dst: Reg) -> Op {
    let step = choose_cond!(
        first.0,
        C1,
        choose_cond!(
            second.0,
            C2,
            choose_reg!(dst, D, step::<IfPair<C1, C2, D>> as Step)
        )
    );
    Op {
        a: first.1 as u32,
        b: second.1 as u32,
        ..Op::new(step).dst(dst)
    }
}

/// The lookup table of a chain of comparisons `if w == key goto target`.
pub(crate) struct Table {
    /// The smallest key.
    pub first: u32,
    /// Keys in ascending order; empty if `targets` is indexed directly.
    pub keys: Box<[u32]>,
    /// Targets relative to the lookup, by position.
    pub targets: Box<[Distance]>,
    /// Target of values that are no key.
    pub default: Distance,
}

impl Table {
    /// The table of a lookup.
    #[inline(always)]
    fn of(run: &Run) -> &Table {
        let address = run.op().wide() as usize;
        // SAFETY: `with_table` stored the address, and the program owns both.
        unsafe { &*std::ptr::with_exposed_provenance(address) }
    }
}

/// A lookup of `value - first` by index.
struct SwitchDense<D>(PhantomData<D>);
/// A lookup by binary search among sorted keys.
struct SwitchSorted<D>(PhantomData<D>);

impl<D: Get> Operation for SwitchDense<D> {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let table = Table::of(&run);
        let index = (D::get(&run) as u32).wrapping_sub(table.first) as usize;
        let target = table.targets.get(index).copied().unwrap_or(table.default);
        run.jump(target)
    }
}

impl<D: Get> Operation for SwitchSorted<D> {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let table = Table::of(&run);
        let target = match table.keys.binary_search(&(D::get(&run) as u32)) {
            Ok(index) => table.targets[index],
            Err(_) => table.default,
        };
        run.jump(target)
    }
}

/// A table lookup, by index or by binary search; the table is patched later.
pub(crate) fn switch(dst: Reg, dense: bool) -> Op {
    let step = if dense {
        choose_reg!(dst, D, step::<SwitchDense<D>> as Step)
    } else {
        choose_reg!(dst, D, step::<SwitchSorted<D>> as Step)
    };
    Op::new(step).dst(dst)
}

/// Sets the table of a lookup, which must outlive it and must not move.
pub(crate) fn with_table(op: Op, table: &Table) -> Op {
    op.with_wide(std::ptr::from_ref(table).expose_provenance() as u64)
}

/// `goto t`.
struct Always<T>(PhantomData<T>);

impl<T: Way> Operation for Always<T> {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        T::take(run)
    }
}

/// An unconditional branch, forward or backward; the target is patched later.
pub(crate) fn always(back: bool) -> Op {
    match back {
        true => Op::using_run(step::<Always<Back>>),
        false => Op::new(step::<Always<Forward>>),
    }
}

/// `may_goto t`: falls through until the counter of the activation is 0.
struct MayGoto<T>(PhantomData<T>);

impl<T: Way> Operation for MayGoto<T> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let left = run.may_goto();
        if *left == 0 {
            return T::take(run);
        }
        *left -= 1;
        run.next()
    }
}

/// A `may_goto` branch; the target is patched later.
pub(crate) fn may_goto(back: bool) -> Op {
    Op::using_run(if back {
        step::<MayGoto<Back>>
    } else {
        step::<MayGoto<Forward>>
    })
}
