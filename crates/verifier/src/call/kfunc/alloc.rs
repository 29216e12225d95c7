//! Objects that kfuncs allocate, drop and share (`bpf_obj_new`, `bpf_percpu_obj_new`,
//! `bpf_refcount_acquire`).

use btf::fields::FieldKind;
use btf::{Kind, TypeId};
use spec::registry::{SpecialKfunc, TypeFlags};

use super::Callee;
use super::arg_kind::is_scalar_struct;
use crate::call::REGS;
use crate::call::meta::CallMeta;
use crate::env::Check;
use crate::state::{RegKind, RegState, TypeRef};
use crate::{Result, Stop, refuse, refuse_if};

/// Bytes of the largest object for each CPU (`BPF_GLOBAL_PERCPU_MA_MAX_SIZE`).
const MAX_PERCPU_SIZE: u32 = 512;

/// Checks an object that the call drops.
pub(super) fn check_dropped(
    env: &mut Check<'_>,
    callee: &Callee<'_>,
    index: usize,
    meta: &mut CallMeta,
) -> Result<()> {
    const PERCPU: TypeFlags = TypeFlags::MEM_ALLOC.with(TypeFlags::MEM_PERCPU);
    let reg = *env.reg(REGS[index]);
    let RegKind::BtfId { ty } = reg.kind else {
        return Err(refuse!(env => Call::NotAllocated { index }));
    };
    match reg.flags {
        TypeFlags::MEM_ALLOC if !callee.is(SpecialKfunc::ObjDrop) => {
            return Err(refuse!(env => Call::ForObjDrop { index }));
        }
        PERCPU if !callee.is(SpecialKfunc::PercpuObjDrop) => {
            return Err(refuse!(env => Call::ForPercpuObjDrop { index }));
        }
        TypeFlags::MEM_ALLOC | PERCPU => {}
        _ => return Err(refuse!(env => Call::NotAllocated { index })),
    }
    check_referenced(env, &reg)?;
    meta.object = Some(ty);
    Ok(())
}

/// Refuses an object that the program does not own.
pub(super) fn check_referenced(env: &mut Check<'_>, reg: &RegState) -> Result<()> {
    refuse_if!(reg.ref_obj_id == 0, env => Call::ObjectNotReferenced);
    Ok(())
}

/// Checks an object of which the call makes another reference.
pub(super) fn check_refcounted(
    env: &mut Check<'_>,
    index: usize,
    meta: &mut CallMeta,
) -> Result<()> {
    let reg = *env.reg(REGS[index]);
    let RegKind::BtfId { ty } = reg.kind else {
        return Err(refuse!(env => Call::NeitherOwning { index }));
    };
    refuse_if!(!reg.is_allocated(), env => Call::NeitherOwning { index });
    meta.is_owning = !reg.is_non_owning() && reg.ref_obj_id != 0;
    let Some(record) = env.input.structure_fields(ty) else {
        return Err(refuse!(env => Call::ObjectWithoutRecord));
    };
    refuse_if!(!record.has(FieldKind::Refcount), env => Call::WithoutRefcount { index });
    meta.object = Some(ty);
    Ok(())
}

/// The object that a call allocates (`check_special_kfunc`).
#[doc(alias = "check_special_kfunc")]
pub(super) fn allocated(
    env: &mut Check<'_>,
    callee: &Callee<'_>,
    meta: &CallMeta,
) -> Result<RegState> {
    let is_percpu = callee.is(SpecialKfunc::PercpuObjNew);
    let Ok(id) = u32::try_from(meta.constant.unwrap_or(0)) else {
        return Err(refuse!(env => Call::LocalTypeRange));
    };
    let program = env.input.program;
    // The kernel knows the types of programs with func_info or line_info only (`check_btf_info_early`).
    let has_types = !program.func_info().is_empty() || !program.line_info().is_empty();
    let Some(types) = program.btf().filter(|_| has_types) else {
        return Err(refuse!(env => Call::AllocatesWithoutBtf));
    };
    let ty = types.get(TypeId(id));
    let Some(ty) = ty.filter(|ty| ty.kind() == Kind::Struct) else {
        return Err(refuse!(env => Call::AllocatesNoStruct));
    };
    let id = TypeRef::program(id);
    if is_percpu {
        let size = types.size_of(ty.id()).unwrap_or(0);
        if size > MAX_PERCPU_SIZE {
            let most = MAX_PERCPU_SIZE;
            return Err(refuse!(env => Call::PercpuTooLarge { size, most }));
        }
        // The allocator has no bytes for it (`bpf_mem_alloc_percpu_unit_init`).
        refuse_if!(size == 0, env => Call::Silent);
        if !is_scalar_struct(&mut env.sink, types, ty.id(), 0) {
            return Err(refuse!(env => Call::PercpuNotScalars));
        }
        refuse_if!(env.input.structure_fields(id).is_some(), env => Call::PercpuSpecialFields);
    }
    let flags = match is_percpu {
        true => TypeFlags::MEM_ALLOC.with(TypeFlags::MEM_PERCPU),
        false => TypeFlags::MEM_ALLOC,
    };
    Ok(RegState::pointer(RegKind::BtfId { ty: id }, flags))
}

/// Another reference to the object of the argument.
pub(super) fn shared(meta: &CallMeta) -> Result<RegState> {
    let ty = meta.object;
    let ty = ty.ok_or_else(|| Stop::Bug("another reference to no object".into()))?;
    Ok(RegState::pointer(
        RegKind::BtfId { ty },
        TypeFlags::MEM_ALLOC,
    ))
}
