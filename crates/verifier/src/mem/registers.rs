//! Writing registers of the executing frame.
//!
//! A write replaces the whole register, so that identity, references and marks of the
//! old value vanish with it.

use isa::ebpf::Reg;
use spec::behaviour::Behaviour;

use crate::env::Check;
use crate::input::Input;
use crate::state::{ADD_CONST, RegKind, RegState, TypeFlags};

/// A scalar of unknown value (`__mark_reg_unknown`).
#[doc(alias = "__mark_reg_unknown")]
pub(crate) const fn unknown() -> RegState {
    RegState::UNKNOWN
}

/// Makes a register a scalar of unknown value (`mark_reg_unknown`).
#[doc(alias = "mark_reg_unknown")]
pub(crate) fn set_unknown(env: &mut Check<'_>, reg: Reg) {
    *env.reg_mut(reg) = unknown();
}

/// Makes a register the scalar of that value.
pub(crate) fn set_constant(env: &mut Check<'_>, reg: Reg, value: u64) {
    *env.reg_mut(reg) = RegState::constant(value);
}

/// Makes a register a pointer without offset (`mark_reg_known_zero`).
#[doc(alias = "mark_reg_known_zero")]
pub(crate) fn set_pointer(env: &mut Check<'_>, reg: Reg, kind: RegKind, flags: TypeFlags) {
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

/// A scalar that is about to be copied, with an identity, so that both copies are refined together, unless it is
/// a constant (`assign_scalar_id_before_mov`). A difference to another identity is forgotten, as only one is
/// tracked.
#[doc(alias = "assign_scalar_id_before_mov")]
pub(crate) fn with_scalar_id(env: &mut Check<'_>, reg: RegState) -> RegState {
    let forgets = reg.id & ADD_CONST != 0;
    if !reg.is_scalar() || reg.id != 0 && !forgets {
        return reg;
    }
    let is_linked = !reg.num.is_const() || !env.input.rules.has(Behaviour::ConstantsUnlinked);
    RegState {
        id: if is_linked { env.new_id() } else { 0 },
        off: if forgets { 0 } else { reg.off },
        ..reg
    }
}

/// Gives a register that is about to be copied an identity ([`with_scalar_id`]).
pub(crate) fn assign_scalar_id(env: &mut Check<'_>, reg: Reg) {
    let old = *env.reg(reg);
    let new = with_scalar_id(env, old);
    if new != old {
        *env.reg_mut(reg) = new;
    }
}
