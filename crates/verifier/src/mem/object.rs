//! Kernel objects by their BTF, and maps read as objects.
//!
//! A read yields a number or a pointer to another object. How far the kernel answers for
//! that pointer depends on the object's own trust, on lists of safe fields, and on RCU
//! sections (`check_ptr_to_btf_access`).

mod written;

use btf::{FoundAt, Kind, PointerTag, TypeId};
use spec::behaviour::Behaviour;
use spec::maps::MapKind;
use spec::registry::SafeList;

use super::registers::{set_pointer, set_unknown};
use super::{Access, MemAccess};
use crate::env::Check;
use crate::state::{BtfRef, MapRef, RegKind, RegState, TypeFlags, TypeRef};
use crate::{Errno, Result, Stop};

/// Checks an access to a kernel object at `off`, the pointer's fixed offset included
/// (`check_ptr_to_btf_access`).
pub(super) fn check_ptr_to_btf_access(
    env: &mut Check<'_>,
    access: MemAccess,
    ty: TypeRef,
    off: i32,
) -> Result<()> {
    let reg = *env.reg(access.ptr);
    let name = env.input.type_name(ty);
    refuse_if!(!env.input.allow_ptr_leaks, env => Mem::StructPrivilege { name });
    let needs_license = env.input.rules.has(Behaviour::ObjectsNeedLicense);
    if needs_license && !env.input.program.is_gpl_compatible() && ty.btf != BtfRef::Program {
        return Err(refuse!(env => Mem::StructLicense { name }));
    }
    refuse_if!(off < 0, env => Mem::ObjectNegative { reg: access.ptr, name, off });
    let var_off = reg.num.var_off;
    if !var_off.equals(0) {
        return Err(refuse!(env => Mem::ObjectVariable { reg: access.ptr, name, off, var_off }));
    }
    for (flag, memory) in [
        (TypeFlags::MEM_USER, "user"),
        (TypeFlags::MEM_PERCPU, "percpu"),
    ] {
        if reg.flags.has(flag) {
            return Err(refuse!(env => Mem::ObjectMemory { reg: access.ptr, name, memory, off }));
        }
    }
    if reg.flags.has(TypeFlags::MEM_ALLOC) || ty.btf == BtfRef::Program {
        return super::alloc::check_object_access(env, access, ty, off);
    }
    if access.access == Access::Write {
        return written::check_write(env, access, ty, off);
    }
    load(env, access, ty, off)
}

/// Reads `access.size` bytes at `off` of an object of the kernel into `access.value`
/// (`mark_btf_ld_reg`).
#[doc(alias = "mark_btf_ld_reg")]
fn load(env: &mut Check<'_>, access: MemAccess, ty: TypeRef, off: i32) -> Result<()> {
    let found = find_at(env, ty, off, access.size)?;
    let Some(value) = access.value else {
        return Ok(());
    };
    match found {
        FoundAt::OtherPointer if env.input.rules.has(Behaviour::LeavesAreMemory) => {
            let kind = RegKind::memory(0);
            let flags = TypeFlags::MEM_RDONLY.with(TypeFlags::PTR_UNTRUSTED);
            set_pointer(env, value, kind, flags);
        }
        FoundAt::Scalar | FoundAt::OtherPointer => set_unknown(env, value),
        FoundAt::Pointer {
            id: target,
            memory,
            is_in_union,
            field,
        } => {
            let reg = *env.reg(access.ptr);
            let flags = match memory {
                Some(PointerTag::User) => TypeFlags::MEM_USER,
                Some(PointerTag::Percpu) => TypeFlags::MEM_PERCPU,
                Some(PointerTag::Rcu) => TypeFlags::MEM_RCU,
                None => TypeFlags::NONE,
            };
            let flags = match is_in_union {
                true => flags.with(TypeFlags::PTR_UNTRUSTED),
                false => flags,
            };
            let flags = match env.input.rules.has(Behaviour::TrustedPointers) {
                true => trust(env, &reg, ty, &field.to_string_lossy(), flags),
                false if reg.flags.has(TypeFlags::PTR_UNTRUSTED) => flags
                    .with(TypeFlags::PTR_UNTRUSTED)
                    .without(TypeFlags::MEM_RCU),
                false => flags.without(TypeFlags::PTR_UNTRUSTED.with(TypeFlags::MEM_RCU)),
            };
            let kind = RegKind::BtfId {
                ty: TypeRef { id: target.0, ..ty },
            };
            let mut pointer = RegState::pointer(kind, flags);
            if pointer.may_be_null() {
                pointer.id = env.new_id();
            }
            *env.reg_mut(value) = pointer;
        }
    }
    Ok(())
}

/// What an access of so many bytes reads at `off` of an object.
pub(super) fn find_at<'a>(
    env: &mut Check<'a>,
    ty: TypeRef,
    off: i32,
    size: u32,
) -> Result<FoundAt<'a>> {
    let Some(types) = env.input.btf(ty) else {
        return Err(Stop::unsupported("object without its BTF"));
    };
    let marks = env.input.rules.has(Behaviour::UnionsMarked);
    types
        .find_at(TypeId(ty.id), off, size, marks)
        .map_err(|fault| {
            let errno = Errno(fault.errno());
            let refusal = refuse!(env => Mem::ObjectField { fault });
            refusal.with_errno(errno)
        })
}

/// Flags of a pointer read from member `field` of an object in `reg` (`clear_trusted_flags`,
/// `btf_nested_type_is_trusted`).
#[doc(alias = "clear_trusted_flags")]
#[doc(alias = "btf_nested_type_is_trusted")]
fn trust(env: &Check<'_>, reg: &RegState, ty: TypeRef, field: &str, flags: TypeFlags) -> TypeFlags {
    const TRUSTED: TypeFlags = TypeFlags::MEM_ALLOC
        .with(TypeFlags::PTR_TRUSTED)
        .with(TypeFlags::NON_OWN_REF)
        .with(TypeFlags::MEM_RCU);
    if reg.flags.has(TypeFlags::PTR_UNTRUSTED) {
        return TypeFlags::PTR_UNTRUSTED;
    }
    if !crate::flow::is_trusted(reg) && !reg.flags.has(TypeFlags::MEM_RCU) {
        return flags.without(TRUSTED);
    }
    let name = env.input.type_name(ty);
    let is_listed = |list: SafeList| {
        let entry = (list, name.as_str().into(), field.into());
        env.input.registry.lists.safe_fields.contains(&entry)
    };
    if is_listed(SafeList::Trusted) {
        return flags.with(TypeFlags::PTR_TRUSTED);
    }
    if is_listed(SafeList::TrustedOrNull) {
        return flags | TypeFlags::PTR_TRUSTED | TypeFlags::PTR_MAYBE_NULL;
    }
    if !env.state.in_rcu_section(env.input.rules) || reg.may_be_null() {
        return TypeFlags::PTR_UNTRUSTED;
    }
    if is_listed(SafeList::Rcu) {
        return flags.with(TypeFlags::MEM_RCU);
    }
    let is_or_null = is_listed(SafeList::RcuOrNull);
    if is_or_null || flags.has(TypeFlags::MEM_RCU) {
        let flags = flags | TypeFlags::MEM_RCU | TypeFlags::PTR_MAYBE_NULL;
        return match is_or_null {
            true => flags.without(TypeFlags::PTR_UNTRUSTED),
            false => flags,
        };
    }
    if flags.has_any(TypeFlags::MEM_PERCPU | TypeFlags::MEM_USER) {
        return flags;
    }
    flags.without(TRUSTED)
}

/// Checks a read of `struct bpf_map` (`check_ptr_to_map_access`).
pub(super) fn check_ptr_to_map_access(
    env: &mut Check<'_>,
    access: MemAccess,
    map: MapRef,
    off: i32,
) -> Result<()> {
    let name = env.input.maps[map]
        .kind()
        .map_or("bpf_map", MapKind::structure);
    refuse_if!(!env.input.allow_ptr_leaks, env => Mem::StructPrivilege { name });
    refuse_if!(off < 0, env => Mem::MapNegative { reg: access.ptr, name, off });
    refuse_if!(access.access == Access::Write, env => Mem::MapWrite { name });
    let found = env
        .input
        .vmlinux
        .and_then(|vmlinux| vmlinux.find(Kind::Struct, name));
    let Some(ty) = found else {
        return Err(Stop::unsupported(format!("fields of 'struct {name}'")));
    };
    // The map's object counts as a plain BTF pointer.
    let ty = TypeRef::vmlinux(ty.id().0);
    let saved = *env.reg(access.ptr);
    env.reg_mut(access.ptr).kind = RegKind::BtfId { ty };
    let result = load(env, access, ty, off);
    if access.value != Some(access.ptr) {
        *env.reg_mut(access.ptr) = saved;
    }
    result
}
