//! The value in r0 after a helper call.

use isa::ebpf::Reg;
use spec::behaviour::Behaviour;
use spec::helpers::HelperId;
use spec::maps::MapKind;
use spec::programs::AttachType;
use spec::registry::{HelperProto, RetBase};

use super::args::never_fails;
use super::dynptr::Dynptr;
use super::meta::CallMeta;
use super::{kptr, reference};
use crate::attach::{self, Returned};
use crate::domain::Scalar;
use crate::env::Check;
use crate::flow::mark_not_null;
use crate::input::Input;
use crate::mem::registers::set_unknown;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};
use crate::{Errno, Result, Stop, refuse};
use btf::fields::FieldKind;

/// Puts the result of a helper into r0.
pub(super) fn set_result(env: &mut Check<'_>, proto: &HelperProto, meta: &CallMeta) -> Result<()> {
    let mut flags = proto.ret.flags;
    let helper = proto.helper();
    let mut result = match proto.ret.base {
        RetBase::Integer => {
            set_unknown(env, Reg::R0);
            if proto.ret.flags.is_empty() {
                refine(env, helper, meta);
            }
            return check_single_reference(env, helper, meta);
        }
        RetBase::Void => return Ok(()),
        RetBase::PtrToMapValue => {
            let Some((map, uid)) = meta.map else {
                return Err(Stop::Bug("map value without map".into()));
            };
            let info = &env.input.maps[map];
            let is_index = |key: i64| (0..i64::from(info.max_entries())).contains(&key);
            let is_found = helper == Some(HelperId::MapLookupElem)
                && never_fails(info, env.input.rules)
                && meta.const_key.is_some_and(is_index);
            if is_found {
                flags = flags.without(TypeFlags::PTR_MAYBE_NULL);
            }
            let has_lock =
                info.record().has(FieldKind::SpinLock) || info.record().has(FieldKind::ResSpinLock);
            let mut result = RegState::pointer(RegKind::MapValue { map, uid }, flags);
            if has_lock && !result.may_be_null() {
                result.id = env.new_id();
            }
            result
        }
        RetBase::PtrToSocket => RegState::pointer(RegKind::Socket, flags),
        RetBase::PtrToSockCommon => RegState::pointer(RegKind::SockCommon, flags),
        RetBase::PtrToTcpSock => RegState::pointer(RegKind::TcpSock, flags),
        RetBase::PtrToMem => {
            let kind = RegKind::Mem {
                size: meta.mem_size.unwrap_or(0),
                dynptr_id: slice_of(helper, meta).map_or(0, |dynptr| dynptr.id),
            };
            RegState::pointer(kind, flags)
        }
        RetBase::PtrToMemOrBtfId => of_object(env.input, meta, flags)?,
        RetBase::PtrToBtfId if helper == Some(HelperId::KptrXchg) => {
            kptr::previous(env.input, meta, flags)?
        }
        RetBase::PtrToBtfId => {
            let Some(ty) = &proto.ret_btf else {
                return Err(refuse!(env => Call::HelperReturnType {
                    base: proto.ret.base, name: &proto.name, id: proto.id
                }));
            };
            let ty = TypeRef::vmlinux(ty.btf_id);
            RegState::pointer(RegKind::BtfId { ty }, flags)
        }
    };
    if result.may_be_null() {
        result.id = env.new_id();
        let is_value = matches!(result.kind, RegKind::MapValue { .. });
        if is_value && env.input.rules.has(Behaviour::LookupsKnowObjects) {
            mark_not_null(env.input, &mut result);
            result.flags = flags;
        }
    }
    if let Some(dynptr) = slice_of(helper, meta) {
        result.ref_obj_id = dynptr.ref_obj_id;
    } else if helper.is_some_and(HelperId::casts_pointer) {
        result.ref_obj_id = meta.ref_obj_id;
    } else if acquires(env.input, helper, meta) {
        let reference = reference::acquire(env);
        result.id = reference;
        result.ref_obj_id = reference;
    }
    *env.reg_mut(Reg::R0) = result;
    Ok(())
}

/// The dynptr that the call returns a slice of (`is_dynptr_ref_function`).
#[doc(alias = "is_dynptr_ref_function")]
fn slice_of(helper: Option<HelperId>, meta: &CallMeta) -> Option<Dynptr> {
    meta.dynptr.filter(|_| helper == Some(HelperId::DynptrData))
}

/// Numbers carry a reference only in calls that cast one, which return pointers.
fn check_single_reference(
    env: &mut Check<'_>,
    helper: Option<HelperId>,
    meta: &CallMeta,
) -> Result<()> {
    if acquires(env.input, helper, meta) {
        return Err(Stop::Bug("a number carries a reference".into()));
    }
    Ok(())
}

/// True if the call returns a reference that must be released (`is_acquire_function`).
#[doc(alias = "is_acquire_function")]
fn acquires(input: &Input<'_>, helper: Option<HelperId>, meta: &CallMeta) -> bool {
    let map = meta.map.and_then(|(map, _)| input.maps[map].kind());
    match helper {
        Some(HelperId::MapLookupElem) => map.is_some_and(MapKind::holds_sockets),
        helper => helper.is_some_and(HelperId::acquires),
    }
}

/// The object or memory behind a per-CPU pointer.
fn of_object(input: &Input<'_>, meta: &CallMeta, flags: TypeFlags) -> Result<RegState> {
    let Some((ty, btf)) = meta.object.and_then(|ty| Some((ty, input.btf(ty)?))) else {
        return Err(Stop::unsupported("per-CPU object without vmlinux BTF"));
    };
    let id = btf::TypeId(ty.id);
    let target = btf.skip_modifiers(id).unwrap_or(btf::TypeId::VOID);
    let is_struct = btf.at(target).kind().is_composite();
    if is_struct {
        let flags = match meta.is_percpu_allocated {
            true => TypeFlags::MEM_ALLOC.with(TypeFlags::MEM_RCU),
            false => flags.without(TypeFlags::MEM_RDONLY),
        };
        return Ok(RegState::pointer(RegKind::BtfId { ty }, flags));
    }
    let Some(size) = btf.size_of(target) else {
        return Err(Stop::unsupported("per-CPU object without size"));
    };
    let kind = RegKind::memory(size);
    Ok(RegState::pointer(kind, flags))
}

/// Bounds of the numbers that some helpers return (`do_refine_retval_range`).
#[doc(alias = "do_refine_retval_range")]
fn refine(env: &mut Check<'_>, helper: Option<HelperId>, meta: &CallMeta) {
    let (cpus, rules) = (env.input.cpus, env.input.rules);
    let num = &mut env.reg_mut(Reg::R0).num;
    match helper {
        Some(HelperId::GetTaskStack) if !rules.has(Behaviour::TaskStacksRefined) => {}
        Some(helper) if helper.returns_size() => {
            num.smax = meta.max_size as i64;
            num.s32_max = meta.max_size as i32;
            num.smin = (-Errno::MAX).into();
            num.s32_min = -Errno::MAX;
            num.sync(rules);
        }
        // 0: unknown.
        Some(HelperId::GetSmpProcessorId)
            if cpus > 0 && rules.has(Behaviour::ProcessorsBounded) =>
        {
            *num = Scalar::up_to((cpus - 1).into(), rules);
        }
        Some(HelperId::GetRetval) => {
            if let Some((min, max)) = range_of_result(env) {
                let num = &mut env.reg_mut(Reg::R0).num;
                (num.s32_min, num.s32_max) = (min, max);
                (num.smin, num.smax) = (min.into(), max.into());
                num.sync(rules);
            }
        }
        _ => {}
    }
}

/// Results that a program of a cgroup may see of others and may set; `None` if any
/// (`bpf_lsm_get_retval_range`).
pub(super) fn range_of_result(env: &Check<'_>) -> Option<(i32, i32)> {
    let is_free = env.input.context.attach == Some(AttachType::CgroupGetsockopt);
    if is_free || !env.input.rules.has(Behaviour::HookResultsSet) {
        return None;
    }
    match attach::returned(env.input) {
        Returned::OfCgroup { is_void: true } => None,
        Returned::OfCgroup { is_void: false } => attach::hook_range(env.input),
        _ => Some((-Errno::MAX, 0)),
    }
}
