//! Exits: of the program, and of functions back to their callers.

use isa::ebpf::Reg;
use spec::behaviour::Behaviour;
use spec::programs::ProgramType;

use crate::attach::Returned;
use crate::call::{LeakCheck, check_resource_leak};
use crate::domain::Tnum;
use crate::env::{Check, Env, Outcome, RegArg};
use crate::explore::widen_to_earlier;
use crate::input::Input;
use crate::log::BitsText;
use crate::mem::region::check_ptr_off;
use crate::rejection::{Flow, Rejection};
use crate::state::{RegKind, RegState, TypeRef};
use crate::{Result, Stop, refuse, refuse_if, verbose};

/// Checks `exit` (`process_bpf_exit_full`).
#[doc(alias = "process_bpf_exit_full")]
pub(crate) fn check_exit(env: &mut Env<'_>) -> Result<Outcome> {
    let is_outermost = env.state.curframe == 0;
    check_resource_leak(env, false, is_outermost, LeakCheck::Exit)?;
    if !is_outermost {
        return prepare_func_exit(env).map(Outcome::Return);
    }
    let is_subprog = env.state.frame(0).subprogno != 0;
    check_return_code(env, Reg::R0, is_subprog)?;
    Ok(Outcome::Exit)
}

/// Checks the cookie of `bpf_throw`, which the default exception callback returns: for the program,
/// whichever function throws, where exceptions of global functions are followed.
pub(crate) fn check_thrown(env: &mut Env<'_>) -> Result<()> {
    let is_followed = env.input.rules.has(Behaviour::GlobalsThrow);
    let is_subprog = env.state.frame(0).subprogno != 0 && !is_followed;
    check_return_code(env, Reg::R1, is_subprog)
}

/// Leaves the executing function; the instruction to go on with (`prepare_func_exit`).
pub(crate) fn prepare_func_exit(env: &mut Env<'_>) -> Result<u32> {
    env.update_live()?;
    let callee = env.frame();
    let r0 = callee.regs[0];
    let (callsite, callee_number) = (callee.callsite as u32, callee.frameno as usize);
    let in_callback = callee.in_callback_fn;
    let range = callee.callback_ret_range;
    if matches!(r0.kind, RegKind::Stack { .. }) {
        return Err(refuse!(env => Flow::ReturnsStackPointer));
    }
    let caller_number = env.state.curframe - 1;
    let iterates = env.input.rules.has(Behaviour::CallbacksIterate);
    let is_by_range = env.input.rules.has(Behaviour::ReturnsByRange);
    if in_callback {
        refuse_if!(!r0.is_scalar(), env => Flow::CallbackReturn { reg: Reg::R0 });
        env.mark_reg_read(Reg::R0);
        env.mark_precise(Reg::R0)?;
        let is_within = match is_by_range {
            true => is_within(range, &r0, false),
            false => bits_of(range).contains(r0.num.var_off),
        };
        if !is_within {
            return Err(refuse_value(env, Reg::R0, range, "At callback return"));
        }
        if iterates && !env.analysis.insns[callsite as usize].calls_callback {
            let insn_idx = env.sink.insn_idx;
            return Err(refuse!(env => Flow::NotCallback { insn_idx, callsite }));
        }
    } else {
        let marks = env.frame().marks;
        let caller = env.state.frame_mut(caller_number);
        caller.regs[0] = r0;
        caller.marks.take_reg(0, &marks, 0);
    }
    let again = in_callback && iterates;
    let target = if again { callsite } else { callsite + 1 };
    if env.sink.walks() {
        verbose!(env.sink, "returning from callee:\n");
        env.print_state(callee_number);
        verbose!(env.sink, "to caller at {target}:\n");
        env.print_state(caller_number);
    }
    env.state.pop_frame();
    if again {
        widen_to_earlier(
            &env.explorer,
            &mut env.check.state,
            None,
            target,
            env.check.id_gen,
            env.check.input.rules,
        );
    }
    Ok(target)
}

/// Checks the program's return value in a register (`check_return_code`)
/// (`check_global_subprog_return_code`).
#[doc(alias = "check_global_subprog_return_code")]
fn check_return_code(env: &mut Env<'_>, reg: Reg, is_subprog: bool) -> Result<()> {
    let frame = env.state.frame(0);
    let in_exception = frame.in_exception_callback_fn;
    let in_async = frame.in_async_callback_fn;
    let async_range = frame.callback_ret_range;
    let returned = crate::attach::returned(env.input);
    if !is_subprog || in_exception {
        match returned {
            Returned::Nothing => return Ok(()),
            Returned::Unknown => return Err(Stop::unsupported("return values by prototype")),
            Returned::Object(ty) if !in_exception && returns_object(env.reg(reg), ty) => {
                let value = *env.reg(reg);
                return check_ptr_off(&mut env.sink, &value, reg, false);
            }
            Returned::Any
            | Returned::ByProgramType
            | Returned::OfHook(..)
            | Returned::OfCgroup { .. }
            | Returned::Object(_) => {}
        }
    }
    if is_subprog && !in_exception && !in_async && is_void_subprog(env) {
        return Ok(());
    }
    env.check_reg_arg(reg, RegArg::Src)?;
    let value = *env.reg(reg);
    if !env.input.allow_ptr_leaks && !value.is_scalar() {
        return Err(refuse!(env => Flow::LeaksReturn { reg: reg }));
    }
    if in_async {
        let context = match env.input.rules.has(Behaviour::AsyncReturnsNamed) {
            true => "At async callback return",
            false => "At async callback",
        };
        return enforce(env, reg, async_range, false, context);
    }
    if is_subprog && !in_exception {
        let is_arena = value.kind == RegKind::Arena && env.input.rules.has(Behaviour::ArenaTags);
        if !value.is_scalar() && !is_arena {
            let kind = value.reg_type();
            return Err(refuse!(env => Flow::SubprogReturn { reg: reg, kind }));
        }
        return Ok(());
    }
    let range = match returned {
        Returned::Any | Returned::Nothing | Returned::Unknown => None,
        Returned::OfHook(..) if !env.input.rules.has(Behaviour::HookResultsLimited) => None,
        Returned::OfHook(min, max) => {
            return enforce(env, reg, (min, max), true, "At program exit");
        }
        Returned::Object(_) => Some((0, 0)),
        Returned::OfCgroup { is_void: false } => Some((0, 1)),
        Returned::OfCgroup { is_void: true } => {
            let stop = enforce(env, reg, (1, 1), false, "At program exit");
            return stop.map_err(|stop| of_void_hook(env, stop));
        }
        Returned::ByProgramType => by_program_type(env.input),
    };
    match range {
        Some(range) => enforce(env, reg, range, false, "At program exit"),
        None => Ok(()),
    }
}

/// True if the function that is verified on its own returns nothing.
fn is_void_subprog(env: &Check<'_>) -> bool {
    crate::call::returns_void(env, env.state.frame(0).subprogno)
}

/// Checks that a helper is given a result within a range (`retval_range_within`).
pub(crate) fn check_result(
    env: &mut Env<'_>,
    reg: Reg,
    range: (i32, i32),
    context: &str,
) -> Result<()> {
    enforce(env, reg, range, true, context)
}

/// Numbers that programs of the type may return, from the first to the second
/// (`return_retval_range`).
#[doc(alias = "return_retval_range")]
fn by_program_type(input: &Input<'_>) -> Option<(i32, i32)> {
    if input.context.kind == ProgramType::RawTracepoint {
        let target = input.program.attach_target()?;
        return (!target.btf_id.is_void()).then_some((0, 0));
    }
    let range = input.registry.return_range(&input.context)?;
    Some((range.min, range.max))
}

/// True for a reference to an object of the type that an operation returns.
fn returns_object(value: &RegState, ty: TypeRef) -> bool {
    value.ref_obj_id != 0 && matches!(value.kind, RegKind::BtfId { ty: found } if found == ty)
}

/// Adds a note to the refusal of a value of a hook that returns nothing.
fn of_void_hook(env: &mut Check<'_>, stop: Stop) -> Stop {
    match stop {
        Stop::Refused(refusal)
            if matches!(
                *refusal.rejection,
                Rejection::Flow(Flow::ReturnRange { .. } | Flow::ReturnBits { .. })
            ) =>
        {
            refuse!(env => Flow::ReturnOfVoidHook)
        }
        stop => stop,
    }
}

/// The value must be a scalar within a range.
fn enforce(
    env: &mut Env<'_>,
    reg: Reg,
    range: (i32, i32),
    in_32_bits: bool,
    context: &str,
) -> Result<()> {
    let value = *env.reg(reg);
    if !value.is_scalar() {
        let kind = value.reg_type();
        return Err(refuse!(env => Flow::ReturnUnknown { context, reg, kind }));
    }
    let is_by_range = env.input.rules.has(Behaviour::ReturnsByRange);
    if is_by_range {
        env.mark_precise(reg)?;
    }
    let is_within = match is_by_range {
        true => is_within(range, &value, in_32_bits),
        false => bits_of(range).contains(value.num.var_off),
    };
    if !is_within {
        return Err(refuse_value(env, reg, range, context));
    }
    Ok(())
}

/// True if the value is within a range (`retval_range_within`).
#[doc(alias = "retval_range_within")]
fn is_within((min, max): (i32, i32), reg: &RegState, in_32_bits: bool) -> bool {
    if in_32_bits {
        reg.num.s32_min >= min && reg.num.s32_max <= max
    } else {
        reg.num.smin >= i64::from(min) && reg.num.smax <= i64::from(max)
    }
}

/// The bits that numbers of a range share.
fn bits_of((min, max): (i32, i32)) -> Tnum {
    Tnum::range(i64::from(min) as u64, i64::from(max) as u64)
}

/// `verbose_invalid_scalar`.
#[doc(alias = "verbose_invalid_scalar")]
fn refuse_value(env: &mut Check<'_>, reg: Reg, (min, max): (i32, i32), context: &str) -> Stop {
    let num = env.reg(reg).num;
    if !env.input.rules.has(Behaviour::ReturnsByRange) {
        let known = match num.var_off.is_unknown() {
            true => String::from("unknown scalar value"),
            false => format!("value {}", BitsText(num.var_off, env.input.rules)),
        };
        let range = bits_of((min, max));
        return refuse!(env => Flow::ReturnBits { context, reg, known, range });
    }
    let mut known = String::new();
    if num.smin > i64::MIN {
        known += &format!(" smin={}", num.smin);
    }
    if num.smax < i64::MAX {
        known += &format!(" smax={}", num.smax);
    }
    if known.is_empty() {
        known += " unknown scalar value";
    }
    refuse!(env => Flow::ReturnRange { context, reg, known, min, max })
}
