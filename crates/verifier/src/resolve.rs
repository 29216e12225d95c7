//! Wide immediates: constants, maps, BTF variables, functions.
//!
//! [`resolve_insns`] runs before the walk over all instructions, dead code included, in
//! the kernel's order of refusals (`resolve_pseudo_ldimm64`). [`check_ld_imm`] runs where
//! the walk arrives.

mod btf_var;
mod maps;

use isa::ebpf::{Effect, Group, Imm64, Insn, PseudoLoad, RawInsn, Size};
use spec::behaviour::Behaviour;
use spec::limits;
use spec::maps::MapKind;
use spec::since::Feature;

pub(crate) use maps::{Map, Maps};

use crate::env::{Env, RegArg};
use crate::explore::{refuse_fields, refuse_registers};
use crate::input::Input;
use crate::log::Sink;
use crate::mem::registers::{set_constant, set_pointer, set_unknown};
use crate::state::{MapRef, RegKind, RegState, TypeFlags};
use crate::{Result, Stop};

/// Checks wide immediates, map use and opcodes of the whole program (`resolve_pseudo_ldimm64`,
/// `check_and_resolve_insns`).
#[doc(alias = "resolve_pseudo_ldimm64")]
#[doc(alias = "check_and_resolve_insns")]
pub(crate) fn resolve_insns(input: &Input<'_>, log: &mut Sink<'_>) -> Result<()> {
    let insns = input.program.insns();
    let mut used = maps::UsedMaps::new(input);
    let mut index = 0;
    while index < insns.len() {
        let insn = insns[index];
        log.insn_idx = index as u32;
        let fields_first = input.rules.has(Behaviour::FieldsCheckedFirst);
        let feature = lacking_opcode(input, insn);
        let is_load = insn.is_plain_load()
            || insn.is_memory_load() && !(input.lacks_insns && input.lacks(Feature::SignedLoads));
        if fields_first {
            refuse_registers(log, insn)?;
        } else if insn.is_of_load_class() && (!is_load || insn.imm != 0) {
            return Err(refuse!(log => Program::LoadReservedFields));
        }
        let is_reserved =
            insn.is_of_register_store_class() && (insn.imm != 0 || !insn.is_register_store());
        if is_reserved && !input.rules.has(Behaviour::StoresCheckedFirst) {
            return Err(refuse!(log => Program::StoreReservedFields));
        }
        if insn.is_wide_load() {
            let Some(&high) = insns.get(index + 1).filter(|high| high.is_second_slot()) else {
                return Err(refuse!(log => Program::InvalidWideLoad));
            };
            if insn.off != 0 && fields_first {
                return Err(refuse!(log => Program::WideLoadReservedFields));
            }
            check_wide(input, log, &mut used, insn, high)?;
            index += 2;
            continue;
        }
        let is_narrow_atomic = insn.is_atomic() && matches!(insn.size(), Size::B | Size::H);
        let is_unknown =
            is_narrow_atomic && !input.rules.has(Behaviour::OrderedAccess) || feature.is_some();
        let is_later = insn.row().is_none_or(|row| match row.effect {
            Effect::GotoReg => !input.rules.has(Behaviour::IndirectJumps),
            _ => row.group == Group::Later,
        });
        if is_unknown || is_later {
            return Err(refuse!(log => Program::UnknownOpcode { code: insn.code }));
        }
        if fields_first {
            refuse_fields(log, insn)?;
        }
        index += 1;
    }
    Ok(())
}

/// The feature that an instruction needs and the kernel does not have.
fn lacking(input: &Input<'_>, index: usize) -> Option<Feature> {
    let insn = input.insns.get(index).filter(|_| input.lacks_insns)?;
    Feature::of(*insn).filter(|feature| input.lacks(*feature))
}

/// The feature whose opcode an instruction has, whatever its fields, if the kernel does not have it.
fn lacking_opcode(input: &Input<'_>, insn: RawInsn) -> Option<Feature> {
    let feature = Feature::of_opcode(insn).filter(|_| input.lacks_insns)?;
    Some(feature).filter(|feature| input.lacks(*feature))
}

/// The name of the instructions among which older kernels count one of a feature that they lack, and
/// refuse its fields.
pub(crate) fn unknown_fields(input: &Input<'_>, index: u32) -> Option<&'static str> {
    match lacking(input, index as usize)? {
        Feature::SignedDivision => Some("BPF_ALU"),
        Feature::SignedMoves | Feature::AddressSpaces => Some("BPF_MOV"),
        Feature::Kfuncs => Some("BPF_CALL"),
        _ => None,
    }
}

/// Checks one wide immediate.
fn check_wide(
    input: &Input<'_>,
    log: &mut Sink<'_>,
    used: &mut maps::UsedMaps<'_>,
    insn: RawInsn,
    high: RawInsn,
) -> Result<()> {
    match insn.pseudo_load() {
        Some(PseudoLoad::Func) if input.lacks(Feature::Callbacks) => {
            return Err(refuse!(log => Program::UnrecognizedWideLoad));
        }
        Some(PseudoLoad::Plain | PseudoLoad::Func) => return Ok(()),
        Some(PseudoLoad::BtfId) => {
            return btf_var::resolve(input, log, insn.imm as u32, high.imm).map(|_| ());
        }
        Some(PseudoLoad::MapValue | PseudoLoad::MapIdxValue) => {}
        Some(PseudoLoad::MapFd | PseudoLoad::MapIdx) if high.imm == 0 => {}
        Some(PseudoLoad::MapFd | PseudoLoad::MapIdx) | None => {
            return Err(refuse!(log => Program::UnrecognizedWideLoad));
        }
    }
    let map = MapRef(insn.imm as u32);
    let is_index = matches!(
        insn.pseudo_load(),
        Some(PseudoLoad::MapIdx | PseudoLoad::MapIdxValue)
    );
    let is_map = insn.imm >= 0 && input.program.maps().get(insn.imm as usize).is_some();
    refuse_if!(!is_index || !is_map, log => Program::NotMap { fd: insn.imm });
    used.add(log, map)?;
    let is_value = insn.pseudo_load() == Some(PseudoLoad::MapIdxValue);
    if is_value {
        let info = &input.maps[map];
        let off = high.imm as u32;
        refuse_if!(off >= limits::VARIABLE_OFFSET, log => Program::ValueOffset { off });
        refuse_if!(!input.has_direct_value(map), log => Program::NoDirectValue);
        let value_size = info.value_size();
        let is_arena = info.kind() == Some(MapKind::Arena);
        let is_table = info.kind() == Some(MapKind::InsnArray);
        let limit = match is_arena {
            true => u64::from(info.max_entries()) * 4096,
            false if is_table && !off.is_multiple_of(8) => 0,
            false => info.region_size().into(),
        };
        let is_many = !is_arena && !is_table && info.max_entries() != 1;
        refuse_if!(is_many, log => Program::ValuePointerUnsupported { value_size, off });
        refuse_if!(u64::from(off) >= limit, log => Program::ValuePointer { value_size, off });
    }
    Ok(())
}

/// Checks `BPF_LD_IMM64` (`check_ld_imm`).
pub(crate) fn check_ld_imm(env: &mut Env<'_>, insn: Insn) -> Result<()> {
    let raw = env.input.program.insns()[env.sink.insn_idx as usize];
    refuse_if!(raw.off != 0, env => Program::WideLoadReservedFields);
    let Insn::LoadImm64 { dst, imm } = insn else {
        return Err(refuse!(env => Program::InvalidImmediateLoad));
    };
    env.check_reg_arg(dst, RegArg::Dst)?;
    match imm {
        Imm64::Value(value) => set_constant(env, dst, value.get()),
        Imm64::BtfId { id, module_fd } => {
            let value = btf_var::resolve(env.input, &mut env.sink, id as u32, module_fd)?;
            *env.reg_mut(dst) = value;
        }
        Imm64::Func { off, .. } => {
            let target = i64::from(env.sink.insn_idx) + i64::from(off) + 1;
            let starts = &env.analysis.subprogs;
            let subprog = starts
                .iter()
                .position(|subprog| i64::from(subprog.start) == target);
            let Some(subprog) = subprog else {
                return Err(Stop::Bug(format!("no subprogram at {target}")));
            };
            if env.input.program.func_info().is_empty() {
                return Err(refuse!(env => Program::CallbackWithoutFuncInfo));
            }
            if !env.input.is_static(env.analysis.subprogs[subprog].start) {
                return Err(refuse!(env => Program::CallbackNotStatic));
            }
            let kind = RegKind::Func {
                subprog: subprog as u32,
            };
            set_pointer(env, dst, kind, TypeFlags::NONE);
        }
        Imm64::MapValue { fd: index, offset } | Imm64::MapIndexValue { index, offset } => {
            let map = MapRef(index as u32);
            if env.input.maps[map].kind() == Some(MapKind::Arena) {
                set_unknown(env, dst);
                return Ok(());
            }
            let mut value = RegState::pointer(RegKind::MapValue { map, uid: 0 }, TypeFlags::NONE);
            value.off = offset;
            *env.reg_mut(dst) = value;
        }
        Imm64::MapFd { fd: index, .. } | Imm64::MapIndex { index, .. } => {
            let kind = RegKind::MapPtr {
                map: MapRef(index as u32),
                uid: 0,
            };
            set_pointer(env, dst, kind, TypeFlags::NONE);
        }
    }
    Ok(())
}
