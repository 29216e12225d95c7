//! Arguments of kernel functions, each by its kind (`check_kfunc_args`).

use btf::{Kind, ParamSuffix, TypeId};
use isa::ebpf::Reg;
use spec::Errno;
use spec::behaviour::Behaviour;
use spec::registry::{ArgBase, ArgType, KfuncFlags, KfuncResult, RegBase, SpecialKfunc};

use super::arg_kind::{KfuncArgKind, stands_for, strip};
use super::{Callee, alloc, dynptr, graph, irq_flag, iter, map};
use crate::call::args::{check_offset, note_unchecked_read};
use crate::call::meta::CallMeta;
use crate::call::prototype::is_projection;
use crate::call::{REGS, constant, field, lock};
use crate::env::{Check, Env};
use crate::log::TypeText;
use crate::mem::Access;
use crate::mem::helper_mem::{check_mem_reg, check_sized_mem};
use crate::mem::region::check_ptr_off;
use crate::state::{RegKind, RegRules, RegState, TypeFlags, TypeRef};
use crate::{Result, Stop, flow, insn_facts, refuse, refuse_if};

/// Modifiers of pointers that the kernel trusts (`BPF_REG_TRUSTED_MODIFIERS`).
pub(super) const TRUSTED: TypeFlags = TypeFlags::MEM_ALLOC
    .with(TypeFlags::PTR_TRUSTED)
    .with(TypeFlags::NON_OWN_REF);

/// Checks all arguments (`check_kfunc_args`).
pub(super) fn check_kfunc_args(env: &mut Env<'_>, callee: &Callee<'_>) -> Result<CallMeta> {
    let count = callee.params.len();
    let name = &callee.kfunc.name;
    refuse_if!(count > REGS.len(), env => Call::TooManyArguments { name, count, most: REGS.len() });
    let mut meta = CallMeta::default();
    let mut index = 0;
    while index < count {
        index += check_one(env, callee, index, &mut meta)?;
    }
    let is_checked = env.input.rules.has(Behaviour::ReleasedFirst);
    let releases = callee.has(KfuncFlags::RELEASE) && !callee.is(SpecialKfunc::DynptrFileDiscard);
    if !is_checked && releases && meta.release.is_none() {
        return Err(refuse!(env => Call::ReleaseExpectsReference { name, reg: Reg::R1 }));
    }
    Ok(meta)
}

/// Checks one argument; the number of parameters that it took.
fn check_one(
    env: &mut Env<'_>,
    callee: &Callee<'_>,
    index: usize,
    meta: &mut CallMeta,
) -> Result<usize> {
    let ptr = REGS[index];
    let program = env.input.context.kind;
    let reg = *env.reg(ptr);
    let by_type = env.input.rules.has(Behaviour::ArgumentsByType);
    if by_type && callee.lacks_reference(ptr, &reg) && !reg.may_be_null() {
        let name = &callee.kfunc.name;
        return Err(refuse!(env => Call::ReleaseExpectsReference { name, reg: ptr }));
    }
    let is_pointer = callee.btf.at(callee.params[index].0).kind() == Kind::Ptr;
    if is_pointer && !env.input.rules.has(Behaviour::TrustedPointers) {
        check_pointer(env, callee, ptr, meta)?;
    }
    let kind = KfuncArgKind::of(
        &mut env.check.sink,
        callee,
        program,
        index,
        &env.check.state.cur().regs,
    )?;
    if by_type && kind.is_number() {
        check_pointer(env, callee, ptr, meta)?;
    }
    match kind {
        KfuncArgKind::Ignored | KfuncArgKind::Program => note_unchecked_read(env, ptr, u64::MAX),
        KfuncArgKind::Scalar => _ = scalar(env, ptr)?,
        KfuncArgKind::Constant => check_constant(env, ptr, meta)?,
        KfuncArgKind::ResultSize { is_rdonly } => check_result_size(env, ptr, is_rdonly, meta)?,
        KfuncArgKind::Null if by_type => env.mark_precise(ptr)?,
        KfuncArgKind::Null => {}
        KfuncArgKind::Ctx => {
            check_pointer(env, callee, ptr, meta)?;
            if reg.kind != RegKind::Ctx || !reg.flags.is_empty() {
                return Err(refuse!(env => Call::NotContext { index, found: reg.reg_type() }));
            }
        }
        KfuncArgKind::ConstStr => {
            check_pointer(env, callee, ptr, meta)?;
            if !matches!(reg.kind, RegKind::MapValue { .. }) || !reg.flags.is_empty() {
                return Err(refuse!(env => Call::NotConstantString { index }));
            }
            constant::check_string(env, ptr)?;
        }
        KfuncArgKind::Map => map::check_map(env, callee, index, meta)?,
        KfuncArgKind::ConstMap => {
            check_pointer(env, callee, ptr, meta)?;
            map::check_const_map(env, index, meta)?;
        }
        KfuncArgKind::BtfId if by_type => {
            check_pointer(env, callee, ptr, meta)?;
            check_is_object(env, callee, index, &reg)?;
            check_trust(env, callee, ptr)?;
            check_object(env, callee, index, callee.pointee(index))?;
        }
        KfuncArgKind::BtfId => {
            check_trust(env, callee, ptr)?;
            check_pointer(env, callee, ptr, meta)?;
            check_object(env, callee, index, callee.pointee(index))?;
        }
        KfuncArgKind::Mem => {
            check_pointer(env, callee, ptr, meta)?;
            let ty = callee.btf.at(callee.pointee(index));
            let Some(size) = callee.btf.size_of(ty.id()) else {
                return Err(refuse!(env => Call::UnsizedReference {
                    index, kind: ty.kind().name(), name: ty.name()
                }));
            };
            let checked = check_mem_reg(env, ptr, size);
            match env.input.rules.has(Behaviour::TrustedPointers) {
                true => checked?,
                false => checked.map_err(|stop| stop.with_errno(Errno::EINVAL))?,
            }
        }
        KfuncArgKind::MemSize => {
            check_pointer(env, callee, ptr, meta)?;
            if by_type {
                check_pointer(env, callee, REGS[index + 1], meta)?;
            }
            check_memory(env, callee, index, meta)?;
            return Ok(2);
        }
        KfuncArgKind::AllocBtfId => {
            check_trust(env, callee, ptr)?;
            check_pointer(env, callee, ptr, meta)?;
            alloc::check_dropped(env, callee, index, meta)?;
        }
        KfuncArgKind::RefcountedKptr => {
            check_pointer(env, callee, ptr, meta)?;
            let at_start = env.input.rules.has(Behaviour::SharedAtStart);
            if at_start && matches!(reg.kind, RegKind::BtfId { .. }) {
                check_ptr_off(&mut env.sink, &reg, ptr, false)?;
            }
            alloc::check_refcounted(env, index, meta)?;
        }
        KfuncArgKind::Root(field) => {
            check_pointer(env, callee, ptr, meta)?;
            graph::check_root(env, index, field, meta)?;
        }
        KfuncArgKind::Node(field) => {
            check_pointer(env, callee, ptr, meta)?;
            graph::check_node(env, callee, index, field, meta)?;
        }
        KfuncArgKind::InValue(field) => {
            check_pointer(env, callee, ptr, meta)?;
            refuse_if!(!reg.is_plain(RegBase::PtrToMapValue), env => Call::NotMapValue { index });
            meta.map = Some(field::check_in_value(env, ptr, field)?);
        }
        KfuncArgKind::ResSpinLock => {
            check_pointer(env, callee, ptr, meta)?;
            lock::check_res_spin_lock(env, index, callee.kfunc.special)?;
        }
        KfuncArgKind::Callback => {
            check_pointer(env, callee, ptr, meta)?;
            let RegKind::Func { subprog } = reg.kind else {
                return Err(refuse!(env => Call::NotFunction { index }));
            };
            meta.subprog = subprog;
        }
        KfuncArgKind::Dynptr => {
            if !callee.is(SpecialKfunc::DynptrFileDiscard) {
                check_pointer(env, callee, ptr, meta)?;
            }
            dynptr::check_kfunc_dynptr(env, callee, index, meta)?;
        }
        KfuncArgKind::Iter => {
            check_pointer(env, callee, ptr, meta)?;
            iter::check_iter(env, callee, index, meta)?;
        }
        KfuncArgKind::IrqFlag => {
            check_pointer(env, callee, ptr, meta)?;
            irq_flag::check_irq_flag(env, callee, index)?;
        }
        KfuncArgKind::ProgramAux => return Err(callee.unsupported()),
    }
    Ok(1)
}

/// The number in a register, if it is known; refuses what is no number.
fn scalar(env: &mut Check<'_>, reg: Reg) -> Result<Option<u64>> {
    let value = env.reg(reg);
    refuse_if!(!value.is_scalar(), env => Call::NotScalar { reg });
    Ok(value.num.as_const())
}

/// Checks a number that must be known.
fn check_constant(env: &mut Env<'_>, reg: Reg, meta: &mut CallMeta) -> Result<()> {
    meta.constant = scalar(env, reg)?;
    refuse_if!(meta.constant.is_none(), env => Call::UnknownConstant { reg });
    env.mark_precise(reg)
}

/// Checks the size of the memory that is returned.
fn check_result_size(
    env: &mut Env<'_>,
    reg: Reg,
    is_rdonly: bool,
    meta: &mut CallMeta,
) -> Result<()> {
    let constant = scalar(env, reg)?;
    meta.is_mem_rdonly |= is_rdonly;
    refuse_if!(meta.mem_size.is_some(), env => Call::SecondBufferSize);
    let Some(constant) = constant else {
        return Err(refuse!(env => Call::BufferSizeNotConst { reg }));
    };
    let Ok(size) = u32::try_from(constant) else {
        return Err(refuse!(env => Call::BufferSizeTooLarge { reg }));
    };
    meta.mem_size = Some(size).filter(|&size| size != 0);
    env.mark_precise(reg)
}

/// Checks the offset of a pointer, and notes its reference.
pub(super) fn check_pointer(
    env: &mut Check<'_>,
    callee: &Callee<'_>,
    ptr: Reg,
    meta: &mut CallMeta,
) -> Result<()> {
    let mut arg = ArgType::from(ArgBase::DontCare);
    let reference = env.reg(ptr).ref_obj_id;
    if reference != 0 {
        meta.ref_obj_id = reference;
        if callee.has(KfuncFlags::RELEASE) {
            meta.release = Some(ptr);
            arg.flags = TypeFlags::OBJ_RELEASE;
        }
    }
    check_offset(env, ptr, Some(arg))
}

/// Refuses what is no object where the parameter is a structure, and says what else stands for it.
fn check_is_object(
    env: &mut Check<'_>,
    callee: &Callee<'_>,
    index: usize,
    reg: &RegState,
) -> Result<()> {
    if stands_for(reg).is_some() || matches!(reg.kind, RegKind::BtfId { .. }) {
        return Ok(());
    }
    let target = callee.btf.at(callee.pointee(index));
    let (kind, name) = (target.kind().name(), target.name());
    let base = RegBase::ALL
        .iter()
        .find(|base| RegRules::of(**base).structure.is_some_and(|of| name == of));
    let or = base.map_or(String::new(), |base| {
        format!(" or {}", TypeText::from(base.plain()))
    });
    Err(refuse!(env => Call::NotStructure { index, found: reg.reg_type(), kind, name, or }))
}

/// Refuses a pointer that is not trusted where it must be, unless RCU protects it and the kfunc
/// takes such (`is_rcu_reg`).
#[doc(alias = "is_rcu_reg")]
pub(super) fn check_trust(env: &mut Check<'_>, callee: &Callee<'_>, ptr: Reg) -> Result<()> {
    let reg = env.reg(ptr);
    if !callee.must_trust(env.input.rules) || flow::is_trusted(reg) {
        return Ok(());
    }
    refuse_if!(!callee.has(KfuncFlags::RCU), env => Call::NotTrusted { reg: ptr });
    refuse_if!(!reg.flags.has(TypeFlags::MEM_RCU), env => Call::NotRcu { reg: ptr });
    Ok(())
}

/// Checks the type of an object (`process_kf_arg_ptr_to_btf_id`).
#[doc(alias = "process_kf_arg_ptr_to_btf_id")]
pub(super) fn check_object(
    env: &mut Check<'_>,
    callee: &Callee<'_>,
    index: usize,
    target: TypeId,
) -> Result<()> {
    let btf = callee.btf;
    let ptr = REGS[index];
    let reg = *env.reg(ptr);
    let is_unsafe = !reg.flags.without(TRUSTED).is_empty();
    let found = match (reg.kind, stands_for(&reg)) {
        (RegKind::BtfId { .. }, _) if is_unsafe && !reg.flags.has(TypeFlags::MEM_RCU) => {
            return Err(refuse!(env => Call::NotObject {
                index, found: reg.reg_type(), expected: reg.kind.base().with(reg.flags.and(TRUSTED))
            }));
        }
        (RegKind::BtfId { ty }, _) => ty,
        (_, Some(name)) => {
            let found = env
                .input
                .vmlinux
                .and_then(|vmlinux| vmlinux.find(Kind::Struct, name));
            let ty = found.ok_or_else(|| callee.unsupported())?;
            TypeRef::vmlinux(ty.id().0)
        }
        _ => return Err(callee.unsupported()),
    };
    let types = env.input.btf(found);
    let types = types.ok_or_else(|| callee.unsupported())?;
    let id = strip(types, TypeId(found.id));
    let found = TypeRef { id: id.0, ..found };
    let (wanted_type, found_type) = (btf.at(target), types.at(id));
    let (wanted, given) = (wanted_type.name(), found_type.name());
    let is_released = callee.has(KfuncFlags::RELEASE) && reg.ref_obj_id != 0;
    let is_strict = is_released || is_nocast_alias(wanted.as_bytes(), given.as_bytes());
    let wanted_ref = callee.type_ref(target);
    let is_same = env
        .input
        .has_prefix(&mut env.sink, found, wanted_ref, reg.off, is_strict);
    let takes_projection = wanted
        .to_str()
        .is_some_and(|context| is_projection(context, given.as_bytes()));
    if is_same || takes_projection {
        return Ok(());
    }
    Err(refuse!(env => Call::OtherObject {
        kfunc: &callee.kfunc.name, index, wanted_kind: wanted_type.kind().name(), wanted,
        reg: ptr, found_kind: found_type.kind().name(), given
    }))
}

/// True if one name is the other with `___init` behind, which must not be taken for it
/// (`btf_type_ids_nocast_alias`).
#[doc(alias = "btf_type_ids_nocast_alias")]
fn is_nocast_alias(one: &[u8], other: &[u8]) -> bool {
    one.strip_suffix(b"___init") == Some(other) || other.strip_suffix(b"___init") == Some(one)
}

/// Checks memory whose size is the next argument (`check_kfunc_mem_size_reg`).
#[doc(alias = "check_kfunc_mem_size_reg")]
fn check_memory(
    env: &mut Env<'_>,
    callee: &Callee<'_>,
    index: usize,
    meta: &mut CallMeta,
) -> Result<()> {
    let (ptr, size) = (REGS[index], REGS[index + 1]);
    let saved = *env.reg(ptr);
    let is_optional = match ParamSuffix::of(&callee.params[index].1) {
        Some(ParamSuffix::Optional) => true,
        Some(ParamSuffix::Nullable) => env.input.rules.has(Behaviour::KfuncsTrust),
        _ => false,
    };
    if !(saved.is_null() && is_optional) {
        if saved.may_be_null() {
            flow::mark_not_null(env.input, env.state.reg_mut(ptr));
        }
        let result = check_sized_mem(env, ptr, size, Access::Read, true, None)
            .and_then(|()| check_sized_mem(env, ptr, size, Access::Write, true, None));
        if saved.may_be_null() {
            *env.reg_mut(ptr) = saved;
        }
        match result {
            Err(Stop::Refused(inner)) => {
                let next = index + 1;
                let refusal = refuse!(env => Call::SizedMemory { index, next });
                let errno = match env.input.rules.has(Behaviour::TrustedPointers) {
                    true => inner.errno,
                    false => Errno::EINVAL,
                };
                return Err(refusal.with_errno(errno));
            }
            other => other?,
        }
        if callee.kfunc.special.map(SpecialKfunc::result) == Some(KfuncResult::Slice) {
            insn_facts::note_scratch(env);
        }
    }
    if ParamSuffix::of(&callee.params[index + 1].1) == Some(ParamSuffix::ConstSize) {
        let Some(constant) = env.reg(size).num.as_const() else {
            return Err(refuse!(env => Call::UnknownConstant { reg: size }));
        };
        meta.constant = Some(constant);
    }
    Ok(())
}
