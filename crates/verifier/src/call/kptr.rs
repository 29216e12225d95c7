//! `bpf_kptr_xchg`: an object into a field of a map value or of another object, and what was
//! there out of it.

use btf::fields::{FieldKind, SpecialField};
use isa::ebpf::Reg;
use spec::behaviour::Behaviour;
use spec::registry::ArgBase;

use super::args::compatible_types;
use super::meta::CallMeta;
use super::reference;
use crate::env::Check;
use crate::input::Input;
use crate::log::TypeText;
use crate::mem::kptr::match_type;
use crate::mem::registers;
use crate::state::{BtfRef, RegKind, RegState, TypeFlags};
use crate::{Result, Stop, refuse, refuse_if};

/// Checks the place of a pointer, and notes the field (`process_kptr_func`).
#[doc(alias = "process_kptr_func")]
pub(super) fn check_destination(env: &mut Check<'_>, ptr: Reg, meta: &mut CallMeta) -> Result<()> {
    let reg = *env.reg(ptr);
    if let RegKind::MapValue { map, uid } = reg.kind {
        if !env.input.maps[map].has_btf() {
            let map = env.input.map_name(map);
            return Err(refuse!(env => Call::ExchangeWithoutBtf { map }));
        }
        meta.map = Some((map, uid));
    }
    let Some(var_off) = reg.num.as_const() else {
        return Err(refuse!(env => Call::FieldVariable { reg: ptr, name: FieldKind::KptrRef }));
    };
    let record = env.input.record_of(&reg);
    let fields = record.map_or(&[][..], |record| record.fields());
    let has_none = !fields.iter().any(|field| field.kind.is_kptr());
    if has_none
        && !env.input.rules.has(Behaviour::PointersTagged)
        && let RegKind::MapValue { map, .. } = reg.kind
    {
        let map = env.input.map_name(map);
        return Err(refuse!(env => Call::NoKptrInMap { map }));
    }
    refuse_if!(has_none, env => Call::NoKptr { reg: ptr });
    let off = (reg.off as u32).wrapping_add(var_off as u32);
    let is_it = |field: &&SpecialField| field.offset == off && field.kind.is_kptr();
    let Some(field) = fields.iter().find(is_it) else {
        return Err(refuse!(env => Call::NotAtKptr { off: off as i32 }));
    };
    if !matches!(field.kind, FieldKind::KptrRef | FieldKind::KptrPercpu) {
        return Err(refuse!(env => Call::KptrNotReferenced { off: off as i32 }));
    }
    meta.kptr = Some(*field);
    Ok(())
}

/// Checks the pointer that is put there (`check_reg_type`).
pub(super) fn check_source(env: &mut Check<'_>, ptr: Reg, meta: &CallMeta) -> Result<()> {
    const LOCAL: TypeFlags = TypeFlags::MEM_ALLOC.with(TypeFlags::MEM_PERCPU);
    let reg = *env.reg(ptr);
    let mut flags = reg.flags.without(TypeFlags::PTR_MAYBE_NULL);
    if flags.has(TypeFlags::MEM_ALLOC) {
        flags = flags.without(LOCAL);
    }
    let compatible = compatible_types(ArgBase::PtrToBtfId, false).unwrap_or_default();
    if !compatible.contains(&reg.kind.base().with(flags)) {
        let expected: Vec<TypeText> = compatible.iter().copied().map(TypeText::from).collect();
        return Err(refuse!(env => Call::ArgumentType {
            reg: ptr, kind: reg.reg_type(), expected
        }));
    }
    if reg.flags.has(TypeFlags::MEM_ALLOC) && !reg.flags.without(LOCAL).is_empty() {
        return Err(refuse!(env => Call::UnmatchedObject));
    }
    refuse_if!(reg.may_be_null(), env => Call::ArgumentMaybeNull { reg: ptr });
    match &meta.kptr {
        Some(field) => match_type(env, ptr, field),
        None => Err(Stop::Bug("pointer behind no field".into())),
    }
}

/// Gives the reference of the pointer that is put there to the field; false if it is not held
/// (`ref_convert_alloc_rcu_protected`). Under RCU an object of each CPU stays readable.
#[doc(alias = "ref_convert_alloc_rcu_protected")]
pub(super) fn release_source(env: &mut Check<'_>, id: u32) -> bool {
    if !reference::release_only(&mut env.state, id) {
        return false;
    }
    const PERCPU: TypeFlags = TypeFlags::MEM_ALLOC.with(TypeFlags::MEM_PERCPU);
    let in_rcu = env.state.in_rcu_section(env.input.rules);
    let invalid = registers::invalid(env.input);
    env.state.for_each_reg_mut(
        |reg| reg.ref_obj_id == id,
        |reg| {
            if in_rcu && reg.flags.has(PERCPU) {
                reg.ref_obj_id = 0;
                let flags = reg.flags.without(TypeFlags::MEM_ALLOC);
                reg.flags = flags.with(TypeFlags::MEM_RCU);
            } else {
                *reg = invalid;
            }
        },
    );
    true
}

/// What was in the field.
pub(super) fn previous(input: &Input<'_>, meta: &CallMeta, flags: TypeFlags) -> Result<RegState> {
    let Some(field) = &meta.kptr else {
        return Err(Stop::Bug("pointer from no field".into()));
    };
    let ty = input.kptr_target(field)?;
    let flags = match (ty.btf, field.kind) {
        (BtfRef::Vmlinux | BtfRef::Module(_), _) => flags,
        (BtfRef::Program, FieldKind::KptrPercpu) => {
            flags | TypeFlags::MEM_ALLOC | TypeFlags::MEM_PERCPU
        }
        (BtfRef::Program, _) => flags.with(TypeFlags::MEM_ALLOC),
    };
    Ok(RegState::pointer(RegKind::BtfId { ty }, flags))
}
