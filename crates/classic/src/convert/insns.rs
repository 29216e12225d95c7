//! Constructors of the eBPF instructions of a conversion.

use isa::classic::MEMORY_WORDS;
use isa::ebpf::{self, ByteOrder, Callee, Insn, Reg, Width};

/// The accumulator.
pub(super) const A: Reg = Reg::R0;
/// The index register.
pub(super) const X: Reg = Reg::R7;
/// The context.
pub(super) const CTX: Reg = Reg::R6;
/// Saves `A` while `r0` is in use.
pub(super) const SAVED: Reg = Reg::R8;

/// Stack offset of `M[k]`.
pub(super) const fn memory_offset(k: u32) -> i16 {
    4 * k as i16 - 4 * MEMORY_WORDS as i16
}

/// `dst = M[k]`.
pub(super) const fn load_memory(dst: Reg, k: u32) -> Insn {
    Insn::Load {
        size: ebpf::Size::W,
        signed: false,
        dst,
        base: Reg::R10,
        off: memory_offset(k),
    }
}

/// `M[k] = src`.
pub(super) const fn store_memory(src: Reg, k: u32) -> Insn {
    let src = ebpf::Operand::Reg(src);
    Insn::Store {
        size: ebpf::Size::W,
        base: Reg::R10,
        off: memory_offset(k),
        src,
    }
}

/// `dst` = the field of the context at `off`.
pub(super) const fn load_context(dst: Reg, off: i16) -> Insn {
    Insn::Load {
        size: ebpf::Size::W,
        signed: false,
        dst,
        base: CTX,
        off,
    }
}

/// `dst = dst op imm`.
pub(super) const fn alu_imm(op: ebpf::AluOp, dst: Reg, imm: i32) -> Insn {
    Insn::Alu {
        op,
        width: Width::W32,
        dst,
        src: ebpf::Operand::Imm(imm),
    }
}

/// `dst = dst op src`.
pub(super) const fn alu_reg(op: ebpf::AluOp, dst: Reg, src: Reg) -> Insn {
    Insn::Alu {
        op,
        width: Width::W32,
        dst,
        src: ebpf::Operand::Reg(src),
    }
}

/// `dst = imm`.
pub(super) const fn mov_imm(dst: Reg, imm: i32) -> Insn {
    alu_imm(ebpf::AluOp::Mov, dst, imm)
}

/// `dst = src`.
pub(super) const fn mov32(dst: Reg, src: Reg) -> Insn {
    alu_reg(ebpf::AluOp::Mov, dst, src)
}

/// `dst = src`, 64 bits.
pub(super) const fn mov64(dst: Reg, src: Reg) -> Insn {
    let (op, src) = (ebpf::AluOp::Mov, ebpf::Operand::Reg(src));
    Insn::Alu {
        op,
        width: Width::W64,
        dst,
        src,
    }
}

/// Converts the low two bytes of `dst` to host byte order.
pub(super) const fn from_network_order(dst: Reg) -> Insn {
    Insn::Endian {
        order: ByteOrder::Big,
        size: ebpf::Size::H,
        dst,
    }
}

/// A conditional branch over `off` slots.
pub(super) const fn jump_imm(cond: ebpf::Cond, dst: Reg, imm: i32, off: i16) -> Insn {
    Insn::Jump {
        cond,
        width: Width::W32,
        dst,
        src: ebpf::Operand::Imm(imm),
        off,
    }
}

/// A helper call.
pub(super) const fn call(number: i32) -> Insn {
    Insn::Call(Callee::Helper(number))
}
