//! Requirements of each function, and the call graph of programs.

use std::collections::{BTreeMap, BTreeSet};

use isa::ebpf::{AluOp, Callee, Flow, Insn, Operand, RawInsn, Reg, decode};
use program::{ExternId, MapId};
use spec::since::Feature;

use super::{Need, ProgramOverview, Thing, collect, program_needs};
use crate::externs::ExternKind;
use crate::object::Object;
use crate::programs::{ProgramDef, ProgramId};
use crate::relocate::patches::{Goal, Patch, function_slot};

/// Number of the helper bpf_tail_call.
const TAIL_CALL: i32 = 12;
/// Maximum number of slots of programs before Linux 5.2.
const MAX_INSNS_BEFORE_5_2: usize = 4096;

/// Every program and function, by index.
pub(super) struct Functions(Vec<Function>);

/// Weak externs whose address the object loads to check that they exist.
type Asked = BTreeSet<ExternId>;

/// Requirements of one program or function.
#[derive(Default)]
struct Function {
    slots: usize,
    /// Called functions and callbacks.
    callees: Vec<ProgramId>,
    /// Maximum offset below the frame pointer in bytes.
    stack: u32,
    relocations: usize,
    maps: BTreeSet<MapId>,
    needs: Vec<Need>,
}

impl Functions {
    pub(super) fn of(object: &Object<'_>) -> Functions {
        let asked = asked(object);
        let codes = object.program_defs().iter();
        let mut functions: Vec<Function> = codes
            .map(|(id, code)| Function::of(object, &asked, id, code))
            .collect();
        for id in relocated(object) {
            functions[id.0 as usize].relocations += 1;
        }
        Functions(functions)
    }

    fn get(&self, id: ProgramId) -> &Function {
        &self.0[id.0 as usize]
    }

    /// Functions that a program reaches, itself first, while their slots fit into the
    /// budget.
    fn reached(&self, main: ProgramId, room: &mut usize) -> Vec<ProgramId> {
        let mut reached = vec![main];
        let mut known = BTreeSet::from([main]);
        let mut at = 0;
        while let Some(&id) = reached.get(at) {
            for &callee in &self.get(id).callees {
                let rest = room.checked_sub(self.get(callee).slots);
                if let Some(rest) = rest.filter(|_| known.insert(callee)) {
                    *room = rest;
                    reached.push(callee);
                }
            }
            at += 1;
        }
        reached
    }

    /// Stack depth in bytes over the deepest chain of calls; recursive calls, which the
    /// kernel refuses, count nothing.
    fn deepest(&self, main: ProgramId, reached: &[ProgramId]) -> u32 {
        let mut depth: BTreeMap<ProgramId, Option<u32>> =
            reached.iter().map(|id| (*id, None)).collect();
        let mut path = vec![(main, 0, 0)];
        depth.insert(main, Some(0));
        while let Some((id, next, below)) = path.last_mut() {
            let function = self.get(*id);
            match function.callees.get(*next) {
                Some(callee) => {
                    *next += 1;
                    match depth.get(callee) {
                        Some(Some(known)) => *below = (*below).max(*known),
                        Some(None) => {
                            depth.insert(*callee, Some(0));
                            path.push((*callee, 0, 0));
                        }
                        None => {}
                    }
                }
                None => {
                    let sum = function.stack.saturating_add(*below);
                    depth.insert(*id, Some(sum));
                    path.pop();
                    if let Some((_, _, below)) = path.last_mut() {
                        *below = (*below).max(sum);
                    }
                }
            }
        }
        depth.get(&main).copied().flatten().unwrap_or_default()
    }

    /// Overview of a program with all functions that it reaches. `room` is the remaining
    /// budget of slots, since programs that share functions each walk them.
    pub(super) fn overview(
        &self,
        id: ProgramId,
        code: &ProgramDef<'_>,
        room: &mut usize,
    ) -> ProgramOverview {
        let reached = self.reached(id, room);
        let all = || reached.iter().map(|id| self.get(*id));
        let slots = all().map(|function| function.slots).sum();
        let mut needs: Vec<Need> = all()
            .flat_map(|function| function.needs.iter().copied())
            .collect();
        let jumps_on = Thing::Helper(TAIL_CALL);
        if reached.len() > 1 && needs.iter().any(|need| need.thing == jumps_on) {
            needs.push(Need::feature(Feature::TailCallsWithCalls));
        }
        if slots > MAX_INSNS_BEFORE_5_2 {
            needs.push(Need::feature(Feature::LongPrograms));
        }
        needs.extend(program_needs::needs(code));
        let maps: BTreeSet<MapId> = all().flat_map(|function| &function.maps).copied().collect();
        ProgramOverview {
            id,
            slots,
            stack: self.deepest(id, &reached),
            relocations: all().map(|function| function.relocations).sum(),
            functions: reached[1..].to_vec(),
            maps: maps.into_iter().collect(),
            needs: collect(needs.into_iter()),
        }
    }
}

fn asked(object: &Object<'_>) -> Asked {
    let codes = object.program_defs().iter();
    let patches = codes.flat_map(|(id, _)| object.patches.of(id));
    let loaded = patches.filter_map(|patch| match patch.goal {
        Goal::ExternLoad(id) => Some(id),
        _ => None,
    });
    loaded.collect()
}

/// Program or function of each CO-RE relocation.
fn relocated<'o>(object: &'o Object<'_>) -> impl Iterator<Item = ProgramId> + 'o {
    let types = object.btf().zip(object.btf_ext());
    let groups = types.into_iter().flat_map(|(types, ext)| {
        let named = move |group| (types, group);
        ext.relocations().map(named)
    });
    groups.flat_map(move |(types, group)| {
        let name = types.string(group.section);
        let section = object.elf().section_named(name.as_bytes());
        let at = move |offset: u32| object.program_defs().at(section?.id, offset as usize / 8);
        group.records().filter_map(move |relo| at(relo.offset))
    })
}

impl Function {
    fn of(object: &Object<'_>, asked: &Asked, id: ProgramId, code: &ProgramDef<'_>) -> Function {
        let slots: Vec<RawInsn> = code.slots().collect();
        let insns = decode(&slots);
        let mut function = Function {
            slots: slots.len(),
            stack: named_stack(&insns),
            ..Function::default()
        };
        let mut patches = object.patches.of(id).iter().peekable();
        for (slot, insn) in insns.iter().enumerate() {
            let patch = patches.next_if(|patch| patch.slot as usize == slot);
            // Of several relocations at one slot the first decides.
            while patches
                .next_if(|patch| patch.slot as usize == slot)
                .is_some()
            {}
            function.take((object, asked), (id, code), (slot, *insn), patch);
        }
        if has_loop(&insns) {
            function.needs.push(Need::feature(Feature::Loops));
        }
        function.needs = collect(std::mem::take(&mut function.needs).into_iter());
        function
    }

    /// Adds the requirements of an instruction.
    fn take(
        &mut self,
        (object, asked): (&Object<'_>, &Asked),
        (id, code): (ProgramId, &ProgramDef<'_>),
        (slot, insn): (usize, Insn),
        patch: Option<&Patch>,
    ) {
        let mut need = |need: Need| self.needs.push(need.at(id, slot));
        match (patch.map(|patch| patch.goal), insn) {
            (Some(Goal::Map(map)), _) => {
                self.maps.insert(map);
            }
            (Some(Goal::Value { map, .. }), _) => {
                self.maps.insert(map);
                need(Need::feature(Feature::GlobalData));
            }
            (Some(Goal::JumpTable { .. }), _) => need(Need::feature(Feature::IndirectJumps)),
            (Some(Goal::ExternLoad(wanted) | Goal::ExternCall(wanted)), insn) => {
                let Some(known) = object.externs().get(wanted) else {
                    return;
                };
                let is_call = matches!(insn, Insn::Call(_));
                match known.kind {
                    ExternKind::Config(_) => {
                        self.maps.extend(object.maps().kconfig());
                        need(Need::feature(Feature::GlobalData));
                    }
                    // A weak kfunc that is called without a check of its existence is
                    // required.
                    ExternKind::Function(_)
                        if is_call && !(known.weak && asked.contains(&wanted)) =>
                    {
                        need(Need::feature(Feature::Kfuncs));
                        need(Need::kfunc(wanted, &known.name));
                    }
                    ExternKind::Variable(_) if !known.weak => {
                        need(Need::feature(Feature::TypedKsyms));
                    }
                    _ => {}
                }
            }
            (goal @ Some(Goal::Call { .. } | Goal::Address { .. }), _)
            | (goal @ None, Insn::Call(Callee::Local(_))) => {
                let feature = match goal {
                    Some(Goal::Address { .. }) => Feature::Callbacks,
                    _ => Feature::LocalCalls,
                };
                need(Need::feature(feature));
                let callee = callee(object, code, slot, goal);
                self.callees.extend(callee);
            }
            (None, Insn::Call(Callee::Helper(number))) => need(Need::helper(number)),
            (None, _) => {
                if let Some(feature) = Feature::of(insn) {
                    need(Need::feature(feature));
                }
            }
        }
    }
}

/// Function that a slot calls or takes the address of.
fn callee(
    object: &Object<'_>,
    code: &ProgramDef<'_>,
    slot: usize,
    goal: Option<Goal>,
) -> Option<ProgramId> {
    let target = function_slot(goal, code.start + slot, code.slots().nth(slot)?.imm)?;
    let text = object.sections().text?;
    object
        .program_defs()
        .at(text, usize::try_from(target).ok()?)
}

/// Maximum offset in bytes below the frame pointer, of accesses through it and through
/// registers derived from it a few instructions before.
fn named_stack(insns: &[Insn]) -> u32 {
    let mut copies: [Option<i64>; Reg::COUNT] = [None; Reg::COUNT];
    copies[Reg::R10.index()] = Some(0);
    let mut lowest = 0;
    for insn in insns {
        if let Insn::Load { base, off, .. }
        | Insn::Store { base, off, .. }
        | Insn::Atomic { base, off, .. } = *insn
            && let Some(from) = copies[base.index()]
        {
            lowest = lowest.min(from + i64::from(off));
        }
        let made = match *insn {
            Insn::Alu {
                op: AluOp::Mov,
                dst,
                src: Operand::Reg(src),
                ..
            } => Some((dst, copies[src.index()])),
            Insn::Alu {
                op: AluOp::Add,
                dst,
                src: Operand::Imm(imm),
                ..
            } => Some((dst, copies[dst.index()].map(|from| from + i64::from(imm)))),
            _ => None,
        };
        for register in insn.writes().iter() {
            copies[register.index()] = None;
        }
        if let Some((dst, Some(at))) = made {
            copies[dst.index()] = Some(at);
            lowest = lowest.min(at);
        }
    }
    lowest.unsigned_abs().min(u64::from(u32::MAX)) as u32
}

/// True if the control flow has a cycle, by depth-first search over slots.
fn has_loop(insns: &[Insn]) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        OnPath,
        Done,
    }
    let next = |at: usize| {
        let to = |skip: i32| usize::try_from(at as i64 + 1 + i64::from(skip)).ok();
        match insns[at].flow() {
            Flow::Next | Flow::Call(_) => [to(0), None],
            Flow::SkipOne => [to(1), None],
            Flow::Branch(skip) => [to(0), to(skip)],
            Flow::Goto(skip) => [to(skip), None],
            Flow::GotoReg(_) | Flow::Exit | Flow::Nowhere => [None, None],
        }
    };
    let mut seen = vec![Seen::Never; insns.len()];
    let mut path: Vec<(usize, usize)> = Vec::new();
    if !insns.is_empty() {
        seen[0] = Seen::OnPath;
        path.push((0, 0));
    }
    while let Some((at, tried)) = path.last_mut() {
        let Some(way) = next(*at).get(*tried).copied() else {
            seen[*at] = Seen::Done;
            path.pop();
            continue;
        };
        *tried += 1;
        match way.filter(|to| *to < insns.len()) {
            Some(to) if seen[to] == Seen::OnPath => return true,
            Some(to) if seen[to] == Seen::Never => {
                seen[to] = Seen::OnPath;
                path.push((to, 0));
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::assemble;

    #[test]
    fn jumps_back_are_loops_only_if_the_walk_returns() {
        let turns = assemble("r1 = 5\nagain: r1 += -1\nif r1 != 0 goto again\nexit").unwrap();
        assert!(has_loop(&turns));
        let crossing = assemble("goto a\nb: exit\na: goto b").unwrap();
        assert!(!has_loop(&crossing));
        assert!(!has_loop(&[]));
    }

    #[test]
    fn the_stack_is_what_instructions_name() {
        let text =
            "r2 = r10\nr2 += -16\n*(u64 *)(r10 - 8) = r1\n*(u8 *)(r2 - 4) = r1\nr2 = 0\nexit";
        assert_eq!(named_stack(&assemble(text).unwrap()), 20);
        assert_eq!(named_stack(&assemble("r0 = 0\nexit").unwrap()), 0);
    }
}
