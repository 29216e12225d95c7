//! Pointers that may be null.

use isa::ebpf::Reg;
use spec::behaviour::{Behaviour, Behaviours};
use spec::maps::MapKind;

use crate::input::Input;
use crate::state::{Reference, ReferenceKind, RegKind, RegRules, RegState, State, TypeFlags};

/// True if the pointer is certainly not null (`reg_not_null`).
#[doc(alias = "reg_not_null")]
pub(super) fn is_not_null(reg: &RegState, rules: Behaviours) -> bool {
    if reg.may_be_null() {
        return false;
    }
    let is_known = || {
        matches!(
            reg.kind,
            RegKind::Socket
                | RegKind::TcpSock
                | RegKind::SockCommon
                | RegKind::MapValue { .. }
                | RegKind::MapKey { .. }
        )
    };
    if !rules.has(Behaviour::TrustedPointers) && !is_known() {
        return false;
    }
    if let RegKind::BtfId { .. } = reg.kind {
        return is_trusted(reg);
    }
    if matches!(reg.kind, RegKind::XdpSock | RegKind::Buf) {
        return rules.has(Behaviour::BuffersNotNull);
    }
    if let RegKind::Mem { .. } = reg.kind {
        return !reg.flags.has(TypeFlags::PTR_UNTRUSTED);
    }
    RegRules::of(reg.kind.base()).is_not_null
}

/// True if the kernel answers for the object that a BTF pointer points to
/// (`is_trusted_reg`).
#[doc(alias = "is_trusted_reg")]
pub(crate) fn is_trusted(reg: &RegState) -> bool {
    const MODIFIERS: TypeFlags = TypeFlags::MEM_ALLOC
        .with(TypeFlags::PTR_TRUSTED)
        .with(TypeFlags::NON_OWN_REF);
    let has_others = !reg.flags.without(MODIFIERS).is_empty();
    if reg.ref_obj_id != 0 {
        return true;
    }
    // Those that stand for structures (`reg2btf_ids`) are trusted.
    if RegRules::of(reg.kind.base()).structure.is_some() && !has_others {
        return true;
    }
    reg.flags.has_any(MODIFIERS) && !has_others
}

/// Changes the kind alone, as Linux 6.18 writes the type and leaves the union.
fn change_kind(reg: &mut RegState, kind: RegKind) {
    reg.residue = reg.kind.residue();
    reg.kind = kind;
}

/// The pointer is not null: it becomes what it points to (`mark_ptr_not_null_reg`).
#[doc(alias = "mark_ptr_not_null_reg")]
pub(crate) fn mark_not_null(input: &Input<'_>, reg: &mut RegState) {
    if let RegKind::MapValue { map, uid } = reg.kind {
        let info = &input.maps[map];
        if let Some(inner) = info.inner() {
            // Lookups of inner maps are told apart where a callback may run on a value.
            let is_told_apart = input.maps[inner].record().has_async();
            let uid = if is_told_apart { reg.id } else { uid };
            reg.kind = RegKind::MapPtr { map: inner, uid };
        } else {
            if info.kind().is_some_and(MapKind::holds_xdp_sockets) {
                change_kind(reg, RegKind::XdpSock);
            } else if info.kind().is_some_and(MapKind::holds_sockets) {
                change_kind(reg, RegKind::Socket);
            }
        }
        reg.flags = TypeFlags::NONE;
        return;
    }
    reg.flags = reg.flags.without(TypeFlags::PTR_MAYBE_NULL);
}

/// A comparison with null decided: registers of the identity of `reg` become null or not null
/// (`mark_ptr_or_null_regs`) (`mark_ptr_or_null_reg`).
#[doc(alias = "mark_ptr_or_null_reg")]
pub(crate) fn mark_ptr_or_null_regs(input: &Input<'_>, state: &mut State, reg: Reg, is_null: bool) {
    let (id, ref_obj_id) = (state.reg(reg).id, state.reg(reg).ref_obj_id);
    if ref_obj_id != 0 && ref_obj_id == id && is_null {
        let is_it = |held: &Reference| held.kind == ReferenceKind::Pointer && held.id == ref_obj_id;
        if let Some(index) = state.refs.iter().position(is_it) {
            state.refs.remove(index);
        }
    }
    let is_wanted = |reg: &RegState| {
        reg.may_be_null()
            && reg.id == id
            && (id != 0 || reg.flags.has(TypeFlags::MEM_RCU))
            && reg.num.smin == 0
            && reg.num.smax == 0
            && reg.num.var_off.equals(0)
            && (reg.off == 0
                || reg
                    .flags
                    .has_any(TypeFlags::MEM_ALLOC | TypeFlags::NON_OWN_REF))
    };
    state.for_each_reg_mut(is_wanted, |reg| {
        if is_null {
            change_kind(reg, RegKind::Scalar);
            reg.flags = TypeFlags::NONE;
            (reg.id, reg.ref_obj_id) = (0, 0);
            return;
        }
        mark_not_null(input, reg);
        if !input.rules.has(Behaviour::IdentitiesKept) && !input.may_point_to_lock(reg) {
            reg.id = 0;
        }
    });
}
