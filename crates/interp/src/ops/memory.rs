//! Loads and stores; the program's evidence covers their addresses.
//!
//! Other threads may access values of maps at the same time, so that all are relaxed atomic
//! accesses: of a whole number where it is aligned, otherwise of its bytes. Numbers are little-endian
//! in memory on every machine.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicU8, AtomicU16, AtomicU32, AtomicU64,
};

use isa::ebpf::{Operand, Reg, Size, eval};

use super::operand::{Get, Put, Read};
use super::{choose, choose_reg, choose_source};
use crate::op::{Dispatch, Flow, Op, Operation, Run, Step, step};

/// A size and signedness as a type.
pub(super) trait Cell {
    /// # Safety
    /// `at` is readable for the size.
    unsafe fn load(at: u64) -> u64;
    /// # Safety
    /// `at` is writable for the size.
    unsafe fn store(at: u64, value: u64);
}

macro_rules! cells {
    ($($name:ident = $type:ty, $atomic:ty, $extended:ty;)*) => { $(
        pub(super) struct $name;
        impl Cell for $name {
            #[inline(always)]
            unsafe fn load(at: u64) -> u64 {
                let at = ptr::with_exposed_provenance::<$atomic>(at as usize);
                // SAFETY: passed on to the caller; alignment is checked.
                let number = unsafe {
                    if at.is_aligned() {
                        <$type>::from_le((*at).load(Relaxed))
                    } else {
                        <$type>::from_le_bytes(load_bytes(at.cast()))
                    }
                };
                number as $extended as u64
            }

            #[inline(always)]
            unsafe fn store(at: u64, value: u64) {
                let at = ptr::with_exposed_provenance_mut::<$atomic>(at as usize);
                // SAFETY: passed on to the caller; alignment is checked.
                unsafe {
                    if at.is_aligned() {
                        (*at).store((value as $type).to_le(), Relaxed);
                    } else {
                        store_bytes(at.cast(), (value as $type).to_le_bytes());
                    }
                }
            }
        }
    )* };
}

cells! {
    U8 = u8, AtomicU8, u64;
    U16 = u16, AtomicU16, u64;
    U32 = u32, AtomicU32, u64;
    U64 = u64, AtomicU64, u64;
    I8 = i8, AtomicI8, i64;
    I16 = i16, AtomicI16, i64;
    I32 = i32, AtomicI32, i64;
}

/// Loads a number that is not aligned.
///
/// # Safety
/// So many bytes are readable.
#[cold]
#[inline(never)]
unsafe fn load_bytes<const N: usize>(at: *const AtomicU8) -> [u8; N] {
    // SAFETY: passed on to the caller.
    std::array::from_fn(|index| unsafe { (*at.add(index)).load(Relaxed) })
}

/// Stores a number that is not aligned.
///
/// # Safety
/// So many bytes are writable.
#[cold]
#[inline(never)]
unsafe fn store_bytes<const N: usize>(at: *const AtomicU8, bytes: [u8; N]) {
    for (index, byte) in bytes.into_iter().enumerate() {
        // SAFETY: passed on to the caller.
        unsafe { (*at.add(index)).store(byte, Relaxed) };
    }
}

/// `dst = *(size *)(base + off)`, followed by `N`.
pub(super) struct Load<C, D, B, N = Dispatch>(PhantomData<(C, D, B, N)>);

impl<C: Cell, D: Put, B: Read, N: Operation> Operation for Load<C, D, B, N> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let at = eval::address(B::read(&run), run.op().off);
        // SAFETY: the program's evidence upholds the access.
        let value = unsafe { C::load(at) };
        D::put(&mut run, value);
        run.last = value;
        N::perform(run.forward())
    }
}

/// `*(size *)(base + off) = src`.
struct Store<C, B, S>(PhantomData<(C, B, S)>);

impl<C: Cell, B: Get, S: Read> Operation for Store<C, B, S> {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let at = eval::address(B::get(&run), run.op().off);
        // SAFETY: the program's evidence upholds the access.
        unsafe { C::store(at, S::read(&run)) };
        run.next()
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
    ], choose_reg!(dst, D, choose_reg!(base, B, step::<Load<C, D, B>> as Step)));
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
    ], choose_reg!(base, B, choose_source!(src, S, step::<Store<C, B, S>> as Step)));
    Op {
        off,
        ..Op::new(step).dst(base).operand(src)
    }
}
