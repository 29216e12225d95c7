//! Jumps, calls' returns and exits.
//!
//! A conditional jump whose outcome the ranges decide is followed alone, and the scalars
//! that decided it become precise. Otherwise the path forks: both sides learn what the
//! comparison says about the operands, about scalars linked with them, about pointers
//! that may be null, and about packet ranges.

mod cond;
mod exit;
mod linked;
mod null;
mod packet;

pub(crate) use exit::{check_exit, check_result, check_thrown, prepare_func_exit};
pub(crate) use null::{is_trusted, mark_not_null};
pub(crate) use packet::MAX_PACKET_OFF;

use isa::ebpf::{Insn, Reg};
use spec::behaviour::Behaviour;

use crate::env::{Env, Outcome};
use crate::explore::{Fork, widen_to_earlier};
use crate::state::RegKind;
use crate::{Errno, Result, Stop, refuse, refuse_if};

/// Checks a jump or exit.
pub(crate) fn check_flow(env: &mut Env<'_>, insn: Insn) -> Result<Outcome> {
    let next = env.sink.insn_idx as i32 + 1;
    match insn {
        Insn::Jump {
            cond,
            width,
            dst,
            src,
            off,
        } => cond::check_cond_jmp_op(env, cond, width, dst, src, off),
        Insn::Goto { off } => Ok(Outcome::Jump((next + i32::from(off)) as u32)),
        Insn::GotoLong { off } => Ok(Outcome::Jump(next.wrapping_add(off) as u32)),
        Insn::MayGoto { off } => may_goto(env, off),
        Insn::Exit => check_exit(env),
        Insn::GotoReg { dst } => check_table_jump(env, dst),
        // Indirect calls are unknown opcodes to Linux.
        _ => Err(Stop::Bug("no instruction of control flow".into())),
    }
}

/// Forks at a jump by a table: to each target that the register may name
/// (`check_indirect_jump`).
#[doc(alias = "check_indirect_jump")]
fn check_table_jump(env: &mut Env<'_>, dst: Reg) -> Result<Outcome> {
    let reg = *env.reg(dst);
    let RegKind::Insn { map } = reg.kind else {
        return Err(refuse!(env => Flow::NotInsn { reg: dst, kind: reg.reg_type() }));
    };
    let offset = reg.whole_offset(env.input.rules);
    let most = u64::from(u32::MAX) * 8;
    for (name, sum) in [("umin_value", offset.umin), ("umax_value", offset.umax)] {
        refuse_if!(sum > most, env => Flow::TargetSum { reg: dst, name, sum });
    }
    let (first, last) = (offset.umin / 8, offset.umax / 8);
    let info = &env.input.maps[map];
    let entries = info.max_entries();
    let named = info.jump_targets().get(first as usize..=last as usize);
    let Some(named) = named.filter(|_| last < entries.into()) else {
        return Err(refuse!(env => Flow::TargetOutside { reg: dst, first, last, entries }));
    };
    let mut targets = named.to_vec();
    targets.sort_unstable();
    targets.dedup();
    let Some((&last, others)) = targets.split_last() else {
        return Err(Stop::Bug("a jump table without targets".into()));
    };
    for &target in others {
        env.fork(target)?;
    }
    Ok(Outcome::Jump(last))
}

/// Forks at `may_goto`: the loop ends later, and goes on now.
fn may_goto(env: &mut Env<'_>, off: i16) -> Result<Outcome> {
    if off == 0 && !env.input.rules.has(Behaviour::EmptyMayGoto) {
        return Err(refuse!(env => Flow::InvalidMayGotoOffset { off, imm: 0 }));
    }
    let idx = env.sink.insn_idx;
    let later = env.fork_or(idx + 1, Errno::ENOMEM)?;
    later.may_goto_depth += 1;
    if let (Some(parent), Some(Fork { state, .. })) =
        (env.check.state.parent, env.forked.last_mut())
    {
        let (last_id, rules) = (env.check.id_gen, env.check.input.rules);
        widen_to_earlier(&env.explorer, state, Some(parent), idx, last_id, rules);
    }
    Ok(Outcome::Jump((idx as i32 + 1 + i32::from(off)) as u32))
}

#[cfg(test)]
mod tests;
