//! The value in r0 after a call of a kernel function.

use btf::{Kind, Shape, TypeId};
use isa::ebpf::Reg;
use spec::behaviour::Behaviour;
use spec::registry::{KfuncFlags, KfuncResult, SpecialKfunc, TypeFlags};

use super::{Callee, alloc, dynptr, graph, iter};
use crate::call::meta::CallMeta;
use crate::call::reference;
use crate::env::Check;
use crate::mem::registers::{set_constant, set_unknown};
use crate::state::{RegKind, RegState, TypeRef};
use crate::{Result, refuse, refuse_if};

/// Bytes of what programs keep between entry and exit of a function.
const COOKIE_SIZE: u32 = 8;

/// Puts the result into r0.
pub(super) fn set_result(env: &mut Check<'_>, callee: &Callee<'_>, meta: &CallMeta) -> Result<()> {
    let btf = callee.btf;
    let strip = |id: TypeId| btf.skip_modifiers(id).unwrap_or(TypeId::VOID);
    let returned = btf.at(strip(callee.returns));
    let acquires = callee.has(KfuncFlags::ACQUIRE);
    let target = match returned.shape() {
        Shape::Ptr(target) => Some(strip(target)),
        _ => None,
    };
    let is_object = target.is_some_and(|target| btf.at(target).kind().is_composite());
    let special = callee.kfunc.special;
    let returns_allocated = special.is_some_and(SpecialKfunc::returns_allocated);
    refuse_if!(acquires && !is_object && !returns_allocated, env => Call::AcquiresNoObject);
    let Some(target) = target else {
        if matches!(returned.kind(), Kind::Int | Kind::Enum | Kind::Enum64) {
            set_unknown(env, Reg::R0);
        }
        if special.is_some_and(SpecialKfunc::may_fail_to_lock) {
            set_constant(env, Reg::R0, 0);
        }
        return Ok(());
    };
    let is_node = graph::is_node(btf, target);
    let rule = special.map_or(KfuncResult::ByType, SpecialKfunc::result);
    let mut result = match rule {
        KfuncResult::Allocated => alloc::allocated(env, callee, meta)?,
        KfuncResult::Shared => alloc::shared(meta)?,
        KfuncResult::KernelContext => kernel_context(env, callee)?,
        KfuncResult::ReadOnly => read_only(env, callee, meta)?,
        KfuncResult::Slice => dynptr::slice(env, callee, meta)?,
        _ if is_node => match &meta.root {
            Some(root) => graph::node(root),
            None => return Err(callee.unsupported()),
        },
        _ if btf.at(target).kind() == Kind::Void => RegState::UNKNOWN,
        _ if !is_object => {
            let by_type = btf.size_of(target).filter(|&size| size != 0);
            let by_call = match rule {
                KfuncResult::Cookie => Some(COOKIE_SIZE),
                _ => meta.mem_size,
            };
            let Some(size) = by_call.or(by_type) else {
                let ty = btf.at(target);
                return Err(refuse!(env => Call::ReturnsUnsupported {
                    kfunc: &callee.kfunc.name, kind: ty.kind().name(), name: ty.name()
                }));
            };
            let mut flags = TypeFlags::NONE;
            if meta.is_mem_rdonly || by_call.is_none() {
                flags = flags.with(TypeFlags::MEM_RDONLY);
            }
            if callee.has(KfuncFlags::RCU_PROTECTED) {
                flags = flags.with(TypeFlags::MEM_RCU);
            }
            let kind = RegKind::memory(size);
            let mut memory = RegState::pointer(kind, flags);
            memory.ref_obj_id = meta.ref_obj_id;
            memory
        }
        KfuncResult::ByType | KfuncResult::Untrusted | KfuncResult::Cookie => {
            let is_next = callee.has(KfuncFlags::ITER_NEXT);
            let by_type = !is_next && env.input.rules.has(Behaviour::ResultsTrusted);
            let flags = if rule == KfuncResult::Untrusted {
                TypeFlags::PTR_UNTRUSTED
            } else if callee.has(KfuncFlags::RCU_PROTECTED) {
                TypeFlags::MEM_RCU
            } else if by_type {
                TypeFlags::PTR_TRUSTED
            } else {
                TypeFlags::NONE
            };
            let flags = match is_next {
                true => flags.with(iter::result_flags(&env.state, meta)),
                false => flags,
            };
            object(callee.type_ref(target), flags)
        }
    };
    // The program's own reference keeps the object.
    let may_be_null = callee.has(KfuncFlags::RET_NULL) && !meta.is_owning;
    if may_be_null {
        result.flags = result.flags.with(TypeFlags::PTR_MAYBE_NULL);
        result.id = env.new_id();
    }
    if acquires {
        let id = reference::acquire(env);
        if may_be_null {
            result.id = id;
        }
        result.ref_obj_id = id;
    } else if is_node {
        result.flags = result.flags | graph::non_owning(env.input, &result);
    }
    if result.id == 0 && env.input.may_point_to_lock(&result) {
        result.id = env.new_id();
    }
    *env.reg_mut(Reg::R0) = result;
    Ok(())
}

fn object(ty: TypeRef, flags: TypeFlags) -> RegState {
    RegState::pointer(RegKind::BtfId { ty }, flags)
}

/// The kernel's structure behind the context of the program type.
fn kernel_context(env: &mut Check<'_>, callee: &Callee<'_>) -> Result<RegState> {
    let found = callee.btf.kernel_context(env.input.context.kind.name());
    let is_struct = |id: &TypeId| {
        let ty = callee.btf.get(*id);
        ty.is_some_and(|ty| ty.kind().is_composite())
    };
    match found.filter(is_struct) {
        Some(id) => Ok(object(callee.type_ref(id), TypeFlags::PTR_TRUSTED)),
        None => Err(refuse!(env => Call::ContextNotStruct { id: found.map_or(0, |id| id.0) })),
    }
}

/// Result of `bpf_rdonly_cast` for the type that its constant names.
fn read_only(env: &mut Check<'_>, callee: &Callee<'_>, meta: &CallMeta) -> Result<RegState> {
    let constant = meta.constant.unwrap_or(0);
    // The kernel looks the lower half up, and names all of it.
    let to_memory = env.input.rules.has(Behaviour::CastsToMemory);
    let ty = callee.btf.get(TypeId(constant as u32));
    let Some(ty) = ty else {
        return Err(match to_memory {
            true => refuse!(env => Call::CastOfUnknownType { id: constant as i64 }),
            false => refuse!(env => Call::CastOfNoObject),
        });
    };
    if ty.kind().is_composite() {
        return Ok(object(callee.type_ref(ty.id()), TypeFlags::PTR_UNTRUSTED));
    }
    if ty.kind() == Kind::Void && to_memory {
        let kind = RegKind::memory(0);
        let flags = TypeFlags::MEM_RDONLY.with(TypeFlags::PTR_UNTRUSTED);
        return Ok(RegState::pointer(kind, flags));
    }
    Err(match to_memory {
        true => refuse!(env => Call::CastOfNoStruct),
        false => refuse!(env => Call::CastOfNoObject),
    })
}
