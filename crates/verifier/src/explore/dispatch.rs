//! One instruction: decides which module checks it (`do_check_insn`).

use isa::ebpf::{AddrSpaceCast, Fault, Field, Insn, RawInsn, Reg, Row};

use crate::walk::{Outcome, RegArg, Walk};
use crate::{Result, Stop, alu, call, flow, mem, refuse, resolve};

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
        Insn::Invalid { raw, fault } => {
            let is_jump = matches!(raw.code & 7, JMP | JMP32);
            walk.explorer.jmps_processed += u32::from(is_jump);
            Err(refuse_invalid(walk, raw, fault))
        }
    }
}

/// The refusal of an instruction that does not decode, in the kernel's words and order:
/// a conditional jump reads its first register before its fields are looked at, a load
/// from the packet needs a program type with packets.
fn refuse_invalid(walk: &mut Walk<'_>, raw: RawInsn, fault: Fault) -> Stop {
    let RawInsn { code, imm, .. } = raw;
    match fault {
        Fault::UnknownOpcode => refuse!(walk, EINVAL, Encoding, "unknown opcode {code:02x}"),
        Fault::RegisterOutOfRange => {
            let (dst, src) = (raw.regs & 15, raw.regs >> 4);
            let stop = match is_branch(code) {
                true => Ok(()),
                false => check_before_fields(walk, raw),
            };
            if let Err(stop) = stop {
                return stop;
            }
            let reads_src = Row::with_code(code).any(|row| row.src == Field::Any);
            let order = match is_branch(code) {
                true => [Some(dst), Some(src)],
                false => [reads_src.then_some(src), Some(dst)],
            };
            for number in order.into_iter().flatten() {
                let Some(reg) = Reg::new(number) else {
                    return refuse!(walk, EINVAL, Encoding, "R{number} is invalid");
                };
                if let Err(stop) = walk.check_reg_arg(reg, RegArg::Src) {
                    return stop;
                }
            }
            Stop::Bug(format!("{raw:?} names no register beyond r10"))
        }
        Fault::BrokenImm64 => refuse!(walk, EINVAL, Encoding, "invalid bpf_ld_imm64 insn"),
        Fault::ReservedField => {
            if let Err(stop) = check_before_fields(walk, raw) {
                return stop;
            }
            match (code & 7, code & 0xf0) {
                (JMP | JMP32, 0xe0) => {
                    refuse!(walk, EINVAL, Encoding, "invalid may_goto imm {imm}")
                }
                (STX, _) if code & 0xe0 == ATOMIC && is_atomic_rmw(imm) => {
                    refuse!(walk, EINVAL, Encoding, "invalid atomic operand size")
                }
                (STX, _) if code & 0xe0 == ATOMIC => {
                    refuse!(
                        walk,
                        EINVAL,
                        Encoding,
                        "BPF_ATOMIC uses invalid atomic opcode {imm:02x}"
                    )
                }
                (class, operation) => {
                    let name = match (class, operation) {
                        (LD, _) if code == LD_IMM64 => "BPF_LD_IMM64",
                        (LD, _) => "BPF_LD_[ABS|IND]",
                        (JMP | JMP32, 0x80) => "BPF_CALL",
                        (JMP | JMP32, 0x90) => "BPF_EXIT",
                        (JMP | JMP32, 0x00) => "BPF_JA",
                        (JMP | JMP32, _) => "BPF_JMP/JMP32",
                        (ST, _) => "BPF_ST",
                        (STX, _) => "BPF_STX",
                        (ALU | ALU64, 0x80) => "BPF_NEG",
                        (ALU | ALU64, 0xd0) => "BPF_END",
                        (ALU | ALU64, 0xb0) => "BPF_MOV",
                        (ALU | ALU64, _) => "BPF_ALU",
                        _ => "BPF_LDX",
                    };
                    refuse!(walk, EINVAL, Encoding, "{name} uses reserved fields")
                }
            }
        }
    }
}

/// Checks of an instruction before those of its reserved fields.
fn check_before_fields(walk: &mut Walk<'_>, raw: RawInsn) -> Result<()> {
    match raw.code & 7 {
        _ if is_branch(raw.code) => match Reg::new(raw.regs & 15) {
            Some(dst) => walk.check_reg_arg(dst, RegArg::Src),
            None => Ok(()),
        },
        LD if raw.code != LD_IMM64 => mem::check_skb_loads(walk),
        ALU64 if raw.code == MOV64 && raw.off == ADDR_SPACE_CAST => {
            alu::check_address_spaces(walk, AddrSpaceCast::from_imm(raw.imm))
        }
        _ => Ok(()),
    }
}

/// True for the opcode of a conditional jump.
const fn is_branch(code: u8) -> bool {
    matches!(code & 7, JMP | JMP32) && !matches!(code & 0xf0, 0x00 | 0x80 | 0x90 | MAY_GOTO)
}

/// True for an operation that an atomic instruction of 4 and 8 bytes has.
const fn is_atomic_rmw(imm: i32) -> bool {
    matches!(
        imm,
        0x00 | 0x01 | 0x40 | 0x41 | 0x50 | 0x51 | 0xa0 | 0xa1 | 0xe1 | 0xf1
    )
}

/// Classes of opcodes.
const LD: u8 = 0;
const ST: u8 = 2;
const STX: u8 = 3;
const ALU: u8 = 4;
const JMP: u8 = 5;
const JMP32: u8 = 6;
const ALU64: u8 = 7;
/// Opcode of a move between registers, and the offset that makes it a cast.
const MOV64: u8 = 0xbf;
const ADDR_SPACE_CAST: i16 = 1;
/// Operation of `may_goto`.
const MAY_GOTO: u8 = 0xe0;
/// Mode of atomic instructions.
const ATOMIC: u8 = 0xc0;
/// Opcode of a 64-bit immediate load.
const LD_IMM64: u8 = 0x18;
