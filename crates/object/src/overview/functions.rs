//! Requirements of each function, and the call graph of programs.

use std::collections::{BTreeMap, BTreeSet};

use btf::ext::CoreKind;
use isa::ebpf::{AluOp, Callee, Insn, Operand, RawInsn, Reg, Size, decode};
use program::{ExternId, MapId};
use spec::helpers::HelperId;
use spec::since::{Feature, has_loop};

use super::reach::{Known, Value, reached};
use super::{ProgramOverview, RequiredFeature, Requirement, collect, program_needs};
use crate::externs::ExternKind;
use crate::object::Object;
use crate::programs::{ProgramDef, ProgramId};
use crate::relocate::patches::{self, Goal, Patch};

/// Number of the helper bpf_tail_call.
const TAIL_CALL: i32 = HelperId::TailCall.number();
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
    /// Called functions and callbacks, with true if the call is behind a check.
    callees: Vec<(ProgramId, bool)>,
    /// Maximum offset below the frame pointer in bytes.
    stack: u32,
    relocations: usize,
    maps: BTreeSet<MapId>,
    needs: Vec<Requirement>,
}

impl Functions {
    pub(super) fn of(object: &Object<'_>) -> Functions {
        let asked = asked(object);
        let checks = Checks::of(object);
        let codes = object.program_defs().iter();
        let mut functions: Vec<Function> = codes
            .map(|(id, code)| Function::of(object, (&asked, &checks), id, code))
            .collect();
        for (id, ..) in relocated(object) {
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
            for &(callee, _) in &self.get(id).callees {
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

    /// Functions that a program reaches by calls that are not behind checks, itself first.
    fn required(&self, main: ProgramId, reached: &[ProgramId]) -> BTreeSet<ProgramId> {
        let reached: BTreeSet<ProgramId> = reached.iter().copied().collect();
        let mut required = BTreeSet::from([main]);
        let mut open = vec![main];
        while let Some(id) = open.pop() {
            let callees = self.get(id).callees.iter();
            let always =
                callees.filter(|(callee, is_guarded)| !is_guarded && reached.contains(callee));
            open.extend(
                always
                    .map(|(callee, _)| *callee)
                    .filter(|callee| required.insert(*callee)),
            );
        }
        required
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
                Some((callee, _)) => {
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
        let required = self.required(id, &reached);
        let needs_of = |id: &ProgramId| {
            let is_required = required.contains(id);
            let needs = self.get(*id).needs.iter();
            needs.map(move |need| Requirement {
                is_guarded: need.is_guarded || need.is_guardable && !is_required,
                ..*need
            })
        };
        let mut needs: Vec<Requirement> = reached.iter().flat_map(needs_of).collect();
        let jumps_on = RequiredFeature::Helper(TAIL_CALL);
        if reached.len() > 1 && needs.iter().any(|need| need.feature == jumps_on) {
            needs.push(Requirement::feature(Feature::TailCallsWithCalls));
        }
        if slots > MAX_INSNS_BEFORE_5_2 {
            needs.push(Requirement::feature(Feature::LongPrograms));
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

/// Program or function of each CO-RE relocation, its slot from the start of the section, and
/// its kind.
fn relocated<'o>(
    object: &'o Object<'_>,
) -> impl Iterator<Item = (ProgramId, usize, CoreKind)> + 'o {
    let types = object.btf().zip(object.btf_ext());
    let groups = types.into_iter().flat_map(|(types, ext)| {
        let named = move |group| (types, group);
        ext.relocations().map(named)
    });
    groups.flat_map(move |(types, group)| {
        let name = types.string(group.section);
        let section = object.elf().section_named(name.as_bytes());
        let at = move |offset: u32| object.program_defs().at(section?.id, offset as usize / 8);
        group.records().filter_map(move |relo| {
            let slot = relo.offset as usize / 8;
            Some((at(relo.offset)?, slot, relo.spec.kind))
        })
    })
}

impl Function {
    fn of(
        object: &Object<'_>,
        (asked, checks): (&Asked, &Checks),
        id: ProgramId,
        code: &ProgramDef<'_>,
    ) -> Function {
        let slots: Vec<RawInsn> = code.slots().collect();
        let insns = decode(&slots);
        let required = checks.required(object, (id, code), &insns);
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
            let (needs, callees) = (function.needs.len(), function.callees.len());
            function.take((object, asked), (id, code), (slot, *insn), patch);
            if required.as_ref().is_some_and(|required| !required[slot]) {
                for need in &mut function.needs[needs..] {
                    need.is_guarded = need.is_guardable;
                }
                for (_, is_guarded) in &mut function.callees[callees..] {
                    *is_guarded = true;
                }
            }
        }
        if has_loop(&insns) {
            function.needs.push(Requirement::feature(Feature::Loops));
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
        let mut need = |need: Requirement| {
            // What programs check for before they use it: a path that is not taken needs none
            // of it. Other parts of instructions are checked everywhere.
            let is_guardable = match need.feature {
                RequiredFeature::Feature(feature) => !feature.is_checked_in_dead_code(insn),
                _ => true,
            };
            let need = need.at(id, slot);
            self.needs.push(Requirement {
                is_guardable,
                ..need
            });
        };
        match (patch.map(|patch| patch.goal), insn) {
            (Some(Goal::Map(map)), _) => {
                self.maps.insert(map);
            }
            (Some(Goal::Value { map, .. }), _) => {
                self.maps.insert(map);
                need(Requirement::feature(Feature::GlobalData));
            }
            (Some(Goal::Constant(_) | Goal::Unlinked(_)), _) => {}
            (Some(Goal::JumpTable { .. }), _) => need(Requirement::feature(Feature::IndirectJumps)),
            (Some(Goal::ExternLoad(wanted) | Goal::ExternCall(wanted)), insn) => {
                let Some(known) = object.externs().get(wanted) else {
                    return;
                };
                let is_call = matches!(insn, Insn::Call(_));
                match known.kind {
                    ExternKind::Config(_) => {
                        self.maps.extend(object.maps().kconfig());
                        need(Requirement::feature(Feature::GlobalData));
                    }
                    // A weak kfunc that is called without a check of its existence is
                    // required.
                    ExternKind::Function(_)
                        if is_call && !(known.weak && asked.contains(&wanted)) =>
                    {
                        need(Requirement::feature(Feature::Kfuncs));
                        need(Requirement::kfunc(wanted, &known.name));
                    }
                    ExternKind::Variable(_) if !known.weak => {
                        need(Requirement::feature(Feature::TypedKsyms));
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
                need(Requirement::feature(feature));
                let callee = callee(object, code, slot, goal);
                self.callees.extend(callee.map(|callee| (callee, false)));
            }
            (None, Insn::Call(Callee::Helper(number))) => need(Requirement::helper(number)),
            (None, _) => {
                if let Some(feature) = Feature::of(insn) {
                    need(Requirement::feature(feature));
                }
            }
        }
    }
}

/// Checks of what the kernel has: CO-RE relocations that answer whether a type, field or
/// enumerator exists, by program or function and slot.
struct Checks(BTreeSet<(ProgramId, usize)>);

impl Checks {
    fn of(object: &Object<'_>) -> Checks {
        let is_check = |kind| {
            [
                CoreKind::FIELD_EXISTS,
                CoreKind::TYPE_EXISTS,
                CoreKind::TYPE_MATCHES,
                CoreKind::ENUM_VALUE_EXISTS,
            ]
            .contains(&kind)
        };
        let checks = relocated(object).filter(|(.., kind)| is_check(*kind));
        let slots = checks.filter_map(|(id, slot, _)| {
            let start = object.program_defs().get(id)?.start;
            Some((id, slot - start))
        });
        Checks(slots.collect())
    }

    /// True for each slot that a run may reach where all checks answer no; `None` if the
    /// function has none.
    fn required(
        &self,
        object: &Object<'_>,
        (id, _): (ProgramId, &ProgramDef<'_>),
        insns: &[Insn],
    ) -> Option<Vec<bool>> {
        let patches = object.patches.of(id);
        let loads_extern = |patch: &Patch| matches!(patch.goal, Goal::ExternLoad(_));
        let has_check = self.0.range((id, 0)..=(id, usize::MAX)).next().is_some();
        if !has_check && !patches.iter().any(loads_extern) {
            return None;
        }
        let known = Absent {
            object,
            checks: self,
            id,
            patches: patches
                .iter()
                .map(|patch| (patch.slot as usize, patch.goal))
                .collect(),
        };
        Some(reached(insns, &known))
    }
}

/// A kernel that has nothing that programs check for.
struct Absent<'o, 'a> {
    object: &'o Object<'a>,
    checks: &'o Checks,
    id: ProgramId,
    patches: BTreeMap<usize, Goal>,
}

impl Known for Absent<'_, '_> {
    fn written(&self, slot: usize, _: &Insn) -> Option<Value> {
        if self.checks.0.contains(&(self.id, slot)) {
            return Some(Value::Number(0));
        }
        let Goal::ExternLoad(id) = *self.patches.get(&slot)? else {
            return Some(Value::Unknown);
        };
        let known = self.object.externs().get(id);
        Some(match known.map(|known| (known.kind, known.weak)) {
            Some((ExternKind::Config(_), _)) => Value::Place {
                index: id.0,
                offset: 0,
            },
            Some((_, true)) => Value::Number(0),
            Some((_, false)) | None => Value::Unknown,
        })
    }

    /// Virtual values of the configuration, of which the oldest kernel has 0.
    fn at(&self, index: u32, offset: u32, _: Size) -> Option<u64> {
        let known = self.object.externs().get(ExternId(index))?;
        (offset == 0 && known.name.starts_with("LINUX_")).then_some(0)
    }

    fn has_functions(&self) -> bool {
        false
    }
}

/// Function that a slot calls or takes the address of.
fn callee(
    object: &Object<'_>,
    code: &ProgramDef<'_>,
    slot: usize,
    goal: Option<Goal>,
) -> Option<ProgramId> {
    let imm = code.slots().nth(slot)?.imm;
    let places = (object.program_defs(), object.sections());
    patches::callee(places, code, slot, (goal, imm))
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

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::assemble;

    #[test]
    fn the_stack_is_what_instructions_name() {
        let text =
            "r2 = r10\nr2 += -16\n*(u64 *)(r10 - 8) = r1\n*(u8 *)(r2 - 4) = r1\nr2 = 0\nexit";
        assert_eq!(named_stack(&assemble(text).unwrap()), 20);
        assert_eq!(named_stack(&assemble("r0 = 0\nexit").unwrap()), 0);
    }
}
