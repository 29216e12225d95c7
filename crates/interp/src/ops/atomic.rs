//! Atomic instructions: read-modify-write, load-acquire, store-release.
//!
//! They use the host's atomic instructions. An operand that is not aligned to its size is
//! accessed non-atomically, because Rust has no unaligned atomics; Linux rejects programs
//! with such operands.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use isa::ebpf::{AtomicOp, Reg, Size, eval};

use super::choose;
use super::operand::{Any, Get, Put, Read};
use crate::op::{Flow, Op, Operation, Run, Step, step};

/// A size as a type.
trait Cell {
    /// # Safety
    /// `at` is readable for the size.
    unsafe fn load_acquire(at: u64) -> u64;
    /// # Safety
    /// `at` is writable for the size.
    unsafe fn store_release(at: u64, value: u64);
}

/// A size of read-modify-write operations.
trait Word: Cell {
    /// Performs the operation; returns the old value.
    ///
    /// # Safety
    /// `at` is readable and writable for the size.
    unsafe fn modify(op: AtomicOp, at: u64, src: u64, expected: u64) -> u64;
}

macro_rules! cells {
    ($($name:ident = $type:ty, $atomic:ty;)*) => { $(
        struct $name;
        impl Cell for $name {
            #[inline(always)]
            unsafe fn load_acquire(at: u64) -> u64 {
                let at = ptr::with_exposed_provenance_mut::<$type>(at as usize);
                // SAFETY: upheld by the caller; alignment is checked.
                unsafe {
                    let number = match at.is_aligned() {
                        true => <$atomic>::from_ptr(at).load(Acquire),
                        false => at.read_unaligned(),
                    };
                    <$type>::from_le(number) as u64
                }
            }

            #[inline(always)]
            unsafe fn store_release(at: u64, value: u64) {
                let at = ptr::with_exposed_provenance_mut::<$type>(at as usize);
                let number = (value as $type).to_le();
                // SAFETY: upheld by the caller; alignment is checked.
                unsafe {
                    match at.is_aligned() {
                        true => <$atomic>::from_ptr(at).store(number, Release),
                        false => at.write_unaligned(number),
                    }
                }
            }
        }
    )* };
}

macro_rules! words {
    ($($name:ident = $type:ty, $atomic:ty, $size:expr;)*) => { $(
        impl Word for $name {
            #[inline(always)]
            unsafe fn modify(op: AtomicOp, at: u64, src: u64, expected: u64) -> u64 {
                let at = ptr::with_exposed_provenance_mut::<$type>(at as usize);
                if !at.is_aligned() {
                    // SAFETY: passed on to the caller.
                    unsafe {
                        let old = <$type>::from_le(at.read_unaligned()) as u64;
                        let new = eval::atomic(op, $size, old, src, expected);
                        at.write_unaligned((new as $type).to_le());
                        return old;
                    }
                }
                // SAFETY: upheld by the caller; it is aligned.
                let cell = unsafe { <$atomic>::from_ptr(at) };
                let order = |fetch| if fetch { SeqCst } else { Relaxed };
                let number = src as $type;
                let src = number.to_le();
                u64::from(<$type>::from_le(match op {
                    // The machine adds in its own byte order.
                    AtomicOp::Add { fetch } if cfg!(target_endian = "big") => {
                        let add = |old| Some(<$type>::from_le(old).wrapping_add(number).to_le());
                        let (Ok(old) | Err(old)) = cell.fetch_update(order(fetch), Relaxed, add);
                        old
                    }
                    AtomicOp::Add { fetch } => cell.fetch_add(src, order(fetch)),
                    AtomicOp::Or { fetch } => cell.fetch_or(src, order(fetch)),
                    AtomicOp::And { fetch } => cell.fetch_and(src, order(fetch)),
                    AtomicOp::Xor { fetch } => cell.fetch_xor(src, order(fetch)),
                    AtomicOp::Xchg => cell.swap(src, SeqCst),
                    AtomicOp::CmpXchg => {
                        let (Ok(old) | Err(old)) =
                            cell.compare_exchange((expected as $type).to_le(), src, SeqCst, SeqCst);
                        old
                    }
                }))
            }
        }
    )* };
}

cells! {
    U8 = u8, AtomicU8;
    U16 = u16, AtomicU16;
    U32 = u32, AtomicU32;
    U64 = u64, AtomicU64;
}

words! {
    U32 = u32, AtomicU32, Size::W;
    U64 = u64, AtomicU64, Size::DW;
}

/// A read-modify-write operation as a type.
trait Change {
    const OP: AtomicOp;
}

struct Add<const FETCH: bool>;
struct Or<const FETCH: bool>;
struct And<const FETCH: bool>;
struct Xor<const FETCH: bool>;
struct Exchange;
struct CompareExchange;

impl<const FETCH: bool> Change for Add<FETCH> {
    const OP: AtomicOp = AtomicOp::Add { fetch: FETCH };
}
impl<const FETCH: bool> Change for Or<FETCH> {
    const OP: AtomicOp = AtomicOp::Or { fetch: FETCH };
}
impl<const FETCH: bool> Change for And<FETCH> {
    const OP: AtomicOp = AtomicOp::And { fetch: FETCH };
}
impl<const FETCH: bool> Change for Xor<FETCH> {
    const OP: AtomicOp = AtomicOp::Xor { fetch: FETCH };
}
impl Change for Exchange {
    const OP: AtomicOp = AtomicOp::Xchg;
}
impl Change for CompareExchange {
    const OP: AtomicOp = AtomicOp::CmpXchg;
}

/// Atomic read-modify-write of `*(size *)(src + off)` with the value of `dst`.
struct Modify<K, C>(PhantomData<(K, C)>);

impl<K: Change, C: Word> Operation for Modify<K, C> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let at = eval::address(Any::read(&run), run.op().off);
        // SAFETY: the program's evidence upholds the access.
        let old = unsafe { C::modify(K::OP, at, Any::get(&run), run.r0) };
        if K::OP.fetches_into_src() {
            Any::put(&mut run, old);
        }
        if K::OP.fetches_into_r0() {
            run.r0 = old;
        }
        run.next()
    }
}

/// An atomic read-modify-write instruction on `*(size *)(base + off)`.
pub(crate) fn modify(op: AtomicOp, size: Size, base: Reg, off: i16, src: Reg) -> Op {
    let step = choose!(op, K in [
        AtomicOp::Add { fetch: false } => Add<false>,
        AtomicOp::Add { fetch: true } => Add<true>,
        AtomicOp::Or { fetch: false } => Or<false>,
        AtomicOp::Or { fetch: true } => Or<true>,
        AtomicOp::And { fetch: false } => And<false>,
        AtomicOp::And { fetch: true } => And<true>,
        AtomicOp::Xor { fetch: false } => Xor<false>,
        AtomicOp::Xor { fetch: true } => Xor<true>,
        AtomicOp::Xchg => Exchange,
        AtomicOp::CmpXchg => CompareExchange,
    ], match size {
        Size::DW => step::<Modify<K, U64>> as Step,
        _ => step::<Modify<K, U32>> as Step,
    });
    at_address(step, src, base, off)
}

/// `dst = load_acquire(src + off)`.
struct Load<C>(PhantomData<C>);

impl<C: Cell> Operation for Load<C> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let at = eval::address(Any::read(&run), run.op().off);
        // SAFETY: the program's evidence upholds the access.
        let value = unsafe { C::load_acquire(at) };
        Any::put(&mut run, value);
        run.next()
    }
}

/// `store_release(src + off, dst)`.
struct Store<C>(PhantomData<C>);

impl<C: Cell> Operation for Store<C> {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let at = eval::address(Any::read(&run), run.op().off);
        // SAFETY: the program's evidence upholds the access.
        unsafe { C::store_release(at, Any::get(&run)) };
        run.next()
    }
}

macro_rules! choose_cell {
    ($size:expr, $operation:ident) => {
        choose!($size, C in [
            Size::B => U8,
            Size::H => U16,
            Size::W => U32,
            Size::DW => U64,
        ], step::<$operation<C>> as Step)
    };
}

/// `dst = load_acquire((size *)(base + off))`.
pub(crate) fn load_acquire(size: Size, dst: Reg, base: Reg, off: i16) -> Op {
    at_address(choose_cell!(size, Load), dst, base, off)
}

/// `store_release((size *)(base + off), src)`.
pub(crate) fn store_release(size: Size, base: Reg, off: i16, src: Reg) -> Op {
    at_address(choose_cell!(size, Store), src, base, off)
}

/// The operation of an atomic access: `dst` is the register of the value, for loads and
/// stores.
fn at_address(step: Step, value: Reg, base: Reg, off: i16) -> Op {
    Op {
        off,
        ..Op::new(step).dst(value).src(base)
    }
}
