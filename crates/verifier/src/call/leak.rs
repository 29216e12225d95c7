//! Resource leak checks at exit, at calls and at tail calls.

use spec::programs::ProgramType;

use crate::state::ReferenceKind;
use crate::walk::Walk;
use crate::{Result, refuse, verbose};
use isa::ebpf::Reg;

/// Checks that no lock, section or reference is held (`check_resource_leak`); `what`
/// begins the message.
pub fn check_resource_leak(
    walk: &mut Walk<'_>,
    is_exception: bool,
    check_lock: bool,
    what: &str,
) -> Result<()> {
    if check_lock && walk.state.active_locks != 0 {
        return Err(refuse!(walk => Call::InsideLock { what }));
    }
    if has_leaked(walk, is_exception) {
        return Err(refuse!(walk => Call::ReferenceLeak { what }));
    }
    let section = if !check_lock {
        None
    } else if walk.state.active_irq_id != 0 {
        Some("bpf_local_irq_save-ed")
    } else if walk.state.active_rcu_lock {
        Some("bpf_rcu_read_lock-ed")
    } else if walk.state.active_preempt_locks != 0 {
        Some("bpf_preempt_disable-ed")
    } else {
        None
    };
    match section {
        None => Ok(()),
        Some(section) => Err(refuse!(walk => Call::InsideSection { what, section })),
    }
}

/// True if an acquired reference is left; logs those that are (`check_reference_leak`).
/// Functions that return to a caller may keep them.
#[doc(alias = "check_reference_leak")]
fn has_leaked(walk: &mut Walk<'_>, is_exception: bool) -> bool {
    if !is_exception && walk.frame().frameno != 0 {
        return false;
    }
    let returned = match walk.env.program.kind() {
        ProgramType::StructOps if !is_exception => walk.reg(Reg::R0).ref_obj_id,
        _ => 0,
    };
    let leaked: Vec<(u32, u32)> = walk
        .state
        .refs
        .iter()
        .filter(|found| found.kind == ReferenceKind::Pointer)
        .filter(|found| returned == 0 || found.id != returned)
        .map(|found| (found.id, found.insn_idx))
        .collect();
    for (id, insn) in &leaked {
        verbose!(walk, "Unreleased reference id={id} alloc_insn={insn}\n");
    }
    !leaked.is_empty()
}
