//! Locks and timers in map values.

use isa::ebpf::Reg;

use super::reference::{acquire_lock, release_lock};
use crate::env::Env;
use crate::state::{LockOwner, MapRef, ReferenceKind, RegKind, TypeFlags};
use crate::{RefusalKind, Result, Stop, refuse};
use btf::fields::FieldKind;

/// Checks `bpf_spin_lock` and `bpf_spin_unlock` (`process_spin_lock`).
#[doc(alias = "process_spin_lock")]
pub(super) fn check_spin_lock(env: &mut Env<'_>, ptr: Reg, is_lock: bool) -> Result<()> {
    let reg = *env.reg(ptr);
    let RegKind::MapValue { map, .. } = reg.kind else {
        check_constant_offset(env, ptr, &LOCK)?;
        return Err(Stop::unsupported("lock in an allocated object"));
    };
    check_field(env, ptr, map, &LOCK)?;
    let owner = LockOwner::Map(map);
    let kind = ReferenceKind::Lock;
    let state = &env.state;
    if is_lock {
        if state.refs.iter().any(|found| found.kind == kind) {
            return Err(refuse!(env => Call::SecondLock));
        }
        acquire_lock(env, kind, reg.id, owner);
        return Ok(());
    }
    let is_held = state
        .refs
        .iter()
        .any(|found| found.kind == kind && found.id == reg.id && found.owner == owner);
    if state.active_locks == 0 {
        return Err(refuse!(env => Call::UnlockWithoutLock));
    }
    if !is_held {
        return Err(refuse!(env => Call::UnlockOther));
    }
    if state.active_lock_id != reg.id || state.active_lock_owner != owner {
        return Err(refuse!(env => Call::UnlockOrder));
    }
    release_lock(env, kind, reg.id, owner);
    crate::mem::invalidate_where(env, |reg| reg.flags.has(TypeFlags::NON_OWN_REF));
    Ok(())
}

/// Checks that a pointer points at the timer of a map value, and returns the map with
/// its identity (`process_timer_func`).
#[doc(alias = "process_timer_func")]
pub(super) fn check_timer(env: &mut Env<'_>, ptr: Reg) -> Result<(MapRef, u32)> {
    let RegKind::MapValue { map, uid } = env.reg(ptr).kind else {
        check_constant_offset(env, ptr, &TIMER)?;
        return Err(Stop::Bug("timer argument is no map value".into()));
    };
    check_field(env, ptr, map, &TIMER)?;
    Ok((map, uid))
}

/// A special field that helpers take the address of.
struct SpecialField {
    kind: FieldKind,
    /// Class of refusals of the address.
    refusal: RefusalKind,
}

const LOCK: SpecialField = SpecialField {
    kind: FieldKind::SpinLock,
    refusal: RefusalKind::Lock,
};

const TIMER: SpecialField = SpecialField {
    kind: FieldKind::Timer,
    refusal: RefusalKind::Argument,
};

/// Checks that a pointer into a map value has the field's offset.
fn check_field(env: &mut Env<'_>, ptr: Reg, map: MapRef, field: &SpecialField) -> Result<()> {
    let var_off = check_constant_offset(env, ptr, field)?;
    let (kind, name) = (field.kind, field.kind.name());
    let info = &env.input.maps[map];
    let map_name = info.kernel_name();
    let refusal = match info.record().offset_of(kind) {
        _ if !info.has_btf() => refuse!(env => Call::FieldWithoutBtf { map: map_name, name }),
        None => refuse!(env => Call::FieldAbsent { map: map_name, name }),
        Some(expected) => {
            let off = var_off.wrapping_add(i64::from(env.reg(ptr).off));
            if i64::from(expected) == off {
                return Ok(());
            }
            refuse!(env => Call::FieldOffset { off, name, expected })
        }
    };
    Err(refusal.with_kind(field.refusal))
}

/// The variable part of a pointer's offset, which must be a constant.
fn check_constant_offset(env: &mut Env<'_>, ptr: Reg, field: &SpecialField) -> Result<i64> {
    if let Some(var_off) = env.reg(ptr).num.as_const() {
        return Ok(var_off as i64);
    }
    let refusal = refuse!(env => Call::FieldVariable { reg: ptr, name: field.kind.name() });
    Err(refusal.with_kind(field.refusal))
}
