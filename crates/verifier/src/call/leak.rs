//! Resource leak checks at exit, at calls and at tail calls.

use crate::env::Env;
use crate::state::ReferenceKind;
use crate::type_rules::{TargetKind, TypeRules};
use crate::{Result, refuse, verbose};
use isa::ebpf::Reg;

/// Checks that no lock, section or reference is held (`check_resource_leak`); `what`
/// begins the message.
pub(crate) fn check_resource_leak(
    env: &mut Env<'_>,
    is_exception: bool,
    check_lock: bool,
    what: &str,
) -> Result<()> {
    if check_lock && env.state.active_locks != 0 {
        return Err(refuse!(env => Call::InsideLock { what }));
    }
    if has_leaked(env, is_exception) {
        return Err(refuse!(env => Call::ReferenceLeak { what }));
    }
    let section = if !check_lock {
        None
    } else if env.state.active_irq_id != 0 {
        Some("bpf_local_irq_save-ed")
    } else if env.state.active_rcu_lock {
        Some("bpf_rcu_read_lock-ed")
    } else if env.state.active_preempt_locks != 0 {
        Some("bpf_preempt_disable-ed")
    } else {
        None
    };
    match section {
        None => Ok(()),
        Some(section) => Err(refuse!(env => Call::InsideSection { what, section })),
    }
}

/// True if an acquired reference is left; logs those that are (`check_reference_leak`).
/// Functions that return to a caller may keep them.
#[doc(alias = "check_reference_leak")]
fn has_leaked(env: &mut Env<'_>, is_exception: bool) -> bool {
    if !is_exception && env.frame().frameno != 0 {
        return false;
    }
    let is_operation = TypeRules::of(env.input.program.kind()).target == TargetKind::Operation;
    let returned = match is_operation && !is_exception {
        true => env.reg(Reg::R0).ref_obj_id,
        false => 0,
    };
    let leaked: Vec<(u32, u32)> = env
        .state
        .refs
        .iter()
        .filter(|found| found.kind == ReferenceKind::Pointer)
        .filter(|found| returned == 0 || found.id != returned)
        .map(|found| (found.id, found.insn_idx))
        .collect();
    for (id, insn) in &leaked {
        verbose!(env, "Unreleased reference id={id} alloc_insn={insn}\n");
    }
    !leaked.is_empty()
}
