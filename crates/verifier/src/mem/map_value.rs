//! Values of maps: bounds, maps that programs may only read or only write, special
//! fields, and values of frozen read-only maps, which are constants.

use isa::ebpf::Reg;

use super::registers::{set_constant, set_unknown};
use super::{Access, MemAccess, kptr, region};
use crate::Result;
use crate::env::Check;
use crate::state::{MapRef, RegKind};

/// Accessor of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// An instruction.
    Direct,
    /// A helper.
    Helper,
}

/// Checks a load or store at `off`, the pointer's fixed offset included (`check_map_access`).
pub(super) fn check_map_access(
    env: &mut Check<'_>,
    access: MemAccess,
    map: MapRef,
    off: i32,
) -> Result<()> {
    let MemAccess { ptr, size, .. } = access;
    check_capability(env, map, off, size as i32, access.access)?;
    check_bounds(env, ptr, map, off, size as i32, false, Source::Direct)?;
    let var_off = env.reg(ptr).num.var_off;
    let input = env.input;
    let info = &input.maps[map];
    if var_off.is_const() {
        let at = off.wrapping_add(var_off.value as i32);
        if let Some(field) = info.record().pointer_at(at as u32) {
            return kptr::check_map_kptr_access(env, access, field);
        }
    }
    let (Access::Read, Some(value)) = (access.access, access.value) else {
        return Ok(());
    };
    if info.is_jump_table() {
        refuse_if!(size != 8, env => Mem::JumpTableRead { size });
        let mut target = *env.reg(ptr);
        target.kind = RegKind::Insn { map };
        target.off = off;
        *env.reg_mut(value) = target;
        return Ok(());
    }
    if !var_off.is_const() || !info.is_rdonly() || !input.has_direct_value(map) {
        set_unknown(env, value);
        return Ok(());
    }
    refuse_if!(info.max_entries() != 1, env => Mem::MapSilent);
    let at = off.wrapping_add(var_off.value as i32) as u32;
    let constant = info.constant(at, size, access.signed);
    set_constant(env, value, constant);
    Ok(())
}

/// Checks the map's flags for programs (`check_map_access_type`).
#[doc(alias = "check_map_access_type")]
pub(super) fn check_capability(
    env: &mut Check<'_>,
    map: MapRef,
    off: i32,
    size: i32,
    access: Access,
) -> Result<()> {
    let info = &env.input.maps[map];
    let (is_allowed, what) = match access {
        Access::Write => (info.can_write(), "write into"),
        Access::Read | Access::MayRead => (info.can_read(), "read from"),
    };
    if is_allowed {
        return Ok(());
    }
    let value_size = info.value_size();
    Err(refuse!(env => Mem::MapAccess { what, value_size, off, size }))
}

/// Checks bounds and special fields (`check_map_access`).
#[doc(alias = "check_map_access")]
pub(crate) fn check_bounds(
    env: &mut Check<'_>,
    ptr: Reg,
    map: MapRef,
    off: i32,
    size: i32,
    is_zero_ok: bool,
    source: Source,
) -> Result<()> {
    let input = env.input;
    let info = &input.maps[map];
    let reg = *env.reg(ptr);
    region::check_region(
        &mut env.sink,
        &reg,
        ptr,
        off,
        size,
        info.region_size(),
        is_zero_ok,
    )?;
    let num = reg.num;
    let first = num.smin.wrapping_add(off.into());
    let end = num
        .umax
        .wrapping_add((i64::from(off) + i64::from(size)) as u64);
    for field in info.record().fields() {
        let start = field.offset;
        let is_touched =
            first < i64::from(start) + i64::from(field.kind.size()) && u64::from(start) < end;
        if !is_touched {
            continue;
        }
        let name = field.kind;
        refuse_if!(!field.kind.is_pointer(), env => Mem::FieldDirect { name });
        refuse_if!(source != Source::Direct, env => Mem::FieldIndirect { name });
        refuse_if!(!num.var_off.is_const(), env => Mem::FieldVariable { name });
        let at = (i64::from(off) as u64).wrapping_add(num.var_off.value);
        refuse_if!(u64::from(start) != at, env => Mem::FieldMisaligned { name, start, at });
        refuse_if!(size != 8, env => Mem::FieldSize { name });
    }
    Ok(())
}
