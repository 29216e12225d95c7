//! Special fields of map values and allocated objects that calls take the address of: locks,
//! timers, work queues, work of tasks.

use btf::Kind;
use btf::fields::FieldKind;
use isa::ebpf::Reg;
use spec::behaviour::Behaviour;

use crate::env::Check;
use crate::state::{MapRef, RegKind};
use crate::{RefusalKind, Result, Stop, refuse};

/// A special field that calls take the address of.
pub(super) struct FieldArg {
    /// Its kind.
    pub(super) kind: FieldKind,
    /// Class of refusals of the address.
    pub(super) refusal: RefusalKind,
}

/// Checks that a pointer into a map value points at a field of this kind, and returns the map with
/// its identity (`check_map_field_pointer`, `process_timer_func`, `process_timer_helper`,
/// `process_timer_kfunc`, `process_wq_func`).
#[doc(alias = "check_map_field_pointer")]
#[doc(alias = "process_timer_func")]
#[doc(alias = "process_timer_helper")]
#[doc(alias = "process_timer_kfunc")]
#[doc(alias = "process_wq_func")]
pub(super) fn check_in_value(
    env: &mut Check<'_>,
    ptr: Reg,
    kind: FieldKind,
) -> Result<(MapRef, u32)> {
    let field = FieldArg {
        kind,
        refusal: RefusalKind::Argument,
    };
    check_field(env, ptr, &field)?;
    let RegKind::MapValue { map, uid } = env.reg(ptr).kind else {
        return Err(Stop::Bug("field argument is no map value".into()));
    };
    Ok((map, uid))
}

/// Checks that a pointer into a map value or an object points at the field.
pub(super) fn check_field(env: &mut Check<'_>, ptr: Reg, field: &FieldArg) -> Result<()> {
    let var_off = check_constant_offset(env, ptr, field)?;
    let name = field.kind;
    let reg = *env.reg(ptr);
    let found = env.input.record_of(&reg);
    let found = found.and_then(|record| record.offset_of(name));
    let refusal = match (reg.kind, found) {
        (RegKind::MapValue { map, .. }, _) if !env.input.maps[map].has_btf() => {
            refuse!(env => Call::FieldWithoutBtf { map: env.input.map_name(map), name })
        }
        (RegKind::MapValue { map, .. }, None) if is_named_missing(env, map) => {
            refuse!(env => Call::FieldMissing { map: env.input.map_name(map), name })
        }
        (RegKind::MapValue { map, .. }, None) => {
            refuse!(env => Call::FieldAbsent { map: env.input.map_name(map), name })
        }
        (_, None) => refuse!(env => Call::FieldAbsentInObject { name }),
        (_, Some(expected)) => {
            let off = var_off.wrapping_add(i64::from(reg.off));
            if i64::from(expected) == off {
                return Ok(());
            }
            refuse!(env => Call::FieldOffset { off, name, expected })
        }
    };
    Err(refusal.with_kind(field.refusal))
}

/// True if the kernel says of a value that it has members and no such field.
fn is_named_missing(env: &Check<'_>, map: MapRef) -> bool {
    let rules = env.input.rules;
    let value = env.input.maps[map].def().params.value_type;
    let kind = env.input.program.btf().and_then(|btf| {
        let value = btf.skip_modifiers(value)?;
        Some(btf.get(value)?.kind())
    });
    !rules.has(Behaviour::LocksOfRecords)
        && (kind == Some(Kind::Struct)
            || kind == Some(Kind::Datasec) && rules.has(Behaviour::LocksInSections))
}

/// The variable part of a pointer's offset, which must be a constant.
fn check_constant_offset(env: &mut Check<'_>, ptr: Reg, field: &FieldArg) -> Result<i64> {
    if let Some(var_off) = env.reg(ptr).num.as_const() {
        return Ok(var_off as i64);
    }
    let is_free = field.kind == FieldKind::Workqueue;
    if is_free && !env.input.rules.has(Behaviour::WorkqueuesByConstant) {
        return Ok(env.reg(ptr).num.var_off.value as i64);
    }
    let refusal = refuse!(env => Call::FieldVariable { reg: ptr, name: field.kind });
    Err(refusal.with_kind(field.refusal))
}
