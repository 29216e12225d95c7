//! Writing registers of the executing frame.
//!
//! A write replaces the whole register, so that identity, references and marks of the
//! old value vanish with it.

use isa::ebpf::Reg;

use crate::env::Env;
use crate::input::Input;
use crate::state::{ADD_CONST, RegKind, RegState, TypeFlags};

/// A scalar of unknown value (`__mark_reg_unknown`).
#[doc(alias = "__mark_reg_unknown")]
pub(crate) const fn unknown() -> RegState {
    RegState::UNKNOWN
}

/// Makes a register a scalar of unknown value (`mark_reg_unknown`).
#[doc(alias = "mark_reg_unknown")]
pub(crate) fn set_unknown(env: &mut Env<'_>, reg: Reg) {
    *env.reg_mut(reg) = unknown();
}

/// Makes a register the scalar of that value.
pub(crate) fn set_constant(env: &mut Env<'_>, reg: Reg, value: u64) {
    *env.reg_mut(reg) = RegState::constant(value);
}

/// Makes a register a pointer without offset (`mark_reg_known_zero`).
#[doc(alias = "mark_reg_known_zero")]
pub(crate) fn set_pointer(env: &mut Env<'_>, reg: Reg, kind: RegKind, flags: TypeFlags) {
    *env.reg_mut(reg) = RegState::pointer(kind, flags);
}

/// State of a register whose object was released (`mark_reg_invalid`).
#[doc(alias = "mark_reg_invalid")]
pub(crate) fn invalid(input: &Input<'_>) -> RegState {
    match input.allow_ptr_leaks {
        true => unknown(),
        false => RegState::NOT_INIT,
    }
}

/// Gives a scalar that is about to be copied an identity, so that both copies are refined
/// together (`assign_scalar_id_before_mov`).
#[doc(alias = "assign_scalar_id_before_mov")]
pub(crate) fn assign_scalar_id(env: &mut Env<'_>, reg: Reg) {
    let old = *env.reg(reg);
    if !old.is_scalar() {
        return;
    }
    let mut new = old;
    if new.id & ADD_CONST != 0 {
        new.id = 0;
        new.off = 0;
    }
    if new.id == 0 && !new.num.var_off.is_const() {
        new.id = env.new_id();
    }
    if new != old {
        *env.reg_mut(reg) = new;
    }
}
