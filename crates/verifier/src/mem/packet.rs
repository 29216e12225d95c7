//! Packet data and metadata, and the legacy packet loads.
//!
//! A packet pointer's range is what a comparison with the packet's end has proven; it
//! counts from the variable part of the offset, so only the fixed part is compared with
//! it.

use isa::ebpf::{Insn, Reg};

use super::Access;
use super::region::{check_fixed, check_ptr_off};
use super::registers::{set_constant, set_unknown};
use crate::Result;
use crate::call::leak::check_resource_leak;
use crate::state::{RegBase, RegKind, RegState};
use crate::type_rules::PacketAccess;
use crate::walk::{Outcome, RegArg, Walk};

/// True if the program may use packet data directly, or pass it to a helper whose
/// prototype says `pkt_access` (`may_access_direct_pkt_data`).
#[doc(alias = "may_access_direct_pkt_data")]
pub(crate) fn may_access(walk: &mut Walk<'_>, pkt_access: Option<bool>, access: Access) -> bool {
    let is_write = access == Access::Write;
    match (walk.env.type_rules().packet, pkt_access) {
        (PacketAccess::None, _) => false,
        (PacketAccess::Read, _) if is_write => false,
        (PacketAccess::Read | PacketAccess::Write, Some(pkt_access)) => pkt_access,
        (PacketAccess::Read | PacketAccess::Write, None) => {
            walk.seen_direct_write = true;
            true
        }
        (PacketAccess::Optval, _) => {
            walk.seen_direct_write |= is_write;
            true
        }
    }
}

/// Checks an access at `ptr`, whose fixed offset is part of `off`
/// (`check_packet_access`).
#[doc(alias = "check_packet_access")]
pub(super) fn check_access(
    walk: &mut Walk<'_>,
    ptr: Reg,
    off: i32,
    size: i32,
    is_zero_ok: bool,
) -> Result<()> {
    let reg = *walk.reg(ptr);
    if reg.num.smin < 0 {
        return Err(refuse!(walk => Mem::NegativeIndex { reg: ptr }));
    }
    let range = match reg.kind {
        RegKind::Packet { range } | RegKind::PacketMeta { range } => range,
        _ => -1,
    };
    if range < 0 {
        return Err(refuse!(walk => Mem::PacketUnchecked { reg: ptr }));
    }
    if !check_fixed(walk, ptr, off, size, range as u32, is_zero_ok) {
        return Err(refuse!(walk => Mem::OutsidePacket { reg: ptr }));
    }
    Ok(())
}

/// Refuses `BPF_LD_ABS` and `BPF_LD_IND` in programs without an skb
/// (`may_access_skb`).
#[doc(alias = "may_access_skb")]
pub fn check_skb_loads(walk: &mut Walk<'_>) -> Result<()> {
    if walk.env.type_rules().has_packet_loads() {
        return Ok(());
    }
    Err(refuse!(walk => Mem::PacketLoadType))
}

/// Checks `BPF_LD_ABS` and `BPF_LD_IND` (`check_ld_abs`).
pub fn check_ld_abs(walk: &mut Walk<'_>, insn: Insn) -> Result<Outcome> {
    check_skb_loads(walk)?;
    walk.check_reg_arg(Reg::R6, RegArg::Src)?;
    check_resource_leak(walk, false, true, "BPF_LD_[ABS|IND]")?;
    let ctx = *walk.reg(Reg::R6);
    if !ctx.is_plain(RegBase::PtrToCtx) {
        return Err(refuse!(walk => Mem::PacketLoadContext { reg: Reg::R6 }));
    }
    if let Insn::PacketInd { src, .. } = insn {
        walk.check_reg_arg(src, RegArg::Src)?;
    }
    check_ptr_off(walk, &ctx, Reg::R6, false)?;
    for number in 0..=5 {
        scratch(walk, number)?;
    }
    set_unknown(walk, Reg::R0);
    if walk.state.curframe == 0 {
        return Ok(Outcome::Next);
    }
    // A load beyond the packet ends the subprogram with 0.
    walk.mark_scratched(Reg::R0);
    let insn_idx = walk.insn_idx;
    walk.push_branch(insn_idx + 1, insn_idx)?;
    set_constant(walk, Reg::R0, 0);
    Ok(Outcome::Jump(crate::flow::prepare_func_exit(walk)?))
}

/// Makes a caller-saved register unreadable.
fn scratch(walk: &mut Walk<'_>, number: u8) -> Result<()> {
    if let Some(reg) = Reg::new(number) {
        *walk.reg_mut(reg) = RegState::NOT_INIT;
        walk.check_reg_arg(reg, RegArg::DstNoMark)?;
    }
    Ok(())
}

/// Invalidates packet pointers, whose data may have moved (`clear_all_pkt_pointers`).
#[doc(alias = "clear_all_pkt_pointers")]
pub(crate) fn clear_pointers(walk: &mut Walk<'_>) {
    super::invalidate_where(walk, |reg| {
        reg.kind.is_packet() || reg.kind == RegKind::PacketEnd
    });
}
