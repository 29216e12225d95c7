//! One instruction: decides which module checks it (`do_check_insn`).

use isa::ebpf::{AddrSpaceCast, AluOp, Effect, Fault, Field, Insn, Op, Operand, RawInsn, Reg, Row};
use spec::behaviour::Behaviour;

use crate::env::{Check, Env, Outcome, RegArg};
use crate::log::Sink;
use crate::{Result, Stop, alu, call, flow, mem, refuse, resolve};

/// Checks the instruction that the walk stands at (`do_check_insn`).
#[doc(alias = "do_check_insn")]
pub(super) fn check_insn(env: &mut Env<'_>) -> Result<Outcome> {
    let insn = env.input.insns[env.sink.insn_idx as usize];
    if env.input.lacks_insns
        && let Some(name) = resolve::unknown_fields(env.input, env.sink.insn_idx)
    {
        return Err(refuse!(env => Flow::ReservedFields { name }));
    }
    match insn {
        Insn::Alu { .. }
        | Insn::Neg { .. }
        | Insn::MovSx { .. }
        | Insn::Endian { .. }
        | Insn::Cast { .. } => {
            alu::check_alu_op(env, insn)?;
            Ok(Outcome::Next)
        }
        Insn::LoadImm64 { .. } | Insn::Imm64High => {
            resolve::check_ld_imm(env, insn)?;
            Ok(Outcome::NextWide)
        }
        Insn::Load { .. } | Insn::Store { .. } | Insn::Atomic { .. } => {
            mem::check_mem_insn(env, insn)?;
            Ok(Outcome::Next)
        }
        Insn::LoadAcquire { .. } | Insn::StoreRelease { .. } => {
            check_order(env)?;
            mem::check_mem_insn(env, insn)?;
            Ok(Outcome::Next)
        }
        Insn::PacketAbs { .. } | Insn::PacketInd { .. } => mem::check_ld_abs(env, insn),
        Insn::Jump { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::GotoReg { .. }
        | Insn::MayGoto { .. }
        | Insn::CallReg { .. }
        | Insn::Exit => {
            env.explorer.jmps_processed += 1;
            flow::check_flow(env, insn)
        }
        Insn::Call(callee) => {
            env.explorer.jmps_processed += 1;
            call::check_call(env, callee)
        }
        Insn::Invalid { raw, fault } => {
            env.explorer.jmps_processed += u32::from(raw.is_of_jump_class());
            Err(refuse_invalid(env, raw, fault))
        }
    }
}

/// Refuses loads with acquire and stores with release that the kernel does not know.
fn check_order(env: &mut Check<'_>) -> Result<()> {
    let imm = env.input.program.insns()[env.sink.insn_idx as usize].imm;
    match env.input.rules.has(Behaviour::OrderedAccess) {
        true => Ok(()),
        false => Err(refuse!(env => Flow::InvalidAtomic { imm })),
    }
}

/// The refusal of an instruction that does not decode, in the kernel's words and order: a
/// conditional jump reads its first register before its fields are looked at, a load from the
/// packet needs a program type with packets (`check_insn_fields`, `check_alu_fields`,
/// `check_jmp_fields`).
#[doc(alias = "check_insn_fields")]
#[doc(alias = "check_alu_fields")]
#[doc(alias = "check_jmp_fields")]
fn refuse_invalid(env: &mut Env<'_>, raw: RawInsn, fault: Fault) -> Stop {
    let RawInsn { code, imm, .. } = raw;
    if raw.is_atomic() && !is_atomic_rmw(imm) && !env.input.rules.has(Behaviour::OrderedAccess) {
        return refuse!(env => Flow::InvalidAtomic { imm });
    }
    match fault {
        Fault::UnknownOpcode => refuse!(env => Flow::UnknownOpcode { code }),
        Fault::RegisterOutOfRange => {
            let (dst, src) = (raw.dst(), raw.src());
            let stop = match is_branch(raw) {
                true => Ok(()),
                false => check_before_fields(env, raw),
            };
            if let Err(stop) = stop {
                return stop;
            }
            let reads_src = Row::with_code(code).any(|row| row.src == Field::Any);
            let is_left_first = env.input.rules.has(Behaviour::LeftCheckedFirst);
            let order = match is_branch(raw) && is_left_first {
                true => [Some(dst), Some(src)],
                false => [reads_src.then_some(src), Some(dst)],
            };
            for number in order.into_iter().flatten() {
                let Some(reg) = Reg::new(number) else {
                    return refuse!(env => Flow::InvalidRegister { reg: number });
                };
                if let Err(stop) = env.check_reg_arg(reg, RegArg::Src) {
                    return stop;
                }
            }
            Stop::Bug(format!("{raw:?} names no register beyond r10"))
        }
        Fault::BrokenImm64 => refuse!(env => Flow::InvalidWideLoad),
        Fault::ReservedField => {
            if let Err(stop) = check_before_fields(env, raw) {
                return stop;
            }
            if raw.is_atomic() {
                return match is_atomic_rmw(imm) {
                    true => refuse!(env => Flow::InvalidAtomicSize),
                    false => refuse!(env => Flow::InvalidAtomic { imm }),
                };
            }
            match class_of(raw) {
                None => Stop::Bug(format!("{raw:?} has no fields")),
                Some("may_goto") if env.input.rules.has(Behaviour::EmptyMayGoto) => {
                    refuse!(env => Flow::InvalidMayGoto { imm })
                }
                Some("may_goto") => {
                    refuse!(env => Flow::InvalidMayGotoOffset { off: raw.off, imm })
                }
                Some(name) => refuse!(env => Flow::ReservedFields { name }),
            }
        }
    }
}

/// Name of the instructions among which the fields of one are counted.
fn class_of(raw: RawInsn) -> Option<&'static str> {
    Some(match of_opcode(raw) {
        Insn::MayGoto { .. } => "may_goto",
        Insn::LoadImm64 { .. } => "BPF_LD_IMM64",
        Insn::PacketAbs { .. } | Insn::PacketInd { .. } => "BPF_LD_[ABS|IND]",
        Insn::Call(_) | Insn::CallReg { .. } => "BPF_CALL",
        Insn::Exit => "BPF_EXIT",
        Insn::GotoReg { .. } => "BPF_JA|BPF_X",
        Insn::Goto { .. } | Insn::GotoLong { .. } => "BPF_JA",
        Insn::Jump { .. } => "BPF_JMP/JMP32",
        Insn::Store { src, .. } => match src {
            Operand::Imm(_) => "BPF_ST",
            Operand::Reg(_) => "BPF_STX",
        },
        Insn::Neg { .. } => "BPF_NEG",
        Insn::Endian { .. } => "BPF_END",
        Insn::Alu { op: AluOp::Mov, .. } | Insn::MovSx { .. } | Insn::Cast { .. } => "BPF_MOV",
        Insn::Alu { .. } => "BPF_ALU",
        Insn::Load { .. } => "BPF_LDX",
        Insn::Atomic { .. }
        | Insn::LoadAcquire { .. }
        | Insn::StoreRelease { .. }
        | Insn::Imm64High
        | Insn::Invalid { .. } => return None,
    })
}

/// Refuses numbers of registers that there are not (in `check_and_resolve_insns`).
pub(crate) fn refuse_registers(log: &mut Sink<'_>, raw: RawInsn) -> Result<()> {
    let mut numbers = [raw.dst(), raw.src()].into_iter();
    match numbers.find(|number| Reg::new(*number).is_none()) {
        None => Ok(()),
        Some(STACK_ARGUMENTS) if accesses_memory(raw) => {
            Err(Stop::unsupported("arguments on the stack"))
        }
        Some(reg) => Err(refuse!(log => Flow::InvalidRegister { reg })),
    }
}

/// Refuses reserved fields of an instruction before the walk (`check_insn_fields`).
#[doc(alias = "check_insn_fields")]
pub(crate) fn refuse_fields(log: &mut Sink<'_>, raw: RawInsn) -> Result<()> {
    match Insn::decode_one(raw, Some(RawInsn::default())) {
        Insn::Cast { cast, .. } if !cast.is_known() => Err(refuse!(log => Alu::AddressSpaces)),
        Insn::Invalid { fault, .. } if fault == Fault::ReservedField && !raw.is_atomic() => {
            match class_of(raw) {
                None => Ok(()),
                Some("may_goto") => Err(refuse!(log => Flow::InvalidMayGoto { imm: raw.imm })),
                Some(name) => Err(refuse!(log => Flow::ReservedFields { name })),
            }
        }
        _ => Ok(()),
    }
}

/// True for loads and stores, but atomic ones.
fn accesses_memory(raw: RawInsn) -> bool {
    let row = raw.row();
    row.is_some_and(|row| matches!(row.effect, Effect::Load | Effect::Store))
}

/// Number of the register that stands for arguments on the stack (`BPF_REG_PARAMS`).
const STACK_ARGUMENTS: u8 = 11;

/// Checks of an instruction before those of its reserved fields.
fn check_before_fields(env: &mut Env<'_>, raw: RawInsn) -> Result<()> {
    if is_branch(raw) {
        let is_left_first = env.input.rules.has(Behaviour::LeftCheckedFirst);
        return match Reg::new(raw.dst()).filter(|_| is_left_first) {
            Some(dst) => env.check_reg_arg(dst, RegArg::Src),
            None => Ok(()),
        };
    }
    if raw.is_packet_load() {
        return mem::check_skb_loads(env);
    }
    let cast = Op::AddrSpaceCast.row();
    if cast.has_opcode_of(raw) && cast.off.admits(raw.off.into()) {
        return alu::check_address_spaces(env, AddrSpaceCast::from_imm(raw.imm));
    }
    Ok(())
}

/// An instruction of the same opcode whose reserved fields are as they have to be.
fn of_opcode(raw: RawInsn) -> Insn {
    let slot = raw.row().map_or(raw, |row| row.slot(0, 0, 0, 0));
    Insn::decode_one(slot, Some(RawInsn::default()))
}

/// True for the opcode of a conditional jump.
fn is_branch(raw: RawInsn) -> bool {
    let row = raw.row();
    row.is_some_and(|row| row.effect == Effect::Branch && row.op != Op::MayGoto)
}

/// True for an operation that an atomic instruction of 4 and 8 bytes has.
fn is_atomic_rmw(imm: i32) -> bool {
    let mut rows = Row::with_code(Op::AtomicAdd64.row().code);
    rows.any(|row| row.effect == Effect::Atomic && row.imm.admits(imm))
}
