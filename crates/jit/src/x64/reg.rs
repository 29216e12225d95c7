//! Machine registers and numbers of condition codes.

use crate::codegen::{self, Cc, Register};

/// A general-purpose register, numbered as in the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, clippy::upper_case_acronyms)]
pub(crate) enum Gpr {
    RAX = 0,
    RCX = 1,
    RDX = 2,
    RBX = 3,
    RSP = 4,
    RBP = 5,
    RSI = 6,
    RDI = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
    R12 = 12,
    R13 = 13,
    R14 = 14,
    R15 = 15,
}

impl Register for Gpr {
    const ALL: &'static [Gpr] = &[
        Gpr::RAX,
        Gpr::RCX,
        Gpr::RDX,
        Gpr::RBX,
        Gpr::RSP,
        Gpr::RBP,
        Gpr::RSI,
        Gpr::RDI,
        Gpr::R8,
        Gpr::R9,
        Gpr::R10,
        Gpr::R11,
        Gpr::R12,
        Gpr::R13,
        Gpr::R14,
        Gpr::R15,
    ];

    fn number(self) -> u8 {
        Gpr::number(self)
    }
}

impl Gpr {
    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    /// True if the low byte of the register needs a REX prefix (without one, the numbers
    /// encode `ah` to `bh`).
    pub(super) const fn byte_needs_rex(self) -> bool {
        self.number() >= 4 && self.number() < 8
    }
}

/// An operand in memory.
pub(super) type Mem = codegen::Mem<Gpr>;

/// Scratch register of the generator.
pub(super) const SCRATCH: Gpr = Gpr::R11;

/// A condition code as the low nibble of the opcodes that take one.
pub(super) const fn condition(cc: Cc) -> u8 {
    match cc {
        Cc::Below => 2,
        Cc::AboveEqual => 3,
        Cc::Equal => 4,
        Cc::NotEqual => 5,
        Cc::BelowEqual => 6,
        Cc::Above => 7,
        Cc::Negative => 8,
        Cc::NotNegative => 9,
        Cc::Less => 12,
        Cc::GreaterEqual => 13,
        Cc::LessEqual => 14,
        Cc::Greater => 15,
    }
}
