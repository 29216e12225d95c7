//! Bit operations as functions, for engines that have no instructions for them.

use spec::bits::BitOp;

use crate::{Call, RunContext};

/// The function of an operation: its arguments are `r1` and `r2`.
pub const fn bit_operation(op: BitOp) -> Call {
    match op {
        BitOp::Ffs => ffs,
        BitOp::Ctz => ctz,
        BitOp::Clz => clz,
        BitOp::Fls => fls,
        BitOp::Popcnt => popcnt,
        BitOp::Bitrev => bitrev,
        BitOp::Rol => rol,
        BitOp::Ror => ror,
    }
}

macro_rules! functions {
    ($($name:ident = $op:ident;)*) => {
        $(extern "C" fn $name(
            value: u64,
            count: u64,
            _: u64,
            _: u64,
            _: u64,
            _: &mut RunContext<'_>,
        ) -> u64 {
            BitOp::$op.eval(value, count)
        })*
    };
}

functions! {
    ffs = Ffs;
    ctz = Ctz;
    clz = Clz;
    fls = Fls;
    popcnt = Popcnt;
    bitrev = Bitrev;
    rol = Rol;
    ror = Ror;
}
