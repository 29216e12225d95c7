//! Calls of helpers, kfuncs, subprograms and callbacks.
//!
//! | file | contents |
//! |---|---|
//! | `helper` | order of the checks of a helper call, and its effects |
//! | `meta` | record of what a call does, as its arguments say |
//! | `args` | arguments against the prototype |
//! | `returns` | the value in r0 |
//! | `compat` | which helpers take which map types |
//! | `constant` | constant strings, map keys and formats |
//! | `field` | special fields that calls take the address of |
//! | `kptr` | `bpf_kptr_xchg` |
//! | `lock` | locks |
//! | `reference` | references that helpers acquire and release |
//! | `leak` | what must not be held at some point |
//! | `subprog` | calls of subprograms, and what a function is verified with |
//! | `callback` | frames of callbacks |
//! | `stack_slots` | objects on the stack: their slots |
//! | `dynptr` | dynptrs that calls make, take and release |
//! | `prototype` | arguments of subprograms by BTF |
//! | `format` | format strings |
//! | `kfunc` | kernel functions: order of the checks, arguments, the value in r0 |

pub(crate) mod args;
mod callback;
mod compat;
mod constant;
pub(crate) mod dynptr;
mod field;
mod format;
mod helper;
mod kfunc;
mod kptr;
pub(crate) mod leak;
mod lock;
mod meta;
pub(crate) mod prototype;
pub(crate) mod reference;
mod returns;
mod stack_slots;
mod subprog;

use isa::ebpf::{Callee, Reg};
use spec::behaviour::Behaviour;
use spec::helpers::HelperId;
use spec::registry::{KfuncFlags, SpecialKfunc};

use crate::Result;
use crate::env::{Check, Env, Outcome, RegArg};
use crate::state::RegState;

pub(crate) use leak::{LeakCheck, check_resource_leak};
pub(crate) use prototype::SubprogArg;
pub(crate) use subprog::{returns_void, set_up_entry_args};

/// Registers of arguments.
const REGS: [Reg; 5] = [Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5];

/// Checks a call. A local call enters a frame and returns [`Outcome::Call`].
pub(crate) fn check_call(env: &mut Env<'_>, callee: Callee) -> Result<Outcome> {
    match callee {
        Callee::Helper(id) => {
            let helper = HelperId::from_number(id);
            let exchanges = helper == Some(HelperId::KptrXchg)
                && env.input.rules.has(Behaviour::ExchangesUnderLock);
            let is_allowed = helper.is_some_and(HelperId::is_allowed_under_lock) || exchanges;
            check_held_lock(env, is_allowed)?;
            helper::check_helper_call(env, id)
        }
        Callee::Kfunc { id, module } => {
            let found = kfunc::fetch_kfunc_meta(env.input, id, module);
            let kfunc = found.as_ref().ok().and_then(|found| found.kfunc);
            let rules = env.input.rules;
            let context = &env.input.context;
            let kfunc = kfunc.filter(|kfunc| {
                !rules.has(Behaviour::OwnKfuncsUnderLock)
                    || kfunc.is_for(context.kind, context.attach)
            });
            let is_allowed = kfunc.is_some_and(|kfunc| {
                let by_name = |special: SpecialKfunc| special.is_allowed_under_lock(rules);
                kfunc.flags.has(KfuncFlags::SPINLOCK_SAFE) || kfunc.special.is_some_and(by_name)
            });
            check_held_lock(env, is_allowed)?;
            match id {
                0 => Ok(Outcome::Next),
                _ => kfunc::check_kfunc_call(env, found?),
            }
        }
        Callee::Local(off) => {
            let is_allowed = env.input.rules.has(Behaviour::StaticUnderLock);
            check_held_lock(env, is_allowed)?;
            subprog::check_func_call(env, off)
        }
    }
}

/// Refuses calls that must not happen while a lock is held (in `do_check_insn`).
#[doc(alias = "do_check_insn")]
fn check_held_lock(env: &mut Check<'_>, is_allowed: bool) -> Result<()> {
    if is_allowed || env.state.active_locks == 0 {
        return Ok(());
    }
    Err(crate::refuse!(env => Call::UnderLock))
}

/// Makes the caller-saved registers unreadable (`clear_caller_saved_regs`).
#[doc(alias = "clear_caller_saved_regs")]
fn clear_caller_saved(env: &mut Env<'_>) -> Result<()> {
    for reg in [Reg::R0, Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5] {
        *env.reg_mut(reg) = RegState::NOT_INIT;
        env.check_reg_arg(reg, RegArg::DstNoMark)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
