//! Arguments of calls against the prototype.

use btf::Kind;
use btf::fields::FieldKind;
use isa::ebpf::Reg;
use spec::behaviour::{Behaviour, Behaviours};
use spec::helpers::HelperId;
use spec::maps::{MapFlags, MapKind};
use spec::registry::{ArgBase, ArgDetail, ArgType, HelperProto};

use super::meta::CallMeta;
use super::{constant, dynptr, field, kptr, lock};
use crate::env::{Check, Env, RegArg};
use crate::log::TypeText;
use crate::mem::helper_mem::{check_helper_mem, check_sized_mem};
use crate::mem::region::check_ptr_off;
use crate::mem::{Access, check_ptr_alignment, context, is_pointer_value, packet};
use crate::rejection::Call;
use crate::resolve::Map;
use crate::state::{MapRef, RegBase, RegKind, RegRules, RegState, RegType, TypeFlags, TypeRef};
use crate::{Errno, Result, Stop, insn_facts, refuse, refuse_if, verbose};

/// Types of registers that an argument takes, in the order in which refusals list them;
/// `None` for arguments without such a list (`compatible_reg_types`); `takes_context` if the context
/// is among what memory arguments take.
#[doc(alias = "compatible_reg_types")]
pub(super) fn compatible_types(arg: ArgBase, takes_context: bool) -> Option<&'static [RegType]> {
    macro_rules! types {
        ($($base:ident $(with $($flag:ident)+)?),*) => {
            &const { [$(RegBase::$base.with(TypeFlags::NONE$($(.with(TypeFlags::$flag))+)?)),*] }
        };
    }
    Some(match arg {
        ArgBase::PtrToMapKey | ArgBase::PtrToMapValue | ArgBase::PtrToMem if takes_context => {
            types![
                PtrToStack, PtrToPacket, PtrToPacketMeta, PtrToMapKey, PtrToMapValue, PtrToMem,
                PtrToMem with MEM_RINGBUF, PtrToBuf, PtrToBtfId with PTR_TRUSTED, PtrToCtx
            ]
        }
        ArgBase::PtrToMapKey | ArgBase::PtrToMapValue | ArgBase::PtrToMem => types![
            PtrToStack, PtrToPacket, PtrToPacketMeta, PtrToMapKey, PtrToMapValue, PtrToMem,
            PtrToMem with MEM_RINGBUF, PtrToBuf, PtrToBtfId with PTR_TRUSTED
        ],
        ArgBase::ConstSize | ArgBase::ConstSizeOrZero | ArgBase::ConstAllocSizeOrZero => {
            types![Scalar]
        }
        ArgBase::ConstMapPtr => types![ConstPtrToMap],
        ArgBase::PtrToCtx => types![PtrToCtx],
        ArgBase::PtrToSockCommon => {
            types![PtrToSockCommon, PtrToSocket, PtrToTcpSock, PtrToXdpSock]
        }
        ArgBase::PtrToBtfIdSockCommon => types![
            PtrToSockCommon, PtrToSocket, PtrToTcpSock, PtrToXdpSock,
            PtrToBtfId, PtrToBtfId with PTR_TRUSTED
        ],
        ArgBase::PtrToSocket => types![PtrToSocket],
        ArgBase::PtrToBtfId => {
            types![PtrToBtfId, PtrToBtfId with PTR_TRUSTED, PtrToBtfId with MEM_RCU]
        }
        ArgBase::PtrToSpinLock => types![PtrToMapValue, PtrToBtfId with MEM_ALLOC],
        ArgBase::KptrXchgDest => types![
            PtrToMapValue, PtrToBtfId with MEM_ALLOC, PtrToBtfId with MEM_ALLOC NON_OWN_REF,
            PtrToBtfId with MEM_ALLOC NON_OWN_REF MEM_RCU
        ],
        ArgBase::PtrToRingbufMem => types![PtrToMem with MEM_RINGBUF],
        ArgBase::PtrToPercpuBtfId => types![
            PtrToBtfId with MEM_PERCPU,
            PtrToBtfId with MEM_PERCPU MEM_RCU,
            PtrToBtfId with MEM_PERCPU PTR_TRUSTED
        ],
        ArgBase::PtrToFunc => types![PtrToFunc],
        ArgBase::PtrToStack => types![PtrToStack],
        ArgBase::PtrToConstStr | ArgBase::PtrToTimer => types![PtrToMapValue],
        ArgBase::PtrToDynptr => types![PtrToStack, ConstPtrToDynptr],
        ArgBase::DontCare | ArgBase::Anything | ArgBase::PtrToArena => return None,
    })
}

/// Flags that say which dynptr a slice came from.
const DYNPTR_FLAGS: TypeFlags = TypeFlags::DYNPTR_TYPE_LOCAL
    .with(TypeFlags::DYNPTR_TYPE_RINGBUF)
    .with(TypeFlags::DYNPTR_TYPE_SKB)
    .with(TypeFlags::DYNPTR_TYPE_XDP)
    .with(TypeFlags::DYNPTR_TYPE_SKB_META)
    .with(TypeFlags::DYNPTR_TYPE_FILE);

/// Checks that the register is of a type that the argument takes (`check_reg_type`); `helper` is
/// `None` for arguments of a subprogram.
pub(super) fn check_reg_type(
    env: &mut Check<'_>,
    ptr: Reg,
    arg: ArgType,
    btf_id: Option<u32>,
    helper: Option<&HelperProto>,
) -> Result<()> {
    let reg = *env.reg(ptr);
    let takes_context = env.input.rules.has(Behaviour::ContextIsMemory);
    let Some(compatible) = compatible_types(arg.base, takes_context) else {
        return Err(Stop::Bug(format!("argument type {:?}", arg.base)));
    };
    let knows_trust = env.input.rules.has(Behaviour::TrustedPointers);
    let rules = env.input.rules;
    let is_map = matches!(arg.base, ArgBase::PtrToMapKey | ArgBase::PtrToMapValue);
    let is_object = |ty: &RegType| ty.base == RegBase::PtrToBtfId;
    use ArgBase::{
        Anything, ConstAllocSizeOrZero, ConstMapPtr, ConstSize, ConstSizeOrZero, DontCare,
        PtrToArena, PtrToBtfId, PtrToBtfIdSockCommon, PtrToConstStr, PtrToCtx, PtrToDynptr,
        PtrToFunc, PtrToMapKey, PtrToMapValue, PtrToMem, PtrToPercpuBtfId, PtrToRingbufMem,
        PtrToSockCommon, PtrToSocket, PtrToStack, PtrToTimer,
    };
    let is_known = |ty: &&RegType| {
        let is_plain_memory = !matches!(ty.base, RegBase::PtrToMem | RegBase::PtrToBuf);
        (knows_trust
            || !ty
                .flags
                .has_any(TypeFlags::PTR_TRUSTED | TypeFlags::MEM_RCU))
            && (!is_map || is_plain_memory || rules.has(Behaviour::MemoryIsKey))
            && (ty.base != RegBase::PtrToMapKey || rules.has(Behaviour::MapKeys))
            && match arg.base {
                ArgBase::PtrToSpinLock => !is_object(ty) || rules.has(Behaviour::LocksInObjects),
                ArgBase::KptrXchgDest => {
                    (!is_object(ty) || rules.has(Behaviour::PointersInObjects))
                        && (!ty.flags.has(TypeFlags::NON_OWN_REF)
                            || rules.has(Behaviour::ExchangesInNodes))
                }
                DontCare | ConstMapPtr | PtrToMapKey | PtrToMapValue | PtrToMem | PtrToArena
                | ConstSize | ConstSizeOrZero | PtrToCtx | Anything | PtrToSockCommon
                | PtrToSocket | PtrToBtfId | PtrToRingbufMem | ConstAllocSizeOrZero
                | PtrToBtfIdSockCommon | PtrToPercpuBtfId | PtrToFunc | PtrToStack
                | PtrToConstStr | PtrToTimer | PtrToDynptr => true,
            }
    };
    let compatible: Vec<RegType> = compatible.iter().filter(is_known).copied().collect();
    let mut flags = reg.flags;
    for flag in [TypeFlags::MEM_RDONLY, TypeFlags::PTR_MAYBE_NULL] {
        if arg.flags.has(flag) {
            flags = flags.without(flag);
        }
    }
    if arg.base == ArgBase::PtrToMem {
        flags = flags.without(DYNPTR_FLAGS);
    }
    if !compatible.contains(&reg.kind.base().with(flags)) {
        let mut expected: Vec<TypeText> = compatible.iter().copied().map(TypeText::from).collect();
        if !rules.has(Behaviour::NumbersAreScalars) && arg.base == ArgBase::PtrToMem {
            // Memory of ring buffers is plain, and buffers for reading are of their own.
            let rdonly = RegBase::PtrToBuf.with(TypeFlags::MEM_RDONLY);
            expected.retain(|text| text.0.flags.is_empty());
            expected.insert(expected.len() - 1, rdonly.into());
        }
        return Err(refuse!(env => Call::ArgumentType {
            reg: ptr, kind: reg.reg_type(), expected
        }));
    }
    let RegKind::BtfId { ty } = reg.kind else {
        return Ok(());
    };
    let is_memory = matches!(
        arg.base,
        ArgBase::PtrToMapKey | ArgBase::PtrToMapValue | ArgBase::PtrToMem
    );
    if is_memory {
        if arg.flags.has(TypeFlags::MEM_RDONLY) {
            return Ok(());
        }
        return Err(refuse!(env => Call::WritesObject {
            helper: helper.map_or("bpf_unspec", |proto| &proto.name), reg: ptr, kind: reg.reg_type()
        }));
    }
    if reg
        .flags
        .has_any(TypeFlags::MEM_ALLOC | TypeFlags::MEM_PERCPU)
    {
        return Ok(());
    }
    let is_release = arg.flags.has(TypeFlags::OBJ_RELEASE);
    if reg.may_be_null() && (!arg.may_be_null() || is_release) {
        return Err(refuse!(env => Call::ArgumentMaybeNull { reg: ptr }));
    }
    let takes_any = helper.and_then(HelperProto::helper) == Some(HelperId::SkRelease);
    let is_strict = is_release && !takes_any;
    // Arguments that take sockets name no type.
    let sock_common = || {
        let vmlinux = env.input.vmlinux?;
        let takes_sockets = arg.base == ArgBase::PtrToBtfIdSockCommon;
        let ty = vmlinux
            .find(Kind::Struct, "sock_common")
            .filter(|_| takes_sockets)?;
        Some(ty.id().0)
    };
    match btf_id.or_else(sock_common) {
        Some(expected) => check_object_type(env, ptr, ty, expected, is_strict),
        None => Err(Stop::unsupported(format!(
            "argument {} of a helper whose type is unknown",
            ptr.number()
        ))),
    }
}

/// Checks that an object is of the expected type of vmlinux, or begins with one.
fn check_object_type(
    env: &mut Check<'_>,
    ptr: Reg,
    ty: TypeRef,
    expected: u32,
    is_strict: bool,
) -> Result<()> {
    let off = env.reg(ptr).off;
    let expected = TypeRef::vmlinux(expected);
    if env
        .input
        .has_prefix(&mut env.sink, ty, expected, off, is_strict)
    {
        return Ok(());
    }
    let (found, wanted) = (env.input.type_name(ty), env.input.type_name(expected));
    Err(refuse!(env => Call::ObjectType { reg: ptr, found, wanted }))
}

/// Checks the offset of a pointer that is an argument (`check_func_arg_reg_off`,
/// `__check_func_arg_reg_off`).
#[doc(alias = "check_func_arg_reg_off")]
#[doc(alias = "__check_func_arg_reg_off")]
pub(super) fn check_offset(env: &mut Check<'_>, ptr: Reg, arg: Option<ArgType>) -> Result<()> {
    let reg = *env.reg(ptr);
    let is_dynptr = arg.is_some_and(|arg| arg.base == ArgBase::PtrToDynptr);
    let is_tracked = env.input.rules.has(Behaviour::DynptrsTracked);
    let is_between =
        is_dynptr && !is_tracked && reg.is_plain(RegBase::PtrToStack) && reg.off % 8 != 0;
    refuse_if!(is_between, env => Call::DynptrAtOffset);
    if arg.is_some_and(|arg| arg.flags.has(TypeFlags::OBJ_RELEASE)) {
        if is_dynptr && reg.is_plain(RegBase::PtrToStack) {
            return Ok(());
        }
        let rules = env.input.rules;
        if !rules.has(Behaviour::ReleasesAtStart) {
            return Ok(());
        }
        if reg.off != 0 && rules.has(Behaviour::ReleaseOffsetsNamed) {
            return Err(refuse!(env => Call::NonzeroOffset { reg: ptr }));
        }
        return check_ptr_off(&mut env.sink, &reg, ptr, false);
    }
    let RegType { base, flags } = reg.reg_type();
    let takes_context = arg.is_none_or(|arg| arg.base == ArgBase::PtrToCtx);
    if base == RegBase::PtrToCtx && !takes_context && context::may_vary(env.input) {
        return Ok(());
    }
    if RegRules::of(base).free_offset.contains(&flags) {
        return Ok(());
    }
    const OWNED: TypeFlags = TypeFlags::MEM_ALLOC.with(TypeFlags::NON_OWN_REF);
    const OBJECTS: [TypeFlags; 6] = [
        TypeFlags::NONE,
        TypeFlags::MEM_ALLOC,
        TypeFlags::PTR_TRUSTED,
        TypeFlags::MEM_RCU,
        OWNED,
        OWNED.with(TypeFlags::MEM_RCU),
    ];
    let is_object = base == RegBase::PtrToBtfId;
    check_ptr_off(
        &mut env.sink,
        &reg,
        ptr,
        is_object && OBJECTS.contains(&flags),
    )
}

/// Notes that a call may read the stack by a pointer that is not checked, so many bytes at most.
pub(super) fn note_unchecked_read(env: &mut Env<'_>, ptr: Reg, size: u64) {
    let reg = *env.reg(ptr);
    if let RegKind::Stack { frame } = reg.kind {
        insn_facts::note_read_behind(env, &reg, frame as usize, size);
    }
}

/// Checks argument `index` of a helper (`check_func_arg`).
#[doc(alias = "check_func_arg")]
pub(super) fn check_arg(
    env: &mut Env<'_>,
    proto: &HelperProto,
    index: usize,
    meta: &mut CallMeta,
) -> Result<()> {
    let mut arg = proto.args[index];
    let Some(ptr) = Reg::new(index as u8 + 1) else {
        return Ok(());
    };
    if arg.base == ArgBase::DontCare {
        return Ok(());
    }
    env.check_reg_arg(ptr, RegArg::Src)?;
    let counts = proto.helper() == Some(HelperId::Loop) && ptr == Reg::R1;
    if counts && env.input.rules.has(Behaviour::LoopCountsAreNumbers) && !env.reg(ptr).is_scalar() {
        let kind = env.reg(ptr).reg_type();
        let expected = vec![RegBase::Scalar.plain().into()];
        return Err(refuse!(env => Call::ArgumentType { reg: ptr, kind, expected }));
    }
    if arg == ArgBase::Anything.plain() {
        refuse_if!(is_pointer_value(env, ptr), env => Call::LeaksAddress { reg: ptr });
        let size = match proto.helper() {
            Some(HelperId::ProbeRead | HelperId::ProbeReadKernel) => env.reg(Reg::R2).num.umax,
            // Texts have no size.
            _ => u64::MAX,
        };
        note_unchecked_read(env, ptr, size);
        return Ok(());
    }
    let reg = *env.reg(ptr);
    if reg.kind.is_packet() && !packet::may_access(env, Some(proto.pkt_access), Access::Read) {
        return Err(refuse!(env => Call::PacketArgument));
    }
    if arg.base == ArgBase::PtrToMapValue {
        arg = resolve_map_value(env, proto, arg, meta)?;
    }
    if !(reg.is_null() && arg.may_be_null()) {
        let btf_id = match &proto.arg_details[index] {
            ArgDetail::Btf(ty) => Some(ty.btf_id),
            ArgDetail::None | ArgDetail::Size(_) => None,
        };
        match proto.helper() {
            Some(HelperId::KptrXchg) if ptr == Reg::R2 => kptr::check_source(env, ptr, meta)?,
            _ => check_reg_type(env, ptr, arg, btf_id, Some(proto))?,
        }
        check_offset(env, ptr, Some(arg))?;
    } else if env.input.rules.has(Behaviour::NullArgumentsPrecise) {
        env.mark_precise(ptr)?;
    }
    check_reference(env, &reg, ptr, arg, &proto.name, meta)?;
    let access = match arg.flags.has(TypeFlags::MEM_WRITE) {
        true => Access::Write,
        false => Access::Read,
    };
    match arg.base {
        ArgBase::ConstMapPtr => check_map_ptr(env, &reg, meta),
        ArgBase::PtrToMapKey => {
            let (map, _) = map_of(meta)?;
            let key_size = env.input.maps[map].key_size();
            check_helper_mem(env, ptr, key_size as i32, Access::Read, false, None)?;
            if never_fails(&env.input.maps[map], env.input.rules) {
                meta.const_key = constant::map_key(env, ptr, key_size)?;
            }
            Ok(())
        }
        ArgBase::PtrToMapValue => {
            if arg.may_be_null() && reg.is_null() {
                return Ok(());
            }
            let (map, _) = map_of(meta)?;
            let size = env.input.maps[map].value_size() as i32;
            meta.is_raw = arg.flags.has(TypeFlags::MEM_UNINIT);
            let raw = meta.is_raw.then_some(&mut meta.raw);
            check_helper_mem(env, ptr, size, access, false, raw)
        }
        ArgBase::PtrToPercpuBtfId => {
            let RegKind::BtfId { ty } = reg.kind else {
                return Err(refuse!(env => Call::InvalidBtfId { reg: ptr }));
            };
            meta.object = Some(ty);
            meta.is_percpu_allocated = reg.flags.has(TypeFlags::MEM_RCU);
            Ok(())
        }
        ArgBase::PtrToSpinLock | ArgBase::PtrToTimer | ArgBase::KptrXchgDest => {
            let rules = env.input.rules;
            let checked = match (arg.base, proto.helper()) {
                (ArgBase::PtrToTimer, _) => {
                    let map = field::check_in_value(env, ptr, FieldKind::Timer);
                    map.map(|map| meta.map = Some(map))
                }
                (ArgBase::KptrXchgDest, _) => kptr::check_destination(env, ptr, meta),
                (_, Some(HelperId::SpinLock)) => lock::check_spin_lock(env, ptr, true),
                (_, Some(HelperId::SpinUnlock)) => lock::check_spin_lock(env, ptr, false),
                _ => Err(Stop::Bug("lock argument of another helper".into())),
            };
            checked.map_err(|stop| match rules.has(Behaviour::FieldErrorsPass) {
                true => stop,
                false => stop.with_errno(Errno::EACCES),
            })
        }
        ArgBase::PtrToFunc => {
            if let RegKind::Func { subprog } = reg.kind {
                meta.subprog = subprog;
            }
            Ok(())
        }
        ArgBase::PtrToMem => {
            meta.is_raw = arg.flags.has(TypeFlags::MEM_UNINIT);
            let &ArgDetail::Size(size) = &proto.arg_details[index] else {
                return Ok(());
            };
            if !arg.flags.has(TypeFlags::MEM_FIXED_SIZE) {
                return Ok(());
            }
            let raw = meta.is_raw.then_some(&mut meta.raw);
            check_helper_mem(env, ptr, size as i32, access, false, raw)?;
            if arg.flags.has(TypeFlags::MEM_ALIGNED) {
                check_ptr_alignment(env.input, &mut env.sink, &reg, 0, size, true)?;
            }
            Ok(())
        }
        ArgBase::ConstSize | ArgBase::ConstSizeOrZero => {
            let before = Reg::new(index as u8).unwrap_or(Reg::R1);
            let of_buffer = index
                .checked_sub(1)
                .map_or(TypeFlags::NONE, |index| proto.args[index].flags);
            let access = match of_buffer.has(TypeFlags::MEM_WRITE) {
                true => Access::Write,
                false => Access::Read,
            };
            meta.max_size = reg.num.umax;
            let raw = meta.is_raw.then_some(&mut meta.raw);
            let is_zero_ok = arg.base == ArgBase::ConstSizeOrZero;
            check_sized_mem(env, before, ptr, access, is_zero_ok, raw)
        }
        ArgBase::ConstAllocSizeOrZero => {
            let is_narrow = env.input.rules.has(Behaviour::SizesConstant);
            let Some(size) = reg.num.as_const() else {
                return Err(match is_narrow {
                    true => refuse!(env => Call::BufferSizeNotConst { reg: ptr }),
                    false => refuse!(env => Call::NotKnownConstant { reg: ptr }),
                });
            };
            let is_beyond = is_narrow && u32::try_from(size).is_err();
            refuse_if!(is_beyond, env => Call::AllocationTooLarge { reg: ptr });
            meta.mem_size = Some(size as u32);
            env.mark_precise(ptr)
        }
        ArgBase::PtrToConstStr => constant::check_string(env, ptr),
        ArgBase::PtrToDynptr => dynptr::check_helper_arg(env, ptr, arg),
        ArgBase::DontCare
        | ArgBase::PtrToArena
        | ArgBase::PtrToCtx
        | ArgBase::Anything
        | ArgBase::PtrToSockCommon
        | ArgBase::PtrToSocket
        | ArgBase::PtrToBtfId
        | ArgBase::PtrToRingbufMem
        | ArgBase::PtrToBtfIdSockCommon
        | ArgBase::PtrToStack => Ok(()),
    }
}

/// True for the arrays whose lookups do not fail within bounds
/// (`can_elide_value_nullness`).
#[doc(alias = "can_elide_value_nullness")]
pub(super) fn never_fails(map: &Map, rules: Behaviours) -> bool {
    let is_dense = map.kind().is_some_and(MapKind::is_dense);
    let may_vary = map.def().params.flags.has(MapFlags::INNER_MAP);
    rules.has(Behaviour::ConstantKeysFind)
        && is_dense
        && !(may_vary && rules.has(Behaviour::InnerArraysVary))
}

fn map_of(meta: &CallMeta) -> Result<(MapRef, u32)> {
    meta.map
        .ok_or_else(|| Stop::Bug("map argument behind key or value".into()))
}

/// Type of a map value argument in maps of sockets and in Bloom filters
/// (`resolve_map_arg_type`).
#[doc(alias = "resolve_map_arg_type")]
fn resolve_map_value(
    env: &mut Check<'_>,
    proto: &HelperProto,
    arg: ArgType,
    meta: &CallMeta,
) -> Result<ArgType> {
    let (map, _) = map_of(meta)?;
    match env.input.maps[map].kind() {
        Some(kind) if kind.holds_sockets() && arg == ArgBase::PtrToMapValue.plain() => {
            Ok(ArgBase::PtrToBtfIdSockCommon.plain())
        }
        Some(kind) if kind.holds_sockets() => Err(refuse!(env => Call::SockmapArgument)),
        Some(kind)
            if kind.reads_peeked_value() && proto.helper() == Some(HelperId::MapPeekElem) =>
        {
            Ok(ArgBase::PtrToMapValue.plain())
        }
        Some(_) | None => Ok(arg),
    }
}

/// Notes the reference among the arguments and which is released (`update_ref_obj`,
/// `validate_ref_obj`).
#[doc(alias = "update_ref_obj")]
#[doc(alias = "validate_ref_obj")]
fn check_reference(
    env: &mut Check<'_>,
    reg: &RegState,
    ptr: Reg,
    arg: ArgType,
    helper: &str,
    meta: &mut CallMeta,
) -> Result<()> {
    if arg.flags.has(TypeFlags::OBJ_RELEASE) {
        if arg.base == ArgBase::PtrToDynptr {
            return dynptr::check_release(env, ptr, meta);
        }
        let checks = env.input.rules.has(Behaviour::ReleasesReferenced);
        if checks && reg.ref_obj_id == 0 && !reg.is_null() {
            return Err(refuse!(env => Call::NotReferenced { helper, reg: ptr }));
        }
        meta.release = Some(ptr);
    }
    if reg.ref_obj_id != 0 && arg.base != ArgBase::KptrXchgDest {
        let is_one = !env.input.rules.has(Behaviour::ReferencesByUse);
        if meta.ref_obj_id != 0 && is_one {
            // The kernel ends this line of the log with its statistics.
            let rejection = Call::SecondReference {
                reg: ptr.into(),
                id: reg.ref_obj_id.into(),
                first: meta.ref_obj_id.into(),
            };
            verbose!(env.sink, "{rejection}");
            return Err(Stop::refusal(rejection, Some(env.sink.insn_idx)));
        }
        meta.ref_obj_id = reg.ref_obj_id;
    }
    Ok(())
}

fn check_map_ptr(env: &mut Check<'_>, reg: &RegState, meta: &mut CallMeta) -> Result<()> {
    let RegKind::MapPtr { map, uid } = reg.kind else {
        return Err(Stop::Bug("map argument is no map".into()));
    };
    if let Some(before) = meta.map
        && before != (map, uid)
    {
        return Err(refuse!(env => Call::TimerOfOtherMap {
            reg: Reg::R1, timer_uid: before.1, uid
        }));
    }
    meta.map = Some((map, uid));
    Ok(())
}
