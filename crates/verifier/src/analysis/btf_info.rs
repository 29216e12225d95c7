//! Checks of func_info and line_info, and what they say about subprograms: names and
//! which ones are global (`check_btf_info_early`, `check_btf_info`).
//!
//! Linear in the number of records.

use btf::{Btf, Int, Kind, Linkage, Shape, TypeId};
use program::FuncInfo;

use super::SubprogInfo;
use crate::input::Input;
use crate::log::Sink;
use crate::{Result, refuse, refuse_if};

/// Checks the records of functions on their own; comes before subprograms are found
/// (`check_btf_info_early`) (`check_btf_func_early`, `bpf_check_btf_info_early`).
#[doc(alias = "check_btf_func_early")]
#[doc(alias = "bpf_check_btf_info_early")]
pub(super) fn check_btf_info_early(input: &Input<'_>, pass: &mut Sink<'_>) -> Result<()> {
    let Some(types) = input.program.btf() else {
        return Ok(());
    };
    let mut previous = None;
    for record in input.program.func_info() {
        match previous {
            None if record.insn != 0 => {
                return Err(refuse!(pass => Program::FirstFuncInfo { off: record.insn }));
            }
            Some(previous) if record.insn <= previous => {
                return Err(refuse!(pass => Program::FuncInfoOrder { off: record.insn, previous }));
            }
            _ => {}
        }
        let is_function = types
            .get(record.type_id)
            .is_some_and(|ty| ty.kind() == Kind::Func);
        refuse_if!(!is_function, pass => Program::FuncInfoType { id: record.type_id.0 as i32 });
        previous = Some(record.insn);
    }
    Ok(())
}

/// Checks the records against the subprograms, and notes names and linkage (`check_btf_info`)
/// (`bpf_check_btf_info`).
#[doc(alias = "bpf_check_btf_info")]
pub(super) fn check_btf_info(
    input: &Input<'_>,
    pass: &mut Sink<'_>,
    subprogs: &mut [SubprogInfo],
) -> Result<()> {
    match input.program.btf() {
        Some(types) if !input.program.func_info().is_empty() => {
            check_functions(types, input.program.func_info(), pass, subprogs)?;
        }
        _ => check_without_types(pass, subprogs)?,
    }
    if let Some(types) = input.program.btf() {
        check_lines(input, types, pass, subprogs)?;
    }
    Ok(())
}

/// A subprog without a return type in BTF may end only by its own exit
/// (`check_abnormal_return`).
#[doc(alias = "check_abnormal_return")]
fn check_without_types(pass: &mut Sink<'_>, subprogs: &[SubprogInfo]) -> Result<()> {
    for subprog in subprogs.iter().skip(1) {
        refuse_if!(subprog.has_ld_abs, pass => Program::PacketLoadWithoutBtf);
        refuse_if!(subprog.has_tail_call, pass => Program::TailCallWithoutBtf);
    }
    Ok(())
}

/// Linux's `check_btf_func`.
#[doc(alias = "check_btf_func")]
fn check_functions(
    types: &Btf<'_>,
    records: &[FuncInfo],
    pass: &mut Sink<'_>,
    subprogs: &mut [SubprogInfo],
) -> Result<()> {
    refuse_if!(records.len() != subprogs.len(), pass => Program::FuncInfoCount);
    for (index, (record, subprog)) in records.iter().zip(subprogs).enumerate() {
        refuse_if!(record.insn != subprog.start, pass => Program::FuncInfoLayout);
        let ty = types.at(record.type_id);
        subprog.name = ty.name().to_string_lossy().into_owned();
        let Shape::Func(function) = ty.shape() else {
            continue;
        };
        subprog.is_global = function.linkage == Linkage::GLOBAL;
        if index == 0 || returns_scalar(types, function.proto) {
            continue;
        }
        refuse_if!(subprog.has_ld_abs, pass => Program::PacketLoadReturn);
        refuse_if!(subprog.has_tail_call, pass => Program::TailCallReturn);
    }
    Ok(())
}

/// True if a prototype returns an integer of a register's width or less, or an
/// enumeration.
fn returns_scalar(types: &Btf<'_>, proto: TypeId) -> bool {
    let Some(Shape::Proto(proto)) = types.get(proto).map(|ty| ty.shape()) else {
        return false;
    };
    let returned = types.skip_modifiers(proto.returns);
    match returned.and_then(|id| types.get(id)).map(|ty| ty.shape()) {
        Some(Shape::Int(int)) => is_small(int),
        Some(Shape::Enum(_)) => true,
        _ => false,
    }
}

/// `btf_type_is_small_int`.
#[doc(alias = "btf_type_is_small_int")]
fn is_small(int: Int) -> bool {
    int.offset == 0 && matches!(int.bits, 8 | 16 | 32 | 64)
}

/// Linux's `check_btf_line`.
#[doc(alias = "check_btf_line")]
fn check_lines(
    input: &Input<'_>,
    types: &Btf<'_>,
    pass: &mut Sink<'_>,
    subprogs: &[SubprogInfo],
) -> Result<()> {
    let records = input.program.line_info();
    if records.is_empty() {
        return Ok(());
    }
    let insns = input.program.insns();
    let strings = types.strings().len() as u32;
    let mut previous = 0;
    let mut found = 0;
    for (index, record) in records.iter().enumerate() {
        if index > 0 && record.insn <= previous || record.insn as usize >= insns.len() {
            return Err(refuse!(pass => Program::LineInfoOffset {
                index, off: record.insn, previous, count: insns.len()
            }));
        }
        refuse_if!(!insns[record.insn as usize].has_opcode(), pass => Program::LineInfoInsn { index });
        if record.text.0 >= strings || record.file.0 >= strings {
            return Err(refuse!(pass => Program::LineInfoString { index }));
        }
        if let Some(subprog) = subprogs.get(found) {
            if record.insn == subprog.start {
                found += 1;
            } else if subprog.start < record.insn {
                return Err(refuse!(pass => Program::MissingLineInfo { found }));
            }
        }
        previous = record.insn;
    }
    if found < subprogs.len() {
        return Err(refuse!(pass => Program::MissingLineInfos {
            missing: subprogs.len() - found, found
        }));
    }
    Ok(())
}
