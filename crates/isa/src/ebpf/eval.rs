//! Semantics of the operations: pure functions on register values.
//!
//! All engines and tests use these functions. They are `const` and always inlined: a call
//! with a constant operation compiles to the machine instructions of that operation.
//!
//! Byte order is little-endian, as of Linux on x86-64. A 32-bit operation reads the low
//! halves of its operands and zeroes the upper half of its result (RFC 9669 section 4.1).
//! No operation can fault: division by zero gives 0, the remainder by zero is the dividend,
//! the most negative number divided by -1 wraps, and a shift count is taken modulo the
//! width.

use super::insn::{AluOp, AtomicOp, ByteOrder, Cond, Operand, Reg, Size, Width};

/// An immediate as a 64-bit operand.
#[inline(always)]
pub const fn imm(imm: i32) -> u64 {
    imm as i64 as u64
}

/// The value of a second operand, where registers hold `regs`.
#[inline(always)]
pub const fn operand(operand: Operand, regs: &[u64; Reg::COUNT]) -> u64 {
    match operand {
        Operand::Reg(reg) => regs[reg.index()],
        Operand::Imm(value) => imm(value),
    }
}

/// `base + off`, wrapping: the address of an access.
#[inline(always)]
pub const fn address(base: u64, off: i16) -> u64 {
    base.wrapping_add_signed(off as i64)
}

/// `a op b`.
#[inline(always)]
pub const fn alu(op: AluOp, width: Width, a: u64, b: u64) -> u64 {
    match width {
        Width::W64 => alu64(op, a, b),
        Width::W32 => alu32(op, a as u32, b as u32) as u64,
    }
}

macro_rules! arithmetic {
    ($name:ident, $unsigned:ident, $signed:ident) => {
        #[inline(always)]
        const fn $name(op: AluOp, a: $unsigned, b: $unsigned) -> $unsigned {
            let (sa, sb) = (a as $signed, b as $signed);
            match op {
                AluOp::Add => a.wrapping_add(b),
                AluOp::Sub => a.wrapping_sub(b),
                AluOp::Mul => a.wrapping_mul(b),
                AluOp::Div | AluOp::SDiv if b == 0 => 0,
                AluOp::Mod | AluOp::SMod if b == 0 => a,
                AluOp::Div => a / b,
                AluOp::SDiv => sa.wrapping_div(sb) as $unsigned,
                AluOp::Mod => a % b,
                AluOp::SMod => sa.wrapping_rem(sb) as $unsigned,
                AluOp::Or => a | b,
                AluOp::And => a & b,
                AluOp::Xor => a ^ b,
                AluOp::Lsh => a.wrapping_shl(b as u32),
                AluOp::Rsh => a.wrapping_shr(b as u32),
                AluOp::Arsh => sa.wrapping_shr(b as u32) as $unsigned,
                AluOp::Mov => b,
            }
        }
    };
}

arithmetic!(alu64, u64, i64);
arithmetic!(alu32, u32, i32);

/// `-a`.
#[inline(always)]
pub const fn neg(width: Width, a: u64) -> u64 {
    match width {
        Width::W64 => a.wrapping_neg(),
        Width::W32 => (a as u32).wrapping_neg() as u64,
    }
}

/// Zero extension of the low bytes of a value.
#[inline(always)]
pub const fn zero_extend(from: Size, value: u64) -> u64 {
    match from {
        Size::B => value as u8 as u64,
        Size::H => value as u16 as u64,
        Size::W => value as u32 as u64,
        Size::DW => value,
    }
}

/// Sign extension of the low bytes of a value.
#[inline(always)]
pub const fn sign_extend(from: Size, value: u64) -> u64 {
    match from {
        Size::B => value as i8 as u64,
        Size::H => value as i16 as u64,
        Size::W => value as i32 as u64,
        Size::DW => value,
    }
}

/// `(sN)value`: the sign-extending move.
#[inline(always)]
pub const fn mov_sx(width: Width, from: Size, value: u64) -> u64 {
    let extended = sign_extend(from, value);
    match width {
        Width::W64 => extended,
        Width::W32 => extended as u32 as u64,
    }
}

/// The register value after a load of `value`.
#[inline(always)]
pub const fn loaded(size: Size, signed: bool, value: u64) -> u64 {
    if signed {
        sign_extend(size, value)
    } else {
        zero_extend(size, value)
    }
}

/// A byte-order instruction.
#[inline(always)]
pub const fn endian(order: ByteOrder, size: Size, value: u64) -> u64 {
    match order {
        ByteOrder::Little => zero_extend(size, value),
        ByteOrder::Big | ByteOrder::Swap => match size {
            Size::B => value as u8 as u64,
            Size::H => (value as u16).swap_bytes() as u64,
            Size::W => (value as u32).swap_bytes() as u64,
            Size::DW => value.swap_bytes(),
        },
    }
}

/// True if `a cond b` holds.
#[inline(always)]
pub const fn compare(cond: Cond, width: Width, a: u64, b: u64) -> bool {
    let (a, b, sa, sb) = match width {
        Width::W64 => (a, b, a as i64, b as i64),
        Width::W32 => (
            a as u32 as u64,
            b as u32 as u64,
            a as i32 as i64,
            b as i32 as i64,
        ),
    };
    match cond {
        Cond::Eq => a == b,
        Cond::Ne => a != b,
        Cond::Set => a & b != 0,
        Cond::Gt => a > b,
        Cond::Ge => a >= b,
        Cond::Lt => a < b,
        Cond::Le => a <= b,
        Cond::SGt => sa > sb,
        Cond::SGe => sa >= sb,
        Cond::SLt => sa < sb,
        Cond::SLe => sa <= sb,
    }
}

/// The new value in memory after an atomic operation on `old`. `expected` is the value of
/// `r0`, which only compare-and-exchange uses. A fetching operation returns `old`,
/// zero-extended.
#[inline(always)]
pub const fn atomic(op: AtomicOp, size: Size, old: u64, src: u64, expected: u64) -> u64 {
    let old = zero_extend(size, old);
    let new = match op {
        AtomicOp::Add { .. } => old.wrapping_add(src),
        AtomicOp::Or { .. } => old | src,
        AtomicOp::And { .. } => old & src,
        AtomicOp::Xor { .. } => old ^ src,
        AtomicOp::Xchg => src,
        AtomicOp::CmpXchg => {
            if old == zero_extend(size, expected) {
                src
            } else {
                old
            }
        }
    };
    zero_extend(size, new)
}
