//! Open-coded iterators: kfuncs that make, advance and destroy an object on the stack.
//!
//! A call that advances an iterator forks: on one path it returns an object, on the other null,
//! for ever. That path is a loop, which ends where a state is within the ranges of one of an
//! earlier iteration; scalars that differ between iterations and are not precise become unknown.

use btf::{Kind, TypeId};
use isa::ebpf::Reg;
use spec::programs::HookKind;
use spec::registry::{KfuncFlags, SpecialKfunc};

use super::Callee;
use crate::call::REGS;
use crate::call::meta::CallMeta;
use crate::call::reference;
use crate::call::stack_slots::{self, Place};
use crate::env::{Check, Env};
use crate::explore::widen_to_earlier;
use crate::state::{
    IterState, IterTrust, RegBase, RegKind, RegState, SlotKind, StackObject, StackObjectKind,
    State, TypeFlags, TypeRef,
};
use crate::type_rules::{TargetKind, TypeRules};
use crate::{Errno, Result, Stop, flow, refuse, refuse_if};

/// The structure of an iterator.
struct Structure {
    ty: TypeRef,
    slots: usize,
    /// Its name without the prefix.
    name: String,
}

/// Checks the iterator that a kfunc is given (`process_iter_arg`).
#[doc(alias = "process_iter_arg")]
pub(super) fn check_iter(
    env: &mut Env<'_>,
    callee: &Callee<'_>,
    index: usize,
    meta: &mut CallMeta,
) -> Result<()> {
    if callee.is(SpecialKfunc::IterCssTaskNew) && !may_iterate_css_tasks(env) {
        return Err(refuse!(env => Call::CssTaskIterator));
    }
    let ptr = REGS[index];
    refuse_if!(!env.reg(ptr).is_plain(RegBase::PtrToStack), env => Call::NotIterator { index });
    let Some(structure) = structure(callee, index) else {
        return Err(refuse!(env => Call::InvalidIterator { index }));
    };
    if !env
        .input
        .vmlinux
        .is_some_and(|vmlinux| std::ptr::eq(vmlinux, callee.btf))
    {
        return Err(callee.unsupported());
    }
    match callee.has(KfuncFlags::ITER_NEW) {
        true => create(env, callee, ptr, structure),
        false => take(env, callee, ptr, structure, meta),
    }
}

/// The structure that a parameter points to, if it is an iterator (`btf_check_iter_arg`).
#[doc(alias = "btf_check_iter_arg")]
fn structure(callee: &Callee<'_>, index: usize) -> Option<Structure> {
    let id = callee.pointee(index);
    let ty = callee.btf.at(id);
    let name = ty.name().to_string_lossy().into_owned();
    let name = name.strip_prefix("bpf_iter_")?.to_owned();
    let is_struct = id != TypeId::VOID && ty.kind() == Kind::Struct;
    is_struct.then(|| Structure {
        ty: callee.type_ref(id),
        slots: callee.btf.size_of(id).unwrap_or(0) as usize / 8,
        name,
    })
}

/// True if the program may go through the tasks of a cgroup (`check_css_task_iter_allowlist`).
#[doc(alias = "check_css_task_iter_allowlist")]
fn may_iterate_css_tasks(env: &Check<'_>) -> bool {
    let is_allowed = match TypeRules::of(env.input.program.kind()).target {
        TargetKind::Hook => true,
        TargetKind::Function => env.input.context.hook() == HookKind::Iterator,
        TargetKind::Nothing | TargetKind::Operation | TargetKind::Program => false,
    };
    is_allowed || env.state.in_sleepable
}

/// Makes an iterator (`mark_stack_slots_iter`, `is_iter_reg_valid_uninit`).
#[doc(alias = "mark_stack_slots_iter")]
#[doc(alias = "is_iter_reg_valid_uninit")]
fn create(env: &mut Env<'_>, callee: &Callee<'_>, ptr: Reg, structure: Structure) -> Result<()> {
    let Structure { ty, slots, name } = structure;
    let index = ptr.number() - 1;
    let is_free = match stack_slots::place_of(env, ptr, "iter", slots) {
        Place::At(frame, spi) => {
            let stack = &env.state.frame(frame).stack;
            (spi + 1 - slots..=spi).all(|spi| !stack[spi].kinds.contains(&SlotKind::Iter))
        }
        Place::Unallocated => true,
        Place::Misplaced => false,
    };
    refuse_if!(!is_free, env => Call::IteratorNotUninit { name, index });
    stack_slots::write_slots(env, ptr, slots)?;
    let Place::At(frame, first_slot) = stack_slots::place_of(env, ptr, "iter", slots) else {
        return Err(Stop::Bug("slots of an iterator were written".into()));
    };
    let trust = match callee.has(KfuncFlags::RCU_PROTECTED) {
        false => IterTrust::Trusted,
        true if env.state.in_rcu_section(env.input.rules) => IterTrust::Rcu,
        true => IterTrust::Untrusted,
    };
    let object = StackObject {
        kind: StackObjectKind::Iter {
            ty,
            slots: slots as u8,
            state: IterState::Active,
            depth: 0,
            trust,
        },
        first_slot,
        id: 0,
        ref_obj_id: reference::acquire(env),
    };
    stack_slots::create(env, frame, object);
    stack_slots::mark_scratched(env, &object);
    Ok(())
}

/// Takes an iterator that was made before (`is_iter_reg_valid_init`, `iter_ref_obj_id`).
#[doc(alias = "is_iter_reg_valid_init")]
#[doc(alias = "iter_ref_obj_id")]
fn take(
    env: &mut Env<'_>,
    callee: &Callee<'_>,
    ptr: Reg,
    structure: Structure,
    meta: &mut CallMeta,
) -> Result<()> {
    let Structure { ty, slots, name } = structure;
    let index = ptr.number() - 1;
    let found = match stack_slots::place_of(env, ptr, "iter", slots) {
        Place::At(frame, spi) => find(&env.state, frame, spi, slots, ty),
        Place::Unallocated | Place::Misplaced => Found::No,
    };
    let (frame, object) = match found {
        Found::Iterator(frame, object) => (frame, object),
        Found::No => return Err(refuse!(env => Call::IteratorNotInit { name, index })),
        Found::Untrusted => {
            return Err(refuse!(env => Call::IteratorOutsideRcu { name: &callee.kfunc.name }));
        }
    };
    stack_slots::note_above(env, ptr);
    stack_slots::mark_read(env, frame, &object);
    meta.iter = Some((frame, object.first_slot));
    meta.ref_obj_id = object.ref_obj_id;
    if callee.has(KfuncFlags::ITER_DESTROY) {
        if !reference::release(env, object.ref_obj_id) {
            return Err(Stop::Bug("an iterator holds no reference".into()));
        }
        stack_slots::destroy(env, frame, object.first_slot);
    }
    Ok(())
}

/// What is where an iterator should be.
enum Found {
    /// The iterator, with the number of its frame.
    Iterator(usize, StackObject),
    /// Something else, or a part of one.
    No,
    /// Something that RCU protects no longer.
    Untrusted,
}

/// Looks for an iterator in slots, from the first on, as the kernel does.
fn find(state: &State, frame: usize, first: usize, slots: usize, ty: TypeRef) -> Found {
    let stack = &state.frame(frame).stack;
    for spi in (first + 1 - slots..=first).rev() {
        let spilled = &stack[spi].reg;
        let is_lost =
            spilled.kind != RegKind::NotInit && spilled.flags.has(TypeFlags::PTR_UNTRUSTED);
        let object = stack.object_at(spi);
        let is_untrusted = match object.map(|object| object.kind) {
            Some(StackObjectKind::Iter {
                ty: found, trust, ..
            }) => match trust {
                IterTrust::Untrusted => true,
                IterTrust::Trusted | IterTrust::Rcu
                    if found == ty && object.is_some_and(|object| object.first_slot == first) =>
                {
                    continue;
                }
                IterTrust::Trusted | IterTrust::Rcu => is_lost,
            },
            Some(StackObjectKind::Dynptr(_) | StackObjectKind::IrqFlag(_)) | None => is_lost,
        };
        return match is_untrusted {
            true => Found::Untrusted,
            false => Found::No,
        };
    }
    match stack.whole_object(first) {
        Some(object) => Found::Iterator(frame, *object),
        None => Found::No,
    }
}

/// Modifiers of the pointer to an object that an iterator returns.
pub(super) fn result_flags(state: &State, meta: &CallMeta) -> TypeFlags {
    match iterator(state, meta).map(|object| object.kind) {
        Some(StackObjectKind::Iter {
            trust: IterTrust::Rcu,
            ..
        }) => TypeFlags::MEM_RCU,
        Some(
            StackObjectKind::Iter {
                trust: IterTrust::Trusted | IterTrust::Untrusted,
                ..
            }
            | StackObjectKind::Dynptr(_)
            | StackObjectKind::IrqFlag(_),
        )
        | None => TypeFlags::PTR_TRUSTED,
    }
}

/// The iterator that a call names (`get_iter_from_state`).
#[doc(alias = "get_iter_from_state")]
fn iterator<'s>(state: &'s State, meta: &CallMeta) -> Option<&'s StackObject> {
    let (frame, spi) = meta.iter?;
    state.frame(frame).stack.object_at(spi)
}

/// Advances an iterator (`process_iter_next_call`): one path goes on with an object, the other
/// with null.
#[doc(alias = "process_iter_next_call")]
pub(super) fn advance(env: &mut Env<'_>, meta: &CallMeta) -> Result<()> {
    let found = iterator(&env.state, meta).map(|object| object.kind);
    let Some((StackObjectKind::Iter { state, .. }, (frame, spi))) = found.zip(meta.iter) else {
        return Err(Stop::Bug(
            "an iterator is advanced that is not there".into(),
        ));
    };
    if state == IterState::Active {
        let Some(parent) = env.state.parent else {
            return Err(Stop::Bug(
                "no checkpoint at a call that advances an iterator".into(),
            ));
        };
        let insn_idx = env.sink.insn_idx;
        env.fork_or(insn_idx + 1, Errno::ENOMEM)?;
        let Some(fork) = env.forked.last_mut() else {
            return Ok(());
        };
        change(&mut fork.state, frame, spi, |state, depth| {
            *state = IterState::Active;
            *depth += 1;
        });
        widen_to_earlier(
            &env.explorer,
            &mut fork.state,
            Some(parent),
            insn_idx,
            env.check.id_gen,
            env.check.input.rules,
        );
        flow::mark_not_null(env.check.input, fork.state.reg_mut(Reg::R0));
    }
    change(&mut env.state, frame, spi, |state, _| {
        *state = IterState::Drained
    });
    *env.reg_mut(Reg::R0) = RegState::constant(0);
    Ok(())
}

/// Changes state and depth of the iterator that begins in a slot.
fn change(state: &mut State, frame: usize, spi: usize, change: impl Fn(&mut IterState, &mut u32)) {
    let stack = &mut state.frame_mut(frame).stack;
    let Some(object) = stack.object_at(spi).copied() else {
        return;
    };
    stack.change_objects(|other| {
        if *other == object
            && let StackObjectKind::Iter { state, depth, .. } = &mut other.kind
        {
            change(state, depth);
        }
    });
}

/// Objects of iterators that RCU protected may dangle from now on.
pub(super) fn leave_rcu(state: &mut State) {
    for number in 0..=state.curframe {
        if state.frame(number).stack.objects().next().is_none() {
            continue;
        }
        state.frame_mut(number).stack.change_objects(|object| {
            if let StackObjectKind::Iter { trust, .. } = &mut object.kind
                && *trust == IterTrust::Rcu
            {
                *trust = IterTrust::Untrusted;
            }
        });
    }
}
