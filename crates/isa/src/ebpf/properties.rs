//! Algebraic properties of the arithmetic operations and of the conditions of branches, one row for
//! each.
//!
//! The columns are properties that an analysis may assume; `tests/ebpf_properties.rs`
//! compares them with [`eval`](super::eval). Registers that an instruction reads or writes
//! implicitly are columns of the instruction table.

use super::insn::{AluOp, Cond};

/// The halves of an operand that a 64-bit operation reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Halves {
    /// Neither half: the result does not depend on the operand.
    Neither,
    /// The low half only, for all of the result.
    Low,
    /// The low half for the low half of the result, the upper half for the upper half of
    /// the result only.
    Each,
    /// Both halves for either half of the result.
    Both,
}

macro_rules! properties {
    ($($op:ident $divides:literal $shifts:literal $idempotent:literal $dst:ident $src:ident;)*) => {
        impl AluOp {
            /// All operations, in ascending order of discriminant.
            pub const ALL: [AluOp; [$($shifts,)*].len()] = [$(AluOp::$op,)*];

            /// True for divisions and remainders, which have an exception for the divisor 0.
            pub const fn is_division(self) -> bool {
                match self {
                    $(AluOp::$op => $divides,)*
                }
            }

            /// True for shifts, whose count is masked to the width.
            pub const fn is_shift(self) -> bool {
                match self {
                    $(AluOp::$op => $shifts,)*
                }
            }

            /// True if `a op a` is `a`.
            pub const fn is_idempotent(self) -> bool {
                match self {
                    $(AluOp::$op => $idempotent,)*
                }
            }

            /// The halves that the 64-bit operation reads of its destination.
            pub const fn reads_of_dst(self) -> Halves {
                match self {
                    $(AluOp::$op => Halves::$dst,)*
                }
            }

            /// The halves that the 64-bit operation reads of its source.
            pub const fn reads_of_src(self) -> Halves {
                match self {
                    $(AluOp::$op => Halves::$src,)*
                }
            }
        }
    };
}

properties! {
    // operation, division, shift, idempotent, halves read of the destination and of
    // the source
    Add  false false false Each    Each;
    Sub  false false false Each    Each;
    Mul  false false false Each    Each;
    Div  true  false false Both    Both;
    SDiv true  false false Both    Both;
    Mod  true  false false Both    Both;
    SMod true  false false Both    Both;
    Or   false false true  Each    Each;
    And  false false true  Each    Each;
    Xor  false false false Each    Each;
    Lsh  false true  false Each    Low;
    Rsh  false true  false Both    Low;
    Arsh false true  false Both    Low;
    Mov  false false true  Neither Each;
}

macro_rules! conditions {
    ($($cond:ident $inverse:expr, $exchanged:ident $bits:literal $signed:literal $unsigned:ident;)*) => {
        impl Cond {
            /// All conditions, in ascending order of discriminant.
            pub const ALL: [Cond; [$($signed,)*].len()] = [$(Cond::$cond,)*];

            /// The condition that holds exactly where this one does not; `None` if there is none
            /// (`rev_opcode`).
            #[doc(alias = "rev_opcode")]
            pub const fn inverse(self) -> Option<Cond> {
                use Cond::*;
                match self {
                    $($cond => $inverse,)*
                }
            }

            /// The condition of `b` and `a` that holds exactly where this one holds of `a` and `b`
            /// (`flip_opcode`).
            #[doc(alias = "flip_opcode")]
            pub const fn exchanged(self) -> Cond {
                match self {
                    $(Cond::$cond => Cond::$exchanged,)*
                }
            }

            /// True if the condition holds where the operands have a set bit in common.
            pub const fn tests_bits(self) -> bool {
                match self {
                    $(Cond::$cond => $bits,)*
                }
            }

            /// True if the condition orders signed numbers.
            pub const fn is_signed(self) -> bool {
                match self {
                    $(Cond::$cond => $signed,)*
                }
            }

            /// The condition of unsigned numbers that is the same where neither operand is
            /// negative.
            pub const fn unsigned(self) -> Cond {
                match self {
                    $(Cond::$cond => Cond::$unsigned,)*
                }
            }
        }
    };
}

conditions! {
    // condition, inverse, with operands exchanged, of common bits, orders signed numbers,
    // of unsigned numbers
    Eq  Some(Ne),  Eq  false false Eq;
    Ne  Some(Eq),  Ne  false false Ne;
    Set None,      Set true  false Set;
    Gt  Some(Le),  Lt  false false Gt;
    Ge  Some(Lt),  Le  false false Ge;
    Lt  Some(Ge),  Gt  false false Lt;
    Le  Some(Gt),  Ge  false false Le;
    SGt Some(SLe), SLt false true  Gt;
    SGe Some(SLt), SLe false true  Ge;
    SLt Some(SGe), SGt false true  Lt;
    SLe Some(SGt), SGe false true  Le;
}
