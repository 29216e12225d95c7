//! Constructors of the instructions of which sequences are made. Operations and comparisons
//! have 64 bits.

use isa::ebpf::{AluOp, Cond, Imm64, Insn, Operand, Reg, Size, Value64, Width};

/// `dst = dst op src`
pub(crate) fn alu(op: AluOp, dst: Reg, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width: Width::W64,
        dst,
        src,
    }
}

/// `dst += src`
pub(crate) fn add(dst: Reg, src: Reg) -> Insn {
    alu(AluOp::Add, dst, Operand::Reg(src))
}

/// `dst = src`
pub(crate) fn mov(dst: Reg, src: Reg) -> Insn {
    alu(AluOp::Mov, dst, Operand::Reg(src))
}

/// `dst = value`, with the sign extended.
pub(crate) fn mov_imm(dst: Reg, value: i32) -> Insn {
    alu(AluOp::Mov, dst, Operand::Imm(value))
}

/// `dst = value ll`
pub(crate) fn mov_imm64(dst: Reg, value: u64) -> [Insn; 2] {
    let imm = Imm64::Value(Value64::new(value));
    [Insn::LoadImm64 { dst, imm }, Insn::Imm64High]
}

/// `dst = *(size *)(base + offset)`
pub(crate) fn load(dst: Reg, base: Reg, size: Size, offset: usize) -> Insn {
    Insn::Load {
        size,
        signed: false,
        dst,
        base,
        off: offset as i16,
    }
}

/// `if dst cond src goto off`
pub(crate) fn branch(cond: Cond, dst: Reg, src: Operand, off: i16) -> Insn {
    Insn::Jump {
        cond,
        width: Width::W64,
        dst,
        src,
        off,
    }
}
