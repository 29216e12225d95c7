//! Calls of helpers that call functions of the program: a loop that fetches the next
//! callback, and local calls of it.
//!
//! A reference to a function becomes the number of a [`Callback`], by whose lower half the
//! loop tells the functions apart. A function that a timer calls becomes a program of its own
//! ([`OneFunction`]). The loop uses `r0` to `r5` only, which the call of a helper does not
//! keep either.

use std::ops::Range;

use isa::ebpf::{Callee, Cond, Imm64, Insn, Operand, Reg, Size, Width};
use spec::callback::CallbackKind;
use spec::helpers::HelperId;
use verifier::{InsnFact, PointerKind, ProgramFacts, Proof, Value};
use vm::{CallBlock, Callback, MapHandle};

use crate::LoweredCall;
use crate::construct::{branch, load, mov};
use crate::flow::call_target;

/// The functions of a program to which instructions refer.
pub(crate) struct Callbacks {
    /// Their first slots, ascending.
    functions: Vec<usize>,
}

impl Callbacks {
    /// Those of a program of these instructions.
    pub(crate) fn of(insns: &[Insn], facts: &ProgramFacts) -> Callbacks {
        let slots = insns.iter().zip(&facts.insns).enumerate();
        let referred = slots.filter_map(|(slot, (insn, fact))| match insn {
            Insn::LoadImm64 { imm, .. } if fact.is_reached => function(*imm, slot),
            _ => None,
        });
        let mut functions: Vec<usize> = referred.collect();
        functions.sort_unstable();
        functions.dedup();
        Callbacks { functions }
    }

    /// Replacement of an instruction, if it is the call of a helper that gets a
    /// function. Local calls in it are at the distances from the instruction.
    pub(crate) fn replace(
        &self,
        insn: Insn,
        slot: usize,
        fact: &InsnFact,
        facts: &ProgramFacts,
    ) -> Option<Vec<Insn>> {
        let Insn::Call(Callee::Helper(helper)) = insn else {
            return None;
        };
        let callback = HelperId::from_number(helper)?.callback()?.rules();
        if callback.is_async {
            return None;
        }
        let is_reached = |start: &usize| facts.insns[*start].is_reached;
        let callees: Vec<usize> = match fact
            .operand(callback.register)
            .and_then(|value| callee(value, facts))
        {
            // Functions that no run reaches may be removed.
            Some(start) => [start].into_iter().filter(is_reached).collect(),
            None => self.functions.iter().copied().filter(is_reached).collect(),
        };
        Some(sequence(insn, slot, &callees))
    }
}

/// The first slot of the function that a value refers to, if it is the same in every run.
fn callee(value: &Value, facts: &ProgramFacts) -> Option<usize> {
    let PointerKind::Function { subprog } = value.pointer()?.kind else {
        return None;
    };
    Some(facts.stack.get(subprog as usize)?.0 as usize)
}

/// As [`callee`], if a run reaches the function.
pub(crate) fn reached_callee(value: &Value, facts: &ProgramFacts) -> Option<usize> {
    callee(value, facts).filter(|start| facts.insns[*start].is_reached)
}

/// The first slot of the function that a 64-bit immediate refers to.
fn function(imm: Imm64, slot: usize) -> Option<usize> {
    match imm {
        Imm64::Func { off, .. } => usize::try_from(slot as i64 + 1 + i64::from(off)).ok(),
        _ => None,
    }
}

/// The number that stands for the function of a program to which a 64-bit immediate refers.
pub(crate) fn number(imm: Imm64, slot: usize, program: u32) -> Option<u64> {
    let start = function(imm, slot)?;
    let slot = u32::try_from(start).ok()?;
    Some(Callback { program, slot }.reference())
}

/// The part of that number that tells the functions of a program apart.
fn number_of(start: usize) -> i32 {
    let slot = start as u32;
    Callback { program: 0, slot }.reference() as i32
}

/// The functions of a program that timers call: their first slots.
pub fn timer_callbacks(proof: &Proof) -> Vec<u32> {
    let (insns, facts) = (proof.program().decode(), proof.facts());
    let sets = |insn: &Insn| match insn {
        Insn::Call(callee) => HelperId::of_call(*callee)
            .and_then(HelperId::callback)
            .is_some_and(CallbackKind::is_async),
        _ => false,
    };
    if !insns.iter().any(sets) {
        return Vec::new();
    }
    let found = Callbacks::of(&insns, facts).functions;
    found.into_iter().map(|slot| slot as u32).collect()
}

/// Sizes of keys and values with which the host calls a function of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntrySizes {
    /// Bytes of a key.
    pub key: usize,
    /// Bytes of a value.
    pub value: usize,
}

impl EntrySizes {
    /// Those of the maps with timers. `None` if they differ, as the functions of the timers of
    /// one map are not told from those of another, or if there is no such map.
    pub(crate) fn of_timers(maps: &[Option<MapHandle>]) -> Option<EntrySizes> {
        let maps = maps.iter().flatten();
        let mut sizes = maps
            .filter(|map| map.timers.is_some())
            .map(|map| EntrySizes {
                key: map.key_size,
                value: map.value_size,
            });
        let first = sizes.next()?;
        sizes.all(|other| other == first).then_some(first)
    }
}

/// A function as a program of its own, with the functions that it calls.
pub(crate) struct OneFunction {
    /// Replacement of the first instruction: it calls the function with the first
    /// three words of the context.
    pub(crate) entry: Vec<Insn>,
    /// Slots that stay.
    kept: Vec<Range<usize>>,
}

impl OneFunction {
    pub(crate) fn new(insns: &[Insn], facts: &ProgramFacts, slot: usize) -> OneFunction {
        let mut starts: Vec<usize> = facts
            .stack
            .iter()
            .map(|(start, _)| *start as usize)
            .collect();
        starts.push(insns.len());
        let mut kept: Vec<Range<usize>> = Vec::new();
        let mut found = vec![slot];
        while let Some(start) = found.pop() {
            let end = starts.iter().copied().find(|end| *end > start);
            let range = start..end.unwrap_or(insns.len());
            if kept.contains(&range) {
                continue;
            }
            for (slot, insn) in range.clone().zip(&insns[range.clone()]) {
                found.extend(match insn {
                    Insn::LoadImm64 { imm, .. } => function(*imm, slot),
                    _ => call_target(insn, slot),
                });
            }
            kept.push(range);
        }
        let argument = |dst, index: usize| load(dst, Reg::R1, Size::DW, 8 * index);
        let entry = vec![
            argument(Reg::R3, 2),
            argument(Reg::R2, 1),
            argument(Reg::R1, 0),
            Insn::Call(Callee::Local(slot as i32 - 1)),
            Insn::Exit,
        ];
        OneFunction { entry, kept }
    }

    /// True if the instruction at a slot belongs to the function or to one that it calls.
    pub(crate) fn keeps(&self, slot: usize) -> bool {
        self.kept.iter().any(|range| range.contains(&slot))
    }
}

/// The call at a slot with the loop behind it.
fn sequence(call: Insn, slot: usize, callees: &[usize]) -> Vec<Insn> {
    let mut insns = vec![
        call,
        mov(Reg::R1, Reg::R0),
        LoweredCall::BeginCallbacks.insn(),
    ];
    if callees.is_empty() {
        insns.push(block_field(Reg::R0, CallBlock::RESULT));
        return insns;
    }
    let start = insns.len();
    insns.push(block_field(Reg::R1, CallBlock::FUNCTION));
    let end_of_loop = insns.len();
    // Its distance is set below.
    insns.push(branch(Cond::Eq, Reg::R1, Operand::Imm(0), 0));
    for (at, reg) in [Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5]
        .iter()
        .enumerate()
    {
        insns.push(block_field(*reg, CallBlock::ARGUMENTS + 8 * at));
    }
    if callees.len() > 1 {
        insns.push(block_field(Reg::R0, CallBlock::FUNCTION));
    }
    // Each callee but the last is compared with; a call and a jump behind it are 2 slots.
    for (index, &callee) in callees.iter().enumerate() {
        let is_last = index + 1 == callees.len();
        if !is_last {
            insns.push(branch_unless(Reg::R0, number_of(callee), 2));
        }
        insns.push(Insn::Call(Callee::Local(callee as i32 - slot as i32 - 1)));
        if !is_last {
            let behind = 3 * (callees.len() - index - 2) + 1;
            insns.push(Insn::Goto { off: behind as i16 });
        }
    }
    insns.push(mov(Reg::R1, Reg::R0));
    insns.push(LoweredCall::NextCallback.insn());
    let back = start as i64 - insns.len() as i64 - 1;
    insns.push(Insn::Goto { off: back as i16 });
    insns[end_of_loop] = branch(
        Cond::Eq,
        Reg::R1,
        Operand::Imm(0),
        (insns.len() - end_of_loop - 1) as i16,
    );
    insns.push(block_field(Reg::R0, CallBlock::RESULT));
    insns
}

/// A load of a field of the block that `r0` points to.
fn block_field(dst: Reg, offset: usize) -> Insn {
    load(dst, Reg::R0, Size::DW, offset)
}

/// Compares the lower half.
fn branch_unless(dst: Reg, equal: i32, off: i16) -> Insn {
    Insn::Jump {
        cond: Cond::Ne,
        width: Width::W32,
        dst,
        src: Operand::Imm(equal),
        off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots that follow an instruction of a sequence, without those behind calls.
    fn followers(insns: &[Insn], slot: usize) -> Vec<usize> {
        let to = |off: i16| (slot as i64 + 1 + i64::from(off)) as usize;
        match insns[slot] {
            Insn::Goto { off } => vec![to(off)],
            Insn::Jump { off, .. } => vec![slot + 1, to(off)],
            _ => vec![slot + 1],
        }
    }

    #[test]
    fn every_way_through_the_loop_stays_in_it() {
        for count in 0..5 {
            let callees: Vec<usize> = (0..count).map(|index| 100 + 10 * index).collect();
            let call = Insn::Call(Callee::Helper(181));
            let insns = sequence(call, 7, &callees);
            let last = insns.len() - 1;
            assert_eq!(insns[last], block_field(Reg::R0, CallBlock::RESULT));
            let mut called = Vec::new();
            for (slot, insn) in insns.iter().enumerate() {
                assert!(followers(&insns, slot).iter().all(|next| *next <= last + 1));
                if let Insn::Call(Callee::Local(off)) = insn {
                    called.push((8 + off) as usize);
                    // The code after a call fetches the next callback.
                    let next = followers(&insns, slot + 1);
                    let next = match insns[slot + 1] {
                        Insn::Goto { .. } => next[0],
                        _ => slot + 1,
                    };
                    assert_eq!(insns[next], mov(Reg::R1, Reg::R0));
                    assert_eq!(insns[next + 1], LoweredCall::NextCallback.insn());
                }
            }
            assert_eq!(called, callees);
        }
    }
}
