//! Marker types: operand locations, widths, operators, conditions.

use isa::ebpf::{AluOp, Cond, Reg, Width};

use crate::op::Run;

/// Location that a value is read from.
pub(crate) trait Read {
    fn read(run: &Run) -> u64;
}

/// Location that a result is written to, by the operation's `dst`.
pub(crate) trait Put {
    fn put(run: &mut Run, value: u64);
}

/// Location that a value is read from, by the operation's `dst`.
pub(crate) trait Get {
    fn get(run: &Run) -> u64;
}

/// `r0`, which is passed from handler to handler.
pub(crate) struct R0;
/// A register other than `r0`.
pub(crate) struct Stored;
/// Any register, resolved at run time: for infrequent operations.
pub(crate) struct Any;
/// The left operand, in a register other than `dst`.
pub(crate) struct Left;
/// The left operand, in `dst`.
pub(crate) struct Same;
/// The result of the previous operation of the same handler.
pub(crate) struct Last;
/// No location: the next operation overwrites the register.
pub(crate) struct Nowhere;
/// The immediate.
pub(crate) struct Imm;

impl Read for R0 {
    #[inline(always)]
    fn read(run: &Run) -> u64 {
        run.r0
    }
}

impl Read for Stored {
    #[inline(always)]
    fn read(run: &Run) -> u64 {
        run.register(run.op().src)
    }
}

impl Read for Any {
    #[inline(always)]
    fn read(run: &Run) -> u64 {
        if run.op().src == Reg::R0.number() {
            R0::read(run)
        } else {
            Stored::read(run)
        }
    }
}

impl Read for Left {
    #[inline(always)]
    fn read(run: &Run) -> u64 {
        run.register(run.op().lhs)
    }
}

impl Read for Same {
    #[inline(always)]
    fn read(run: &Run) -> u64 {
        Stored::get(run)
    }
}

impl Read for Last {
    #[inline(always)]
    fn read(run: &Run) -> u64 {
        run.last
    }
}

impl Read for Imm {
    #[inline(always)]
    fn read(run: &Run) -> u64 {
        run.op().imm()
    }
}

impl Get for R0 {
    #[inline(always)]
    fn get(run: &Run) -> u64 {
        run.r0
    }
}

impl Put for R0 {
    #[inline(always)]
    fn put(run: &mut Run, value: u64) {
        run.r0 = value;
    }
}

impl Get for Stored {
    #[inline(always)]
    fn get(run: &Run) -> u64 {
        run.register(run.op().dst)
    }
}

impl Put for Stored {
    #[inline(always)]
    fn put(run: &mut Run, value: u64) {
        run.set_register(run.op().dst, value);
    }
}

impl Get for Any {
    #[inline(always)]
    fn get(run: &Run) -> u64 {
        if run.op().dst == Reg::R0.number() {
            R0::get(run)
        } else {
            Stored::get(run)
        }
    }
}

impl Put for Any {
    #[inline(always)]
    fn put(run: &mut Run, value: u64) {
        if run.op().dst == Reg::R0.number() {
            R0::put(run, value);
        } else {
            Stored::put(run, value);
        }
    }
}

impl Get for Last {
    #[inline(always)]
    fn get(run: &Run) -> u64 {
        run.last
    }
}

impl Put for Nowhere {
    #[inline(always)]
    fn put(_: &mut Run, _: u64) {}
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
