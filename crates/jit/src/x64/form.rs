//! Machine instructions of the arithmetic operations.

use isa::ebpf::AluOp;

use crate::codegen::{Alu, Shift};

/// The machine instruction that computes an arithmetic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A move.
    Move,
    /// An instruction of the ADD group.
    Plain(Alu),
    /// A multiplication.
    Multiply,
    /// A division.
    Divide {
        /// True if the operands are signed.
        signed: bool,
        /// True if the result is the remainder.
        remainder: bool,
    },
    /// A shift.
    Shift(Shift),
}

const fn divide(signed: bool, remainder: bool) -> Form {
    Form::Divide { signed, remainder }
}

impl Form {
    /// The form of an operation.
    pub(super) const fn of(op: AluOp) -> Form {
        match op {
            AluOp::Mov => Form::Move,
            AluOp::Add => Form::Plain(Alu::Add),
            AluOp::Sub => Form::Plain(Alu::Sub),
            AluOp::Or => Form::Plain(Alu::Or),
            AluOp::And => Form::Plain(Alu::And),
            AluOp::Xor => Form::Plain(Alu::Xor),
            AluOp::Mul => Form::Multiply,
            AluOp::Div => divide(false, false),
            AluOp::SDiv => divide(true, false),
            AluOp::Mod => divide(false, true),
            AluOp::SMod => divide(true, true),
            AluOp::Lsh => Form::Shift(Shift::Shl),
            AluOp::Rsh => Form::Shift(Shift::Shr),
            AluOp::Arsh => Form::Shift(Shift::Sar),
        }
    }
}
