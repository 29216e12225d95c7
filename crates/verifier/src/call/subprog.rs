//! Calls of subprograms, and what a function is verified with on its own.

use std::rc::Rc;

use isa::ebpf::Reg;
use spec::programs::ProgramType;
use spec::registry::{ArgBase, ArgType, RegBase};

use super::args::{check_offset, check_reg_type};
use super::prototype::{self, SubprogArg};
use super::{REGS, clear_caller_saved};
use crate::mem::helper_mem::check_global_mem;
use crate::mem::packet;
use crate::mem::registers::set_unknown;
use crate::state::{Frame, MAX_CALL_FRAMES, RegKind, RegState, TypeFlags, TypeRef};
use crate::walk::{Outcome, Walk};
use crate::{Errno, Result, Stop, log, refuse, verbose};

/// Checks a call of a subprogram: enters a static one, assumes a global one to be good
/// (`check_func_call`).
pub(super) fn check_func_call(walk: &mut Walk<'_>, off: i32) -> Result<Outcome> {
    let target = i64::from(walk.insn_idx) + i64::from(off) + 1;
    let subprogs = &walk.facts.subprogs;
    let found = subprogs
        .binary_search_by_key(&target, |subprog| subprog.start.into())
        .map_err(|_| Stop::Bug(format!("no subprogram at {target}")))?;
    let subprog = found as u32;
    let fits = check_args_by_btf(walk, subprog)?;
    let facts = &walk.facts.subprogs[found];
    if !facts.is_global {
        return enter(walk, subprog);
    }
    if walk.state.active_locks != 0 {
        verbose!(
            walk,
            "global function calls are not allowed while holding a lock,\n"
        );
        return Err(refuse!(walk => Call::GlobalUnderLock));
    }
    let state = &walk.state;
    let must_not_sleep = state.active_rcu_lock
        || state.active_preempt_locks != 0
        || state.active_irq_id != 0
        || !state.in_sleepable;
    if facts.might_sleep && must_not_sleep {
        verbose!(
            walk,
            "global functions that may sleep are not allowed in non-sleepable context,\ni.e., in a RCU/IRQ/preempt-disabled section, or in\n"
        );
        return Err(refuse!(walk => Call::GlobalMightSleep));
    }
    let name = &facts.name;
    if let Err(Misfit { errno, number }) = fits {
        let refusal = refuse!(walk => Call::GlobalArguments { subprog, name, number });
        return Err(refusal.with_errno(errno));
    }
    verbose!(
        walk,
        "Func#{subprog} ('{name}') is global and assumed valid.\n"
    );
    if facts.changes_pkt_data {
        packet::clear_pointers(walk);
    }
    walk.subprogs[found].called = true;
    clear_caller_saved(walk)?;
    set_unknown(walk, Reg::R0);
    walk.mark_scratched(Reg::R0);
    Ok(Outcome::Next)
}

/// Refuses a call chain that is too deep.
pub(super) fn check_frame_limit(walk: &mut Walk<'_>) -> Result<()> {
    let curframe = walk.state.curframe;
    if curframe + 1 < MAX_CALL_FRAMES {
        return Ok(());
    }
    Err(refuse!(walk => Call::TooManyFrames { frames: curframe + 2 }))
}

/// Enters a frame for a static function (`setup_func_entry`).
#[doc(alias = "setup_func_entry")]
fn enter(walk: &mut Walk<'_>, subprog: u32) -> Result<Outcome> {
    check_frame_limit(walk)?;
    let curframe = walk.state.curframe;
    let mut frame = Frame::new(walk.insn_idx as i32, curframe as u32 + 1, subprog);
    for arg in 1..6 {
        frame.regs[arg] = walk.frame().regs[arg];
    }
    walk.sink.mark_all_scratched();
    clear_caller_saved(walk)?;
    walk.state.push_frame(frame);
    walk.sink.mark_all_scratched();
    walk.live.reset_callchain();
    walk.sink.mark_all_scratched();
    let start = walk.facts.subprogs[subprog as usize].start;
    if walk.sink.walks() {
        let env = walk.env;
        verbose!(walk, "caller:\n");
        log::print_verifier_state(env, &mut walk.sink, &walk.state, curframe, true);
        verbose!(walk, "callee:\n");
        log::print_verifier_state(env, &mut walk.sink, &walk.state, curframe + 1, true);
    }
    walk.mark_scratched(Reg::R0);
    Ok(Outcome::Jump(start))
}

/// The arguments of a call do not fit the function's BTF.
#[derive(Clone, Copy, Debug)]
pub(super) struct Misfit {
    /// The error number with which a call of a global function is refused.
    errno: Errno,
    /// Number from 1 of the first argument that does not fit.
    number: Option<u8>,
}

/// Checks the arguments of a call against the BTF of the function
/// (`btf_check_subprog_call`). A misfit makes the BTF unreliable from then on.
#[doc(alias = "btf_check_subprog_call")]
pub(super) fn check_args_by_btf(
    walk: &mut Walk<'_>,
    subprog: u32,
) -> Result<std::result::Result<(), Misfit>> {
    let index = subprog as usize;
    let unreliable = Misfit {
        errno: Errno::EINVAL,
        number: None,
    };
    if walk.env.program.func_info().is_empty() || walk.subprogs[index].unreliable {
        return Ok(Err(unreliable));
    }
    let fits = match arguments(walk, subprog) {
        Err(Stop::Refused(refusal)) if refusal.errno == Errno::EFAULT => {
            return Err(Stop::Refused(refusal));
        }
        Err(Stop::Refused(refusal)) => Err(Misfit {
            errno: refusal.errno,
            number: None,
        }),
        Err(stop) => return Err(stop),
        Ok(args) => match match_args(walk, &args) {
            Ok(()) => Ok(()),
            Err((number, Stop::Refused(refusal))) => Err(Misfit {
                errno: refusal.errno,
                number: Some(number),
            }),
            Err((_, stop)) if walk.facts.subprogs[index].is_global => return Err(stop),
            Err(_) => Err(unreliable),
        },
    };
    if fits.is_err() {
        walk.subprogs[index].unreliable = true;
    }
    Ok(fits)
}

/// The arguments of a subprogram by its BTF, computed once.
fn arguments(walk: &mut Walk<'_>, subprog: u32) -> Result<Rc<[SubprogArg]>> {
    if let Some(args) = &walk.subprogs[subprog as usize].args {
        return Ok(Rc::clone(args));
    }
    let Some(found) = prototype::arguments(walk.env, subprog) else {
        return Err(Stop::Bug("func_info undefined".into()));
    };
    match found {
        Ok(args) => {
            let args: Rc<[SubprogArg]> = args.into();
            walk.subprogs[subprog as usize].args = Some(Rc::clone(&args));
            Ok(args)
        }
        Err(error) => Err(walk.sink.refuse(error.rejection, walk.insn_idx)),
    }
}

/// Checks registers against the arguments of a function (`btf_check_func_arg_match`); the
/// number of the first that does not fit, with the refusal.
#[doc(alias = "btf_check_func_arg_match")]
fn match_args(walk: &mut Walk<'_>, args: &[SubprogArg]) -> std::result::Result<(), (u8, Stop)> {
    for (&arg, ptr) in args.iter().zip(REGS) {
        match_arg(walk, arg, ptr).map_err(|stop| (ptr.number(), stop))?;
    }
    Ok(())
}

/// Checks a register against an argument of a function.
fn match_arg(walk: &mut Walk<'_>, arg: SubprogArg, ptr: Reg) -> Result<()> {
    let reg = *walk.reg(ptr);
    let number = ptr.number();
    let index = number - 1;
    match arg {
        SubprogArg::Scalar => {
            if !reg.is_scalar() {
                return Err(refuse!(walk => Call::NotScalar { reg: ptr }));
            }
        }
        SubprogArg::UntrustedMem | SubprogArg::Btf { trusted: false, .. } => {}
        SubprogArg::Ctx => {
            check_offset(walk, ptr, None)?;
            if !reg.is_plain(RegBase::PtrToCtx) {
                return Err(refuse!(walk => Call::ExpectsContext { index }));
            }
        }
        SubprogArg::Mem { size, nullable } => {
            check_offset(walk, ptr, None)?;
            let checked = check_global_mem(walk, ptr, size);
            checked.map_err(|stop| stop.with_errno(Errno::EINVAL))?;
            if !nullable && reg.may_be_null() {
                return Err(refuse!(walk => Call::ExpectsNonNull { index }));
            }
        }
        SubprogArg::Arena => {
            if reg.kind != RegKind::Arena && !reg.is_scalar() {
                return Err(refuse!(walk => Call::NotArena { reg: ptr }));
            }
        }
        SubprogArg::Dynptr => {
            let arg = ArgType::from(ArgBase::PtrToDynptr);
            check_offset(walk, ptr, Some(arg))?;
            if !matches!(
                reg.kind,
                RegKind::Stack { .. } | RegKind::ConstDynptr { .. }
            ) {
                return Err(refuse!(walk => Call::ExpectsDynptr { index }));
            }
            return Err(Stop::unsupported("dynptr as an argument"));
        }
        SubprogArg::Btf {
            id,
            trusted: true,
            nullable,
        } => {
            if reg.is_null() && nullable {
                return Ok(());
            }
            let mut flags = TypeFlags::PTR_TRUSTED;
            if nullable {
                flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
            }
            let arg = ArgType::new(ArgBase::PtrToBtfId, flags);
            check_reg_type(walk, ptr, arg, Some(id.0), 0)?;
            check_offset(walk, ptr, Some(arg))?;
        }
    }
    Ok(())
}

/// Sets the registers that a function is verified with: the context for the main
/// function, what BTF says for any other (in `do_check_common`).
#[doc(alias = "do_check_common")]
pub fn set_up_entry_args(walk: &mut Walk<'_>, subprog: u32) -> Result<()> {
    walk.sink.mark_all_scratched();
    let is_ext = walk.env.program.kind() == ProgramType::Ext;
    if subprog == 0 && !is_ext {
        if !walk.env.program.func_info().is_empty() {
            let is_plain = matches!(arguments(walk, 0).as_deref(), Ok([SubprogArg::Ctx]));
            if !is_plain {
                walk.subprogs[0].unreliable = true;
            }
        }
        *walk.reg_mut(Reg::R1) = RegState::pointer(RegKind::Ctx, TypeFlags::NONE);
        return Ok(());
    }
    let name = &walk.facts.subprogs[subprog as usize].name;
    verbose!(walk, "Validating {name}() func#{subprog}...\n");
    let args = arguments(walk, subprog)?;
    if walk.facts.exception_callback == Some(subprog as usize) {
        walk.frame_mut().in_exception_callback_fn = true;
        if !matches!(&*args, [SubprogArg::Scalar]) {
            return Err(refuse!(walk => Call::ExceptionCallback));
        }
    }
    for (arg, ptr) in args.iter().zip(REGS) {
        let value = entry_value(walk, *arg)?;
        *walk.reg_mut(ptr) = value;
    }
    Ok(())
}

/// State of an argument on entry.
fn entry_value(walk: &mut Walk<'_>, arg: SubprogArg) -> Result<RegState> {
    Ok(match arg {
        SubprogArg::Scalar | SubprogArg::Arena => RegState::UNKNOWN,
        SubprogArg::Ctx => RegState::pointer(RegKind::Ctx, TypeFlags::NONE),
        SubprogArg::Mem { size, nullable } => {
            let kind = RegKind::memory(size);
            if !nullable {
                return Ok(RegState::pointer(kind, TypeFlags::NONE));
            }
            let mut value = RegState::pointer(kind, TypeFlags::PTR_MAYBE_NULL);
            value.id = walk.new_id();
            value
        }
        SubprogArg::UntrustedMem => {
            let kind = RegKind::memory(0);
            let flags = TypeFlags::MEM_RDONLY.with(TypeFlags::PTR_UNTRUSTED);
            RegState::pointer(kind, flags)
        }
        SubprogArg::Btf {
            id,
            trusted,
            nullable,
        } => {
            let mut flags = match trusted {
                true => TypeFlags::PTR_TRUSTED,
                false => TypeFlags::PTR_UNTRUSTED,
            };
            if nullable {
                flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
            }
            let ty = TypeRef::vmlinux(id.0);
            let mut value = RegState::pointer(RegKind::BtfId { ty }, flags);
            value.id = walk.new_id();
            value
        }
        SubprogArg::Dynptr => return Err(Stop::unsupported("dynptr as an argument")),
    })
}
