//! References that calls acquire and release, and held locks.

use spec::behaviour::Behaviour;

use crate::env::Check;
use crate::state::{LockOwner, Reference, ReferenceKind, State};

/// Acquires a reference and returns its identity (`acquire_reference`).
#[doc(alias = "acquire_reference")]
pub(crate) fn acquire(env: &mut Check<'_>) -> u32 {
    acquire_at(env, env.sink.insn_idx)
}

/// Acquires a reference as of an instruction (`acquire_reference_state`).
#[doc(alias = "acquire_reference_state")]
pub(crate) fn acquire_at(env: &mut Check<'_>, insn_idx: u32) -> u32 {
    let id = env.new_id();
    let frame = env.frame();
    let number = if frame.in_callback_fn {
        frame.frameno as u8
    } else {
        0
    };
    let by_callbacks = !env.input.rules.has(Behaviour::ReferencesOfProgram);
    env.state.refs.push(Reference {
        kind: ReferenceKind::Pointer,
        id,
        insn_idx,
        owner: LockOwner::None,
        callback: by_callbacks.then_some(number),
    });
    id
}

/// Releases a reference without touching registers; false if it is not held
/// (`release_reference_nomark`, `release_reference_state`, `find_reference_state`).
#[doc(alias = "release_reference_nomark")]
#[doc(alias = "release_reference_state")]
#[doc(alias = "find_reference_state")]
pub(crate) fn release_only(state: &mut State, id: u32) -> bool {
    let is_it = |found: &Reference| found.kind == ReferenceKind::Pointer && found.id == id;
    let Some(index) = state.refs.iter().position(is_it) else {
        return false;
    };
    let frame = state.cur();
    match state.refs[index].callback {
        None => {
            state.refs.remove(index);
        }
        Some(number) if frame.in_callback_fn && u32::from(number) != frame.frameno => return false,
        // The last one takes its place.
        Some(_) => {
            state.refs.swap_remove(index);
        }
    }
    true
}

/// Releases a reference and invalidates all registers that hold it
/// (`release_reference`); false if it is not held.
#[doc(alias = "release_reference")]
pub(crate) fn release(env: &mut Check<'_>, id: u32) -> bool {
    if !release_only(&mut env.state, id) {
        return false;
    }
    crate::mem::invalidate_where(env, |reg| reg.ref_obj_id == id);
    true
}

/// Takes a lock (`acquire_lock_state`).
#[doc(alias = "acquire_lock_state")]
pub(crate) fn acquire_lock(state: &mut State, lock: Reference) {
    state.refs.push(lock);
    state.active_locks += 1;
    state.active_lock_id = lock.id;
    state.active_lock_owner = lock.owner;
}

/// Releases a lock; the one taken before becomes the innermost
/// (`release_lock_state`). False if it is not held.
#[doc(alias = "release_lock_state")]
pub(crate) fn release_lock(
    state: &mut State,
    kind: ReferenceKind,
    id: u32,
    owner: LockOwner,
) -> bool {
    let is_it = |found: &Reference| found.kind == kind && found.id == id && found.owner == owner;
    let Some(index) = state.refs.iter().position(is_it) else {
        return false;
    };
    let before = state.refs[..index]
        .iter()
        .rev()
        .find(|found| found.kind.is_lock());
    let (id, owner) = before.map_or((0, LockOwner::None), |lock| (lock.id, lock.owner));
    state.refs.remove(index);
    state.active_locks -= 1;
    state.active_lock_id = id;
    state.active_lock_owner = owner;
    true
}
