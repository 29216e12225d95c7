//! Discovery of subprograms and the checks of their layout.
//!
//! A subprogram starts at the first instruction, at every target of a call and at
//! every function whose address is loaded; it ends where the next one starts. Jumps
//! stay within it, and its last instruction is an exit or an unconditional jump.

use std::collections::BTreeSet;

use btf::{Kind, TypeId};
use isa::ebpf::{Effect, Flow, RawInsn};
use spec::behaviour::Behaviour;
use spec::helpers::HelperId;
use spec::limits;
use spec::registry::SpecialKfunc;
use spec::since::Feature;

use super::calls::{called_helper, is_function_address, is_kfunc_call, is_local_call};
use super::{SubprogInfo, func_model};
use crate::input::Input;
use crate::log::Sink;
use crate::{Result, refuse, refuse_if, verbose};

/// Finds the subprograms (`add_subprog_and_kfunc`), ordered by start. The exception callback
/// is one, called or not.
#[doc(alias = "add_subprog_and_kfunc")]
pub(super) fn find(
    input: &Input<'_>,
    pass: &mut Sink<'_>,
    exception_callback: Option<u32>,
) -> Result<Vec<SubprogInfo>> {
    let mut starts: Vec<u32> = vec![0];
    let mut kfuncs = BTreeSet::new();
    let callbacks = input.rules.has(Behaviour::CallbacksAreFunctions);
    for (index, insn) in input.program.insns().iter().enumerate() {
        let is_address = is_function_address(*insn) && callbacks;
        let is_local = is_address || is_local_call(*insn);
        let is_kfunc = is_kfunc_call(*insn) && callbacks;
        if !is_local && !is_kfunc {
            continue;
        }
        pass.insn_idx = index as u32;
        refuse_if!(!input.bpf_capable, pass => Program::CallPrivilege);
        if is_local {
            let target = index as i64 + i64::from(insn.imm) + 1;
            add(input, pass, &mut starts, target)?;
        } else {
            add_kfunc(input, pass, &mut kfuncs, *insn)?;
        }
    }
    if let Some(start) = exception_callback {
        add(input, pass, &mut starts, start.into())?;
    }
    if pass.is_full() {
        for (number, start) in starts.iter().enumerate() {
            verbose!(pass, "func#{number} @{start}\n");
        }
    }
    let ends = starts
        .iter()
        .skip(1)
        .copied()
        .chain([input.program.insns().len() as u32]);
    Ok(starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| SubprogInfo {
            start,
            end,
            ..SubprogInfo::default()
        })
        .collect())
}

/// Checks a kfunc that the program calls for the first time (`add_kfunc_call`,
/// `bpf_add_kfunc_call`). Those of modules are left to the walk.
#[doc(alias = "add_kfunc_call")]
#[doc(alias = "bpf_add_kfunc_call")]
fn add_kfunc(
    input: &Input<'_>,
    pass: &mut Sink<'_>,
    known: &mut BTreeSet<i32>,
    insn: RawInsn,
) -> Result<()> {
    refuse_if!(!input.program.is_gpl_compatible(), pass => Program::KfuncLicense);
    let id = insn.imm;
    if id == 0 || insn.off != 0 || known.contains(&id) {
        return Ok(());
    }
    if known.len() >= limits::KFUNCS as usize {
        return Err(refuse!(pass => Program::TooManyKfuncs));
    }
    known.insert(id);
    if id < 0 && input.rules.has(Behaviour::KfuncNumbersSigned) {
        return Err(refuse!(pass => Program::KfuncNumber { id }));
    }
    let Some(types) = input.vmlinux else {
        return Ok(());
    };
    let func = types
        .get(TypeId(id as u32))
        .filter(|ty| ty.kind() == Kind::Func);
    let Some(func) = func else {
        return Err(refuse!(pass => Program::KfuncNotFunction { id: id as u32 }));
    };
    let special = func.name().to_str().and_then(SpecialKfunc::named);
    refuse_if!(special.is_some_and(SpecialKfunc::is_device_bound), pass => Program::MetadataKfunc);
    func_model::check_func_proto(pass, types, func).map(|_| ())
}

/// Linux's `add_subprog`.
#[doc(alias = "add_subprog")]
fn add(input: &Input<'_>, pass: &mut Sink<'_>, starts: &mut Vec<u32>, target: i64) -> Result<()> {
    let Some(start) = u32::try_from(target)
        .ok()
        .filter(|start| (*start as usize) < input.program.insns().len())
    else {
        return Err(refuse!(pass => Program::InvalidCall));
    };
    if let Err(place) = starts.binary_search(&start) {
        if starts.len() >= limits::SUBPROGS as usize {
            return Err(refuse!(pass => Program::TooManySubprogs));
        }
        starts.insert(place, start);
    }
    Ok(())
}

/// Checks that jumps stay within their subprogram and that none falls through into the
/// next (`check_subprogs`). Notes tail calls and legacy packet loads.
#[doc(alias = "check_subprogs")]
pub(super) fn check_layout(
    input: &Input<'_>,
    pass: &mut Sink<'_>,
    subprogs: &mut [SubprogInfo],
) -> Result<()> {
    for subprog in subprogs {
        for index in subprog.start..subprog.end {
            pass.insn_idx = index;
            let insn = input.program.insns()[index as usize];
            if called_helper(insn) == Some(HelperId::TailCall) {
                subprog.has_tail_call = true;
            }
            if insn.is_packet_load() {
                subprog.has_ld_abs = true;
            }
            if insn.is_exit() {
                subprog.exit_idx = index;
            }
            let by_table = is_table_jump(input, insn);
            let is_unknown = insn.is_long_goto() && input.lacks(Feature::LongJumps);
            let flow = match insn.opcode_flow() {
                Flow::Goto(_) if is_unknown => Flow::Goto(insn.off.into()),
                flow => flow,
            };
            if let Flow::Goto(offset) | Flow::Branch(offset) = flow
                && !by_table
            {
                // Linux computes the target in 32 bits, and prints it so.
                let target = (index as i32).wrapping_add(offset).wrapping_add(1);
                if !(i64::from(subprog.start)..i64::from(subprog.end)).contains(&target.into()) {
                    return Err(refuse!(pass => Program::JumpOutOfRange {
                        from: index, to: target
                    }));
                }
            }
            let ends = insn.is_exit() || insn.is_goto() && !is_unknown || by_table;
            refuse_if!(index == subprog.end - 1 && !ends, pass => Program::LastInsn);
        }
    }
    Ok(())
}

/// True for a jump to an address in a register, in kernels that have those.
pub(super) fn is_table_jump(input: &Input<'_>, insn: RawInsn) -> bool {
    let row = insn.row();
    row.is_some_and(|row| row.effect == Effect::GotoReg)
        && input.rules.has(Behaviour::IndirectJumps)
}

/// Slots that an instruction takes: 2 for loads of a 64-bit immediate.
pub(super) fn slots(insn: RawInsn) -> u32 {
    1 + u32::from(insn.is_wide_load())
}

/// No successor.
pub(super) const NONE: u32 = u32::MAX;

/// Instructions that control may reach next within the subprogram: the one behind it
/// first, then the target (`bpf_insn_successors`).
#[doc(alias = "bpf_insn_successors")]
pub(super) fn successors(input: &Input<'_>, insn: RawInsn, index: u32) -> [u32; 2] {
    if is_table_jump(input, insn) {
        return [NONE, NONE];
    }
    let next = index + slots(insn);
    let target = |offset: i32| (index + 1).wrapping_add_signed(offset);
    match insn.opcode_flow() {
        Flow::Exit | Flow::Nowhere => [NONE, NONE],
        Flow::Goto(offset) => [target(offset), NONE],
        Flow::Branch(offset) => [next, target(offset)],
        Flow::Next | Flow::SkipOne | Flow::Call(_) | Flow::GotoReg(_) => [next, NONE],
    }
}
