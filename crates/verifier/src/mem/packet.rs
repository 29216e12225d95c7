//! Packet data and metadata, and the legacy packet loads.
//!
//! A packet pointer's range is what a comparison with the packet's end has proven; it
//! counts from the variable part of the offset, so only the fixed part is compared with
//! it.

use isa::ebpf::{Insn, Reg};
use spec::behaviour::Behaviour;

use super::Access;
use super::region::{check_fixed, check_ptr_off, check_region};
use super::registers::{set_constant, set_unknown};
use crate::Result;
use crate::call::leak::{LeakCheck, check_resource_leak};
use crate::env::{Check, Env, Outcome, RegArg};
use crate::log::Sink;
use crate::state::{DynptrKind, RegBase, RegKind, RegState};
use crate::type_rules::PacketAccess;

/// True if the program may use packet data directly, or pass it to a helper whose
/// prototype says `pkt_access` (`may_access_direct_pkt_data`).
#[doc(alias = "may_access_direct_pkt_data")]
pub(crate) fn may_access(env: &mut Check<'_>, pkt_access: Option<bool>, access: Access) -> bool {
    let is_write = access == Access::Write;
    match (env.input.type_rules().packet, pkt_access) {
        (PacketAccess::None, _) => false,
        (PacketAccess::Read, _) if is_write => false,
        (PacketAccess::Read | PacketAccess::Write, Some(pkt_access)) => pkt_access,
        (PacketAccess::Read | PacketAccess::Write, None) => {
            env.seen_direct_write = true;
            true
        }
        (PacketAccess::Optval, _) => {
            env.seen_direct_write |= is_write;
            true
        }
    }
}

/// Checks an access at `ptr`, whose fixed offset is part of `off`
/// (`check_packet_access`).
pub(super) fn check_packet_access(
    log: &mut Sink<'_>,
    reg: &RegState,
    ptr: Reg,
    off: i32,
    size: i32,
    is_zero_ok: bool,
) -> Result<()> {
    let range = reg.kind.packet_range().unwrap_or(-1);
    if range >= 0 && log.rules.has(Behaviour::PacketRangesChecked) {
        return check_region(log, reg, ptr, off, size, range as u32, is_zero_ok);
    }
    refuse_if!(reg.num.smin < 0, log => Mem::NegativeIndex { reg: ptr });
    refuse_if!(range < 0, log => Mem::PacketUnchecked { reg: ptr });
    if !check_fixed(log, reg, ptr, off, size, range as u32, is_zero_ok) {
        return Err(refuse!(log => Mem::OutsidePacket { reg: ptr }));
    }
    Ok(())
}

/// Refuses `BPF_LD_ABS` and `BPF_LD_IND` in programs without an skb
/// (`may_access_skb`).
#[doc(alias = "may_access_skb")]
pub(crate) fn check_skb_loads(env: &mut Check<'_>) -> Result<()> {
    if env.input.type_rules().has_packet_loads {
        return Ok(());
    }
    Err(refuse!(env => Mem::PacketLoadType))
}

/// Checks `BPF_LD_ABS` and `BPF_LD_IND` (`check_ld_abs`).
pub(crate) fn check_ld_abs(env: &mut Env<'_>, insn: Insn) -> Result<Outcome> {
    check_skb_loads(env)?;
    env.check_reg_arg(Reg::R6, RegArg::Src)?;
    check_resource_leak(env, false, true, LeakCheck::PacketLoad)?;
    let ctx = *env.reg(Reg::R6);
    refuse_if!(!ctx.is_plain(RegBase::PtrToCtx), env => Mem::PacketLoadContext { reg: Reg::R6 });
    if let Insn::PacketInd { src, .. } = insn {
        env.check_reg_arg(src, RegArg::Src)?;
    }
    check_ptr_off(&mut env.sink, &ctx, Reg::R6, false)?;
    for number in 0..=5 {
        scratch(env, number)?;
    }
    set_unknown(env, Reg::R0);
    let may_exit = env.input.rules.has(Behaviour::PacketLoadsEndFunctions);
    if env.state.curframe == 0 || !may_exit {
        return Ok(Outcome::Next);
    }
    // A load beyond the packet ends the subprogram with 0.
    env.mark_scratched(Reg::R0);
    env.fork(env.sink.insn_idx + 1)?;
    set_constant(env, Reg::R0, 0);
    Ok(Outcome::Jump(crate::flow::prepare_func_exit(env)?))
}

/// Makes a caller-saved register unreadable.
fn scratch(env: &mut Env<'_>, number: u8) -> Result<()> {
    if let Some(reg) = Reg::new(number) {
        *env.reg_mut(reg) = RegState::NOT_INIT;
        env.check_reg_arg(reg, RegArg::DstNoMark)?;
    }
    Ok(())
}

/// True for a slice of a dynptr of a packet (`reg_is_dynptr_slice_pkt`).
#[doc(alias = "reg_is_dynptr_slice_pkt")]
fn is_slice(reg: &RegState) -> bool {
    let kind = DynptrKind::of_flags(reg.flags);
    matches!(reg.kind, RegKind::Mem { .. }) && kind.is_some_and(DynptrKind::is_of_packet)
}

/// Invalidates packet pointers, whose data may have moved (`clear_all_pkt_pointers`).
#[doc(alias = "clear_all_pkt_pointers")]
pub(crate) fn clear_pointers(env: &mut Check<'_>) {
    super::invalidate_where(env, |reg| {
        reg.kind.is_packet() || reg.kind == RegKind::PacketEnd || is_slice(reg)
    });
}
