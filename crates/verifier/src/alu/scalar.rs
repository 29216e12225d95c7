//! Operations on two scalars (`adjust_scalar_min_max_vals` and what follows it in
//! `adjust_reg_min_max_vals`).

use isa::ebpf::{AluOp, Operand, Reg, Width};
use spec::behaviour::{Behaviour, Behaviours};

use crate::Result;
use crate::domain::Scalar;
use crate::env::Env;
use crate::input::Input;
use crate::speculation;
use crate::state::{ADD_CONST, ADD_CONST32, ADD_CONST64, RegState};

/// Checks `dst op= operand` of scalars, where the operand has the value `src`
/// (`adjust_scalar_min_max_vals`).
pub(super) fn adjust_scalar_min_max_vals(
    env: &mut Env<'_>,
    op: AluOp,
    width: Width,
    dst: Reg,
    operand: Operand,
    src: &Scalar,
) -> Result<()> {
    let rules = env.input.rules;
    let forks = rules.has(Behaviour::ZeroForks) && src.is_const();
    if matches!(op, AluOp::And | AluOp::Or) && forks {
        fork_at_zero(env, dst)?;
    }
    let before = env.reg(dst);
    let Some(num) = before.num.alu(op, width, src, rules) else {
        *env.reg_mut(dst) = RegState::UNKNOWN;
        env.state.stack_zeros &= !(1 << dst.number());
        return Ok(());
    };
    // Linux 6.18 reads the operand after it wrote the result, and earlier ones take what it has then.
    let result = Scalar { ..num };
    let (id, mut off) = match operand == Operand::Reg(dst) {
        true if rules.has(Behaviour::SelfSumsUnlinked) => (0, kept_difference(rules, before)),
        true => linked_difference(env.input, op, width, before, &result),
        false => linked_difference(env.input, op, width, before, src),
    };
    if matches!(op, AluOp::And | AluOp::Or | AluOp::Xor) && num.is_const() {
        off = 0;
    }
    speculation::note_scalars(env, op, dst, operand)?;
    let reg = env.reg_mut(dst);
    (reg.num, reg.id, reg.off) = (num, id, off);
    Ok(())
}

/// A value that is 0 or -1 is followed as each of them, because masks are made so
/// (`maybe_fork_scalars`): the branch with 0 executes the instruction again.
#[doc(alias = "maybe_fork_scalars")]
fn fork_at_zero(env: &mut Env<'_>, dst: Reg) -> Result<()> {
    let reg = *env.reg(dst);
    let is_wide = reg.num.smin == -1 && reg.num.smax == 0;
    let is_narrow = reg.num.s32_min == -1 && reg.num.s32_max == 0;
    if !is_wide && !is_narrow {
        return Ok(());
    }
    let with = |value: i64| match is_wide {
        true => RegState::constant(value as u64),
        false => {
            let mut reg = reg;
            reg.num.set_const32(value as u32);
            reg
        }
    };
    let branch = env.fork(env.sink.insn_idx)?;
    *branch.reg_mut(dst) = with(0);
    *env.reg_mut(dst) = with(-1);
    Ok(())
}

/// The difference of a number whose link ends.
fn kept_difference(rules: Behaviours, before: &RegState) -> i32 {
    match rules.has(Behaviour::LinksEndWhole) {
        true => 0,
        false => before.off,
    }
}

/// Identity and difference of a result: a register plus or minus a constant stays
/// linked with its copies, so that a bound learned of one is learned of the other. Any
/// other operation takes both away.
fn linked_difference(
    input: &Input<'_>,
    op: AluOp,
    width: Width,
    before: &RegState,
    src: &Scalar,
) -> (u32, i32) {
    let rules = input.rules;
    let ended = (0, kept_difference(rules, before));
    let is_linked = input.bpf_capable && before.id != 0;
    if !is_linked || !matches!(op, AluOp::Add | AluOp::Sub) {
        return ended;
    }
    if !rules.has(Behaviour::ConstantLinks) {
        return (0, 0);
    }
    if !rules.has(Behaviour::WideLinks) && (op == AluOp::Sub || width == Width::W32) {
        return ended;
    }
    let constant = match width {
        Width::W64 => src.as_const(),
        Width::W32 => src.as_const32().map(u64::from),
    };
    let Some(constant) = constant else {
        return ended;
    };
    let (difference, flag) = match width {
        Width::W64 => (i32::try_from(constant as i64).ok(), ADD_CONST64),
        Width::W32 => {
            let fits = before.num.umax <= u64::from(u32::MAX);
            (fits.then_some(constant as i32), ADD_CONST32)
        }
    };
    let difference = match op {
        AluOp::Sub => difference.and_then(i32::checked_neg),
        _ => difference.filter(|&difference| difference >= 0 || rules.has(Behaviour::WideLinks)),
    };
    match difference {
        Some(difference) if before.id & ADD_CONST == 0 => (before.id | flag, difference),
        _ => (0, 0),
    }
}
