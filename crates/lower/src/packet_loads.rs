//! Packet loads of classic BPF in verified programs: calls of a function of the host, as they
//! follow a packet that helpers have moved. A load outside the packet returns 0 from its
//! function.

use isa::ebpf::{AluOp, Callee, Cond, Insn, Operand, Reg, Width};
use vm::{Call, load_from_packet};

/// Number of the function, as the number of a helper.
const LOAD_FROM_PACKET: i32 = super::passes::FIRST_FUNCTION - 3;

/// The function of the host that a number stands for.
pub(crate) fn call(number: i32) -> Option<Call> {
    (number == LOAD_FROM_PACKET).then_some(load_from_packet)
}

/// What takes the place of an instruction, if it is a packet load. The context is in `r6`,
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
            insns.push(alu(AluOp::Mov, Width::W32, Reg::R2, Operand::Reg(index)));
            insns.push(alu(AluOp::Add, Width::W32, Reg::R2, Operand::Imm(imm)));
        }
        None => insns.push(set(Reg::R2, imm)),
    }
    insns.extend([
        alu(AluOp::Mov, Width::W64, Reg::R1, Operand::Reg(Reg::R6)),
        set(Reg::R3, size.bytes() as i32),
        Insn::Call(Callee::Helper(LOAD_FROM_PACKET)),
        // What is loaded has 32 bits.
        Insn::Jump {
            cond: Cond::SGe,
            width: Width::W64,
            dst: Reg::R0,
            src: Operand::Imm(0),
            off: 2,
        },
        set(Reg::R0, 0),
        Insn::Exit,
    ]);
    Some(insns)
}

fn set(dst: Reg, imm: i32) -> Insn {
    alu(AluOp::Mov, Width::W64, dst, Operand::Imm(imm))
}

fn alu(op: AluOp, width: Width, dst: Reg, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width,
        dst,
        src,
    }
}
