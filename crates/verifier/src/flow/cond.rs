//! Conditional jumps (`check_cond_jmp_op`).

use isa::ebpf::{Cond, Operand, Reg, Width};
use spec::behaviour::{Behaviour, Behaviours};

use super::{linked, null, packet};
use crate::alu::check_bounds;
use crate::domain::{Scalar, decide, decide_by_constant, decide_same, refine_same, refine_synced};
use crate::env::{Check, Env, Outcome, RegArg};
use crate::explore::Fork;
use crate::input::Input;
use crate::log::Sink;
use crate::state::{HistoryFlags, LinkedReg, LinkedRegs, RegKind, RegState, State};
use crate::{Result, refuse, speculation};

/// Checks `if dst cond src goto off` (`check_cond_jmp_op`).
pub(super) fn check_cond_jmp_op(
    env: &mut Env<'_>,
    cond: Cond,
    width: Width,
    dst: Reg,
    src: Operand,
    off: i16,
) -> Result<Outcome> {
    if let Operand::Reg(src) = src
        && !env.input.rules.has(Behaviour::LeftCheckedFirst)
    {
        env.check_reg_arg(src, RegArg::Src)?;
    }
    env.check_reg_arg(dst, RegArg::Src)?;
    let dst_reg = *env.reg(dst);
    let mut flags = HistoryFlags::NONE;
    let src_reg = match src {
        Operand::Reg(src) => {
            env.check_reg_arg(src, RegArg::Src)?;
            let src_reg = *env.reg(src);
            let are_packets = packet::is_any(&dst_reg) && packet::is_any(&src_reg);
            if !are_packets && !env.input.allow_ptr_leaks && !src_reg.is_scalar() {
                return Err(refuse_comparison(env, src));
            }
            if matches!(src_reg.kind, RegKind::Stack { .. }) {
                flags.0 |= HistoryFlags::SRC_STACK.0;
            }
            src_reg
        }
        Operand::Imm(imm) => RegState::constant(i64::from(imm) as u64),
    };
    if matches!(dst_reg.kind, RegKind::Stack { .. }) {
        flags.0 |= HistoryFlags::DST_STACK.0;
    }
    if flags != HistoryFlags::NONE {
        env.push_history(flags, LinkedRegs::default())?;
    }
    let target = (env.sink.insn_idx as i32 + 1 + i32::from(off)) as u32;
    let rules = env.input.rules;
    let is_taken = match src == Operand::Reg(dst) && dst_reg.is_scalar() {
        true if rules.has(Behaviour::SameOperands) => decide_same(cond, width, &dst_reg.num),
        _ => is_branch_taken(&dst_reg, &src_reg, cond, width, rules),
    };
    if let Some(is_taken) = is_taken {
        if dst_reg.is_scalar() {
            env.mark_precise(dst)?;
        }
        if let Operand::Reg(src) = src
            && src_reg.is_scalar()
        {
            env.mark_precise(src)?;
        }
        let (untaken, outcome) = match is_taken {
            true => (env.sink.insn_idx + 1, Outcome::Jump(target)),
            false => (target, Outcome::Next),
        };
        speculation::push_untaken(env, untaken, dst, src)?;
        print_state(env);
        return Ok(outcome);
    }
    fork(env, cond, width, (dst, dst_reg), (src, src_reg), target)?;
    print_state(env);
    Ok(Outcome::Next)
}

fn print_state(env: &mut Check<'_>) {
    if env.sink.walks() {
        let frame = env.state.curframe;
        env.print_insn_state(frame);
    }
}

fn refuse_comparison(env: &mut Check<'_>, reg: Reg) -> crate::Stop {
    refuse!(env => Flow::PointerComparison { reg })
}

/// Outcome of a comparison, if what is known decides it (`is_branch_taken`).
fn is_branch_taken(
    dst: &RegState,
    src: &RegState,
    cond: Cond,
    width: Width,
    rules: Behaviours,
) -> Option<bool> {
    let both = rules.has(Behaviour::NumbersCompared);
    if packet::is_any(dst) && packet::is_any(src) && width == Width::W64 {
        return packet::decide(dst, src, cond);
    }
    if dst.is_scalar() && src.is_scalar() {
        return match both {
            true => decide(cond, width, (&dst.num, &src.num), rules),
            false => decide_by_constant(cond, width, &dst.num, &src.num),
        };
    }
    if width == Width::W32 && rules.has(Behaviour::HalvesUndecided) {
        return None;
    }
    let value_of = |reg: &RegState| match width {
        _ if !reg.is_scalar() => None,
        Width::W64 => reg.num.as_const(),
        Width::W32 => reg.num.as_const32().map(u64::from),
    };
    let (pointer, value) = match value_of(src) {
        Some(value) => (dst, value),
        None if both => (src, value_of(dst)?),
        None => return None,
    };
    if value != 0 || !null::is_not_null(pointer, rules) {
        return None;
    }
    match cond {
        Cond::Eq => Some(false),
        Cond::Ne => Some(true),
        _ => None,
    }
}

/// Forks the path: the current state falls through, a copy jumps.
fn fork(
    env: &mut Env<'_>,
    cond: Cond,
    width: Width,
    (dst, dst_reg): (Reg, RegState),
    (src, src_reg): (Operand, RegState),
    target: u32,
) -> Result<()> {
    let mut linked = LinkedRegs::default();
    if matches!(src, Operand::Reg(_)) && src_reg.is_scalar() && src_reg.id != 0 {
        linked::collect(
            env.analysis,
            env.input.rules,
            &mut env.state,
            src_reg.id,
            &mut linked,
        );
    }
    if dst_reg.is_scalar() && dst_reg.id != 0 {
        linked::collect(
            env.analysis,
            env.input.rules,
            &mut env.state,
            dst_reg.id,
            &mut linked,
        );
    }
    if let Operand::Reg(zero) = src
        && env.input.rules.has(Behaviour::NullByRegister)
        && src_reg.is_null()
        && dst_reg.may_be_null()
        && width == Width::W64
        && matches!(cond, Cond::Eq | Cond::Ne)
    {
        env.mark_precise(zero)?;
    }
    forget_propagated(&mut env.state, dst, src, linked);
    if linked.len() > 1 {
        env.push_history(HistoryFlags::NONE, linked)?;
    }
    env.fork(target)?;
    refine_both(env, cond, width, (dst, dst_reg), (src, src_reg), linked)
}

/// Requests carried to compared or linked scalars do not cover what a later request
/// would find at this instruction.
fn forget_propagated(state: &mut State, dst: Reg, src: Operand, linked: LinkedRegs) {
    if state.propagated == 0 {
        return;
    }
    let mut mask = 0u16;
    if let Operand::Reg(src) = src {
        mask |= 1 << src.number() | 1 << dst.number();
    }
    if linked.len() > 1 {
        for entry in linked.iter() {
            if let LinkedReg::Reg { frame, reg } = entry
                && frame == state.curframe
            {
                mask |= 1 << reg;
            }
        }
    }
    state.propagated &= !mask;
}

/// Refines both states by the comparison.
fn refine_both(
    env: &mut Env<'_>,
    cond: Cond,
    width: Width,
    (dst, dst_reg): (Reg, RegState),
    (src, src_reg): (Operand, RegState),
    linked: LinkedRegs,
) -> Result<()> {
    let is_same = src == Operand::Reg(dst);
    let learns = !is_same || !env.input.rules.has(Behaviour::SameOperands);
    let refined = match learns && dst_reg.is_scalar() && src_reg.is_scalar() {
        true => Some(refine_scalars(
            env.input,
            &mut env.sink,
            cond,
            width,
            (&dst_reg, &src_reg),
            is_same,
        )?),
        false => None,
    };
    let input = env.input;
    let (this, Some(Fork { state: other, .. })) = (&mut env.check.state, env.forked.last_mut())
    else {
        return Err(crate::Stop::Bug("no pending path".to_owned()));
    };
    if let Some([passed, taken]) = refined {
        for (state, (new_dst, new_src)) in [(&mut *this, passed), (&mut *other, taken)] {
            if state.reg(dst).num != new_dst {
                state.reg_mut(dst).num = new_dst;
            }
            if let Operand::Reg(src) = src
                && src != dst
                && state.reg(src).num != new_src
            {
                state.reg_mut(src).num = new_src;
            }
        }
    }
    if !linked.is_empty() {
        if let Operand::Reg(src) = src
            && src_reg.is_scalar()
            && this.reg(src).id != 0
        {
            linked::sync(this, input.rules, src.index(), linked);
            linked::sync(other, input.rules, src.index(), linked);
        }
        if dst_reg.is_scalar() && this.reg(dst).id != 0 {
            linked::sync(this, input.rules, dst.index(), linked);
            linked::sync(other, input.rules, dst.index(), linked);
        }
    }
    if width == Width::W64
        && let Operand::Reg(src) = src
        && !src_reg.is_scalar()
        && !dst_reg.is_scalar()
        && src_reg.may_be_null() != dst_reg.may_be_null()
        && input.rules.has(Behaviour::EqualPointersNotNull)
        && !matches!(src_reg.kind, RegKind::BtfId { .. })
        && !matches!(dst_reg.kind, RegKind::BtfId { .. })
    {
        let nullable = if src_reg.may_be_null() { src } else { dst };
        match cond {
            Cond::Eq => null::mark_not_null(input, other.reg_mut(nullable)),
            Cond::Ne => null::mark_not_null(input, this.reg_mut(nullable)),
            _ => {}
        }
    }
    // Linux 6.18 reads the fall-through state here, after equal pointers lost their null.
    let may_be_null = this.reg(dst).may_be_null();
    let is_eq = cond == Cond::Eq;
    let by_register = matches!(src, Operand::Reg(_)) && src_reg.is_null();
    let is_null =
        matches!(src, Operand::Imm(0)) || by_register && input.rules.has(Behaviour::NullByRegister);
    if width == Width::W64 && is_null && (is_eq || cond == Cond::Ne) && may_be_null {
        null::mark_ptr_or_null_regs(input, this, dst, !is_eq);
        null::mark_ptr_or_null_regs(input, other, dst, is_eq);
    } else {
        let is_packet = match src {
            Operand::Reg(src) if width == Width::W64 => {
                packet::refine(cond, (dst, src), (this, other), input.rules)
            }
            _ => false,
        };
        let leaks = !is_packet && !input.allow_ptr_leaks && !this.reg(dst).is_scalar();
        if leaks {
            return Err(refuse_comparison(env, dst));
        }
    }
    Ok(())
}

/// The operands where the comparison does not hold, and where it holds; `is_same` if they are one
/// register (`regs_bounds_sanity_check_branches`).
#[doc(alias = "regs_bounds_sanity_check_branches")]
fn refine_scalars(
    input: &Input<'_>,
    log: &mut Sink<'_>,
    cond: Cond,
    width: Width,
    (dst, src): (&RegState, &RegState),
    is_same: bool,
) -> Result<[(Scalar, Scalar); 2]> {
    let mut sides = [(dst.num, src.num); 2];
    for ((dst, src), holds) in sides.iter_mut().zip([false, true]) {
        match is_same {
            true => refine_same(cond, holds, width, dst, input.rules),
            false => refine_synced(cond, holds, width, (dst, src), input.rules),
        }
    }
    let names = [("false_reg1", "false_reg2"), ("true_reg1", "true_reg2")];
    // The kernel begins with the jump.
    for ((dst, src), (dst_name, src_name)) in sides.iter_mut().zip(names).rev() {
        check_bounds(input, log, dst, dst_name)?;
        if is_same {
            *src = *dst;
        }
        check_bounds(input, log, src, src_name)?;
    }
    Ok(sides)
}
