//! Resource leak checks at exit, at calls and at tail calls.

use std::fmt;

use isa::ebpf::Reg;
use spec::behaviour::Behaviour;

use crate::env::Check;
use crate::state::{Reference, ReferenceKind, Section};
use crate::type_rules::{TargetKind, TypeRules};
use crate::{Result, refuse, refuse_if};

/// Where no lock, section or reference may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeakCheck {
    /// An exit, of whichever function.
    Exit,
    /// `bpf_throw`.
    Throw,
    /// A tail call.
    TailCall,
    /// A packet load, which may end the program.
    PacketLoad,
}

impl fmt::Display for LeakCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeakCheck::Exit => "BPF_EXIT instruction in main prog",
            LeakCheck::Throw => "bpf_throw",
            LeakCheck::TailCall => "tail_call",
            LeakCheck::PacketLoad => "BPF_LD_[ABS|IND]",
        })
    }
}

/// Checks that no lock, section or reference is held (`check_resource_leak`).
pub(crate) fn check_resource_leak(
    env: &mut Check<'_>,
    is_exception: bool,
    check_lock: bool,
    what: LeakCheck,
) -> Result<()> {
    if !env.input.rules.has(Behaviour::LeaksNamePlace) && (is_exception || what == LeakCheck::Exit)
    {
        return check_exit_leak(env, is_exception, check_lock);
    }
    refuse_if!(check_lock && env.state.active_locks != 0, env => Call::InsideLock { what });
    if let Some((id, insn)) = has_leaked(env, is_exception) {
        let _ = refuse!(env => Call::Unreleased { id, insn });
        return Err(refuse!(env => Call::ReferenceLeak { what }));
    }
    const SECTIONS: &[Section] = &[Section::Irq, Section::Rcu, Section::Preempt];
    match env.state.first_of(SECTIONS).filter(|_| check_lock) {
        None => Ok(()),
        Some(section) => Err(refuse!(env => Call::InsideSection { what, section })),
    }
}

/// As earlier kernels check an exit or exception: sections before references, each with words of its
/// own.
fn check_exit_leak(env: &mut Check<'_>, is_exception: bool, check_lock: bool) -> Result<()> {
    let what = LeakCheck::Throw;
    let check_lock = check_lock || !env.input.rules.has(Behaviour::StaticUnderLock);
    if check_lock && env.state.active_locks != 0 {
        return Err(match is_exception {
            true => refuse!(env => Call::InsideLock { what }),
            false => refuse!(env => Call::LockAtExit),
        });
    }
    if check_lock && env.state.active_rcu_locks != 0 {
        let section = Section::Rcu;
        return Err(match is_exception {
            true => refuse!(env => Call::InsideSection { what, section }),
            false => refuse!(env => Call::RcuAtExit),
        });
    }
    if check_lock && env.state.active_preempt_locks != 0 {
        let (section, count) = (Section::Preempt, env.state.active_preempt_locks);
        return Err(match is_exception {
            true => refuse!(env => Call::InsideSection { what, section }),
            false => refuse!(env => Call::PreemptionAtExit { count }),
        });
    }
    match has_leaked(env, is_exception) {
        Some((id, insn)) => Err(refuse!(env => Call::Unreleased { id, insn })),
        None => Ok(()),
    }
}

/// The last acquired reference that is left; logs those before it (`check_reference_leak`).
/// Functions that return to a caller may keep them, callbacks where references are the program's.
#[doc(alias = "check_reference_leak")]
fn has_leaked(env: &mut Check<'_>, is_exception: bool) -> Option<(u32, u32)> {
    let (frameno, in_callback) = (env.frame().frameno, env.frame().in_callback_fn);
    let by_callbacks = !env.input.rules.has(Behaviour::ReferencesOfProgram) && in_callback;
    if !is_exception && frameno != 0 && !by_callbacks {
        return None;
    }
    let is_kept = |found: &&Reference| {
        let of_other = || {
            found
                .callback
                .is_some_and(|number| u32::from(number) != frameno)
        };
        !is_exception && by_callbacks && of_other()
    };
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
        .filter(|found| !is_kept(found))
        .map(|found| (found.id, found.insn_idx))
        .collect();
    let (last, before) = leaked.split_last()?;
    for (id, insn) in before {
        let _ = refuse!(env => Call::Unreleased { id: *id, insn: *insn });
    }
    Some(*last)
}
