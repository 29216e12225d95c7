//! Dynptrs: objects of two slots on the stack, or constant ones that a function is given.
//!
//! A slice is memory with the identity of its dynptr ([`RegKind::Mem`]). It is invalid once the
//! dynptr is overwritten, or the reference that both hold is released.

use isa::ebpf::Reg;
use spec::behaviour::Behaviour;
use spec::limits::DYNPTR_SIZE;
use spec::registry::ArgType;

use super::stack_slots::{self, Place};
use super::{meta::CallMeta, reference};
use crate::env::{Check, Env};
use crate::mem::invalidate_where;
use crate::state::{
    DynptrKind, RegBase, RegKind, RegState, SlotKind, StackObject, StackObjectKind, State,
    TypeFlags,
};
use crate::{Result, Stop, insn_facts, refuse, refuse_if};

/// Slots of a dynptr (`BPF_DYNPTR_NR_SLOTS`).
const SLOTS: usize = DYNPTR_SIZE as usize / 8;

/// What a call does with a dynptr that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// It makes one; a clone holds the reference of its original, 0 if that has none.
    Makes { kind: DynptrKind, clone_of: u32 },
    /// It takes one of a kind, or of any.
    Takes {
        kind: Option<DynptrKind>,
        /// It leaves the dynptr itself as it is (`MEM_RDONLY`).
        is_rdonly: bool,
    },
}

/// What is known of an initialised dynptr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dynptr {
    pub(super) kind: DynptrKind,
    /// Identity, which its slices have (`dynptr_id`).
    #[doc(alias = "dynptr_id")]
    pub(super) id: u32,
    /// The reference that it holds; 0: none (`dynptr_ref_obj_id`).
    #[doc(alias = "dynptr_ref_obj_id")]
    pub(super) ref_obj_id: u32,
}

impl Dynptr {
    /// True if a write through it may move the packet's bytes.
    pub(super) fn moves(self) -> bool {
        matches!(self.kind, DynptrKind::Skb | DynptrKind::SkbMeta)
    }
}

/// Checks the dynptr argument of a helper.
pub(super) fn check_helper_arg(env: &mut Env<'_>, ptr: Reg, arg: ArgType) -> Result<()> {
    let kind = DynptrKind::of_flags(arg.flags);
    let usage = match kind.filter(|_| arg.flags.has(TypeFlags::MEM_UNINIT)) {
        Some(kind) => Usage::Makes { kind, clone_of: 0 },
        None => Usage::Takes {
            kind,
            is_rdonly: arg.flags.has(TypeFlags::MEM_RDONLY),
        },
    };
    check_dynptr(env, ptr, usage)
}

/// Checks a pointer to a dynptr (`process_dynptr_func`, `is_dynptr_reg_valid_uninit`,
/// `is_dynptr_type_expected`).
#[doc(alias = "process_dynptr_func")]
#[doc(alias = "is_dynptr_reg_valid_uninit")]
#[doc(alias = "is_dynptr_type_expected")]
pub(super) fn check_dynptr(env: &mut Env<'_>, ptr: Reg, usage: Usage) -> Result<()> {
    let reg = *env.reg(ptr);
    let index = ptr.number() - 1;
    let is_const = reg.is_plain(RegBase::ConstPtrToDynptr);
    if !is_const && !reg.is_plain(RegBase::PtrToStack) {
        return Err(refuse!(env => Call::ExpectsDynptr { index }));
    }
    match usage {
        Usage::Makes { kind, clone_of } => {
            if is_const && !env.input.rules.has(Behaviour::DynptrsTracked) {
                return Ok(());
            }
            let is_refused = match env.input.rules.has(Behaviour::DynptrsTracked) {
                true => is_const || place_of(env, ptr) == Place::Misplaced,
                false => covers_dynptr(env, ptr),
            };
            refuse_if!(is_refused, env => Call::DynptrNotUninit);
            stack_slots::write_slots(env, ptr, SLOTS)?;
            create(env, ptr, kind, clone_of)
        }
        Usage::Takes { kind, is_rdonly } => {
            let rules = env.input.rules;
            let is_fixed =
                rules.has(Behaviour::DynptrsTracked) && !rules.has(Behaviour::ViewsMayChange);
            refuse_if!(is_const && !is_rdonly && is_fixed, env => Call::DynptrConst);
            let Some(found) = initialized(env, ptr) else {
                return Err(refuse!(env => Call::DynptrNotInit { index }));
            };
            if let Some(kind) = kind.filter(|kind| *kind != found.kind) {
                return Err(refuse!(env => Call::DynptrOther { kind, index }));
            }
            if let Some((frame, object)) = on_stack(env, ptr) {
                stack_slots::mark_read(env, frame, &object);
            }
            Ok(())
        }
    }
}

/// True if a slot of a dynptr that begins at `ptr` is one of another.
fn covers_dynptr(env: &mut Check<'_>, ptr: Reg) -> bool {
    let Place::At(frame, spi) = place_of(env, ptr) else {
        return false;
    };
    let stack = &env.state.frame(frame).stack;
    (spi + 1 - SLOTS..=spi).any(|spi| stack[spi].kinds[0] == SlotKind::Dynptr)
}

/// The initialised dynptr that `ptr` points to (`dynptr_get_type`).
#[doc(alias = "dynptr_get_type")]
pub(super) fn initialized(env: &mut Check<'_>, ptr: Reg) -> Option<Dynptr> {
    let reg = *env.reg(ptr);
    if let RegKind::ConstDynptr { kind } = reg.kind {
        return Some(Dynptr {
            kind,
            id: reg.id,
            ref_obj_id: reg.ref_obj_id,
        });
    }
    let (_, object) = on_stack(env, ptr)?;
    let StackObjectKind::Dynptr(kind) = object.kind else {
        return None;
    };
    Some(Dynptr {
        kind,
        id: object.id,
        ref_obj_id: object.ref_obj_id,
    })
}

/// The dynptr on the stack that `ptr` points to, with the number of its frame.
fn on_stack(env: &mut Check<'_>, ptr: Reg) -> Option<(usize, StackObject)> {
    let Place::At(frame, spi) = place_of(env, ptr) else {
        return None;
    };
    let object = *env.state.frame(frame).stack.whole_object(spi)?;
    matches!(object.kind, StackObjectKind::Dynptr(_)).then_some((frame, object))
}

/// First slot and frame of the dynptr that a register points to (`dynptr_get_spi`).
#[doc(alias = "dynptr_get_spi")]
fn place_of(env: &mut Check<'_>, ptr: Reg) -> Place {
    stack_slots::place_of(env, ptr, "dynptr", SLOTS)
}

/// Makes a dynptr on the stack (`mark_stack_slots_dynptr`, `mark_dynptr_stack_regs`,
/// `__mark_dynptr_reg`).
#[doc(alias = "mark_stack_slots_dynptr")]
#[doc(alias = "mark_dynptr_stack_regs")]
#[doc(alias = "__mark_dynptr_reg")]
fn create(env: &mut Env<'_>, ptr: Reg, kind: DynptrKind, clone_of: u32) -> Result<()> {
    let Place::At(frame, first_slot) = place_of(env, ptr) else {
        return Err(Stop::Bug("slots of a dynptr were written".into()));
    };
    let id = match env.input.rules.has(Behaviour::DynptrsTracked) {
        true => env.new_id(),
        false => 0,
    };
    let ref_obj_id = match clone_of {
        0 if kind.is_refcounted() => reference::acquire(env),
        id => id,
    };
    let object = StackObject {
        kind: StackObjectKind::Dynptr(kind),
        first_slot,
        id,
        ref_obj_id,
    };
    stack_slots::create(env, frame, object);
    Ok(())
}

/// A constant dynptr of no kernel object, which a function is given (`mark_dynptr_cb_reg`,
/// `__mark_dynptr_reg`).
#[doc(alias = "mark_dynptr_cb_reg")]
#[doc(alias = "__mark_dynptr_reg")]
pub(super) fn constant(env: &mut Check<'_>) -> RegState {
    let kind = RegKind::ConstDynptr {
        kind: DynptrKind::Local,
    };
    RegState {
        id: env.new_id(),
        ..RegState::pointer(kind, TypeFlags::NONE)
    }
}

/// Checks that a helper may release the dynptr that it is given (in `check_func_arg`).
#[doc(alias = "check_func_arg")]
pub(super) fn check_release(env: &mut Check<'_>, ptr: Reg, meta: &mut CallMeta) -> Result<()> {
    let is_named = env.input.rules.has(Behaviour::DynptrsTracked);
    if !env.reg(ptr).is_plain(RegBase::PtrToStack) && is_named {
        return Err(refuse!(env => Call::ReleasesConstDynptr));
    }
    let held = match place_of(env, ptr) {
        Place::At(frame, spi) => {
            let stack = &env.state.frame(frame).stack;
            let object = stack.object_at(spi).filter(|object| {
                object.first_slot == spi || matches!(object.kind, StackObjectKind::Dynptr(_))
            });
            let spilled = &stack[spi].reg;
            // Before, Linux reads the identity of whatever was spilled there.
            let other = if is_named {
                spilled.ref_obj_id
            } else {
                spilled.id
            };
            object.map_or(other, |object| object.ref_obj_id)
        }
        Place::Unallocated | Place::Misplaced => 0,
    };
    if held == 0 && env.input.rules.has(Behaviour::ArgumentsByRegister) {
        let index = ptr.number() - 1;
        return Err(refuse!(env => Call::DynptrNotInit { index }));
    }
    if held == 0 {
        let number = ptr.number();
        return Err(refuse!(env => Call::UnacquiredDynptr { number }));
    }
    meta.released_dynptr = Some(ptr);
    Ok(())
}

/// Releases the dynptr that `ptr` points to, with its clones in the same frame and the slices of
/// all (`unmark_stack_slots_dynptr`).
#[doc(alias = "unmark_stack_slots_dynptr")]
pub(super) fn release(env: &mut Env<'_>, ptr: Reg) -> Result<()> {
    let Some((frame, released)) = on_stack(env, ptr) else {
        return Err(Stop::Bug("a dynptr is released that is not there".into()));
    };
    let id = released.ref_obj_id;
    if !reference::release(env, id) {
        // A clone in another frame released the record, which Linux lets the program do again.
        insn_facts::note_object(env);
    }
    for spi in 1..env.state.frame(frame).stack.len() {
        let stack = &env.state.frame(frame).stack;
        let is_clone = |object: &&StackObject| object.first_slot == spi && object.ref_obj_id == id;
        if stack.object_at(spi).filter(is_clone).is_some() {
            stack_slots::destroy(env, frame, spi);
        } else if stack[spi].reg.ref_obj_id == id {
            return Err(refuse!(env => Call::MisconfiguredReference));
        }
    }
    Ok(())
}

/// A write to a slot destroys the dynptr there, whose slices are invalid then; one that holds a
/// reference must not be overwritten (`destroy_if_dynptr_stack_slot`).
#[doc(alias = "destroy_if_dynptr_stack_slot")]
pub(crate) fn overwrite(env: &mut Env<'_>, frame: usize, spi: usize) -> Result<()> {
    let stack = &env.state.frame(frame).stack;
    if stack[spi].kinds[0] != SlotKind::Dynptr {
        return Ok(());
    }
    let Some(object) = stack.object_at(spi).copied() else {
        return Err(Stop::Bug("dynptr slot without dynptr".into()));
    };
    if !env.input.rules.has(Behaviour::DynptrsTracked) {
        stack_slots::destroy(env, frame, spi);
        return Ok(());
    }
    let may_replace =
        env.input.rules.has(Behaviour::ClonesReplaced) && has_clone(&env.state, &object);
    refuse_if!(object.ref_obj_id != 0 && !may_replace, env => Call::OverwritesDynptr);
    stack_slots::mark_scratched(env, &object);
    invalidate_where(env, |reg| {
        let is_slice = matches!(reg.kind, RegKind::Mem { dynptr_id, .. } if dynptr_id == object.id);
        is_slice && reg.flags.without(TypeFlags::PTR_MAYBE_NULL).is_empty()
    });
    stack_slots::destroy(env, frame, spi);
    Ok(())
}

/// True if another dynptr holds the reference, too (`dynptr_ref_cnt`).
#[doc(alias = "dynptr_ref_cnt")]
fn has_clone(state: &State, object: &StackObject) -> bool {
    let frames = (0..=state.curframe).map(|number| state.frame(number));
    let holders = frames
        .flat_map(|frame| frame.stack.objects())
        .filter(|other| {
            matches!(other.kind, StackObjectKind::Dynptr(_))
                && other.ref_obj_id == object.ref_obj_id
        });
    holders.count() > 1
}
