//! Packet loads of classic BPF in verified programs: calls of a function of the host, as they
//! follow a packet that helpers have moved. A load outside the packet returns 0 from its
//! function.

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Width};

use crate::LoweredCall;
use crate::construct::{branch, mov, mov_imm};

/// Replacement of an instruction, if it is a packet load. The context is in `r6`,
/// as the verifier demands; the load keeps `r6` to `r9` only.
pub(crate) fn replace(insn: Insn) -> Option<Vec<Insn>> {
    let (size, index, imm) = match insn {
        Insn::PacketAbs { size, imm } => (size, None, imm),
        Insn::PacketInd { size, src, imm } => (size, Some(src), imm),
        _ => return None,
    };
    let mut insns = Vec::new();
    match index {
        // The index may be in a register that is set below.
        Some(index) => {
            insns.push(alu32(AluOp::Mov, Reg::R2, Operand::Reg(index)));
            insns.push(alu32(AluOp::Add, Reg::R2, Operand::Imm(imm)));
        }
        None => insns.push(mov_imm(Reg::R2, imm)),
    }
    insns.extend([
        mov(Reg::R1, Reg::R6),
        mov_imm(Reg::R3, size.bytes() as i32),
        LoweredCall::PacketLoad.insn(),
        // What is loaded has 32 bits.
        branch(Cond::SGe, Reg::R0, Operand::Imm(0), 2),
        mov_imm(Reg::R0, 0),
        Insn::Exit,
    ]);
    Some(insns)
}

/// `dst = dst op src` on 32 bits.
fn alu32(op: AluOp, dst: Reg, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width: Width::W32,
        dst,
        src,
    }
}
