//! Dynptrs that kfuncs are given, and the slices that they return.

use btf::ParamSuffix;
use spec::registry::SpecialKfunc;

use super::Callee;
use crate::call::REGS;
use crate::call::dynptr::{self, Usage};
use crate::call::meta::CallMeta;
use crate::env::{Check, Env};
use crate::mem::{Access, packet};
use crate::state::{DynptrKind, RegKind, RegState, TypeFlags};
use crate::{Result, Stop, refuse, refuse_if};

/// Checks the dynptr that a kfunc is given.
pub(super) fn check_kfunc_dynptr(
    env: &mut Env<'_>,
    callee: &Callee<'_>,
    index: usize,
    meta: &mut CallMeta,
) -> Result<()> {
    let ptr = REGS[index];
    let is_const = matches!(env.reg(ptr).kind, RegKind::ConstDynptr { .. });
    if ParamSuffix::of(&callee.params[index].1) == Some(ParamSuffix::Uninit) {
        refuse_if!(is_const, env => Call::MisconfiguredDynptr);
        let (kind, clone_of) = made(callee, meta)?;
        return dynptr::check_dynptr(env, ptr, Usage::Makes { kind, clone_of });
    }
    let discards = callee.is(SpecialKfunc::DynptrFileDiscard);
    if discards {
        dynptr::check_release(env, ptr, meta)?;
    }
    let usage = Usage::Takes {
        kind: discards.then_some(DynptrKind::File),
        is_rdonly: is_const,
    };
    dynptr::check_dynptr(env, ptr, usage)?;
    if discards {
        return dynptr::release(env, ptr);
    }
    meta.dynptr = dynptr::initialized(env, ptr);
    Ok(())
}

/// Kind of the dynptr that a kfunc makes, and the reference that a clone holds.
fn made(callee: &Callee<'_>, meta: &CallMeta) -> Result<(DynptrKind, u32)> {
    Ok(match (callee.kfunc.special, meta.dynptr) {
        (Some(SpecialKfunc::DynptrFromSkb), _) => (DynptrKind::Skb, 0),
        (Some(SpecialKfunc::DynptrFromXdp), _) => (DynptrKind::Xdp, 0),
        (Some(SpecialKfunc::DynptrFromSkbMeta), _) => (DynptrKind::SkbMeta, 0),
        (Some(SpecialKfunc::DynptrFromFile), _) => (DynptrKind::File, 0),
        (Some(SpecialKfunc::DynptrClone), Some(parent)) => (parent.kind, parent.ref_obj_id),
        _ => return Err(callee.unsupported()),
    })
}

/// The slice that a kfunc returns (in `check_special_kfunc`).
#[doc(alias = "check_special_kfunc")]
pub(super) fn slice(env: &mut Check<'_>, callee: &Callee<'_>, meta: &CallMeta) -> Result<RegState> {
    let (Some(dynptr), Some(size)) = (meta.dynptr, meta.constant) else {
        return Err(Stop::Bug("slice of no dynptr or of no size".into()));
    };
    let kind = RegKind::Mem {
        size: size as u32,
        dynptr_id: dynptr.id,
    };
    let mut flags = dynptr.kind.flag();
    if callee.is(SpecialKfunc::DynptrSlice) {
        flags = flags.with(TypeFlags::MEM_RDONLY);
    } else if !packet::may_access(env, None, Access::Write) {
        return Err(refuse!(env => Call::PacketReadOnly));
    }
    Ok(RegState::pointer(kind, flags))
}
