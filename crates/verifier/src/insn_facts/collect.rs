//! Joins what the walk sees at each instruction.

use std::collections::{BTreeMap, BTreeSet};

use isa::ebpf::{Callee, Insn, Operand, Reg};
use spec::helpers::HelperId;
use spec::maps::MapKind;

use super::coverage::{self, Flow, Uncovered};
use super::unwritten::StackUses;
use super::{
    Branch, CallFact, FunctionStack, InsnFact, PacketCheck, PointerKind, ProgramFacts, Value,
    upper_half,
};
use crate::analysis::Analysis;
use crate::env::{Env, Outcome, SubprogAux};
use crate::input::Input;
use crate::mem::MAX_STACK;
use crate::state::{Frame, LinkedReg, MapRef, RegKind, SlotKind, StateId, TypeFlags};
use crate::xlated::is_dropped;

/// Proofs of one access at most; one with more belongs to no check.
const MAX_PROOFS: usize = 32;

/// Identity of a packet pointer's variable offset, and the bytes that are proven behind
/// it.
pub(super) type Proof = (u32, i32);

/// Observations of the walk at one instruction.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    is_reached: bool,
    operands: Vec<(Reg, Value)>,
    result: Option<(Reg, Value)>,
    jumped: bool,
    passed: bool,
    accesses_object: bool,
    /// The constant that `r2` points to, joined.
    key: Option<Value>,
    proofs: BTreeSet<Proof>,
    pub(super) flow: Flow,
}

/// Collects facts while the walk goes on.
#[derive(Debug)]
pub(crate) struct Collector {
    seen: Vec<Seen>,
    uncovered: Vec<Uncovered>,
    /// Comparisons that gave a proof.
    checks: BTreeMap<Proof, BTreeSet<u32>>,
    /// Proofs of checkpoints, and of paths that they covered.
    covered: BTreeSet<(Proof, Proof)>,
    /// The packet pointer that the current instruction compares, with its proof.
    compared: Option<(Reg, Proof)>,
    stack_uses: StackUses,
    /// See [`ProgramFacts::stack`].
    pub(crate) stack: Vec<(u32, u32)>,
    /// See [`ProgramFacts::address_slots`].
    address_slots: Vec<u64>,
    /// See [`ProgramFacts::context_bytes`].
    pub(crate) context_bytes: u32,
    /// See [`ProgramFacts::compiled_stack`].
    pub(crate) compiled_stack: Vec<FunctionStack>,
}

impl Collector {
    /// A collector for a program of so many slots.
    pub(crate) fn new(slots: usize) -> Collector {
        Collector {
            seen: vec![Seen::default(); slots],
            uncovered: Vec::new(),
            checks: BTreeMap::new(),
            covered: BTreeSet::new(),
            compared: None,
            stack_uses: StackUses::default(),
            stack: Vec::new(),
            address_slots: Vec::new(),
            context_bytes: 0,
            compiled_stack: Vec::new(),
        }
    }

    /// Reads and writes of the stack.
    pub(super) fn stack_uses(&mut self) -> &mut StackUses {
        &mut self.stack_uses
    }

    /// Notes slots of a frame that may hold addresses.
    fn note_addresses(&mut self, frame: &Frame, slots: u64) {
        let subprog = frame.subprogno as usize;
        if self.address_slots.len() <= subprog {
            self.address_slots.resize(subprog + 1, 0);
        }
        self.address_slots[subprog] |= slots;
    }

    /// The facts, once every path is walked.
    pub(crate) fn finish(
        mut self,
        input: &Input<'_>,
        analysis: &Analysis,
        subprogs: &[SubprogAux],
    ) -> ProgramFacts {
        let flows: Vec<&Flow> = self.seen.iter().map(|seen| &seen.flow).collect();
        let tainted = coverage::propagate(input, analysis, &flows, &self.uncovered);
        let mut insns: Vec<InsnFact> = Vec::with_capacity(self.seen.len());
        for (index, seen) in self.seen.iter().enumerate() {
            insns.push(match seen.is_reached {
                true => fact(input, index, seen, &tainted[index]),
                false => InsnFact::default(),
            });
        }
        upper_half::mark_upper_halves(input, analysis, &mut insns);
        for (slot, fact) in insns.iter_mut().enumerate() {
            fact.is_fastcall_spill = fact.is_reached && is_dropped(analysis, subprogs, slot);
        }
        let stack_uses = std::mem::take(&mut self.stack_uses);
        ProgramFacts {
            unwritten_reads: stack_uses.finish(input, analysis, &insns),
            packet_checks: self.packet_checks(),
            address_slots: {
                self.address_slots.resize(self.stack.len(), 0);
                self.address_slots
            },
            stack: self.stack,
            context_bytes: self.context_bytes,
            compiled_stack: self.compiled_stack,
            prologue: 0,
            insns,
        }
    }

    /// Groups accesses by the one comparison that proves them.
    fn packet_checks(&mut self) -> Vec<PacketCheck> {
        // What proved a covered path proves the paths behind its checkpoint.
        loop {
            let mut changed = false;
            for (checkpoint, path) in &self.covered {
                let more = self.checks.get(path).cloned().unwrap_or_default();
                let known = self.checks.entry(*checkpoint).or_default();
                let before = known.len();
                known.extend(more);
                changed |= known.len() != before;
            }
            if !changed {
                break;
            }
        }
        let mut groups: BTreeMap<u32, PacketCheck> = BTreeMap::new();
        for (index, seen) in (0..).zip(&self.seen) {
            if seen.proofs.is_empty() || seen.proofs.len() > MAX_PROOFS {
                continue;
            }
            let checks = seen.proofs.iter().flat_map(|proof| self.checks.get(proof));
            let checks: BTreeSet<u32> = checks.flatten().copied().collect();
            let proven = seen.proofs.iter().map(|(_, range)| *range as u32).min();
            let (1, Some(&check), Some(proven)) = (checks.len(), checks.first(), proven) else {
                continue;
            };
            let group = groups.entry(check).or_insert(PacketCheck {
                insn: check,
                proven,
                accesses: Vec::new(),
            });
            group.proven = group.proven.min(proven);
            group.accesses.push(index);
        }
        groups.into_values().collect()
    }
}

/// The facts of one instruction, with ranges only of scalars that no uncovered value
/// reaches.
fn fact(input: &Input<'_>, index: usize, seen: &Seen, tainted: &coverage::Tainted) -> InsnFact {
    let insn = input.insns[index];
    let kept = |reg: Reg, value: &Value, mask: u16| match mask >> reg.number() & 1 {
        0 => (reg, *value),
        _ => (reg, value.without_range()),
    };
    let before = |(reg, value): &(Reg, Value)| kept(*reg, value, tainted.before.regs);
    let operands: Vec<(Reg, Value)> = seen.operands.iter().map(before).collect();
    let result = seen.result.as_ref();
    let result = result.map(|(reg, value)| kept(*reg, value, tainted.after.regs));
    let access = insn.access().and_then(|access| {
        let base = operands.iter().find(|(reg, _)| *reg == access.base);
        base.map(|(_, value)| value.offset_by(access.off))
    });
    InsnFact {
        is_reached: true,
        result,
        branch: match (insn, seen.jumped, seen.passed) {
            (Insn::Jump { .. }, true, false) => Some(Branch::Always),
            (Insn::Jump { .. }, false, true) => Some(Branch::Never),
            (Insn::Jump { .. }, _, _) => Some(Branch::Both),
            _ => None,
        },
        access,
        accesses_object: seen.accesses_object,
        call: matches!(insn, Insn::Call(Callee::Helper(_)))
            .then(|| call_fact(input, &operands, seen, tainted)),
        operands,
        ..InsnFact::default()
    }
}

fn call_fact(
    input: &Input<'_>,
    operands: &[(Reg, Value)],
    seen: &Seen,
    tainted: &coverage::Tainted,
) -> CallFact {
    let first = operands.iter().find(|(reg, _)| *reg == Reg::R1);
    let map: Option<MapRef> = first.and_then(|(_, value)| {
        let PointerKind::Map(map) = value.pointer()?.kind else {
            return None;
        };
        Some(map)
    });
    let is_covered = tainted.before.slots & seen.flow.key_slots == 0;
    let key = seen.key.filter(|_| map.is_some() && is_covered);
    // Keys of arrays have four bytes.
    let key = key.and_then(|key| key.constant());
    let key = key.map(|key| u64::from(key as u32));
    let is_key_in_bounds = map.zip(key).is_some_and(|(map, key)| {
        let map = &input.maps[map];
        let is_dense = map.kind().is_some_and(MapKind::is_dense);
        is_dense && key < map.max_entries().into()
    });
    CallFact {
        map,
        key,
        is_key_in_bounds,
    }
}

/// Notes the state before an instruction that was not pruned.
pub(crate) fn enter(env: &mut Env<'_>) {
    let Some(mut collector) = env.observers.collector.take() else {
        return;
    };
    let index = env.sink.insn_idx as usize;
    let insn = env.input.insns[index];
    let frame = env.state.cur();
    let number = env.state.curframe;
    let seen = &mut collector.seen[index];
    let is_first = !seen.is_reached;
    seen.is_reached = true;
    // Calls read only some of the registers that could be arguments. A checkpoint covers
    // anything in the others, which are dead.
    let live = env.analysis.insns[index].live_regs;
    let is_live = |reg: &Reg| live >> reg.number() & 1 != 0;
    for reg in insn.reads().iter().filter(is_live) {
        let state = &frame[reg];
        let value = Value::of(state, number);
        let known = seen
            .operands
            .iter()
            .position(|(operand, _)| *operand == reg);
        match known {
            Some(known) if state.kind == RegKind::NotInit => {
                seen.operands.remove(known);
            }
            Some(known) => seen.operands[known].1 = seen.operands[known].1.join(&value),
            None if is_first && state.kind != RegKind::NotInit => seen.operands.push((reg, value)),
            None => {}
        }
    }
    if let Some(access) = insn.access() {
        let base = &frame[access.base];
        let is_untrusted = base.flags.has(TypeFlags::PTR_UNTRUSTED);
        seen.accesses_object |= is_untrusted || Value::of(base, number).is_object();
        seen.flow
            .note_stack(base, access.off, access.size.bytes(), number);
        if let Some(range) = base.kind.packet_range()
            && seen.proofs.len() <= MAX_PROOFS
        {
            seen.proofs.insert((base.id, range));
        }
    }
    if let Insn::Call(Callee::Helper(helper)) = insn {
        note_key(seen, env, frame);
        seen.accesses_object |= writes_object(helper, frame);
    }
    if let (Some(Operand::Reg(src)), Some(access)) = (insn.stored(), insn.access())
        && let RegKind::Stack { frame: owner } = frame[access.base].kind
        && !frame[src].is_scalar()
    {
        let slots = coverage::slots_accessed(&frame[access.base], access.off, access.size.bytes());
        collector.note_addresses(env.state.frame(owner as usize), slots);
    }
    collector.compared = compared(insn, frame);
    env.observers.collector = Some(collector);
}

/// True if a helper writes into an object that the program allocated: takes its lock, or exchanges
/// a pointer in it.
fn writes_object(helper: i32, frame: &Frame) -> bool {
    let writes = HelperId::from_number(helper)
        .is_some_and(|helper| helper.is_of_lock() || helper == HelperId::KptrXchg);
    writes && frame[Reg::R1].is_allocated()
}

/// Notes that the instruction may access memory that need not be there.
pub(crate) fn note_object(env: &mut Env<'_>) {
    let insn = env.sink.insn_idx as usize;
    if let Some(collector) = &mut env.observers.collector {
        collector.seen[insn].accesses_object = true;
    }
}

/// Notes slots of a frame in which a call keeps addresses.
pub(crate) fn note_addresses(env: &mut Env<'_>, frame: usize, slots: u64) {
    if let Some(collector) = &mut env.observers.collector {
        collector.note_addresses(env.check.state.frame(frame), slots);
    }
}

/// The packet pointer that an instruction compares, with its proof.
fn compared(insn: Insn, frame: &Frame) -> Option<(Reg, Proof)> {
    let Insn::Jump {
        dst,
        src: Operand::Reg(src),
        ..
    } = insn
    else {
        return None;
    };
    let is_end = |reg: Reg| frame[reg].kind == RegKind::PacketEnd;
    let proof_of = |reg: Reg| {
        let range = frame[reg].kind.packet_range()?;
        Some((reg, (frame[reg].id, range)))
    };
    match (proof_of(dst), proof_of(src)) {
        // Metadata is compared with the start of the packet.
        (Some(meta), Some(_)) if matches!(frame[dst].kind, RegKind::PacketMeta { .. }) => {
            Some(meta)
        }
        (Some(_), Some(meta)) => Some(meta),
        (Some(pointer), None) if is_end(src) => Some(pointer),
        (None, Some(pointer)) if is_end(dst) => Some(pointer),
        _ => None,
    }
}

/// Joins the key that `r2` points to.
fn note_key(seen: &mut Seen, env: &Env<'_>, frame: &Frame) {
    let mut size = 0;
    if let RegKind::MapPtr { map, .. } = frame[Reg::R1].kind {
        size = env.input.maps[map].key_size();
    }
    let found = stack_constant(frame, env.state.curframe, size);
    let (value, slots) = found.unwrap_or((Value::Mixed, 0));
    seen.flow.key_slots |= slots;
    seen.key = Some(seen.key.map_or(value, |known| known.join(&value)));
}

/// The constant of that size that `r2` points to on the function's own stack, with its
/// slot.
fn stack_constant(frame: &Frame, number: usize, size: u32) -> Option<(Value, u64)> {
    let reg = &frame[Reg::R2];
    let is_own = reg.kind
        == RegKind::Stack {
            frame: number as u32,
        };
    let off = i64::from(reg.off).checked_add(reg.num.as_const()? as i64)?;
    if !is_own || !matches!(size, 4 | 8) || !(-MAX_STACK..0).contains(&off) {
        return None;
    }
    let spi = ((-off - 1) / 8) as usize;
    // The byte at the lowest address is the last one; the key begins `skip` bytes above.
    let skip = (off + 8 * (spi as i64 + 1)) as usize;
    let slot = frame.stack.get(spi)?;
    let end = 8usize.checked_sub(skip + size as usize)?;
    let kinds = &slot.kinds[end..8 - skip];
    let value = if kinds.iter().all(|kind| *kind == SlotKind::Zero) {
        0
    } else if slot.is_spilled_scalar() && kinds.iter().all(|kind| *kind == SlotKind::Spill) {
        let value = slot.reg.num.as_const()? >> (8 * skip);
        value & (u64::MAX >> (64 - 8 * size))
    } else {
        return None;
    };
    let value = Value::Scalar(crate::domain::Scalar::constant(value));
    Some((value, 1 << spi))
}

/// Notes the state after an instruction was checked.
pub(crate) fn leave(env: &mut Env<'_>, insn_idx: u32, outcome: Outcome) {
    let Some(mut collector) = env.observers.collector.take() else {
        return;
    };
    let insn = env.input.insns[insn_idx as usize];
    let fork = env.forked.last().map(|fork| &fork.state);
    let has_forked = fork.is_some();
    let seen = &mut collector.seen[insn_idx as usize];
    // A call that forks returns one thing or the other.
    let forked = (env.forked.last()).filter(|fork| fork.insn_idx == insn_idx + 1);
    let forked = forked.filter(|_| matches!(insn, Insn::Call(_)));
    let main = matches!(outcome, Outcome::Next | Outcome::NextWide).then_some(&env.state);
    for state in main.into_iter().chain(forked.map(|fork| &fork.state)) {
        let Some(reg) = written(insn).filter(|reg| state.reg(*reg).kind != RegKind::NotInit) else {
            continue;
        };
        let value = Value::of(state.reg(reg), state.curframe);
        let known = seen.result.map(|(_, known)| known.join(&value));
        seen.result = Some((reg, known.unwrap_or(value)));
    }
    if let Insn::Jump { .. } = insn {
        seen.jumped |= has_forked || matches!(outcome, Outcome::Jump(_));
        seen.passed |= has_forked || outcome == Outcome::Next;
        if let Some(entry) = env.history_entry() {
            for linked in entry.linked.iter() {
                seen.flow.note_linked(linked, env.state.curframe);
            }
        }
    }
    if let Some((reg, before)) = collector.compared.take() {
        for state in [Some(&env.state), fork].into_iter().flatten() {
            let pointer = state.reg(reg);
            if let Some(range) = pointer.kind.packet_range()
                && range > 0
                && range != before.1
            {
                let checks = collector.checks.entry((pointer.id, range)).or_default();
                checks.insert(insn_idx);
            }
        }
    }
    if env.input.allow_uninit_stack {
        collector.stack_uses.leave(insn_idx, &insn);
    }
    env.observers.collector = Some(collector);
}

/// The register whose value after an instruction is a fact.
fn written(insn: Insn) -> Option<Reg> {
    match insn {
        Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. }) => Some(Reg::R0),
        Insn::Call(Callee::Local(_)) | Insn::CallReg { .. } => None,
        Insn::PacketAbs { .. } | Insn::PacketInd { .. } => Some(Reg::R0),
        _ => insn.writes().iter().next(),
    }
}

/// Notes what a checkpoint does not cover of the path that it ends.
pub(crate) fn pruned(env: &mut Env<'_>, id: StateId) {
    let Some(mut collector) = env.observers.collector.take() else {
        return;
    };
    let checkpoint = env.explorer.checkpoint(id);
    let found = coverage::compare(env.analysis, checkpoint, &env.state, env.id_gen);
    collector.uncovered.extend(found.uncovered);
    collector.covered.extend(found.covered);
    if env.input.allow_uninit_stack {
        collector.stack_uses.prune(checkpoint, &env.state);
    }
    env.observers.collector = Some(collector);
}

impl Flow {
    /// Notes a register or slot that a comparison refines with its operands.
    fn note_linked(&mut self, linked: LinkedReg, curframe: usize) {
        match linked {
            LinkedReg::Reg { frame, reg } if frame == curframe => self.linked_regs |= 1 << reg,
            LinkedReg::Slot { frame, spi } if frame == curframe => self.linked_slots |= 1 << spi,
            _ => self.links_elsewhere = true,
        }
    }
}
