//! Locks and timers in map values.

use isa::ebpf::Reg;

use super::reference::{acquire_lock, release_lock};
use crate::resolve::FieldKind;
use crate::state::{LockOwner, MapRef, ReferenceKind, RegKind, TypeFlags};
use crate::walk::Walk;
use crate::{Result, Stop, refuse};

/// Checks `bpf_spin_lock` and `bpf_spin_unlock` (`process_spin_lock`).
pub(super) fn check_spin_lock(walk: &mut Walk<'_>, ptr: Reg, is_lock: bool) -> Result<()> {
    let reg = *walk.reg(ptr);
    let number = ptr.number();
    let Some(var_off) = reg.num.as_const() else {
        return Err(refuse!(
            walk,
            EINVAL,
            Lock,
            "R{number} doesn't have constant offset. bpf_spin_lock has to be at the constant offset"
        ));
    };
    let RegKind::MapValue { map, .. } = reg.kind else {
        return Err(Stop::unsupported("lock in an allocated object"));
    };
    let env = walk.env;
    let info = &env.maps[map];
    let name = info.kernel_name();
    if !info.has_btf() {
        return Err(refuse!(
            walk,
            EINVAL,
            Lock,
            "map '{name}' has to have BTF in order to use bpf_spin_lock"
        ));
    }
    let Some(expected) = info.record().offset_of(FieldKind::SpinLock) else {
        return Err(refuse!(
            walk,
            EINVAL,
            Lock,
            "map '{name}' has no valid bpf_spin_lock"
        ));
    };
    let off = var_off.wrapping_add(reg.off as i64 as u64);
    if u64::from(expected) != off {
        return Err(refuse!(
            walk,
            EINVAL,
            Lock,
            "off {} doesn't point to 'struct bpf_spin_lock' that is at {expected}",
            off as i64
        ));
    }
    let owner = LockOwner::Map(map);
    let kind = ReferenceKind::Lock;
    let state = &walk.state;
    if is_lock {
        if state.refs.iter().any(|found| found.kind == kind) {
            return Err(refuse!(
                walk,
                EINVAL,
                Lock,
                "Locking two bpf_spin_locks are not allowed"
            ));
        }
        acquire_lock(walk, kind, reg.id, owner);
        return Ok(());
    }
    let is_held = state
        .refs
        .iter()
        .any(|found| found.kind == kind && found.id == reg.id && found.owner == owner);
    let fault = if state.active_locks == 0 {
        Some("without taking a lock")
    } else if !is_held {
        Some("of different lock")
    } else if state.active_lock_id != reg.id || state.active_lock_owner != owner {
        Some("cannot be out of order")
    } else {
        None
    };
    if let Some(fault) = fault {
        return Err(refuse!(walk, EINVAL, Lock, "bpf_spin_unlock {fault}"));
    }
    release_lock(walk, kind, reg.id, owner);
    crate::mem::invalidate_where(walk, |reg| reg.flags.has(TypeFlags::NON_OWN_REF));
    Ok(())
}

/// Checks that a pointer points at the timer of a map value, and returns the map with
/// its identity (`process_timer_func`).
pub(super) fn check_timer(walk: &mut Walk<'_>, ptr: Reg) -> Result<(MapRef, u32)> {
    let reg = *walk.reg(ptr);
    let number = ptr.number();
    let Some(var_off) = reg.num.as_const() else {
        return Err(refuse!(
            walk,
            EINVAL,
            Argument,
            "R{number} doesn't have constant offset. bpf_timer has to be at the constant offset"
        ));
    };
    let RegKind::MapValue { map, uid } = reg.kind else {
        return Err(Stop::Bug("timer argument is no map value".into()));
    };
    let env = walk.env;
    let info = &env.maps[map];
    let name = info.kernel_name();
    if !info.has_btf() {
        return Err(refuse!(
            walk,
            EINVAL,
            Argument,
            "map '{name}' has to have BTF in order to use bpf_timer"
        ));
    }
    let Some(expected) = info.record().offset_of(FieldKind::Timer) else {
        return Err(refuse!(
            walk,
            EINVAL,
            Argument,
            "map '{name}' has no valid bpf_timer"
        ));
    };
    let off = var_off.wrapping_add(reg.off as i64 as u64);
    if u64::from(expected) != off {
        return Err(refuse!(
            walk,
            EINVAL,
            Argument,
            "off {} doesn't point to 'struct bpf_timer' that is at {expected}",
            off as i64
        ));
    }
    Ok((map, uid))
}
