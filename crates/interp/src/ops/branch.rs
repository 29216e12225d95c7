//! Branches. All of them test and fall through.

use isa::ebpf::{Cond, Operand, Reg, Width, eval};
use vm::{Machine, Surroundings};

use super::operand::{Bits, Condition, Read, Target};
use super::{choose_cond, choose_reg, choose_source, choose_width};
use crate::op::{Flow, Op, Step, finish, go};

/// `if dst cond src goto t`.
pub(super) unsafe fn jump<C: Condition, W: Bits, D: Target, S: Read>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe {
        if eval::compare(C::COND, W::WIDTH, D::get(&*op, m, r0), S::read(&*op, m, r0)) {
            go!(op.offset((*op).t as isize), m, data, len, r0, world)
        }
        go!(op.add(1), m, data, len, r0, world)
    }
}

/// A conditional branch; the target is filled in later.
pub(crate) fn conditional(cond: Cond, width: Width, dst: Reg, src: Operand) -> Op {
    let step = choose_cond!(
        cond,
        C,
        choose_width!(
            width,
            W,
            choose_reg!(dst, D, choose_source!(src, S, jump::<C, W, D, S> as Step))
        )
    );
    Op::new(step).dst(dst).operand(src)
}

/// Two 32-bit comparisons of one register with constants:
/// `if dst C1 a goto t; if dst C2 b goto u`.
pub(super) unsafe fn jump_pair<C1: Condition, C2: Condition, D: Target>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe {
        let value = D::get(&*op, m, r0);
        if eval::compare(C1::COND, Width::W32, value, u64::from((*op).a)) {
            go!(op.offset((*op).t as isize), m, data, len, r0, world)
        }
        if eval::compare(C2::COND, Width::W32, value, u64::from((*op).b)) {
            go!(op.offset((*op).u as isize), m, data, len, r0, world)
        }
        go!(op.add(1), m, data, len, r0, world)
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
            choose_reg!(dst, D, jump_pair::<C1, C2, D> as Step)
        )
    );
    Op {
        a: first.1 as u32,
        b: second.1 as u32,
        ..Op::new(step).dst(dst)
    }
}

/// What a chain of comparisons `if w == key goto target` looks up.
pub(crate) struct Table {
    /// The smallest key.
    pub first: u32,
    /// Keys in ascending order; empty where `targets` is indexed directly.
    pub keys: Box<[u32]>,
    /// Targets in operations from the look-up, by position.
    pub targets: Box<[i32]>,
    /// Where a value that is no key goes.
    pub default: i32,
}

/// Looks `value - first` up directly.
unsafe fn switch_dense<D: Target>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`; `wide` is the address of a table that the
    // code owns.
    unsafe {
        let table = &*table_of(op);
        let index = (D::get(&*op, m, r0) as u32).wrapping_sub(table.first) as usize;
        let target = table.targets.get(index).copied().unwrap_or(table.default);
        go!(op.offset(target as isize), m, data, len, r0, world)
    }
}

/// Finds the value among sorted keys.
unsafe fn switch_sorted<D: Target>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: as in `switch_dense`.
    unsafe {
        let table = &*table_of(op);
        let target = match table.keys.binary_search(&(D::get(&*op, m, r0) as u32)) {
            Ok(index) => table.targets[index],
            Err(_) => table.default,
        };
        go!(op.offset(target as isize), m, data, len, r0, world)
    }
}

unsafe fn table_of(op: *const Op) -> *const Table {
    // SAFETY: the contract of `Step`.
    std::ptr::with_exposed_provenance(unsafe { (*op).wide() } as usize)
}

/// A look-up in a table, directly or among sorted keys; the table is filled in
/// later.
pub(crate) fn switch(dst: Reg, dense: bool) -> Op {
    let step = if dense {
        choose_reg!(dst, D, switch_dense::<D> as Step)
    } else {
        choose_reg!(dst, D, switch_sorted::<D> as Step)
    };
    Op::new(step).dst(dst)
}

/// Gives a look-up its table, which must outlive it and stay where it is.
pub(crate) fn with_table(op: Op, table: &Table) -> Op {
    op.with_wide(std::ptr::from_ref(table).expose_provenance() as u64)
}

unsafe fn jump_always(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe { go!(op.offset((*op).t as isize), m, data, len, r0, world) }
}

/// An unconditional branch; the target is filled in later.
pub(crate) fn always() -> Op {
    Op::new(jump_always)
}

unsafe fn spend(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe {
        (*m).budget -= 1;
        if (*m).budget < 0 {
            finish!(m, 0)
        }
        go!(op.add(1), m, data, len, r0, world)
    }
}

/// Stands before every backward branch, so that no run is endless.
pub(crate) fn spend_budget() -> Op {
    Op::new(spend)
}
