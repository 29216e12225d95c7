//! Comparisons of packet pointers with the end of the packet, or of metadata pointers
//! with its start.

use isa::ebpf::{Cond, Reg};
use spec::behaviour::{Behaviour, Behaviours};

use crate::state::{PKT_AT_END, PKT_BEYOND_END, RegKind, RegState, State};

/// Greatest offset within a packet.
pub(crate) const MAX_PACKET_OFF: u64 = 0xffff;

/// True for packet pointers of every kind.
pub(super) fn is_any(reg: &RegState) -> bool {
    reg.kind.is_packet() || matches!(reg.kind, RegKind::PacketEnd)
}

/// Outcome of a comparison that earlier ones decided (`is_pkt_ptr_branch_taken`).
#[doc(alias = "is_pkt_ptr_branch_taken")]
pub(super) fn decide(dst: &RegState, src: &RegState, cond: Cond) -> Option<bool> {
    let (pkt, cond) = if matches!(src.kind, RegKind::PacketEnd) {
        (dst, cond)
    } else if matches!(dst.kind, RegKind::PacketEnd) {
        (src, cond.exchanged())
    } else {
        return None;
    };
    let (RegKind::Packet { range } | RegKind::PacketMeta { range }) = pkt.kind else {
        return None;
    };
    match cond {
        Cond::Le | Cond::Gt if range == PKT_BEYOND_END => Some(cond == Cond::Gt),
        Cond::Lt | Cond::Ge if range == PKT_BEYOND_END || range == PKT_AT_END => {
            Some(cond == Cond::Ge)
        }
        _ => None,
    }
}

/// Learns from a comparison of packet pointers; `this` falls through, `other` jumps.
/// False if it is none (`try_match_pkt_pointers`).
#[doc(alias = "try_match_pkt_pointers")]
pub(super) fn refine(
    cond: Cond,
    (dst, src): (Reg, Reg),
    (this, other): (&mut State, &mut State),
    rules: Behaviours,
) -> bool {
    let (dst_reg, src_reg) = (*this.reg(dst), *this.reg(src));
    let (pointer, number, cond) = if is_pointer(&dst_reg, &src_reg) {
        (dst_reg, dst, cond)
    } else if is_pointer(&src_reg, &dst_reg) {
        (src_reg, src, cond.exchanged())
    } else {
        return false;
    };
    // From here on the comparison reads: pointer cond end.
    let (inside, outside, is_open) = match cond {
        Cond::Gt => (this, other, false),
        Cond::Lt => (other, this, true),
        Cond::Ge => (this, other, true),
        Cond::Le => (other, this, false),
        _ => return false,
    };
    mark_good(inside, &pointer, is_open, rules);
    mark_end(outside, number, !is_open);
    true
}

/// True for a pointer into a packet or its metadata and what bounds it (`reg_is_init_pkt_pointer`).
#[doc(alias = "reg_is_init_pkt_pointer")]
fn is_pointer(pointer: &RegState, end: &RegState) -> bool {
    if matches!(pointer.kind, RegKind::Packet { .. }) {
        return end.kind == RegKind::PacketEnd;
    }
    matches!(pointer.kind, RegKind::PacketMeta { .. })
        && matches!(end.kind, RegKind::Packet { .. })
        && end.id == 0
        && end.off == 0
        && end.num.var_off.equals(0)
}

/// Pointers of the same identity may read up to the compared pointer
/// (`find_good_pkt_pointers`); one byte more if that pointer is before the end.
#[doc(alias = "find_good_pkt_pointers")]
fn mark_good(state: &mut State, pointer: &RegState, is_open: bool, rules: Behaviours) {
    let proven = match rules.has(Behaviour::UnitedOffsets) {
        true => {
            let end = (pointer.num.umax).wrapping_add(i64::from(pointer.off) as u64);
            (end <= MAX_PACKET_OFF).then_some(end as i32)
        }
        false => {
            let reach = pointer.num.umax.checked_add(pointer.off as u64);
            let is_near = pointer.num.umax <= MAX_PACKET_OFF
                && reach.is_some_and(|reach| reach <= MAX_PACKET_OFF);
            (pointer.off >= 0 && is_near).then_some(pointer.off)
        }
    };
    let Some(proven) = proven.filter(|&proven| proven != 0 || !is_open) else {
        return;
    };
    let new = proven + i32::from(is_open);
    let is_meta = |reg: &RegState| matches!(reg.kind, RegKind::PacketMeta { .. });
    let is_wanted = |reg: &RegState| {
        reg.id == pointer.id
            && is_meta(reg) == is_meta(pointer)
            && reg.kind.packet_range().is_some_and(|range| range < new)
    };
    state.for_each_reg_mut(is_wanted, |reg| {
        if let RegKind::Packet { range } | RegKind::PacketMeta { range } = &mut reg.kind {
            *range = new;
        }
    });
}

/// The pointer is at or beyond the end (`mark_pkt_end`).
#[doc(alias = "mark_pkt_end")]
fn mark_end(state: &mut State, reg: Reg, is_beyond: bool) {
    if let RegKind::Packet { range } = &mut state.reg_mut(reg).kind {
        *range = if is_beyond {
            PKT_BEYOND_END
        } else {
            PKT_AT_END
        };
    }
}
