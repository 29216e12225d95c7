//! Loads and stores at addresses that the program's evidence vouches for.

use std::ptr;

use isa::ebpf::{Operand, Reg, Size};
use vm::{Machine, Surroundings};

use super::operand::{Read, Target, register};
use super::{choose, choose_reg, choose_source};
use crate::op::{Flow, Op, Step, go};

/// A size and signedness as a type.
trait Cell {
    /// # Safety
    /// `at` is readable for the size.
    unsafe fn load(at: u64) -> u64;
    /// # Safety
    /// `at` is writable for the size.
    unsafe fn store(at: u64, value: u64);
}

macro_rules! cells {
    ($($name:ident = $type:ty, $extended:ty;)*) => { $(
        struct $name;
        impl Cell for $name {
            #[inline(always)]
            unsafe fn load(at: u64) -> u64 {
                let at = ptr::with_exposed_provenance::<$type>(at as usize);
                // SAFETY: passed on to the caller.
                unsafe { at.read_unaligned() as $extended as u64 }
            }

            #[inline(always)]
            unsafe fn store(at: u64, value: u64) {
                let at = ptr::with_exposed_provenance_mut::<$type>(at as usize);
                // SAFETY: passed on to the caller.
                unsafe { at.write_unaligned(value as $type) }
            }
        }
    )* };
}

cells! {
    U8 = u8, u64;
    U16 = u16, u64;
    U32 = u32, u64;
    U64 = u64, u64;
    I8 = i8, i64;
    I16 = i16, i64;
    I32 = i32, i64;
}

/// The base register of a load, kept in `src`; of a store, in `dst`.
#[inline(always)]
unsafe fn address(base: u64, op: &Op) -> u64 {
    base.wrapping_add(op.off as i64 as u64)
}

unsafe fn load_cell<C: Cell, D: Target, B: Read>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    mut r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`: the evidence upholds the access.
    unsafe {
        let value = C::load(address(B::read(&*op, m, r0), &*op));
        D::put(&*op, m, &mut r0, value);
        go!(op.add(1), m, data, len, r0, world)
    }
}

unsafe fn store_cell<C: Cell, B: Target, S: Read>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`: the evidence upholds the access.
    unsafe {
        C::store(address(B::get(&*op, m, r0), &*op), S::read(&*op, m, r0));
        go!(op.add(1), m, data, len, r0, world)
    }
}

/// `dst = *(size *)(base + off)`.
pub(crate) fn load(size: Size, signed: bool, dst: Reg, base: Reg, off: i16) -> Op {
    let step = choose!((size, signed), C in [
        (Size::B, false) => U8,
        (Size::H, false) => U16,
        (Size::W, false) => U32,
        (Size::DW, _) => U64,
        (Size::B, true) => I8,
        (Size::H, true) => I16,
        (Size::W, true) => I32,
    ], choose_reg!(dst, D, choose_reg!(base, B, load_cell::<C, D, B> as Step)));
    Op {
        off,
        ..Op::new(step).dst(dst).src(base)
    }
}

/// `*(size *)(base + off) = src`.
pub(crate) fn store(size: Size, base: Reg, off: i16, src: Operand) -> Op {
    let step = choose!(size, C in [
        Size::B => U8,
        Size::H => U16,
        Size::W => U32,
        Size::DW => U64,
    ], choose_reg!(base, B, choose_source!(src, S, store_cell::<C, B, S> as Step)));
    Op {
        off,
        ..Op::new(step).dst(base).operand(src)
    }
}

/// The arguments of a call: `r1` to `r5`.
#[inline(always)]
pub(super) unsafe fn arguments(m: *mut Machine) -> [u64; 5] {
    // SAFETY: `m` is the machine of the run (contract of `Step`).
    unsafe { [1, 2, 3, 4, 5].map(|number| *register(m, number)) }
}
