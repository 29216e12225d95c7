//! Writing registers of the executing frame.
//!
//! A write replaces the whole register, so that identity, references and marks of the
//! old value vanish with it.

use isa::ebpf::Reg;

use crate::state::{ADD_CONST, RegKind, RegState, TypeFlags};
use crate::walk::Walk;

/// Puts a value into a register.
pub(crate) fn set_reg(walk: &mut Walk<'_>, reg: Reg, value: RegState) {
    *walk.reg_mut(reg) = value;
}

/// A scalar of unknown value (`__mark_reg_unknown`).
#[doc(alias = "__mark_reg_unknown")]
pub(crate) const fn unknown() -> RegState {
    RegState::UNKNOWN
}

/// Makes a register a scalar of unknown value (`mark_reg_unknown`).
#[doc(alias = "mark_reg_unknown")]
pub(crate) fn set_unknown(walk: &mut Walk<'_>, reg: Reg) {
    set_reg(walk, reg, unknown());
}

/// Makes a register the scalar of that value.
pub(crate) fn set_constant(walk: &mut Walk<'_>, reg: Reg, value: u64) {
    set_reg(walk, reg, RegState::constant(value));
}

/// Makes a register a pointer without offset (`mark_reg_known_zero`).
#[doc(alias = "mark_reg_known_zero")]
pub(crate) fn set_pointer(walk: &mut Walk<'_>, reg: Reg, kind: RegKind, flags: TypeFlags) {
    set_reg(walk, reg, RegState::pointer(kind, flags));
}

/// State of a register whose object was released (`mark_reg_invalid`).
#[doc(alias = "mark_reg_invalid")]
pub(crate) fn invalid(walk: &Walk<'_>) -> RegState {
    match walk.env.allow_ptr_leaks {
        true => unknown(),
        false => RegState::NOT_INIT,
    }
}

/// Gives a scalar that is about to be copied an identity, so that both copies are refined
/// together (`assign_scalar_id_before_mov`).
#[doc(alias = "assign_scalar_id_before_mov")]
pub(crate) fn assign_scalar_id(walk: &mut Walk<'_>, reg: Reg) {
    let old = *walk.reg(reg);
    if !old.is_scalar() {
        return;
    }
    let mut new = old;
    if new.id & ADD_CONST != 0 {
        new.id = 0;
        new.off = 0;
    }
    if new.id == 0 && !new.num.var_off.is_const() {
        new.id = walk.new_id();
    }
    if new != old {
        set_reg(walk, reg, new);
    }
}
