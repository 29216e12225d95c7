//! Locks in map values and allocated objects.

use btf::fields::FieldKind;
use isa::ebpf::{Callee, Insn, Reg};
use spec::registry::SpecialKfunc;

use super::REGS;
use super::field::{self, FieldArg};
use super::reference::{acquire_lock, release_lock};
use crate::env::{Check, Env};
use crate::input::Input;
use crate::state::{
    LockOwner, Reference, ReferenceKind, RegBase, RegKind, RegState, State, TypeFlags,
};
use crate::{Errno, RefusalKind, Result, Stop, refuse, refuse_if};

/// `struct bpf_spin_lock`.
const LOCK: FieldArg = FieldArg {
    kind: FieldKind::SpinLock,
    refusal: RefusalKind::Lock,
};

/// `struct bpf_res_spin_lock`.
const RES_LOCK: FieldArg = FieldArg {
    kind: FieldKind::ResSpinLock,
    refusal: RefusalKind::Lock,
};

/// Checks `bpf_spin_lock` and `bpf_spin_unlock`.
pub(super) fn check_spin_lock(env: &mut Check<'_>, ptr: Reg, is_lock: bool) -> Result<()> {
    refuse_if!(in_rbtree_callback(env.input, &env.state), env => Call::LockInCallback);
    match is_lock {
        true => lock(env, ptr, ReferenceKind::Lock),
        false => unlock(env, ptr, ReferenceKind::Lock),
    }
}

/// Checks the lock of a kfunc of resilient locks.
pub(super) fn check_res_spin_lock(
    env: &mut Check<'_>,
    index: usize,
    special: Option<SpecialKfunc>,
) -> Result<()> {
    let ptr = REGS[index];
    refuse_if!(!holds_field(env.reg(ptr)), env => Call::NotLockOwner { index });
    match special {
        Some(SpecialKfunc::ResSpinLock) => lock(env, ptr, ReferenceKind::ResLock),
        Some(SpecialKfunc::ResSpinLockIrqsave) => lock(env, ptr, ReferenceKind::ResLockIrq),
        Some(SpecialKfunc::ResSpinUnlock) => unlock(env, ptr, ReferenceKind::ResLock),
        Some(SpecialKfunc::ResSpinUnlockIrqrestore) => unlock(env, ptr, ReferenceKind::ResLockIrq),
        _ => Err(Stop::Bug("resilient lock of another kfunc".into())),
    }
}

/// True for pointers to map values and to objects that the program owns.
pub(super) fn holds_field(reg: &RegState) -> bool {
    let owned = RegBase::PtrToBtfId.with(TypeFlags::MEM_ALLOC);
    reg.is_plain(RegBase::PtrToMapValue) || reg.reg_type() == owned
}

/// The owner of locks in the object that a register points to.
pub(super) fn owner(reg: &RegState) -> LockOwner {
    if let RegKind::MapValue { map, .. } = reg.kind {
        return LockOwner::Map(map);
    }
    if let RegKind::BtfId { ty } = reg.kind {
        return LockOwner::Object(ty.btf);
    }
    LockOwner::None
}

const fn field_of(kind: ReferenceKind) -> &'static FieldArg {
    match kind {
        ReferenceKind::ResLock | ReferenceKind::ResLockIrq => &RES_LOCK,
        ReferenceKind::Lock | ReferenceKind::Pointer | ReferenceKind::Irq => &LOCK,
    }
}

/// Takes a lock (`process_spin_lock`).
#[doc(alias = "process_spin_lock")]
fn lock(env: &mut Check<'_>, ptr: Reg, kind: ReferenceKind) -> Result<()> {
    field::check_field(env, ptr, field_of(kind))?;
    let reg = *env.reg(ptr);
    let owner = owner(&reg);
    let mut held = env.state.refs.iter();
    if kind == ReferenceKind::Lock {
        refuse_if!(held.any(|held| held.kind == kind), env => Call::SecondLock);
    } else if held.any(|held| {
        let is_res = matches!(
            held.kind,
            ReferenceKind::ResLock | ReferenceKind::ResLockIrq
        );
        is_res && held.id == reg.id && held.owner == owner
    }) {
        return Err(refuse!(env => Call::LockAgain));
    }
    let lock = Reference {
        kind,
        id: reg.id,
        insn_idx: env.sink.insn_idx,
        owner,
        callback: None,
    };
    acquire_lock(&mut env.state, lock);
    Ok(())
}

/// Releases a lock (`process_spin_lock`, `find_lock_state`, `invalidate_non_owning_refs`).
#[doc(alias = "process_spin_lock")]
#[doc(alias = "find_lock_state")]
#[doc(alias = "invalidate_non_owning_refs")]
fn unlock(env: &mut Check<'_>, ptr: Reg, kind: ReferenceKind) -> Result<()> {
    field::check_field(env, ptr, field_of(kind))?;
    let reg = *env.reg(ptr);
    let owner = owner(&reg);
    let lock = field_of(kind).kind;
    refuse_if!(env.state.active_locks == 0, env => Call::UnlockWithoutLock { lock });
    let mut held = env.state.refs.iter();
    if !held.any(|held| held.kind == kind && held.id == reg.id && held.owner == owner) {
        return Err(refuse!(env => Call::UnlockOther { lock }));
    }
    if env.state.active_lock_id != reg.id || env.state.active_lock_owner != owner {
        return Err(refuse!(env => Call::UnlockOrder { lock }));
    }
    release_lock(&mut env.state, kind, reg.id, owner);
    crate::mem::invalidate_where(env, RegState::is_non_owning);
    Ok(())
}

/// Forks off the path on which a resilient lock was not taken. Linux takes the error number for one
/// of 64 bits, though the function returns 32: code that rests on the proof must extend the sign.
pub(super) fn push_failed_lock(env: &mut Env<'_>) -> Result<()> {
    let (next, rules) = (env.sink.insn_idx + 1, env.input.rules);
    let failed = match env.fork(next) {
        Ok(failed) => failed,
        Err(Stop::Refused(_)) => {
            let refusal = refuse!(env => Call::LockFork);
            return Err(refusal.with_errno(Errno::ENOMEM));
        }
        Err(stop) => return Err(stop),
    };
    let regs = &mut failed.cur_mut().regs;
    for reg in 0..=5 {
        regs[reg] = RegState::NOT_INIT;
    }
    regs[0] = RegState::UNKNOWN;
    let num = &mut regs[0].num;
    (num.s32_min, num.s32_max) = (-Errno::MAX, -1);
    (num.smin, num.smax) = (num.s32_min.into(), num.s32_max.into());
    num.sync(rules);
    Ok(())
}

/// True in a function that `bpf_rbtree_add` calls to compare, under the lock of its tree
/// (`in_rbtree_lock_required_cb`).
#[doc(alias = "in_rbtree_lock_required_cb")]
pub(super) fn in_rbtree_callback(input: &Input<'_>, state: &State) -> bool {
    let frame = state.cur();
    if state.curframe == 0 || !frame.in_callback_fn {
        return false;
    }
    let Insn::Call(Callee::Kfunc { id, module: 0 }) = input.insns[frame.callsite as usize] else {
        return false;
    };
    let kfunc = input.registry.kfunc(id as u32);
    kfunc.is_some_and(|kfunc| kfunc.special == Some(SpecialKfunc::RbtreeAdd))
}
