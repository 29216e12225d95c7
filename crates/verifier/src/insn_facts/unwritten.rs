//! Reads of stack memory that the program may not have written.
//!
//! Linux lets callers with CAP_PERFMON read such bytes (`allow_uninit_stack`); they hold what
//! was there before. The walk sees most of these reads itself: a byte is [`SlotKind::Invalid`].
//! Three things hide the others, each of which makes bytes *possibly unwritten* at an
//! instruction:
//!
//! * a path is pruned at a checkpoint whose live slots were written, and its own were not;
//! * a store at a variable offset writes some of the bytes that it may reach, and all count as
//!   written from then on;
//! * a call that fills memory of variable size, or may write memory, likewise, and a helper that
//!   writes a part of its memory ([`Filling::Part`]).
//!
//! A forward data flow over the control-flow graph carries possibly unwritten bytes of the
//! function's own frame from there to the instructions that read them; stores at fixed offsets
//! end it. Call contexts are merged. A read of another function's frame counts if the bytes are
//! possibly unwritten at any call of that function.
//!
//! A helper that writes nothing if it fails ([`Filling::OnSuccess`]) makes bytes possibly unwritten
//! until a comparison proves that it succeeded. The flow keeps the bytes of each such call apart
//! ([`Place`]), with the registers that are negative as long as the call has failed
//! ([`Negative`]). Bytes that come to such a call, from wherever, are its own from then on: it
//! succeeds and writes them, or fails. Results that a program keeps on its stack, or returns
//! from a function, are not followed.
//!
//! Complexity: linear in the bytes of an access while the walk goes on; the flow is linear in
//! the instructions for each byte, and does not run without possibly unwritten bytes. Keeping the
//! calls apart takes [`MAX_STEPS_OF_CALLS`] steps at most.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isa::ebpf::{Insn, Reg};
use spec::helpers::Filling;

use super::{Branch, InsnFact};
use crate::analysis::Analysis;
use crate::env::Env;
use crate::explore::Checkpoint;
use crate::input::Input;
use crate::mem::{MAX_STACK, STACK_END};
use crate::state::{Frame, RegKind, RegState, StackSlot, State};

mod bytes;
mod negative;

use bytes::FrameBytes;
use negative::{Edge, Negative};

/// No instruction.
const NONE: u32 = u32::MAX;

/// Steps of the flow that keep the bytes of failed calls apart. Behind them, bytes stay possibly
/// unwritten whatever is known of the call.
const MAX_STEPS_OF_CALLS: u32 = 1 << 18;

/// Where possibly unwritten bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Before this instruction.
    insn: u32,
    /// They are unwritten only if the last call at this instruction has failed.
    call: Option<u32>,
}

/// Bytes that the flow carries, and what is known there if they are unwritten.
type Carried = (FrameBytes, Negative);

/// What an instruction does with the stack, over all visits.
#[derive(Clone, Debug, Default)]
struct StackUse {
    /// Bytes of its own function's frame that it may read.
    reads: FrameBytes,
    /// Bytes that it may read of frames of functions, by their number.
    other_reads: BTreeMap<u32, FrameBytes>,
    /// Bytes of its own function's frame that it writes on every visit.
    writes: FrameBytes,
    /// Bytes of its own function's frame that it writes on every visit if it does not fail.
    fills: FrameBytes,
    /// It was visited to the end.
    was_left: bool,
}

/// Reads and writes of the stack, as the walk sees them.
#[derive(Clone, Debug, Default)]
pub(super) struct StackUses {
    by_insn: BTreeMap<u32, StackUse>,
    /// Bytes of its own function's frame that the instruction writes which is being checked.
    now: FrameBytes,
    /// Bytes that this instruction may leave unwritten.
    unfilled: FrameBytes,
    /// Those of them that it writes if it does not fail.
    filled: FrameBytes,
    /// Bytes of the function's own frame that are possibly unwritten after a call that fails.
    on_failure: BTreeMap<u32, FrameBytes>,
    /// Instructions that read bytes which were not written on their path.
    seen: BTreeSet<u32>,
    /// Bytes of the function's own frame that are possibly unwritten before an instruction.
    possibly: BTreeMap<u32, FrameBytes>,
}

impl StackUses {
    /// Notes the end of a visit.
    pub(super) fn leave(&mut self, at: u32, insn: &Insn) {
        let may_write = matches!(
            insn,
            Insn::Store { .. } | Insn::StoreRelease { .. } | Insn::Atomic { .. } | Insn::Call(_)
        );
        if !may_write {
            return;
        }
        let unfilled = std::mem::take(&mut self.unfilled);
        let now = std::mem::take(&mut self.now).without(&unfilled);
        let filled = std::mem::take(&mut self.filled);
        let known = self.by_insn.entry(at).or_default();
        (known.writes, known.fills) = match known.was_left {
            true => (
                known.writes.intersection(&now),
                known.fills.intersection(&filled),
            ),
            false => (now, filled),
        };
        known.was_left = true;
    }

    fn add(&mut self, insn: u32, bytes: FrameBytes) {
        if !bytes.is_empty() {
            let known = self.possibly.entry(insn).or_default();
            *known = known.union(&bytes);
        }
    }

    /// Notes bytes of a path that were not written, where those of its checkpoint were.
    pub(super) fn prune(&mut self, checkpoint: &Checkpoint, cur: &State) {
        let old = checkpoint.state();
        for number in 0..=old.curframe {
            let (old_frame, cur_frame) = (old.frame(number), cur.frame(number));
            let mut bytes = FrameBytes::default();
            for (spi, slot) in old_frame.stack.iter().enumerate() {
                if checkpoint.dead_slots(number) >> spi & 1 != 0 {
                    continue;
                }
                let cur = cur_frame.stack.get(spi);
                let cur = cur.map_or(StackSlot::INVALID.kinds, |cur| cur.kinds);
                if !cur.iter().any(|kind| kind.is_empty()) {
                    continue;
                }
                for (byte, kind) in slot.kinds.iter().enumerate() {
                    if cur[byte].is_empty() && !kind.is_empty() {
                        bytes.insert(-((spi * 8 + byte) as i32) - 1);
                    }
                }
            }
            let insn = old.frame_insn_idx(number);
            self.add(insn, bytes);
            if number != old.curframe {
                // The caller goes on behind the call; a helper may call its callback again.
                self.add(insn + 1, bytes);
            }
        }
    }

    /// The instructions that may read bytes which the program never wrote, ascending.
    pub(super) fn finish(
        self,
        input: &Input<'_>,
        analysis: &Analysis,
        insns: &[InsnFact],
    ) -> Vec<u32> {
        if self.possibly.is_empty() && self.on_failure.is_empty() {
            return self.seen.into_iter().collect();
        }
        let unwritten = self.spread(input, analysis, insns);
        let at_calls: Vec<FrameBytes> = (analysis.subprogs.iter())
            .map(|subprog| at_calls(input, &unwritten, subprog.start..subprog.end))
            .collect();
        let mut reads = self.seen;
        for (&insn, used) in &self.by_insn {
            let own = unwritten
                .get(&insn)
                .is_some_and(|bytes| !bytes.intersection(&used.reads).is_empty());
            let mut others = used.other_reads.iter();
            let is_read = own
                || others.any(|(subprog, bytes)| {
                    let at_calls = at_calls.get(*subprog as usize);
                    at_calls.is_some_and(|at_calls| !at_calls.intersection(bytes).is_empty())
                });
            if is_read {
                reads.insert(insn);
            }
        }
        reads.into_iter().collect()
    }

    /// The possibly unwritten bytes before each instruction that has some.
    fn spread(
        &self,
        input: &Input<'_>,
        analysis: &Analysis,
        insns: &[InsnFact],
    ) -> BTreeMap<u32, FrameBytes> {
        let mut before: BTreeMap<Place, Carried> = BTreeMap::new();
        let mut steps_of_calls = 0;
        let possibly = self.possibly.iter().map(|(&insn, bytes)| {
            let place = Place { insn, call: None };
            (place, (*bytes, Negative::EMPTY))
        });
        let failures = self.on_failure.iter();
        let failures = failures.map(|(call, bytes)| failed(*call, *bytes));
        let mut open: Vec<(Place, Carried)> = possibly.chain(failures).collect();
        while let Some((mut place, carried)) = open.pop() {
            let reached = insns.get(place.insn as usize);
            let Some(fact) = reached.filter(|fact| fact.is_reached) else {
                continue;
            };
            if steps_of_calls == MAX_STEPS_OF_CALLS {
                place.call = None;
            }
            let (mut all, known) = (carried, before.get(&place));
            if let Some(known) = known {
                all = (known.0.union(&all.0), known.1.intersection(all.1));
            }
            if place.call.is_none() {
                all.1 = Negative::EMPTY;
            }
            if known == Some(&all) {
                continue;
            }
            before.insert(place, all);
            steps_of_calls += u32::from(place.call.is_some());
            if place.call.is_some() && all.1 == Negative::EMPTY {
                // No comparison can prove the success any more.
                open.push((
                    Place {
                        call: None,
                        ..place
                    },
                    all,
                ));
                continue;
            }
            let insn = &input.insns[place.insn as usize];
            let successors = analysis.successors[place.insn as usize];
            self.pass(insn, fact, (place, all), successors, &mut open);
            // A jump by a table has nothing but these.
            for &next in analysis.jump_tables.get(&place.insn).into_iter().flatten() {
                let place = Place {
                    insn: next,
                    ..place
                };
                open.push((place, all));
            }
        }
        let mut bytes = BTreeMap::new();
        for (place, carried) in before {
            let known: &mut FrameBytes = bytes.entry(place.insn).or_default();
            *known = known.union(&carried.0);
        }
        bytes
    }

    /// Carries bytes over an instruction to what may come next.
    fn pass(
        &self,
        insn: &Insn,
        fact: &InsnFact,
        (place, (bytes, negative)): (Place, Carried),
        successors: [u32; 2],
        open: &mut Vec<(Place, Carried)>,
    ) {
        let mut after = bytes;
        let mut call = place.call;
        if let Some(used) = self.by_insn.get(&place.insn) {
            let left = bytes.without(&used.writes);
            after = left.without(&used.fills);
            if after != left {
                open.push(failed(place.insn, left.intersection(&used.fills)));
            }
        }
        if call == Some(place.insn) {
            // What it leaves of an earlier call of its own.
            call = None;
        }
        if after.is_empty() {
            return;
        }
        let success = call.and_then(|_| negative.success(insn, fact));
        let never = match fact.branch {
            Some(Branch::Always) => Some(Edge::Next),
            Some(Branch::Never) => Some(Edge::Target),
            Some(Branch::Both) | None => None,
        };
        let carried = match call {
            Some(_) => (after, negative.after(insn, fact)),
            None => (after, Negative::EMPTY),
        };
        for (edge, next) in [Edge::Next, Edge::Target].into_iter().zip(successors) {
            if next != NONE && success != Some(edge) && never != Some(edge) {
                open.push((Place { insn: next, call }, carried));
            }
        }
    }
}

/// The bytes behind a call that it leaves unwritten if it fails.
fn failed(call: u32, bytes: FrameBytes) -> (Place, Carried) {
    let place = Place {
        insn: call + 1,
        call: Some(call),
    };
    (place, (bytes, Negative::RESULT))
}

/// The bytes of a function's frame that are possibly unwritten at a call that it makes.
fn at_calls(
    input: &Input<'_>,
    unwritten: &BTreeMap<u32, FrameBytes>,
    function: Range<u32>,
) -> FrameBytes {
    let in_function = unwritten.range(function);
    let calls = in_function.filter(|(insn, _)| {
        let insn = input.insns[**insn as usize];
        matches!(insn, Insn::Call(_) | Insn::CallReg { .. })
    });
    calls.fold(FrameBytes::default(), |all, (_, bytes)| all.union(bytes))
}

/// The collected uses of the stack, if the walk may read what it did not write.
fn collecting<'w>(env: &'w mut Env<'_>) -> Option<&'w mut StackUses> {
    if !env.input.allow_uninit_stack || env.state.speculative {
        return None;
    }
    Some(env.observers.collector.as_mut()?.stack_uses())
}

/// The bytes of a frame from `min` on, before `end`, that were not written on this path.
fn unwritten_in(frame: &Frame, min: i32, end: i32) -> FrameBytes {
    let mut bytes = FrameBytes::default();
    for offset in min.max(STACK_END)..end.min(0) {
        let bit = (-offset - 1) as usize;
        let slot = frame.stack.get(bit / 8);
        if slot.is_none_or(|slot| slot.kinds[bit % 8].is_empty()) {
            bytes.insert(offset);
        }
    }
    bytes
}

/// Notes that a call, or a load at a variable offset, reads bytes of a frame, from `min` on,
/// before `end`, or some of them.
pub(crate) fn note_range_read(env: &mut Env<'_>, frame: usize, min: i32, end: i32) {
    if env.observers.collector.is_none() {
        return;
    }
    note_stack_read(env, frame, min, end);
    if let Insn::Call(_) = env.input.insns[env.sink.insn_idx as usize] {
        note_reads_of_texts(env, frame, min, end);
    }
}

/// Notes that the instruction reads bytes of a frame, from `min` on, before `end`, or some of
/// them.
pub(crate) fn note_stack_read(env: &mut Env<'_>, frame: usize, min: i32, end: i32) {
    if env.observers.collector.is_none() {
        return;
    }
    let (insn, is_own) = (env.sink.insn_idx, frame == env.state.curframe);
    let subprog = env.state.frame(frame).subprogno;
    let is_unwritten = !unwritten_in(env.state.frame(frame), min, end).is_empty();
    let Some(uses) = collecting(env) else {
        return;
    };
    if is_unwritten {
        uses.seen.insert(insn);
    }
    let known = uses.by_insn.entry(insn).or_default();
    let reads = match is_own {
        true => &mut known.reads,
        false => known.other_reads.entry(subprog).or_default(),
    };
    *reads = reads.union(&FrameBytes::of_range(min, end));
}

/// Notes that a call may read `size` bytes behind a pointer to a frame, or fewer.
pub(crate) fn note_read_behind(env: &mut Env<'_>, ptr: &RegState, frame: usize, size: u64) {
    let fixed = i64::from(ptr.off);
    let min = ptr.num.smin.saturating_add(fixed).max(-MAX_STACK);
    let max = ptr.num.smax.saturating_add(fixed).min(0);
    let end = max.saturating_add_unsigned(size).min(0);
    note_stack_read(env, frame, min as i32, end as i32);
}

/// Notes that a call reads nothing of the stack: memory that it is given is scratch.
pub(crate) fn note_scratch(env: &mut Env<'_>) {
    let insn = env.sink.insn_idx;
    let Some(uses) = collecting(env) else {
        return;
    };
    uses.seen.remove(&insn);
    if let Some(used) = uses.by_insn.get_mut(&insn) {
        used.reads = FrameBytes::default();
        used.other_reads.clear();
    }
}

/// Notes that a call may read what pointers to the stack lead to that bytes of a frame hold, from
/// `min` on, before `end`: arguments of texts.
fn note_reads_of_texts(env: &mut Env<'_>, frame: usize, min: i32, end: i32) {
    let slots = &env.state.frame(frame).stack;
    let range = (min.max(STACK_END)..end.min(0)).map(|offset| (-offset - 1) as usize / 8);
    let spilled: Vec<(RegState, u32)> = (range.collect::<BTreeSet<_>>().into_iter())
        .filter_map(|spi| match slots.get(spi)?.reg {
            reg @ RegState {
                kind: RegKind::Stack { frame },
                ..
            } => Some((reg, frame)),
            _ => None,
        })
        .collect();
    for (reg, frame) in spilled {
        note_read_behind(env, &reg, frame as usize, u64::MAX);
    }
}

/// Notes that the instruction writes bytes of a frame, from `min` on, before `end`.
pub(crate) fn note_stack_write(env: &mut Env<'_>, frame: usize, min: i32, end: i32) {
    if frame == env.state.curframe
        && let Some(uses) = collecting(env)
    {
        uses.now = uses.now.union(&FrameBytes::of_range(min, end));
    }
}

/// Notes that a helper, which is about to be checked as one that writes `size` bytes behind a
/// pointer to the stack, may leave some of them unwritten.
pub(crate) fn note_filling(env: &mut Env<'_>, ptr: Reg, size: i32, filling: Filling) {
    let reg = *env.reg(ptr);
    let (RegKind::Stack { frame }, Some(start)) = (reg.kind, reg.num.as_const()) else {
        return;
    };
    let frame = frame as usize;
    let min = (start as i32).wrapping_add(reg.off);
    let end = min.saturating_add(size);
    let first = match filling {
        Filling::Text => min + 1,
        Filling::Whole | Filling::OnSuccess | Filling::Part => min,
    };
    match filling {
        Filling::Whole => return,
        Filling::OnSuccess if frame == env.state.curframe => {
            let bytes = unwritten_in(env.state.frame(frame), min, end);
            let insn = env.sink.insn_idx;
            if let Some(uses) = collecting(env) {
                let known = uses.on_failure.entry(insn).or_default();
                *known = known.union(&bytes);
                if known.is_empty() {
                    uses.on_failure.remove(&insn);
                }
            }
        }
        Filling::OnSuccess | Filling::Text | Filling::Part => {
            note_possible_stack_write(env, frame, first, end);
        }
    }
    if frame == env.state.curframe
        && let Some(uses) = collecting(env)
    {
        uses.unfilled = FrameBytes::of_range(first, end);
        if filling == Filling::OnSuccess {
            uses.filled = uses.unfilled;
        }
    }
}

/// Notes that the instruction writes some bytes of a frame, from `min` on, before `end`, of which
/// all count as written from then on.
pub(crate) fn note_possible_stack_write(env: &mut Env<'_>, frame: usize, min: i32, end: i32) {
    if env.observers.collector.is_none() {
        return;
    }
    let bytes = unwritten_in(env.state.frame(frame), min, end);
    // The function goes on behind this instruction, a caller behind its call.
    let insn = match frame == env.state.curframe {
        true => env.sink.insn_idx,
        false => env.state.frame_insn_idx(frame),
    };
    if let Some(uses) = collecting(env) {
        uses.add(insn, bytes);
        uses.add(insn + 1, bytes);
    }
}
