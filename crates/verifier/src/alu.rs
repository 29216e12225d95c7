//! Arithmetic on scalars and pointers (`check_alu_op`).
//!
//! | file | contents |
//! |---|---|
//! | `moves` | moves, with sign extension and identities |
//! | `scalar` | operations on two scalars, linked differences, forks at 0 and -1 |
//! | `pointer` | a pointer plus or minus a scalar |
//! | `bounds` | contradictory ranges |

mod bounds;
mod moves;
mod pointer;
mod scalar;

use isa::ebpf::{AddrSpaceCast, AluOp, ByteOrder, Insn, Operand, Reg, Size, Width};
use spec::behaviour::Behaviour;
use spec::maps::MapKind;

use crate::domain::Scalar;
use crate::env::{Check, Env, RegArg};
use crate::mem::registers::set_unknown;
use crate::state::{RegKind, RegState};
use crate::{Result, Stop, refuse, refuse_if};

pub(crate) use bounds::check_bounds;

/// Checks an instruction of the ALU classes (`check_alu_op`).
pub(crate) fn check_alu_op(env: &mut Env<'_>, insn: Insn) -> Result<()> {
    let dst = match insn {
        Insn::Alu {
            op: AluOp::Mov,
            width,
            dst,
            src,
        } => {
            moves::check_mov(env, width, dst, src)?;
            dst
        }
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => {
            check_operation(env, op, width, dst, src)?;
            dst
        }
        Insn::MovSx {
            width,
            from,
            dst,
            src,
        } => {
            moves::check_sign_extension(env, width, from, dst, src)?;
            dst
        }
        Insn::Neg { width, dst } => {
            let rules = env.input.rules;
            check_unary(env, dst, |reg| {
                if !rules.has(Behaviour::NegatedRanges) {
                    *reg = RegState::UNKNOWN;
                    return;
                }
                reg.num = reg.num.neg(width, rules);
                reg.id = 0;
                reg.off = 0;
            })?;
            dst
        }
        Insn::Endian { order, size, dst } => {
            let rules = env.input.rules;
            check_unary(env, dst, |reg| {
                if !rules.has(Behaviour::ByteSwapBits) {
                    *reg = RegState::UNKNOWN;
                    return;
                }
                reg.num = reg.num.byte_order(order, size, rules);
                if order != ByteOrder::Little || size != Size::DW {
                    reg.id = 0;
                    reg.off = 0;
                }
            })?;
            dst
        }
        Insn::Cast { cast, dst, src } => {
            check_cast(env, cast, (dst, src))?;
            dst
        }
        _ => return Err(Stop::Bug("no arithmetic instruction".into())),
    };
    if env.reg(dst).num.violation().is_some() {
        let mut num = env.reg(dst).num;
        check_bounds(env.input, &mut env.sink, &mut num, "alu")?;
        env.reg_mut(dst).num = num;
    }
    Ok(())
}

/// Checks an operation on one register; pointers become unknown scalars.
fn check_unary(env: &mut Env<'_>, dst: Reg, change: impl FnOnce(&mut RegState)) -> Result<()> {
    env.check_reg_arg(dst, RegArg::Src)?;
    let is_scalar = env.reg(dst).is_scalar();
    refuse_if!(!is_scalar && !env.input.allow_ptr_leaks, env => Alu::PointerOperation { reg: dst });
    if !is_scalar {
        return env.check_reg_arg(dst, RegArg::Dst);
    }
    env.check_reg_arg(dst, RegArg::DstNoMark)?;
    change(env.reg_mut(dst));
    Ok(())
}

/// Checks an operation on two operands.
fn check_operation(
    env: &mut Env<'_>,
    op: AluOp,
    width: Width,
    dst: Reg,
    src: Operand,
) -> Result<()> {
    if let Operand::Reg(src) = src {
        env.check_reg_arg(src, RegArg::Src)?;
    }
    env.check_reg_arg(dst, RegArg::Src)?;
    if let Operand::Imm(imm) = src {
        refuse_if!(op.is_division() && imm == 0, env => Alu::DivisionByZero);
        let bits = match width {
            Width::W64 => 64,
            Width::W32 => 32,
        };
        refuse_if!(op.is_shift() && !(0..bits).contains(&imm), env => Alu::InvalidShift { imm });
    }
    env.check_reg_arg(dst, RegArg::DstNoMark)?;
    adjust_reg_min_max_vals(env, op, width, dst, src)
}

/// Computes the result of an operation on two operands (`adjust_reg_min_max_vals`).
fn adjust_reg_min_max_vals(
    env: &mut Env<'_>,
    op: AluOp,
    width: Width,
    dst: Reg,
    src: Operand,
) -> Result<()> {
    let dst_reg = env.reg(dst);
    if matches!(dst_reg.kind, RegKind::Arena) {
        return Ok(());
    }
    let is_scalar = dst_reg.is_scalar();
    let mut reversed = false;
    if let Operand::Reg(src) = src {
        let src_reg = env.reg(src);
        if env.input.rules.has(Behaviour::ArenaSums) && matches!(src_reg.kind, RegKind::Arena) {
            *env.reg_mut(dst) = *src_reg;
            return Ok(());
        }
        match (is_scalar, src_reg.is_scalar()) {
            (false, false) => {
                if op == AluOp::Sub && env.input.allow_ptr_leaks {
                    *env.reg_mut(dst) = RegState::UNKNOWN;
                    return Ok(());
                }
                return Err(refuse!(env => Alu::TwoPointers { reg: dst, op }));
            }
            (true, false) => {
                env.mark_precise(dst)?;
                reversed = true;
            }
            (false, true) => env.mark_precise(src)?,
            // Only zeros of the stack are precise outside of checkpoints.
            (true, true) if env.state.stack_zeros & 1 << dst.number() != 0 => {
                env.mark_precise(src)?
            }
            (true, true) => {}
        }
    }
    if is_scalar && !reversed {
        let num = match src {
            Operand::Imm(imm) => Scalar::constant(i64::from(imm) as u64),
            Operand::Reg(src) => env.reg(src).num,
        };
        return scalar::adjust_scalar_min_max_vals(env, op, width, dst, src, &num);
    }
    let dst_reg = *env.reg(dst);
    let src_reg = match src {
        Operand::Imm(imm) => RegState::constant(i64::from(imm) as u64),
        Operand::Reg(src) => *env.reg(src),
    };
    let operands = match reversed {
        true => (&src_reg, &dst_reg),
        false => (&dst_reg, &src_reg),
    };
    pointer::adjust_ptr_min_max_vals(env, op, width, (dst, src), operands, reversed)
}

/// Checks that a cast is one between the arena and the kernel's address space, in a
/// program with an arena.
pub(crate) fn check_address_spaces(env: &mut Check<'_>, cast: AddrSpaceCast) -> Result<()> {
    refuse_if!(!cast.is_known(), env => Alu::AddressSpaces);
    let program = env.input.program;
    let maps = program.used_maps().into_iter();
    let mut maps = maps.filter_map(|id| program.map(id));
    let has_arena = maps.any(|map| map.kind() == Some(MapKind::Arena));
    refuse_if!(!has_arena, env => Alu::AddressSpaceWithoutArena);
    Ok(())
}

/// Checks a cast between address spaces: one to space 0 makes a pointer into the arena, one to
/// space 1 an unknown number.
fn check_cast(env: &mut Env<'_>, cast: AddrSpaceCast, (dst, src): (Reg, Reg)) -> Result<()> {
    check_address_spaces(env, cast)?;
    env.check_reg_arg(src, RegArg::Src)?;
    env.check_reg_arg(dst, RegArg::DstNoMark)?;
    set_unknown(env, dst);
    if cast.to == 0 {
        env.reg_mut(dst).kind = RegKind::Arena;
    }
    Ok(())
}

/// The operation as the log writes it.
pub(crate) fn symbol(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "+=",
        AluOp::Sub => "-=",
        AluOp::Mul => "*=",
        AluOp::Div | AluOp::SDiv => "/=",
        AluOp::Mod | AluOp::SMod => "%=",
        AluOp::Or => "|=",
        AluOp::And => "&=",
        AluOp::Xor => "^=",
        AluOp::Lsh => "<<=",
        AluOp::Rsh => ">>=",
        AluOp::Arsh => "s>>=",
        AluOp::Mov => "=",
    }
}

#[cfg(test)]
mod tests;
