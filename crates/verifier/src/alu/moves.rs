//! Moves: copies share an identity, so that what is learned of one is learned of the
//! other.

use isa::ebpf::{Operand, Reg, Size, Width};
use spec::behaviour::Behaviour;

use crate::env::{Check, Env, RegArg};
use crate::mem::registers::assign_scalar_id;
use crate::state::RegState;
use crate::{Result, refuse};

/// Checks `dst = src`.
pub(super) fn check_mov(env: &mut Env<'_>, width: Width, dst: Reg, src: Operand) -> Result<()> {
    if let Operand::Reg(src) = src {
        env.check_reg_arg(src, RegArg::Src)?;
    }
    env.check_reg_arg(dst, RegArg::DstNoMark)?;
    let result = match (src, width) {
        (Operand::Imm(imm), Width::W64) => RegState::constant(i64::from(imm) as u64),
        (Operand::Imm(imm), Width::W32) => RegState::constant(u64::from(imm as u32)),
        (Operand::Reg(src), Width::W64) => {
            assign_scalar_id(env, src);
            *env.reg(src)
        }
        (Operand::Reg(src), Width::W32) => {
            // The identity is shared if the upper half is zero already.
            check_partial_copy(env, src)?;
            let links = env.input.rules.has(Behaviour::NarrowCopiesLinked);
            let keeps_value = env.reg(src).num.width() <= 32 && links;
            let mut result = copy(env, src, keeps_value);
            result.num.zero_extend32();
            result.num.sync(env.input.rules);
            result
        }
    };
    *env.reg_mut(dst) = result;
    Ok(())
}

/// Checks `dst = (sN)src`.
pub(super) fn check_sign_extension(
    env: &mut Env<'_>,
    width: Width,
    from: Size,
    dst: Reg,
    src: Reg,
) -> Result<()> {
    env.check_reg_arg(src, RegArg::Src)?;
    env.check_reg_arg(dst, RegArg::DstNoMark)?;
    if width == Width::W32 {
        check_partial_copy(env, src)?;
    } else if !env.reg(src).is_scalar() && !env.input.allow_ptr_leaks {
        return Err(refuse!(env => Alu::SignExtendedPointer { reg: src }));
    }
    let bytes = from.bytes();
    let keeps_value = env.reg(src).num.umax < 1 << (bytes * 8 - 1);
    let mut result = copy(env, src, keeps_value);
    match width {
        Width::W64 if env.reg(src).is_scalar() => result.num.sign_extend64(bytes),
        Width::W64 => {}
        Width::W32 => {
            if env.reg(src).is_scalar() {
                result.num.sign_extend32(bytes);
            }
            result.num.zero_extend32();
            result.num.sync(env.input.rules);
        }
    }
    *env.reg_mut(dst) = result;
    Ok(())
}

/// The low half of a pointer is for privileged programs.
fn check_partial_copy(env: &mut Check<'_>, src: Reg) -> Result<()> {
    if env.reg(src).is_scalar() || env.input.allow_ptr_leaks {
        return Ok(());
    }
    Err(refuse!(env => Alu::PartialCopyOfPointer { reg: src }))
}

/// A copy of a scalar, with its identity only if the value is kept; of a pointer, an
/// unknown scalar.
fn copy(env: &mut Check<'_>, src: Reg, keeps_value: bool) -> RegState {
    if !env.reg(src).is_scalar() {
        return RegState::UNKNOWN;
    }
    if keeps_value {
        assign_scalar_id(env, src);
    }
    let mut result = *env.reg(src);
    if !keeps_value {
        result = result.without_link(env.input.rules);
    }
    result
}
