//! Locks and timers in map values.

use isa::ebpf::Reg;

use super::reference::{acquire_lock, release_lock};
use crate::state::{LockOwner, MapRef, ReferenceKind, RegKind, TypeFlags};
use crate::walk::Walk;
use crate::{Errno, RefusalKind, Result, Stop, refuse, verbose};
use btf::fields::FieldKind;

/// Checks `bpf_spin_lock` and `bpf_spin_unlock` (`process_spin_lock`).
#[doc(alias = "process_spin_lock")]
pub(super) fn check_spin_lock(walk: &mut Walk<'_>, ptr: Reg, is_lock: bool) -> Result<()> {
    let reg = *walk.reg(ptr);
    let RegKind::MapValue { map, .. } = reg.kind else {
        check_constant_offset(walk, ptr, &LOCK)?;
        return Err(Stop::unsupported("lock in an allocated object"));
    };
    check_field(walk, ptr, map, &LOCK)?;
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
#[doc(alias = "process_timer_func")]
pub(super) fn check_timer(walk: &mut Walk<'_>, ptr: Reg) -> Result<(MapRef, u32)> {
    let RegKind::MapValue { map, uid } = walk.reg(ptr).kind else {
        check_constant_offset(walk, ptr, &TIMER)?;
        return Err(Stop::Bug("timer argument is no map value".into()));
    };
    check_field(walk, ptr, map, &TIMER)?;
    Ok((map, uid))
}

/// A special field that helpers take the address of.
struct SpecialField {
    kind: FieldKind,
    /// Name of its structure.
    name: &'static str,
    /// Class of refusals of the address.
    refusal: RefusalKind,
}

const LOCK: SpecialField = SpecialField {
    kind: FieldKind::SpinLock,
    name: "bpf_spin_lock",
    refusal: RefusalKind::Lock,
};

const TIMER: SpecialField = SpecialField {
    kind: FieldKind::Timer,
    name: "bpf_timer",
    refusal: RefusalKind::Argument,
};

/// Checks that a pointer into a map value has the field's offset.
fn check_field(walk: &mut Walk<'_>, ptr: Reg, map: MapRef, field: &SpecialField) -> Result<()> {
    let var_off = check_constant_offset(walk, ptr, field)?;
    let SpecialField { kind, name, .. } = *field;
    let info = &walk.env.maps[map];
    let map_name = info.kernel_name();
    let message = match info.record().offset_of(kind) {
        _ if !info.has_btf() => {
            format!("map '{map_name}' has to have BTF in order to use {name}")
        }
        None => format!("map '{map_name}' has no valid {name}"),
        Some(expected) => {
            let off = var_off.wrapping_add(i64::from(walk.reg(ptr).off));
            if i64::from(expected) == off {
                return Ok(());
            }
            format!("off {off} doesn't point to 'struct {name}' that is at {expected}")
        }
    };
    Err(refuse_address(walk, field, &message))
}

/// The variable part of a pointer's offset, which must be a constant.
fn check_constant_offset(walk: &mut Walk<'_>, ptr: Reg, field: &SpecialField) -> Result<i64> {
    if let Some(var_off) = walk.reg(ptr).num.as_const() {
        return Ok(var_off as i64);
    }
    let (number, name) = (ptr.number(), field.name);
    let message =
        format!("R{number} doesn't have constant offset. {name} has to be at the constant offset");
    Err(refuse_address(walk, field, &message))
}

/// The refusal of the address of a special field.
fn refuse_address(walk: &mut Walk<'_>, field: &SpecialField, message: &str) -> Stop {
    verbose!(walk, "{message}\n");
    Stop::refusal(
        Errno::EINVAL,
        field.refusal,
        Some(walk.insn_idx),
        format_args!("{message}"),
    )
}
