//! Marker types: where operands live, widths, operations, conditions.

use isa::ebpf::{AluOp, Cond, Width};
use vm::Machine;

use crate::op::Op;

/// Where a value is read from.
pub(crate) trait Read {
    /// # Safety
    /// `m` is the machine of the run.
    unsafe fn read(op: &Op, m: *mut Machine, r0: u64) -> u64;
}

/// A register that is read and written through an operation's `dst`.
pub(crate) trait Target {
    /// # Safety
    /// `m` is the machine of the run.
    unsafe fn get(op: &Op, m: *mut Machine, r0: u64) -> u64;
    /// # Safety
    /// `m` is the machine of the run.
    unsafe fn put(op: &Op, m: *mut Machine, r0: &mut u64, value: u64);
}

/// `r0`, which travels from operation to operation.
pub(crate) struct R0;
/// Any other register.
pub(crate) struct Stored;
/// The immediate.
pub(crate) struct Imm;

/// The stored register of that number.
///
/// # Safety
/// `m` is the machine of the run; `number` is a register's (operations are
/// made from `Reg`s only).
#[inline(always)]
pub(crate) unsafe fn register(m: *mut Machine, number: u8) -> *mut u64 {
    // SAFETY: the caller upholds both.
    unsafe { (&raw mut (*m).regs).cast::<u64>().add(number as usize) }
}

impl Read for R0 {
    #[inline(always)]
    unsafe fn read(_: &Op, _: *mut Machine, r0: u64) -> u64 {
        r0
    }
}

impl Read for Stored {
    #[inline(always)]
    unsafe fn read(op: &Op, m: *mut Machine, _: u64) -> u64 {
        // SAFETY: passed on to the caller.
        unsafe { *register(m, op.src) }
    }
}

impl Read for Imm {
    #[inline(always)]
    unsafe fn read(op: &Op, _: *mut Machine, _: u64) -> u64 {
        op.imm()
    }
}

impl Target for R0 {
    #[inline(always)]
    unsafe fn get(_: &Op, _: *mut Machine, r0: u64) -> u64 {
        r0
    }

    #[inline(always)]
    unsafe fn put(_: &Op, _: *mut Machine, r0: &mut u64, value: u64) {
        *r0 = value;
    }
}

impl Target for Stored {
    #[inline(always)]
    unsafe fn get(op: &Op, m: *mut Machine, _: u64) -> u64 {
        // SAFETY: passed on to the caller.
        unsafe { *register(m, op.dst) }
    }

    #[inline(always)]
    unsafe fn put(op: &Op, m: *mut Machine, _: &mut u64, value: u64) {
        // SAFETY: passed on to the caller.
        unsafe { *register(m, op.dst) = value }
    }
}

/// A width as a type.
pub(crate) trait Bits {
    const WIDTH: Width;
}

/// An arithmetic operation as a type.
pub(crate) trait Arithmetic {
    const OP: AluOp;
}

/// A condition as a type.
pub(crate) trait Condition {
    const COND: Cond;
}

macro_rules! markers {
    ($trait:ident, $constant:ident: $type:ident = $($name:ident)*) => { $(
        pub(crate) struct $name;
        impl $trait for $name {
            const $constant: $type = $type::$name;
        }
    )* };
}

markers!(Bits, WIDTH: Width = W32 W64);
markers!(Arithmetic, OP: AluOp =
    Add Sub Mul Div SDiv Mod SMod Or And Xor Lsh Rsh Arsh Mov);
markers!(Condition, COND: Cond = Eq Ne Set Gt Ge Lt Le SGt SGe SLt SLe);
