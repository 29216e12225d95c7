//! Accesses to regions of known size: map values and keys, memory, buffers, and the
//! rules for offsets of pointers that must not be modified.

use isa::ebpf::Reg;
use spec::behaviour::Behaviour;

use super::MAX_VAR_OFF;
use crate::Result;
use crate::diagnosis::Access;
use crate::log::Sink;
use crate::state::{RegKind, RegState};

/// True if `[off, off + size)` lies within `mem_size` bytes.
fn is_within(off: i32, size: i32, mem_size: u32, is_zero_ok: bool) -> bool {
    let is_size_ok = size > 0 || size == 0 && is_zero_ok;
    off >= 0 && is_size_ok && off as u64 + size as u64 <= mem_size.into()
}

/// Logs that an access is outside (`__check_mem_access`); the caller adds the last line.
#[doc(alias = "__check_mem_access")]
pub(super) fn log_outside(
    log: &mut Sink<'_>,
    reg: &RegState,
    ptr: Reg,
    off: i32,
    size: i32,
    mem_size: u32,
) {
    let (kind, id) = (reg.kind, reg.id);
    match kind {
        RegKind::MapKey { .. } if reg.flags.0 == 0 => verbose!(
            log,
            "invalid access to map key, key_size={} off={off} size={size}\n",
            mem_size as i32
        ),
        RegKind::MapValue { .. } if reg.flags.0 == 0 => verbose!(
            log,
            "invalid access to map value, value_size={} off={off} size={size}\n",
            mem_size as i32
        ),
        RegKind::Packet { .. } | RegKind::PacketMeta { .. } | RegKind::PacketEnd => verbose!(
            log,
            "invalid access to packet, off={off} size={size}, R{}(id={id},off={off},r={})\n",
            ptr.number(),
            mem_size as i32
        ),
        RegKind::Ctx if reg.flags.0 == 0 => verbose!(
            log,
            "invalid access to context, ctx_size={} off={off} size={size}\n",
            mem_size as i32
        ),
        RegKind::NotInit
        | RegKind::Scalar
        | RegKind::Ctx
        | RegKind::MapPtr { .. }
        | RegKind::MapValue { .. }
        | RegKind::MapKey { .. }
        | RegKind::Stack { .. }
        | RegKind::FlowKeys
        | RegKind::Socket
        | RegKind::SockCommon
        | RegKind::TcpSock
        | RegKind::TpBuffer
        | RegKind::XdpSock
        | RegKind::BtfId { .. }
        | RegKind::Mem { .. }
        | RegKind::Arena
        | RegKind::Buf
        | RegKind::Func { .. }
        | RegKind::Insn { .. }
        | RegKind::ConstDynptr { .. } => verbose!(
            log,
            "invalid access to memory, mem_size={mem_size} off={off} size={size}\n"
        ),
    }
}

/// Checks an access without a variable offset.
pub(super) fn check_fixed(
    log: &mut Sink<'_>,
    reg: &RegState,
    ptr: Reg,
    off: i32,
    size: i32,
    mem_size: u32,
    is_zero_ok: bool,
) -> bool {
    let fits = is_within(off, size, mem_size, is_zero_ok);
    if !fits {
        log_outside(log, reg, ptr, off, size, mem_size);
    }
    fits
}

/// Checks an access at `ptr + off`, whose variable part may have any value of its range
/// (`check_mem_region_access`).
#[doc(alias = "check_mem_region_access")]
pub(crate) fn check_region(
    log: &mut Sink<'_>,
    reg: &RegState,
    ptr: Reg,
    off: i32,
    size: i32,
    mem_size: u32,
    is_zero_ok: bool,
) -> Result<()> {
    let (smin, umax, off) = match log.rules.has(Behaviour::UnitedOffsets) && reg.off != 0 {
        true => (
            reg.num.smin.wrapping_add(reg.off.into()),
            reg.num.umax.wrapping_add(i64::from(reg.off) as u64),
            off.wrapping_sub(reg.off),
        ),
        false => (reg.num.smin, reg.num.umax, off),
    };
    let sum = smin.wrapping_add(off.into());
    let access = Access {
        off,
        size,
        region: mem_size,
    };
    if smin < 0 && (smin == i64::MIN || sum != i64::from(sum as i32) || sum < 0) {
        log.note_access(access);
        return Err(refuse!(log => Mem::NegativeIndex { reg: ptr }));
    }
    if !check_fixed(log, reg, ptr, sum as i32, size, mem_size, is_zero_ok) {
        log.note_access(access);
        return Err(refuse!(log => Mem::BelowRegion { reg: ptr }));
    }
    if umax >= MAX_VAR_OFF as u64 {
        log.note_access(access);
        return Err(refuse!(log => Mem::Unbounded { reg: ptr }));
    }
    let last = umax.wrapping_add(off as i64 as u64) as i32;
    if !check_fixed(log, reg, ptr, last, size, mem_size, is_zero_ok) {
        log.note_access(access);
        return Err(refuse!(log => Mem::AboveRegion { reg: ptr }));
    }
    Ok(())
}

/// Checks that a pointer is used unmodified, or with a fixed offset where that is allowed
/// (`__check_ptr_off_reg`) (`check_ptr_off_reg`).
#[doc(alias = "check_ptr_off_reg")]
#[doc(alias = "__check_ptr_off_reg")]
pub(crate) fn check_ptr_off(
    log: &mut Sink<'_>,
    reg: &RegState,
    ptr: Reg,
    is_fixed_ok: bool,
) -> Result<()> {
    let (kind, off, var_off) = (reg.reg_type(), reg.off, reg.num.var_off);
    if !var_off.is_const() && log.rules.has(Behaviour::UnitedOffsets) {
        return Err(refuse!(log => Mem::Variable { kind, var_off }));
    }
    refuse_if!(off < 0, log => Mem::NegativeOffset { kind, reg: ptr, off });
    refuse_if!(!is_fixed_ok && off != 0, log => Mem::Modified { kind, reg: ptr, off });
    refuse_if!(!var_off.equals(0), log => Mem::Variable { kind, var_off });
    Ok(())
}

/// Checks an access to a buffer whose size is known when the program is attached
/// (`__check_buffer_access`, `check_buffer_access`, `check_tp_buffer_access`).
#[doc(alias = "__check_buffer_access")]
#[doc(alias = "check_buffer_access")]
#[doc(alias = "check_tp_buffer_access")]
pub(super) fn check_buffer(
    log: &mut Sink<'_>,
    reg: &RegState,
    ptr: Reg,
    off: i32,
    size: i32,
    what: &str,
) -> Result<()> {
    let (var_off, base) = (reg.num.var_off, reg.off);
    if !var_off.is_const() && log.rules.has(Behaviour::UnitedOffsets) {
        return Err(refuse!(log => Mem::BufferVariable { reg: ptr, off, var_off }));
    }
    refuse_if!(off < 0, log => Mem::Buffer { reg: ptr, what, base, off, size });
    refuse_if!(!var_off.equals(0), log => Mem::BufferVariable { reg: ptr, off, var_off });
    Ok(())
}
