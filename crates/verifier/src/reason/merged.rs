//! Members of the context that one instruction accesses: compilers make one access of those
//! in several branches, and compute the member's address before it.
//!
//! From the access the search goes back along the function's control flow, and adds up the
//! constants that are added to the pointer, up to where the pointer comes from.
//!
//! Complexity: `MOST_STATES` pairs of an instruction and a register at most.

use std::collections::{BTreeMap, BTreeSet};

use isa::ebpf::{Access, AluOp, Insn, Operand, Reg, Width};

use super::cause::MergedMembers;
use super::explanation::{Note, NoteKind};
use super::loops::{Holder, memory};
use super::scene::Scene;
use crate::state::RegState;

/// States of the search at most.
const MOST_STATES: usize = 20_000;
/// Members of a variable offset at most.
const MOST_MEMBERS: usize = 16;

/// The members that a refused access to the context is of, and the branch that decides.
pub(super) fn members(
    scene: &Scene<'_>,
    access: Access,
    state: &RegState,
) -> (Option<MergedMembers>, Option<Note>) {
    if is_passed_with_offset(scene) {
        return (None, None);
    }
    let offsets = match state.num.is_const() {
        true => offsets(scene, access.base),
        false => Offsets {
            made_at: variable(state).into_iter().map(|off| (off, None)).collect(),
        },
    };
    let named = |off: &i64| scene.context_field(off + i64::from(access.off));
    let mut members: Vec<String> = Vec::new();
    for name in offsets.made_at.keys().filter_map(named) {
        if !members.contains(&name) {
            members.push(name);
        }
    }
    if members.is_empty() {
        return (None, None);
    }
    let step = (members.len() > 1)
        .then(|| branch(scene, &offsets))
        .flatten();
    let branch = step.map(|step| scene.place_of_step(step));
    let note = step.map(|step| scene.note(step, NoteKind::ChoosesMember));
    (Some(MergedMembers { members, branch }), note)
}

/// True in a function that is called with a pointer to a member.
fn is_passed_with_offset(scene: &Scene<'_>) -> bool {
    let steps = scene.trace.steps();
    let Some(frame) = steps.last().map(|step| step.frame) else {
        return false;
    };
    let Some(insn) = scene.refusal.insn else {
        return false;
    };
    let start = scene.analysis.subprogs[scene.analysis.subprog_containing(insn)].start;
    let is_entry = |&step: &usize| steps[step].insn == start && steps[step].frame == frame;
    let entry = (0..steps.len()).rev().find(is_entry);
    let argument = entry.and_then(|step| scene.trace.reg(step, Reg::R1.index()));
    argument.is_some_and(|reg| reg.off != 0 || reg.num.as_const() != Some(0))
}

/// Offsets of a pointer, with the instruction that last changed it.
struct Offsets {
    made_at: BTreeMap<i64, Option<u32>>,
}

/// Offsets of a pointer with a variable part of few values.
fn variable(state: &RegState) -> Vec<i64> {
    let bits = state.num.var_off;
    if bits.mask.count_ones() > MOST_MEMBERS.ilog2() {
        return Vec::new();
    }
    let mut offsets = Vec::new();
    let mut part = 0u64;
    loop {
        let value = bits.value | part;
        if (state.num.umin..=state.num.umax).contains(&value) {
            offsets.push(i64::from(state.off).wrapping_add(value as i64));
        }
        // The next subset of the unknown bits.
        part = part.wrapping_sub(bits.mask) & bits.mask;
        if part == 0 {
            return offsets;
        }
    }
}

/// Before an instruction, the holder of a pointer to which an offset is added later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    insn: u32,
    holder: Holder,
    offset: i64,
    /// The instruction that last changes the pointer.
    changed: Option<u32>,
}

/// Offsets that a register has at the refused instruction, on all paths of the function on
/// which it is made of the context.
fn offsets(scene: &Scene<'_>, reg: Reg) -> Offsets {
    let mut made_at = BTreeMap::new();
    let none = Offsets {
        made_at: BTreeMap::new(),
    };
    let Some(insn) = scene.refusal.insn else {
        return none;
    };
    let start = scene.analysis.subprogs[scene.analysis.subprog_containing(insn)].start;
    let before = predecessors(scene);
    let mut seen = BTreeSet::new();
    let mut pending = vec![At {
        insn,
        holder: Holder::Reg(reg),
        offset: 0,
        changed: None,
    }];
    while let Some(at) = pending.pop() {
        if seen.len() >= MOST_STATES || !seen.insert(at) {
            continue;
        }
        if at.insn == start && at.holder == Holder::Reg(Reg::R1) {
            made_at.insert(at.offset, at.changed);
        }
        for &prior in before.get(&at.insn).into_iter().flatten() {
            pending.extend(back(scene, &before, prior, at));
        }
    }
    Offsets { made_at }
}

/// Instructions by those that control reaches from them.
pub(super) fn predecessors(scene: &Scene<'_>) -> BTreeMap<u32, Vec<u32>> {
    let mut before: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (insn, code) in (0..).zip(&scene.input.insns) {
        if *code == Insn::Imm64High {
            continue;
        }
        for next in scene.analysis.next(insn) {
            before.entry(next).or_default().push(insn);
        }
    }
    before
}

/// Holders before an instruction of what a holder has behind it.
fn back(scene: &Scene<'_>, before: &BTreeMap<u32, Vec<u32>>, prior: u32, at: At) -> Vec<At> {
    let insn = scene.input.insns[prior as usize];
    let from = |holder: Holder, added: i64, changed: Option<u32>| At {
        insn: prior,
        holder,
        offset: at.offset.saturating_add(added),
        changed: at.changed.or(changed),
    };
    let Holder::Reg(reg) = at.holder else {
        return match insn {
            Insn::Store { base, off, src, .. } if memory(base, off) == at.holder => match src {
                Operand::Reg(src) => vec![from(Holder::Reg(src), 0, None)],
                Operand::Imm(_) => Vec::new(),
            },
            _ => vec![from(at.holder, 0, None)],
        };
    };
    if !insn.writes().contains(reg) {
        return vec![from(at.holder, 0, None)];
    }
    match insn {
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            src: Operand::Reg(src),
            ..
        } => vec![from(Holder::Reg(src), 0, None)],
        Insn::Alu {
            op: AluOp::Add,
            width: Width::W64,
            src: Operand::Imm(imm),
            ..
        } => vec![from(at.holder, imm.into(), Some(prior))],
        Insn::Alu {
            op: AluOp::Add,
            width: Width::W64,
            src: Operand::Reg(src),
            ..
        } => {
            let sides = [(reg, src), (src, reg)];
            let sides = sides.into_iter().flat_map(|(pointer, number)| {
                let constants = constants(scene, before, prior, number);
                let constants = constants.into_iter();
                constants.map(move |(value, set)| from(Holder::Reg(pointer), value, Some(set)))
            });
            sides.collect()
        }
        Insn::Load { base, off, .. } if base == Reg::R10 => vec![from(memory(base, off), 0, None)],
        _ => Vec::new(),
    }
}

/// Constants that a register may have before an instruction, and where each is set.
pub(super) fn constants(
    scene: &Scene<'_>,
    before: &BTreeMap<u32, Vec<u32>>,
    insn: u32,
    reg: Reg,
) -> Vec<(i64, u32)> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut pending = vec![insn];
    while let Some(insn) = pending.pop() {
        for &prior in before.get(&insn).into_iter().flatten() {
            match scene.input.insns[prior as usize] {
                Insn::Alu {
                    op: AluOp::Mov,
                    dst,
                    src: Operand::Imm(imm),
                    ..
                } if dst == reg => found.push((imm.into(), prior)),
                other if other.writes().contains(reg) => return Vec::new(),
                _ if seen.len() < MOST_STATES && seen.insert(prior) => pending.push(prior),
                _ => {}
            }
        }
    }
    found
}

/// The last conditional jump of the path from which another way leads to another offset.
fn branch(scene: &Scene<'_>, offsets: &Offsets) -> Option<usize> {
    let steps = scene.trace.steps();
    let frame = steps.last()?.frame;
    let passed: BTreeSet<u32> = { steps.iter() }
        .filter(|step| step.frame == frame)
        .map(|step| step.insn)
        .collect();
    let others: Vec<u32> = { offsets.made_at.values() }
        .filter_map(|changed| changed.filter(|insn| !passed.contains(insn)))
        .collect();
    let is_meant = |step: &usize| {
        let (at, next) = (&steps[*step], &steps[step + 1]);
        let other = { scene.analysis.next(at.insn) }.filter(|&other| other != next.insn);
        let mut reached = other.flat_map(|other| reach(scene, other));
        at.frame == frame && reached.any(|insn| others.is_empty() || others.contains(&insn))
    };
    let steps = scene.values.branches.iter().map(|branch| branch.step).rev();
    steps.into_iter().find(is_meant)
}

/// Instructions that control reaches from one, up to the refused one.
fn reach(scene: &Scene<'_>, from: u32) -> BTreeSet<u32> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(insn) = pending.pop() {
        if Some(insn) != scene.refusal.insn && reached.insert(insn) {
            pending.extend(scene.analysis.next(insn));
        }
    }
    reached
}
