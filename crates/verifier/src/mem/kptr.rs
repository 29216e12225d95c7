//! Pointers to objects in map values (`check_map_kptr_access`).

use isa::ebpf::{Insn, Operand, Reg};

use super::MemAccess;
use super::region::check_ptr_off;
use crate::Result;
use crate::env::Check;
use crate::state::{BtfRef, RegKind, RegState, TypeFlags, TypeRef};
use btf::fields::{FieldKind, SpecialField};

/// Checks a load or store of exactly the pointer in a field (`check_map_kptr_access`).
pub(super) fn check_map_kptr_access(
    env: &mut Check<'_>,
    access: MemAccess,
    field: &SpecialField,
) -> Result<()> {
    let is_referenced = matches!(field.kind, FieldKind::KptrRef | FieldKind::KptrPercpu);
    let insn = env.input.insns[env.sink.insn_idx as usize];
    let is_load = matches!(insn, Insn::Load { signed: false, .. });
    if !is_load && !matches!(insn, Insn::Store { .. }) {
        return Err(refuse!(env => Mem::KptrMode));
    }
    refuse_if!(!is_load && is_referenced, env => Mem::KptrReferencedStore);
    refuse_if!(!is_load && field.kind == FieldKind::Uptr, env => Mem::UptrStore);
    match insn {
        Insn::Load { dst, .. } => load(env, dst, field),
        Insn::Store {
            src: Operand::Imm(imm),
            ..
        } => {
            if imm == 0 {
                return Ok(());
            }
            Err(refuse!(env => Mem::KptrImmediate { off: field.offset }))
        }
        _ => match access.value {
            Some(value) => store(env, value, field),
            None => Ok(()),
        },
    }
}

/// Puts the pointer in a field into a register (`mark_uptr_ld_reg`, `mark_btf_ld_reg`).
#[doc(alias = "mark_uptr_ld_reg")]
#[doc(alias = "mark_btf_ld_reg")]
fn load(env: &mut Check<'_>, dst: Reg, field: &SpecialField) -> Result<()> {
    if field.kind == FieldKind::Uptr {
        let btf = env.input.program.btf();
        let size = btf.and_then(|btf| btf.size_of(field.target)).unwrap_or(0);
        let kind = RegKind::memory(size);
        let mut value = RegState::pointer(kind, TypeFlags::PTR_MAYBE_NULL);
        value.id = env.new_id();
        *env.reg_mut(dst) = value;
        return Ok(());
    }
    let ty = env.input.kptr_target(field)?;
    let flags = loaded_flags(env, field, ty);
    let mut value = RegState::pointer(RegKind::BtfId { ty }, flags);
    value.id = env.new_id();
    *env.reg_mut(dst) = value;
    Ok(())
}

/// Flags of a pointer that is loaded from a field (`btf_ld_kptr_type`, `rcu_safe_kptr`,
/// `rcu_protected_object`, `kptr_pointee_btf_record`).
#[doc(alias = "btf_ld_kptr_type")]
#[doc(alias = "rcu_safe_kptr")]
#[doc(alias = "rcu_protected_object")]
#[doc(alias = "kptr_pointee_btf_record")]
fn loaded_flags(env: &Check<'_>, field: &SpecialField, ty: TypeRef) -> TypeFlags {
    let is_local = ty.btf == BtfRef::Program;
    let is_protected = |name: String| env.input.registry.lists.rcu_protected.contains(&*name);
    let is_safe = match field.kind {
        FieldKind::KptrPercpu => true,
        FieldKind::KptrRef => is_local || is_protected(env.input.type_name(ty)),
        _ => false,
    };
    let mut flags = TypeFlags::PTR_MAYBE_NULL;
    if !is_safe || !env.state.in_rcu_section(env.input.rules) {
        return flags.with(TypeFlags::PTR_UNTRUSTED);
    }
    flags = flags.with(TypeFlags::MEM_RCU);
    if field.kind == FieldKind::KptrPercpu {
        flags = flags.with(TypeFlags::MEM_PERCPU);
    } else if is_local {
        flags = flags.with(TypeFlags::MEM_ALLOC);
    }
    let record = env.input.structure_fields(ty);
    let mut fields = record.iter().flat_map(|record| record.fields());
    match fields.any(|field| field.kind.is_node()) {
        true => flags.with(TypeFlags::NON_OWN_REF),
        false => flags,
    }
}

fn store(env: &mut Check<'_>, value: Reg, field: &SpecialField) -> Result<()> {
    match env.reg(value).is_null() {
        true => Ok(()),
        false => match_type(env, value, field),
    }
}

/// Checks that a pointer may be put into a field (`map_kptr_match_type`).
#[doc(alias = "map_kptr_match_type")]
pub(crate) fn match_type(env: &mut Check<'_>, value: Reg, field: &SpecialField) -> Result<()> {
    let reg = *env.reg(value);
    let expected = env.input.kptr_target(field)?;
    let is_unref = field.kind == FieldKind::KptrUnref;
    let mut name = String::new();
    if let RegKind::BtfId { ty } = reg.kind
        && reg.flags.without(permitted_flags(field, ty)).is_empty()
    {
        name = env.input.type_name(ty);
        check_ptr_off(&mut env.sink, &reg, value, true)?;
        if env
            .input
            .has_prefix(&mut env.sink, ty, expected, reg.off, !is_unref)
        {
            return Ok(());
        }
    }
    let found = reg.reg_type();
    let wanted = env.input.type_name(expected);
    Err(refuse!(env => Mem::KptrType { reg: value, found, name, wanted, or_untrusted: is_unref }))
}

/// Flags that a pointer to a type may have to be put into a field.
fn permitted_flags(field: &SpecialField, ty: TypeRef) -> TypeFlags {
    let local = TypeFlags::PTR_MAYBE_NULL.with(TypeFlags::MEM_ALLOC);
    let of_kernel = TypeFlags::PTR_MAYBE_NULL
        .with(TypeFlags::PTR_TRUSTED)
        .with(TypeFlags::MEM_RCU);
    match (ty.btf, field.kind) {
        (BtfRef::Vmlinux | BtfRef::Module(_), FieldKind::KptrUnref) => {
            of_kernel.with(TypeFlags::PTR_UNTRUSTED)
        }
        (BtfRef::Vmlinux | BtfRef::Module(_), _) => of_kernel,
        (BtfRef::Program, FieldKind::KptrPercpu) => local.with(TypeFlags::MEM_PERCPU),
        (BtfRef::Program, _) => local,
    }
}
