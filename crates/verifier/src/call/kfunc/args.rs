//! Arguments of kernel functions: the prototype's BTF, suffixes of parameters' names and
//! what the register holds decide how one is checked (`check_kfunc_args`,
//! `get_kfunc_ptr_arg_type`).

use btf::{Btf, Kind, ParamSuffix, Shape, TypeId};
use isa::ebpf::Reg;
use spec::registry::{ArgBase, ArgType, KfuncFlags, RegBase, SpecialKfunc};

use super::{Callee, Meta};
use crate::call::args::{check_offset, note_unchecked_read};
use crate::call::prototype::{is_context, is_projection};
use crate::call::{REGS, constant};
use crate::env::VerifierEnv;
use crate::mem::Access;
use crate::mem::helper_mem::{check_global_mem, check_sized_mem};
use crate::state::{BtfRef, RegKind, RegState, TypeFlags};
use crate::{Result, Stop, flow, refuse, verbose};

/// Structures by which a pointer is more than a pointer to memory.
const UNSUPPORTED_STRUCTS: &[&str] = &[
    "bpf_dynptr",
    "bpf_list_head",
    "bpf_list_node",
    "bpf_rb_root",
    "bpf_rb_node",
    "bpf_wq",
    "bpf_timer",
    "bpf_task_work",
    "bpf_res_spin_lock",
    "bpf_prog_aux",
];

/// Check of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pointer {
    Ctx,
    Null,
    ConstString,
    /// An object of the kernel, or a map.
    Object,
    /// A map, by the parameter's name.
    Map,
    Mem,
    /// Memory whose size is the next argument.
    SizedMem,
}

/// Checks all arguments (`check_kfunc_args`).
pub(super) fn check_kfunc_args(env: &mut VerifierEnv<'_>, callee: &Callee<'_>) -> Result<Meta> {
    let count = callee.params.len();
    let name = &callee.kfunc.name;
    if count > REGS.len() {
        return Err(refuse!(env => Call::TooManyArguments { name, count, most: REGS.len() }));
    }
    let mut meta = Meta::default();
    let mut index = 0;
    while index < count {
        index += check_one(env, callee, index, &mut meta)?;
    }
    if callee.has(KfuncFlags::RELEASE) && meta.release.is_none() {
        return Err(refuse!(env => Call::ReleaseExpectsReference { name }));
    }
    Ok(meta)
}

fn is_scalar(btf: &Btf<'_>, id: TypeId) -> bool {
    matches!(btf.at(id).kind(), Kind::Int | Kind::Enum | Kind::Enum64)
}

/// Checks one argument; the number of parameters that it took.
fn check_one(
    env: &mut VerifierEnv<'_>,
    callee: &Callee<'_>,
    index: usize,
    meta: &mut Meta,
) -> Result<usize> {
    let btf = callee.btf;
    let (param, param_name) = &callee.params[index];
    let suffix = ParamSuffix::of(param_name);
    let ptr = REGS[index];
    let reg = *env.reg(ptr);
    if matches!(suffix, Some(ParamSuffix::Program | ParamSuffix::Ignored)) {
        note_unchecked_read(env, ptr, u64::MAX);
        return Ok(1);
    }
    let strip = |id: TypeId| btf.skip_modifiers(id).unwrap_or(TypeId::VOID);
    let ty = strip(*param);
    if is_scalar(btf, ty) {
        check_scalar(env, ptr, suffix, param_name, meta)?;
        return Ok(1);
    }
    let Shape::Ptr(pointee) = btf.at(ty).shape() else {
        let kind = btf.at(ty).kind().name();
        return Err(refuse!(env => Call::UnrecognizedArgument { index, kind }));
    };
    let trusting = [
        KfuncFlags::TRUSTED_ARGS,
        KfuncFlags::RELEASE,
        KfuncFlags::RCU,
    ];
    let must_be_trusted = trusting.into_iter().any(|flag| callee.has(flag));
    let is_nullable = suffix == Some(ParamSuffix::Nullable);
    if must_be_trusted && (reg.is_null() || reg.may_be_null()) && !is_nullable {
        return Err(refuse!(env => Call::TrustedMaybeNull { reg: ptr, index }));
    }
    if reg.ref_obj_id != 0 {
        meta.ref_obj_id = reg.ref_obj_id;
        if callee.has(KfuncFlags::RELEASE) {
            meta.release = Some(ptr);
        }
    }
    let target = strip(pointee);
    let pointer = pointer_kind(env, callee, index, target, pointee)?;
    if pointer == Pointer::Null {
        return Ok(1);
    }
    let has_map = matches!(
        reg.kind,
        RegKind::MapPtr { .. }
            | RegKind::MapValue { .. }
            | RegKind::MapKey { .. }
            | RegKind::BtfId { .. }
    );
    if pointer == Pointer::Map && !has_map {
        return Err(refuse!(env => Call::NotMapPointer { reg: ptr }));
    }
    let is_object = matches!(pointer, Pointer::Object | Pointer::Map);
    if is_object && must_be_trusted && !flow::is_trusted(&reg) {
        check_rcu(env, callee, ptr, &reg)?;
    }
    let mut arg = ArgType::from(ArgBase::DontCare);
    if callee.has(KfuncFlags::RELEASE) && reg.ref_obj_id != 0 {
        arg.flags = TypeFlags::OBJ_RELEASE;
    }
    check_offset(env, ptr, Some(arg))?;
    match pointer {
        Pointer::Null => Ok(1),
        Pointer::Ctx => {
            if reg.kind == RegKind::Ctx && reg.flags.is_empty() {
                return Ok(1);
            }
            Err(refuse!(env => Call::NotContext { index, found: reg.reg_type() }))
        }
        Pointer::ConstString => {
            if !matches!(reg.kind, RegKind::MapValue { .. }) || !reg.flags.is_empty() {
                return Err(refuse!(env => Call::NotConstantString { index }));
            }
            constant::check_string(env, ptr)?;
            Ok(1)
        }
        Pointer::Object => {
            check_object(env, callee, index, target)?;
            Ok(1)
        }
        Pointer::Map if matches!(reg.kind, RegKind::MapPtr { .. }) => Ok(1),
        Pointer::Map if matches!(reg.kind, RegKind::BtfId { .. }) => {
            let map = btf.find(Kind::Struct, "bpf_map");
            let map = map.ok_or_else(|| callee.unsupported())?;
            check_object(env, callee, index, map.id())?;
            Ok(1)
        }
        Pointer::Map => Err(refuse!(env => Call::NotObject {
            index, found: reg.reg_type(), expected: RegBase::PtrToBtfId.plain()
        })),
        Pointer::Mem => {
            let Some(size) = btf.size_of(target) else {
                let ty = btf.at(target);
                return Err(refuse!(env => Call::UnsizedReference {
                    index, kind: ty.kind().name(), name: ty.name()
                }));
            };
            check_global_mem(env, ptr, size)?;
            Ok(1)
        }
        Pointer::SizedMem => {
            check_memory(env, callee, index, meta)?;
            Ok(2)
        }
    }
}

fn check_scalar(
    env: &mut VerifierEnv<'_>,
    ptr: Reg,
    suffix: Option<ParamSuffix>,
    name: &[u8],
    meta: &mut Meta,
) -> Result<()> {
    let reg = *env.reg(ptr);
    if !reg.is_scalar() {
        return Err(refuse!(env => Call::NotScalar { reg: ptr }));
    }
    let constant = reg.num.as_const();
    if suffix == Some(ParamSuffix::Constant) {
        if constant.is_none() {
            return Err(refuse!(env => Call::UnknownConstant { reg: ptr }));
        }
        env.mark_precise(ptr)?;
        meta.constant = constant;
        return Ok(());
    }
    let is_rdonly = name == b"rdonly_buf_size";
    if !is_rdonly && name != b"rdwr_buf_size" {
        return Ok(());
    }
    meta.is_result_rdonly |= is_rdonly;
    if meta.result_size.is_some() {
        return Err(refuse!(env => Call::SecondBufferSize));
    }
    let Some(constant) = constant else {
        return Err(refuse!(env => Call::BufferSizeNotConst { reg: ptr }));
    };
    let Ok(size) = u32::try_from(constant) else {
        return Err(refuse!(env => Call::BufferSizeTooLarge { reg: ptr }));
    };
    meta.result_size = Some(size).filter(|&size| size != 0);
    env.mark_precise(ptr)
}

/// Check of a pointer argument; `target` is the pointee below modifiers
/// (`get_kfunc_ptr_arg_type`).
#[doc(alias = "get_kfunc_ptr_arg_type")]
fn pointer_kind(
    env: &mut VerifierEnv<'_>,
    callee: &Callee<'_>,
    index: usize,
    target: TypeId,
    pointee: TypeId,
) -> Result<Pointer> {
    let btf = callee.btf;
    let reg = *env.reg(REGS[index]);
    let suffix = ParamSuffix::of(&callee.params[index].1);
    let is_cast = callee.is(SpecialKfunc::CastToKernCtx);
    if is_cast || is_context(btf, env.input.context.kind, pointee) {
        return Ok(Pointer::Ctx);
    }
    let has_size = callee.params.get(index + 1).is_some_and(|(ty, name)| {
        let is_number = btf.skip_modifiers(*ty).is_some_and(|ty| is_scalar(btf, ty));
        let is_size = matches!(
            ParamSuffix::of(name),
            Some(ParamSuffix::Size | ParamSuffix::ConstSize)
        );
        is_number && is_size && env.reg(REGS[index + 1]).is_scalar()
    });
    if suffix == Some(ParamSuffix::Nullable) && reg.is_null() && !has_size {
        return Ok(Pointer::Null);
    }
    let ty = btf.at(target);
    match suffix {
        Some(ParamSuffix::ConstString) => return Ok(Pointer::ConstString),
        Some(ParamSuffix::Map) => return Ok(Pointer::Map),
        Some(
            ParamSuffix::Alloc
            | ParamSuffix::RefcountedKptr
            | ParamSuffix::IrqFlag
            | ParamSuffix::Iterator
            | ParamSuffix::Uninit,
        ) => return Err(callee.unsupported()),
        _ => {}
    }
    let is_special =
        ty.kind() == Kind::Struct && UNSUPPORTED_STRUCTS.iter().any(|name| ty.name() == *name);
    if is_special || ty.kind() == Kind::FuncProto {
        return Err(callee.unsupported());
    }
    if stands_for(&reg).is_some() || matches!(reg.kind, RegKind::BtfId { .. }) {
        if ty.kind().is_composite() {
            return Ok(Pointer::Object);
        }
        return Err(refuse!(env => Call::UnsupportedPointer {
            kfunc: &callee.kfunc.name, index, kind: ty.kind().name(), name: ty.name()
        }));
    }
    let is_memory = is_scalar(btf, target)
        || is_scalar_struct(env, btf, target, 0)
        || has_size && ty.kind() == Kind::Void;
    if !is_memory {
        let or_void = if has_size { "void, " } else { "" };
        return Err(refuse!(env => Call::PointeeNotScalar {
            index, kind: ty.kind().name(), name: ty.name(), or_void
        }));
    }
    Ok(match has_size {
        true => Pointer::SizedMem,
        false => Pointer::Mem,
    })
}

/// The structure that a register of another kind stands for (`reg2btf_ids`).
#[doc(alias = "reg2btf_ids")]
fn stands_for(reg: &RegState) -> Option<&'static str> {
    Some(match reg.kind {
        RegKind::Socket => "sock",
        RegKind::SockCommon => "sock_common",
        RegKind::TcpSock => "tcp_sock",
        RegKind::MapPtr { .. } => "bpf_map",
        RegKind::NotInit
        | RegKind::Scalar
        | RegKind::Ctx
        | RegKind::MapValue { .. }
        | RegKind::MapKey { .. }
        | RegKind::Stack { .. }
        | RegKind::PacketMeta { .. }
        | RegKind::Packet { .. }
        | RegKind::PacketEnd
        | RegKind::FlowKeys
        | RegKind::TpBuffer
        | RegKind::XdpSock
        | RegKind::BtfId { .. }
        | RegKind::Mem { .. }
        | RegKind::Arena
        | RegKind::Buf
        | RegKind::Func { .. }
        | RegKind::ConstDynptr { .. }
        | RegKind::Dynptr { .. }
        | RegKind::Iter { .. }
        | RegKind::Irq { .. } => return None,
    })
}

/// True if a structure is made of numbers, nested at most four deep
/// (`__btf_type_is_scalar_struct`).
#[doc(alias = "__btf_type_is_scalar_struct")]
fn is_scalar_struct(env: &mut VerifierEnv<'_>, btf: &Btf<'_>, id: TypeId, depth: u32) -> bool {
    let Some(composite) = btf.at(id).as_composite() else {
        return false;
    };
    composite.members().all(|member| {
        let ty = btf.skip_modifiers(member.ty).unwrap_or(TypeId::VOID);
        if btf.at(ty).kind().is_composite() {
            if depth >= 3 {
                verbose!(env, "max struct nesting depth exceeded\n");
                return false;
            }
            return is_scalar_struct(env, btf, ty, depth + 1);
        }
        if let Shape::Array(array) = btf.at(ty).shape() {
            let element = btf.skip_modifiers(array.element);
            return array.count != 0 && element.is_some_and(|ty| is_scalar(btf, ty));
        }
        is_scalar(btf, ty)
    })
}

/// Refuses a pointer that is not trusted, unless RCU protects it and the kfunc takes
/// such.
fn check_rcu(
    env: &mut VerifierEnv<'_>,
    callee: &Callee<'_>,
    ptr: Reg,
    reg: &RegState,
) -> Result<()> {
    if !callee.has(KfuncFlags::RCU) {
        return Err(refuse!(env => Call::NotTrusted { reg: ptr }));
    }
    if !reg.flags.has(TypeFlags::MEM_RCU) {
        return Err(refuse!(env => Call::NotRcu { reg: ptr }));
    }
    Ok(())
}

/// Checks the type of an object (`process_kf_arg_ptr_to_btf_id`).
#[doc(alias = "process_kf_arg_ptr_to_btf_id")]
fn check_object(
    env: &mut VerifierEnv<'_>,
    callee: &Callee<'_>,
    index: usize,
    target: TypeId,
) -> Result<()> {
    const TRUSTED: TypeFlags = TypeFlags::MEM_ALLOC
        .with(TypeFlags::PTR_TRUSTED)
        .with(TypeFlags::NON_OWN_REF);
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
        (RegKind::BtfId { ty }, _) if ty.btf == BtfRef::Vmlinux => TypeId(ty.id),
        (_, Some(name)) => match btf.find(Kind::Struct, name) {
            Some(ty) => ty.id(),
            None => return Err(callee.unsupported()),
        },
        _ => return Err(callee.unsupported()),
    };
    let found = btf.skip_modifiers(found).unwrap_or(TypeId::VOID);
    let (wanted_type, found_type) = (btf.at(target), btf.at(found));
    let (wanted, given) = (wanted_type.name(), found_type.name());
    let is_released = callee.has(KfuncFlags::RELEASE) && reg.ref_obj_id != 0;
    let is_strict = is_released || is_nocast_alias(wanted.as_bytes(), given.as_bytes());
    let is_same = env.input.is_prefix(found.0, target.0, reg.off, is_strict);
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
    env: &mut VerifierEnv<'_>,
    callee: &Callee<'_>,
    index: usize,
    meta: &mut Meta,
) -> Result<()> {
    let (ptr, size) = (REGS[index], REGS[index + 1]);
    let saved = *env.reg(ptr);
    let is_optional = ParamSuffix::of(&callee.params[index].1) == Some(ParamSuffix::Optional);
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
                return Err(refusal.with_errno(inner.errno));
            }
            other => other?,
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
