//! Constants that calls rely on: strings in read-only maps, map keys, formats.

use isa::ebpf::Reg;

use super::format;
use crate::env::{Check, Env};
use crate::mem::map_value::{Source, check_bounds};
use crate::state::{PreciseMask, RegKind, SlotKind, TypeFlags};
use crate::{Result, refuse, refuse_if};

/// Checks that a pointer points at a string that nothing changes (`check_reg_const_str`,
/// `check_arg_const_str`).
#[doc(alias = "check_reg_const_str")]
#[doc(alias = "check_arg_const_str")]
pub(super) fn check_string(env: &mut Check<'_>, ptr: Reg) -> Result<()> {
    let reg = *env.reg(ptr);
    let RegKind::MapValue { map, .. } = reg.kind else {
        return Err(refuse!(env => Call::Silent));
    };
    refuse_if!(reg.flags != TypeFlags::NONE, env => Call::Silent);
    let input = env.input;
    let info = &input.maps[map];
    refuse_if!(!info.is_rdonly(), env => Call::NotReadOnlyMap { reg: ptr });
    let Some(var_off) = reg.num.as_const() else {
        return Err(refuse!(env => Call::NotConstantAddress { reg: ptr }));
    };
    refuse_if!(!input.has_direct_value(map), env => Call::NoDirectValue);
    let rest = (info.value_size() as i32).wrapping_sub(reg.off);
    check_bounds(env, ptr, map, reg.off, rest, false, Source::Helper)?;
    let off = reg.off.wrapping_add(var_off as i32);
    if info.max_entries() != 1 || off < 0 || off as u32 >= info.value_size() {
        return Err(refuse!(env => Call::DirectValueFailed));
    }
    let mut bytes = off as usize..info.value_size() as usize;
    if bytes.any(|at| info.byte(at) == 0) {
        return Ok(());
    }
    Err(refuse!(env => Call::NotTerminated))
}

/// Checks the format of `bpf_snprintf` (`check_bpf_snprintf_call`).
#[doc(alias = "check_bpf_snprintf_call")]
pub(super) fn check_snprintf(env: &mut Check<'_>) -> Result<()> {
    let size = env.reg(Reg::R5).num.var_off.value;
    refuse_if!(!size.is_multiple_of(8), env => Call::Silent);
    let reg = *env.reg(Reg::R3);
    let RegKind::MapValue { map, .. } = reg.kind else {
        return Ok(());
    };
    let info = &env.input.maps[map];
    let start = reg.off.wrapping_add(reg.num.var_off.value as i32).max(0) as usize;
    let text: Vec<u8> = (start..info.value_size() as usize)
        .map(|at| info.byte(at))
        .collect();
    if format::is_valid(&text, (size / 8) as usize) {
        return Ok(());
    }
    Err(refuse!(env => Call::InvalidFormat))
}

/// The value of a map key on the stack, if it is known; it then counts as precise
/// (`get_constant_map_key`).
#[doc(alias = "get_constant_map_key")]
pub(super) fn map_key(env: &mut Env<'_>, key: Reg, key_size: u32) -> Result<Option<i64>> {
    let reg = *env.reg(key);
    let RegKind::Stack { frame } = reg.kind else {
        return Ok(None);
    };
    let (true, Some(var_off)) = (env.input.bpf_capable, reg.num.as_const()) else {
        return Ok(None);
    };
    let off = reg.off.wrapping_add(var_off as i32);
    let slot = (-off - 1) as usize;
    let (spi, last) = (slot / 8, slot % 8);
    let Some(&found) = env.state.frame(frame as usize).stack.get(spi) else {
        return Ok(None);
    };
    let run = |kind: SlotKind| {
        let bytes = found.kinds[..=last].iter().rev();
        bytes.take_while(|byte| **byte == kind).count() as u32
    };
    if run(SlotKind::Zero) >= key_size {
        return Ok(Some(0));
    }
    if !found.is_spilled_scalar() || run(SlotKind::Spill) != key_size {
        return Ok(None);
    }
    let Some(value) = found.reg.num.as_const() else {
        return Ok(None);
    };
    let mut wanted = vec![PreciseMask::default(); env.state.curframe + 1];
    if let Some(mask) = wanted.get_mut(frame as usize) {
        mask.slots = 1 << spi;
    }
    env.mark_batch_precise(&wanted)?;
    Ok(Some(value as i64))
}
