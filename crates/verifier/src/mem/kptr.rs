//! Pointers to kernel objects in map values (`check_map_kptr_access`).

use btf::Kind;
use isa::ebpf::{Insn, Operand, Reg};

use super::MemAccess;
use super::region::check_ptr_off;
use super::registers::set_reg;
use crate::env::Env;
use crate::log::reg_type_str;
use crate::state::{BtfRef, RegBase, RegKind, RegState, TypeFlags, TypeRef};
use crate::{Result, Stop};
use btf::fields::{FieldKind, SpecialField};

/// Checks a load or store of exactly the pointer in a field (`check_map_kptr_access`).
pub(super) fn check_map_kptr_access(
    env: &mut Env<'_>,
    access: MemAccess,
    field: &SpecialField,
) -> Result<()> {
    let is_referenced = matches!(field.kind, FieldKind::KptrRef | FieldKind::KptrPercpu);
    let insn = env.input.insns[env.insn_idx as usize];
    let is_load = matches!(insn, Insn::Load { signed: false, .. });
    if !is_load && !matches!(insn, Insn::Store { .. }) {
        return Err(refuse!(env => Mem::KptrMode));
    }
    if !is_load && is_referenced {
        return Err(refuse!(env => Mem::KptrReferencedStore));
    }
    if !is_load && field.kind == FieldKind::Uptr {
        return Err(refuse!(env => Mem::UptrStore));
    }
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

/// The object that a field points to: a type of vmlinux.
fn target(env: &Env<'_>, field: &SpecialField) -> Result<(TypeRef, String)> {
    let unknown = || Stop::unsupported("pointer to a local object in a map value");
    let btf = env.input.program.btf().ok_or_else(unknown)?;
    let name = btf.at(field.target).name().to_string_lossy().into_owned();
    let found = env
        .input
        .vmlinux
        .and_then(|vmlinux| vmlinux.find(Kind::Struct, &name))
        .ok_or_else(unknown)?;
    let ty = TypeRef::vmlinux(found.id().0);
    Ok((ty, name))
}

fn load(env: &mut Env<'_>, dst: Reg, field: &SpecialField) -> Result<()> {
    if field.kind == FieldKind::Uptr {
        let btf = env.input.program.btf();
        let size = btf.and_then(|btf| btf.size_of(field.target)).unwrap_or(0);
        let kind = RegKind::memory(size);
        let mut value = RegState::pointer(kind, TypeFlags::PTR_MAYBE_NULL);
        value.id = env.new_id();
        set_reg(env, dst, value);
        return Ok(());
    }
    let (ty, name) = target(env, field)?;
    let is_safe = field.kind == FieldKind::KptrPercpu
        || field.kind == FieldKind::KptrRef
            && env.input.registry.lists.rcu_protected.contains(&*name);
    let mut flags = TypeFlags::PTR_MAYBE_NULL;
    if is_safe && env.state.in_rcu_section() {
        flags = flags.with(TypeFlags::MEM_RCU);
        if field.kind == FieldKind::KptrPercpu {
            flags = flags.with(TypeFlags::MEM_PERCPU);
        }
    } else {
        flags = flags.with(TypeFlags::PTR_UNTRUSTED);
    }
    let mut value = RegState::pointer(RegKind::BtfId { ty }, flags);
    value.id = env.new_id();
    set_reg(env, dst, value);
    Ok(())
}

/// Linux's `map_kptr_match_type`.
#[doc(alias = "map_kptr_match_type")]
fn store(env: &mut Env<'_>, value: Reg, field: &SpecialField) -> Result<()> {
    let reg = *env.reg(value);
    if reg.is_null() {
        return Ok(());
    }
    let (expected, expected_name) = target(env, field)?;
    let is_unref = field.kind == FieldKind::KptrUnref;
    let mut permitted = TypeFlags::PTR_MAYBE_NULL | TypeFlags::PTR_TRUSTED | TypeFlags::MEM_RCU;
    if is_unref {
        permitted = permitted.with(TypeFlags::PTR_UNTRUSTED);
    }
    let mut name = String::new();
    if let RegKind::BtfId { ty } = reg.kind
        && reg.flags.without(permitted).is_empty()
    {
        name = env.input.type_name(ty);
        check_ptr_off(&mut env.log(), &reg, value, true)?;
        let is_kernels = ty.btf == BtfRef::Vmlinux;
        if is_kernels && env.input.is_prefix(ty.id, expected.id, reg.off, !is_unref) {
            return Ok(());
        }
    }
    let found = reg.reg_type();
    let wanted = RegBase::PtrToBtfId.plain();
    let or_untrusted = match is_unref {
        true => format!(
            " or {}{expected_name}",
            reg_type_str(RegBase::PtrToBtfId.with(TypeFlags::PTR_UNTRUSTED))
        ),
        false => String::new(),
    };
    Err(refuse!(env => Mem::KptrType {
        reg: value, found, name, wanted, expected_name, or_untrusted
    }))
}
