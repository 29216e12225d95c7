//! Frames of functions that helpers and kfuncs call (`push_callback_call`).
//!
//! The call forks: one path enters the callback, whose exit comes back to the call, and
//! one goes on behind it, as if the callback had run any number of times.

use btf::Kind;
use btf::fields::FieldKind;
use isa::ebpf::Reg;
use spec::behaviour::Behaviour;
use spec::callback::CallbackKind;
use spec::maps::MapKind;

use super::dynptr;
use super::kfunc::graph;
use super::subprog::{check_args_by_btf, check_frame_limit};
use crate::env::{Check, Env, MapUse};
use crate::explore::Fork;
use crate::state::{
    Frame, MAIN_CALLSITE, MapRef, RegKind, RegState, Registers, State, TypeFlags, TypeRef,
};
use crate::{Errno, Result, Stop, refuse, verbose};

/// Enters a callback; that of `bpf_loop` only for another iteration. Where callbacks are followed once,
/// the frame that the call goes on in.
pub(super) fn push(env: &mut Env<'_>, subprog: u32, kind: CallbackKind) -> Result<Option<Frame>> {
    let is_once = !env.input.rules.has(Behaviour::CallbacksIterate) && !kind.is_async();
    match kind {
        CallbackKind::Loop if is_once => note_inline(env, subprog)?,
        CallbackKind::Loop => return push_loop(env, subprog).map(|()| None),
        _ => {}
    }
    match is_once {
        true => frame_of(env, subprog, kind).map(Some),
        false => enter(env, subprog, kind).map(|()| None),
    }
}

/// The frame of a callback that is followed once.
fn frame_of(env: &mut Env<'_>, subprog: u32, kind: CallbackKind) -> Result<Frame> {
    check_frame_limit(env)?;
    check_args_by_btf(env, subprog)?.ok();
    env.subprogs[subprog as usize].is_cb = true;
    let caller = env.frame().clone();
    let mut frame = Frame::new(
        env.sink.insn_idx as i32,
        env.state.curframe as u32 + 1,
        subprog,
    );
    set_args(env, &caller, &mut frame, kind)?;
    // The kernel marks the callee's registers where it means the caller's.
    frame.marks.written_regs |= 0x3f;
    Ok(frame)
}

/// Checks a call of `bpf_loop`: another iteration of the callback, or none.
fn push_loop(env: &mut Env<'_>, subprog: u32) -> Result<()> {
    note_inline(env, subprog)?;
    env.mark_precise(Reg::R1)?;
    let iterations = env.reg(Reg::R1).num.umax;
    if u64::from(env.frame().callback_depth) < iterations {
        return enter(env, subprog, CallbackKind::Loop);
    }
    env.frame_mut().callback_depth = 0;
    if env.sink.is_full() {
        let frame = env.state.curframe;
        verbose!(env.sink, "frame{frame} bpf_loop iteration limit reached\n");
    }
    Ok(())
}

/// Notes whether the call can be inlined: always the same callback, never flags
/// (`update_loop_inline_state`) (`loop_flag_is_zero`).
#[doc(alias = "loop_flag_is_zero")]
#[doc(alias = "update_loop_inline_state")]
fn note_inline(env: &mut Env<'_>, subprog: u32) -> Result<()> {
    let index = env.sink.insn_idx as usize;
    let before = env.aux[index].loop_inline;
    if before.initialized && !before.fits {
        return Ok(());
    }
    let has_no_flags = env.reg(Reg::R4).is_null();
    if has_no_flags {
        env.mark_precise(Reg::R4)?;
    }
    let inline = &mut env.aux[index].loop_inline;
    if inline.initialized {
        inline.fits = has_no_flags && inline.subprog == subprog;
    } else {
        inline.initialized = true;
        inline.fits = has_no_flags;
        inline.subprog = subprog;
    }
    Ok(())
}

/// Enters a callback on a path of its own (`push_callback_call`).
#[doc(alias = "push_callback_call")]
fn enter(env: &mut Env<'_>, subprog: u32, kind: CallbackKind) -> Result<()> {
    // A prototype that does not fit only makes the function's BTF unreliable.
    check_args_by_btf(env, subprog)?.ok();
    env.subprogs[subprog as usize].is_cb = true;
    let start = env.analysis.subprogs[subprog as usize].start;
    let insn_idx = env.sink.insn_idx;
    let caller = env.frame().clone();
    env.sink.mark_all_scratched();
    if kind.is_async() {
        env.subprogs[subprog as usize].is_async_cb = true;
        let mut frame = Frame::new(MAIN_CALLSITE, 0, subprog);
        frame.async_entry_cnt = caller.async_entry_cnt + 1;
        set_args(env, &caller, &mut frame, kind)?;
        let may_sleep = kind.rules().may_sleep
            || env.input.context.sleepable && !env.input.rules.has(Behaviour::TimersStayAwake);
        let mut state = State::new(frame, start, may_sleep);
        // Linux 6.18 leaves it 0, so that walks back go on before the callback.
        state.first_insn_idx = 0;
        return env.fork_async(state, start);
    }
    let curframe = env.state.curframe;
    // Linux 6.18 counts the branch before it checks the depth of the call chain.
    let mut frame = Frame::new(insn_idx as i32, curframe as u32 + 1, subprog);
    env.fork_or(start, Errno::ENOMEM)?;
    check_frame_limit(env)?;
    set_args(env, &caller, &mut frame, kind)?;
    if let Some(Fork { state, .. }) = env.forked.last_mut() {
        state.frame_mut(curframe).callback_depth += 1;
        state.push_frame(frame);
        state.callback_unroll_depth += 1;
    }
    env.frame_mut().callback_depth = 0;
    Ok(())
}

/// Sets the arguments and the allowed results of a callback (`set_callee_state_cb`).
#[doc(alias = "set_callee_state_cb")]
fn set_args(
    env: &mut Check<'_>,
    caller: &Frame,
    frame: &mut Frame,
    kind: CallbackKind,
) -> Result<()> {
    let rules = kind.rules();
    frame.in_callback_fn = !rules.is_async;
    frame.in_async_callback_fn = rules.is_async;
    frame.callback_ret_range = rules.returns;
    let Frame { regs, marks, .. } = frame;
    if let Some((given, taken)) = rules.given {
        let (given, taken) = (given.index(), taken.index());
        regs[taken] = caller.regs[given];
        marks.take_reg(taken, &caller.marks, given);
    }
    match kind {
        CallbackKind::MapElement => {
            let RegKind::MapPtr { map, .. } = caller.regs[1].kind else {
                return Err(Stop::Bug("callback without map".into()));
            };
            if !env.input.maps[map]
                .kind()
                .is_some_and(MapKind::has_for_each)
            {
                return Err(refuse!(env => Call::CallbackForMap));
            }
            let is_poisoned = env.insn_aux().map == MapUse::Several;
            if is_poisoned && !env.input.rules.has(Behaviour::ManyMapsFollowed) {
                return Err(refuse!(env => Program::TailCallMap));
            }
            regs[1] = caller.regs[1];
            marks.take_reg(1, &caller.marks, 1);
            set_element(regs, map);
        }
        CallbackKind::Loop => regs[1] = RegState::UNKNOWN,
        CallbackKind::Timer | CallbackKind::Workqueue => {
            let RegKind::MapValue { map, .. } = caller.regs[1].kind else {
                return Err(Stop::Bug("timer or work queue outside a map".into()));
            };
            set_map(regs, map);
            set_element(regs, map);
        }
        CallbackKind::TaskWork => {
            let RegKind::MapPtr { map, .. } = caller.regs[3].kind else {
                return Err(Stop::unsupported("map of a task's work by its structure"));
            };
            set_map(regs, map);
            set_element(regs, map);
        }
        CallbackKind::RbtreeAdd => {
            let root = &caller.regs[1];
            let at = (root.off as u32).wrapping_add(root.num.var_off.value as u32);
            let record = env.input.record_of(root);
            let found = record.and_then(|record| record.field_at(FieldKind::RbRoot, at));
            let Some(found) = found else {
                return Err(Stop::Bug("callback without a root".into()));
            };
            let mut node = graph::node(found);
            node.flags = node.flags | graph::non_owning(env.input, &node);
            (regs[1], regs[2]) = (node, node);
        }
        CallbackKind::FindVma => {
            let found = env
                .input
                .vmlinux
                .and_then(|vmlinux| vmlinux.find(Kind::Struct, "vm_area_struct"));
            let Some(vma) = found else {
                return Err(Stop::unsupported("callback with a kernel object"));
            };
            let ty = TypeRef::vmlinux(vma.id().0);
            regs[1] = caller.regs[1];
            marks.take_reg(1, &caller.marks, 1);
            regs[2] = RegState::pointer(RegKind::BtfId { ty }, TypeFlags::NONE);
        }
        CallbackKind::UserRingbuf => regs[1] = dynptr::constant(env),
    }
    Ok(())
}

/// A map in r1.
fn set_map(regs: &mut Registers, map: MapRef) {
    let kind = RegKind::MapPtr { map, uid: 0 };
    regs[1] = RegState::pointer(kind, TypeFlags::NONE);
}

/// Key and value of an element in r2 and r3 (`map_set_for_each_callback_args`).
#[doc(alias = "map_set_for_each_callback_args")]
fn set_element(regs: &mut Registers, map: MapRef) {
    let key = RegKind::MapKey { map, uid: 0 };
    let value = RegKind::MapValue { map, uid: 0 };
    regs[2] = RegState::pointer(key, TypeFlags::NONE);
    regs[3] = RegState::pointer(value, TypeFlags::NONE);
}
