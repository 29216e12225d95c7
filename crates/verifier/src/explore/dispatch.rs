//! One instruction: decides which module checks it (`do_check_insn`).

use isa::ebpf::{Fault, Insn, RawInsn};

use crate::walk::{Outcome, Walk};
use crate::{Result, alu, call, flow, mem, refuse, resolve};

/// Checks the instruction that the walk stands at.
pub(super) fn check_insn(walk: &mut Walk<'_>) -> Result<Outcome> {
    let insn = walk.env.insns[walk.insn_idx as usize];
    match insn {
        Insn::Alu { .. }
        | Insn::Neg { .. }
        | Insn::MovSx { .. }
        | Insn::Endian { .. }
        | Insn::Cast { .. } => {
            alu::check_alu_op(walk, insn)?;
            Ok(Outcome::Next)
        }
        Insn::LoadImm64 { .. } | Insn::Imm64High => {
            resolve::check_ld_imm(walk, insn)?;
            Ok(Outcome::NextWide)
        }
        Insn::Load { .. }
        | Insn::Store { .. }
        | Insn::Atomic { .. }
        | Insn::LoadAcquire { .. }
        | Insn::StoreRelease { .. } => {
            mem::check_mem_insn(walk, insn)?;
            Ok(Outcome::Next)
        }
        Insn::PacketAbs { .. } | Insn::PacketInd { .. } => mem::check_ld_abs(walk, insn),
        Insn::Jump { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::GotoReg { .. }
        | Insn::MayGoto { .. }
        | Insn::CallReg { .. }
        | Insn::Exit => {
            walk.explorer.jmps_processed += 1;
            flow::check_flow(walk, insn)
        }
        Insn::Call(callee) => {
            walk.explorer.jmps_processed += 1;
            call::check_call(walk, callee)
        }
        Insn::Invalid { raw, fault } => Err(refuse_invalid(walk, raw, fault)),
    }
}

/// The kernel's words for an instruction that does not decode.
fn refuse_invalid(walk: &mut Walk<'_>, raw: RawInsn, fault: Fault) -> crate::Stop {
    let code = raw.code;
    match fault {
        Fault::UnknownOpcode => refuse!(walk, EINVAL, Encoding, "unknown opcode {code:02x}"),
        Fault::RegisterOutOfRange => {
            let (dst, src) = (raw.regs & 15, raw.regs >> 4);
            let number = if src > 10 { src } else { dst };
            refuse!(walk, EINVAL, Encoding, "R{number} is invalid")
        }
        Fault::BrokenImm64 => refuse!(walk, EINVAL, Encoding, "invalid bpf_ld_imm64 insn"),
        Fault::ReservedField => {
            let class = code & 7;
            let name = match (class, code & 0xf0) {
                (0x05 | 0x06, 0x80) => "BPF_CALL",
                (0x05 | 0x06, 0x90) => "BPF_EXIT",
                (0x05 | 0x06, 0x00) => "BPF_JA",
                (0x05 | 0x06, _) => "BPF_JMP/JMP32",
                (0x02, _) => "BPF_ST",
                (0x03, _) => "BPF_STX",
                (0x04 | 0x07, 0x80) => "BPF_NEG",
                (0x04 | 0x07, 0xd0) => "BPF_END",
                (0x04 | 0x07, 0xb0) => "BPF_MOV",
                (0x04 | 0x07, _) => "BPF_ALU",
                _ => "BPF_LDX",
            };
            refuse!(walk, EINVAL, Encoding, "{name} uses reserved fields")
        }
    }
}
