//! Bit operations that no processor has as one instruction.

use isa::ebpf::{AluOp, ByteOrder, Insn, Operand, Reg, Size};
use spec::bits::BitOp;

use crate::LoweredCall;
use crate::construct::{alu, mov, mov_imm64};

/// Replacement of a call, if it reverses bits: bits of pairs, pairs of nibbles and
/// nibbles of bytes are exchanged, then the bytes. Calls clobber `r1` to `r5`, so that two of
/// them hold what is between.
pub(super) fn expand(insn: Insn) -> Option<Vec<Insn>> {
    const STEPS: [(u64, i32); 3] = [
        (0x5555_5555_5555_5555, 1),
        (0x3333_3333_3333_3333, 2),
        (0x0f0f_0f0f_0f0f_0f0f, 4),
    ];
    if insn != LoweredCall::Bits(BitOp::Bitrev).insn() {
        return None;
    }
    let mut insns = vec![mov(Reg::R0, Reg::R1)];
    for (mask, count) in STEPS {
        insns.extend([
            mov(Reg::R2, Reg::R0),
            alu(AluOp::Rsh, Reg::R2, Operand::Imm(count)),
        ]);
        insns.extend(mov_imm64(Reg::R3, mask));
        insns.extend([
            alu(AluOp::And, Reg::R2, Operand::Reg(Reg::R3)),
            alu(AluOp::And, Reg::R0, Operand::Reg(Reg::R3)),
            alu(AluOp::Lsh, Reg::R0, Operand::Imm(count)),
            alu(AluOp::Or, Reg::R0, Operand::Reg(Reg::R2)),
        ]);
    }
    insns.push(Insn::Endian {
        order: ByteOrder::Swap,
        size: Size::DW,
        dst: Reg::R0,
    });
    Some(insns)
}
