//! Calls of subprograms, and what a function is verified with on its own.

use std::rc::Rc;

use isa::ebpf::Reg;
use spec::behaviour::Behaviour;
use spec::programs::ProgramType;
use spec::registry::{ArgBase, ArgType, RegBase};

use super::args::{check_offset, check_reg_type};
use super::dynptr::{self, Usage};
use super::helper::section;
use super::leak::{LeakCheck, check_resource_leak};
use super::prototype::{self, SubprogArg};
use super::{REGS, clear_caller_saved, reference};
use crate::attach::AttachedFunction;
use crate::env::{Check, Env, Outcome};
use crate::mem::helper_mem::check_mem_reg;
use crate::mem::packet;
use crate::mem::registers::set_unknown;
use crate::state::{Frame, MAX_CALL_FRAMES, MORE_FRAMES, RegKind, RegState, TypeFlags, TypeRef};
use crate::{Errno, Refusal, Result, Stop, refuse, refuse_if, verbose};

/// Checks a call of a subprogram: enters a static one, assumes a global one to be good
/// (`check_func_call`) (`set_callee_state`).
#[doc(alias = "set_callee_state")]
pub(super) fn check_func_call(env: &mut Env<'_>, off: i32) -> Result<Outcome> {
    let target = i64::from(env.sink.insn_idx) + i64::from(off) + 1;
    let subprogs = &env.analysis.subprogs;
    let found = subprogs
        .binary_search_by_key(&target, |subprog| subprog.start.into())
        .map_err(|_| Stop::Bug(format!("no subprogram at {target}")))?;
    let subprog = found as u32;
    let fits = check_args_by_btf(env, subprog)?;
    let info = &env.analysis.subprogs[found];
    if !info.is_global {
        check_frame_limit(env)?;
        let curframe = env.state.curframe;
        let mut frame = Frame::new(env.sink.insn_idx as i32, curframe as u32 + 1, subprog);
        for arg in 1..6 {
            frame.regs[arg] = env.frame().regs[arg];
            frame.marks.take_reg(arg, &env.frame().marks, arg);
        }
        env.sink.mark_all_scratched();
        clear_caller_saved(env)?;
        return Ok(enter(env, frame));
    }
    if env.state.active_locks != 0 {
        verbose!(
            env.sink,
            "global function calls are not allowed while holding a lock,\n"
        );
        return Err(refuse!(env => Call::GlobalUnderLock));
    }
    let may_disable = env.input.rules.has(Behaviour::GlobalsUnderPreemption);
    if !may_disable && env.state.active_preempt_locks != 0 {
        verbose!(
            env.sink,
            "global function calls are not allowed with preemption disabled,\n"
        );
        return Err(refuse!(env => Call::GlobalUnderLock));
    }
    let state = &env.state;
    let must_not_sleep = state.active_rcu_locks != 0
        || state.active_preempt_locks != 0
        || state.active_irq_id != 0
        || !state.in_sleepable;
    if may_disable && info.might_sleep && must_not_sleep {
        if !env.input.rules.has(Behaviour::ContextsNamed) {
            verbose!(
                env.sink,
                "global functions that may sleep are not allowed in non-sleepable context,\ni.e., in a RCU/IRQ/preempt-disabled section, or in\n"
            );
        }
        let section = section(&env.state);
        let name = &info.name;
        return Err(refuse!(env => Call::GlobalMightSleep { name, section }));
    }
    let name = &info.name;
    if let Err(Misfit { errno, number }) = fits {
        let refusal = refuse!(env => Call::GlobalArguments { subprog, name, number });
        return Err(refusal.with_errno(errno));
    }
    verbose!(
        env.sink,
        "Func#{subprog} ('{name}') is global and assumed valid.\n"
    );
    if info.changes_pkt_data && env.input.rules.has(Behaviour::GlobalsChangePackets) {
        packet::clear_pointers(env);
    }
    env.subprogs[found].called = true;
    let may_throw = info.might_throw && env.input.rules.has(Behaviour::GlobalsThrow);
    clear_caller_saved(env)?;
    if !returns_void(env, subprog) {
        set_unknown(env, Reg::R0);
        env.mark_scratched(Reg::R0);
    }
    if may_throw {
        env.fork(env.sink.insn_idx + 1)?;
        check_resource_leak(env, true, true, LeakCheck::Throw)?;
        return Ok(Outcome::Exit);
    }
    Ok(Outcome::Next)
}

/// True for a global function that returns nothing, of kernels that take those
/// (`subprog_returns_void`).
#[doc(alias = "subprog_returns_void")]
pub(crate) fn returns_void(env: &Check<'_>, subprog: u32) -> bool {
    env.input.rules.has(Behaviour::GlobalsReturnVoid) && prototype::returns_void(env.input, subprog)
}

/// Refuses a call chain that is too deep.
pub(super) fn check_frame_limit(env: &mut Check<'_>) -> Result<()> {
    let curframe = env.state.curframe;
    if curframe + 1 < MAX_CALL_FRAMES {
        return Ok(());
    }
    if env.input.rules.has(Behaviour::SixteenFrames) {
        return Err(Stop::unsupported(MORE_FRAMES));
    }
    Err(refuse!(env => Call::TooManyFrames { frames: curframe + 2 }))
}

/// Enters a frame (`setup_func_entry`).
#[doc(alias = "setup_func_entry")]
pub(super) fn enter(env: &mut Env<'_>, frame: Frame) -> Outcome {
    let curframe = env.state.curframe;
    let start = env.analysis.subprogs[frame.subprogno as usize].start;
    env.state.push_frame(frame);
    env.sink.mark_all_scratched();
    env.live.reset_callchain();
    if env.sink.walks() {
        verbose!(env.sink, "caller:\n");
        env.print_state(curframe);
        verbose!(env.sink, "callee:\n");
        env.print_state(curframe + 1);
    }
    env.mark_scratched(Reg::R0);
    Outcome::Call(start)
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
    env: &mut Env<'_>,
    subprog: u32,
) -> Result<std::result::Result<(), Misfit>> {
    let index = subprog as usize;
    let unreliable = Misfit {
        errno: Errno::EINVAL,
        number: None,
    };
    let has_own = env.input.rules.has(Behaviour::ArgumentsOfMemory);
    let errno_of = |refusal: &Refusal| {
        if has_own {
            refusal.errno
        } else {
            Errno::EINVAL
        }
    };
    if env.input.program.func_info().is_empty() || env.subprogs[index].unreliable {
        return Ok(Err(unreliable));
    }
    let fits = match arguments(env, subprog) {
        Err(Stop::Refused(refusal)) if refusal.errno == Errno::EFAULT => {
            return Err(Stop::Refused(refusal));
        }
        Err(Stop::Refused(refusal)) => Err(Misfit {
            errno: errno_of(&refusal),
            number: None,
        }),
        Err(stop) => return Err(stop),
        Ok(args) => match match_args(env, &args) {
            Ok(()) => Ok(()),
            Err((number, Stop::Refused(refusal))) => Err(Misfit {
                errno: errno_of(&refusal),
                number: Some(number),
            }),
            Err((_, stop)) if env.analysis.subprogs[index].is_global => return Err(stop),
            Err(_) => Err(unreliable),
        },
    };
    if fits.is_err() {
        env.subprogs[index].unreliable = true;
    }
    Ok(fits)
}

/// The arguments of a subprogram by its BTF, computed once.
fn arguments(env: &mut Check<'_>, subprog: u32) -> Result<Rc<[SubprogArg]>> {
    if let Some(args) = &env.subprogs[subprog as usize].args {
        return Ok(Rc::clone(args));
    }
    let Some(found) = prototype::arguments(env.input, subprog) else {
        return Err(Stop::Bug("func_info undefined".into()));
    };
    match found {
        Ok(args) => {
            let args: Rc<[SubprogArg]> = args.into();
            env.subprogs[subprog as usize].args = Some(Rc::clone(&args));
            Ok(args)
        }
        Err(error) => Err(env.refuse(error.rejection)),
    }
}

/// Checks registers against the arguments of a function (`btf_check_func_arg_match`); the
/// number of the first that does not fit, with the refusal.
#[doc(alias = "btf_check_func_arg_match")]
fn match_args(env: &mut Env<'_>, args: &[SubprogArg]) -> std::result::Result<(), (u8, Stop)> {
    for (&arg, ptr) in args.iter().zip(REGS) {
        match_arg(env, arg, ptr).map_err(|stop| (ptr.number(), stop))?;
    }
    Ok(())
}

/// Checks a register against an argument of a function.
fn match_arg(env: &mut Env<'_>, arg: SubprogArg, ptr: Reg) -> Result<()> {
    let reg = *env.reg(ptr);
    let number = ptr.number();
    let index = number - 1;
    match arg {
        SubprogArg::Scalar => {
            refuse_if!(!reg.is_scalar(), env => Call::NotScalar { reg: ptr });
        }
        SubprogArg::UntrustedMem | SubprogArg::Btf { trusted: false, .. } => {}
        SubprogArg::Ctx => {
            check_offset(env, ptr, None)?;
            refuse_if!(!reg.is_plain(RegBase::PtrToCtx), env => Call::ExpectsContext { index });
        }
        SubprogArg::Mem { size, nullable } => {
            check_offset(env, ptr, None)?;
            let is_checked = env.input.rules.has(Behaviour::NullIsNoMemory);
            if is_checked && matches!(reg.kind, RegKind::BtfId { .. }) && !reg.is_allocated() {
                return Err(refuse!(env => Mem::ObjectWrite));
            }
            let checked = check_mem_reg(env, ptr, size);
            checked.map_err(|stop| stop.with_errno(Errno::EINVAL))?;
            if !nullable && (reg.may_be_null() || is_checked && reg.is_null()) {
                return Err(refuse!(env => Call::ExpectsNonNull { index }));
            }
        }
        SubprogArg::Arena => {
            if reg.kind != RegKind::Arena && !reg.is_scalar() {
                return Err(refuse!(env => Call::NotArena { reg: ptr }));
            }
        }
        SubprogArg::Dynptr => {
            let arg = ArgType::from(ArgBase::PtrToDynptr);
            check_offset(env, ptr, Some(arg))?;
            let usage = Usage::Takes {
                kind: None,
                is_rdonly: true,
            };
            dynptr::check_dynptr(env, ptr, usage)?;
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
            check_reg_type(env, ptr, arg, Some(id.0), None)?;
            check_offset(env, ptr, Some(arg))?;
        }
    }
    Ok(())
}

/// Sets the registers that a function is verified with: the context for the main
/// function, what BTF says for any other (in `do_check_common`).
#[doc(alias = "do_check_common")]
pub(crate) fn set_up_entry_args(env: &mut Check<'_>, subprog: u32) -> Result<()> {
    env.sink.mark_all_scratched();
    let is_ext = env.input.program.kind() == ProgramType::Ext;
    if subprog == 0 && !is_ext {
        if !env.input.program.func_info().is_empty() {
            let is_plain = matches!(arguments(env, 0).as_deref(), Ok([SubprogArg::Ctx]));
            if !is_plain {
                env.subprogs[0].unreliable = true;
            }
        }
        *env.reg_mut(Reg::R1) = RegState::pointer(RegKind::Ctx, TypeFlags::NONE);
        acquire_args(env);
        return Ok(());
    }
    let name = &env.analysis.subprogs[subprog as usize].name;
    verbose!(env.sink, "Validating {name}() func#{subprog}...\n");
    let args = arguments(env, subprog)?;
    if env.analysis.exception_callback == Some(subprog as usize) {
        env.frame_mut().in_exception_callback_fn = true;
        refuse_if!(!matches!(&*args, [SubprogArg::Scalar]), env => Call::ExceptionCallback);
    }
    for (arg, ptr) in args.iter().zip(REGS) {
        let value = entry_value(env, *arg)?;
        *env.reg_mut(ptr) = value;
    }
    Ok(())
}

/// Acquires the references that arguments of a struct_ops program hold.
fn acquire_args(env: &mut Check<'_>) {
    let function = AttachedFunction::of(env.input).filter(|_| env.input.struct_ops().is_some());
    let held = function.map(|function| function.referenced_args(env.input));
    for index in held.unwrap_or_default() {
        let id = reference::acquire_at(env, 0);
        env.referenced_args.push((index, id));
    }
}

/// State of an argument on entry.
fn entry_value(env: &mut Check<'_>, arg: SubprogArg) -> Result<RegState> {
    Ok(match arg {
        SubprogArg::Scalar | SubprogArg::Arena => RegState::UNKNOWN,
        SubprogArg::Ctx => RegState::pointer(RegKind::Ctx, TypeFlags::NONE),
        SubprogArg::Mem { size, nullable } => {
            let kind = RegKind::memory(size);
            if !nullable {
                return Ok(RegState::pointer(kind, TypeFlags::NONE));
            }
            let mut value = RegState::pointer(kind, TypeFlags::PTR_MAYBE_NULL);
            value.id = env.new_id();
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
            value.id = env.new_id();
            value
        }
        SubprogArg::Dynptr => dynptr::constant(env),
    })
}
