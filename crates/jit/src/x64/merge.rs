//! If-conversion of packet filters: merged branches.
//!
//! In mixed traffic the branches of a capture filter cannot be predicted. Consecutive tests
//! that fail to the same target are merged if what lies between can be computed
//! unconditionally: each records its failure by a conditional move, and one jump behind the
//! last one tests for any. Alternatives (one of several protocols, one of two ports) are
//! merged likewise. Where a result follows directly, the recorded failure masks it.
//!
//! Branches are merged in the version of the code without bounds checks (see `packet.rs`).
//! Loads are then executed speculatively; if one lies outside the packet, the other version
//! runs from the start. eBPF programs are not changed: their compilers choose between jumps
//! and conditional moves themselves.
//!
//! Cost: a search looks at no more than [`MOST_SLOTS`] instructions for each load and branch
//! that is not merged yet.

use std::mem;

use isa::ebpf::{AluOp, Cond, Effect, Insn, Operand, Reg, Size, Width};

use super::asm::{Alu, Unary};
use super::buffer::Label;
use super::frame::{OUTCOME, SCRATCH};
use super::generator::{Flags, Generator};
use super::reg::{Cc, Gpr, Mem};
use crate::Optimization;
use crate::analysis::Halves;

/// Slots that may be merged, from the first load on: the instructions that a failed test
/// would have skipped must cost less than a misprediction.
const MOST_SLOTS: usize = 24;
/// Number of tests from which on merging is profitable.
const FEWEST: usize = 2;

/// Tests that are being merged.
#[derive(Clone, Copy)]
pub(super) struct Merged {
    /// Target slot if a test fails.
    fail: usize,
    /// Slot of the last test.
    last: usize,
    /// Register that is nonzero after a failed test.
    failed: Gpr,
    /// True if `failed` is initialised.
    is_initialised: bool,
    /// Register for alternatives: nonzero until one of them held, then the value of
    /// `failed`.
    none_held: Gpr,
    /// True within alternatives.
    in_alternatives: bool,
    /// Slot up to which loads at the index register are within bounds.
    reach: Option<usize>,
}

/// The outcome of merged tests.
#[derive(Clone, Copy)]
pub(super) struct MergedOutcome {
    /// Register that is zero if no test failed.
    failed: Gpr,
    /// Condition, of a comparison with 0, on which the branch of the last test is taken.
    taken: Cc,
}

/// Tests that can be merged.
#[derive(Clone, Copy)]
struct MergeCandidate {
    count: usize,
    /// Target slot if a test fails.
    fail: usize,
    /// Slot of the last test.
    last: usize,
    /// Registers that are written after the first test.
    written: Halves,
    /// Number of the last alternatives that jump to their common target.
    incoming_jumps: usize,
}

impl Generator<'_> {
    /// True if the function can be restarted at any point. A classic program can if nothing
    /// is live-in at its first instruction and it consumes no budget: conversion
    /// initialises scratch memory that is read before it is written.
    pub(super) fn is_restartable(&self) -> bool {
        self.filters_packets
            && self.facts[self.function.start].live_in().regs() == 0
            && !self.usage.loops
    }

    /// Starts merging the tests from a slot on, if there are several.
    pub(super) fn merge_from(&mut self, slot: usize) {
        if slot >= self.merges_from && self.merged.is_none() {
            self.merged = self.tests_from(slot);
            if self.merged.is_some() {
                self.applies(Optimization::MergedBranches);
            }
        }
    }

    fn tests_from(&mut self, start: usize) -> Option<Merged> {
        let end = self.function.end.min(start + MOST_SLOTS);
        let mut found: Option<MergeCandidate> = None;
        // Registers written, and whether a word is loaded, after the last test.
        let mut written = Halves::NONE;
        let mut is_word = false;
        let mut at = start;
        while at < end && (at == start || self.is_reached_only_after(at, found)) {
            if !self.is_test(at) {
                let Some(writes) = self.computed(at) else {
                    break;
                };
                is_word |= matches!(
                    self.insns[at],
                    Insn::PacketAbs { size: Size::W, .. } | Insn::PacketInd { size: Size::W, .. }
                );
                written = written.union(writes);
                at += 1;
                continue;
            }
            let fail = found.map(|found| found.fail);
            let next = match self.alternatives_from(at, end, fail) {
                Some(choice) => choice,
                None if fail.is_none_or(|fail| fail == self.target(at)) => MergeCandidate {
                    count: 1,
                    fail: self.target(at),
                    last: at,
                    written: Halves::NONE,
                    incoming_jumps: 0,
                },
                None => break,
            };
            written = match found {
                Some(found) => found.written.union(written).union(next.written),
                None => next.written,
            };
            if self.facts[next.fail].live_in().overlaps(written) {
                break;
            }
            found = Some(MergeCandidate {
                count: next.count + found.map_or(0, |found| found.count),
                written,
                ..next
            });
            if is_word && self.is_predictable(next) {
                break;
            }
            (written, is_word) = (Halves::NONE, false);
            at = next.last + 1;
        }
        // A search from a slot before a single test finds no more.
        self.merges_from = found.map_or(at, |found| found.last + 1);
        let found = found.filter(|found| found.count >= FEWEST)?;
        Some(Merged {
            fail: found.fail,
            last: found.last,
            failed: self.gpr(OUTCOME),
            is_initialised: false,
            none_held: SCRATCH,
            in_alternatives: false,
            reach: None,
        })
    }

    /// True if the predecessors of a slot are the one before it and the alternatives that
    /// end there.
    fn is_reached_only_after(&mut self, slot: usize, found: Option<MergeCandidate>) -> bool {
        if !self.facts[slot].is_target() {
            return true;
        }
        // Comparison trees jump to their leaves.
        let has_look_ups = self.analysis.trees.iter().next().is_some();
        let incoming_jumps = match found {
            Some(found) if found.last + 1 == slot && !has_look_ups => found.incoming_jumps,
            _ => 0,
        };
        if self.incoming_jumps.is_empty() {
            self.incoming_jumps = self.analysis.incoming_jumps();
        }
        incoming_jumps > 0 && usize::from(self.incoming_jumps[slot]) == incoming_jumps
    }

    /// True if a test compares a whole word for equality: few packets have one address, so
    /// the branch is predictable and not merged further.
    fn is_predictable(&self, found: MergeCandidate) -> bool {
        let last = self.insns[found.last];
        found.count > 1 || matches!(last, Insn::Jump { cond: Cond::Ne, .. })
    }

    /// Alternatives from a slot on: tests that jump to a common target if they hold. They
    /// end with a test that jumps to the failure target and falls through to the common
    /// target, or with a jump to the failure target.
    fn alternatives_from(
        &self,
        start: usize,
        end: usize,
        fail: Option<usize>,
    ) -> Option<MergeCandidate> {
        let held = self.target(start);
        // The failure target is only known from other tests.
        if fail == Some(held) || fail.is_none() && held >= end {
            return None;
        }
        let mut found = MergeCandidate {
            count: 0,
            fail: fail.unwrap_or(0),
            last: start,
            written: Halves::NONE,
            incoming_jumps: 0,
        };
        for at in start..end {
            let leads_to = match self.insns[at] {
                Insn::Goto { .. } => Some(self.target(at)),
                _ => Some(at),
            };
            if leads_to == fail && found.last + 1 == at {
                return Some(found);
            }
            if at != start && self.facts[at].is_target() {
                return None;
            }
            if !self.is_test(at) {
                found.written = found.written.union(self.computed(at)?);
                // Not computed if an alternative held.
                if self.facts[held].live_in().overlaps(found.written) {
                    return None;
                }
                continue;
            }
            found.count += 1;
            found.last = at;
            let target = self.target(at);
            if target != held {
                let closes = held == at + 1 && fail.is_none_or(|fail| fail == target);
                found.fail = target;
                return (closes && found.count > 1).then_some(found);
            }
            found.incoming_jumps += 1;
        }
        None
    }

    /// True if the slot is a branch outside comparison trees.
    fn is_test(&self, slot: usize) -> bool {
        let fact = &self.facts[slot];
        matches!(self.insns[slot], Insn::Jump { .. }) && !fact.is_tree_root() && !fact.is_subsumed()
    }

    /// The registers that a slot writes, if it can be executed speculatively: packet loads,
    /// and arithmetic that does not use the scratch register.
    fn computed(&self, slot: usize) -> Option<Halves> {
        let insn = self.insns[slot];
        let is_fit = match insn.effect() {
            Some(Effect::Packet) => self.is_speculative_load(insn),
            Some(Effect::Compute) => is_speculative(insn),
            Some(
                Effect::Wide
                | Effect::Load
                | Effect::Store
                | Effect::Atomic
                | Effect::Branch
                | Effect::Goto
                | Effect::GotoLong
                | Effect::GotoReg
                | Effect::Call
                | Effect::Exit,
            )
            | None => false,
        };
        is_fit.then(|| self.facts[slot].written())
    }

    /// True if a packet load can be executed speculatively.
    fn is_speculative_load(&self, insn: Insn) -> bool {
        match insn {
            Insn::PacketAbs { size, imm } => {
                imm >= 0 && imm as u32 + size.bytes() <= self.proven_len_always
            }
            Insn::PacketInd { size, imm, .. } => {
                imm >= 0 && imm.checked_add(size.bytes() as i32).is_some()
            }
            _ => false,
        }
    }

    /// Records the result of the test at a slot, whose branch is taken on the condition;
    /// returns the merged outcome if it is the last test.
    pub(super) fn record_test(
        &mut self,
        mut merged: Merged,
        slot: usize,
        taken: Cc,
    ) -> Option<MergedOutcome> {
        let (_, len) = self
            .frame
            .packet
            .expect("the version for long packets has the packet in registers");
        self.flags = Flags::NONE;
        let fails = self.target(slot) == merged.fail;
        let is_last = slot == merged.last;
        if !merged.is_initialised {
            self.buf.set_keeping_flags(merged.failed, 0);
            merged.is_initialised = true;
        }
        // The length of a long packet is nonzero and serves as the value true.
        if merged.in_alternatives || !fails {
            if !merged.in_alternatives {
                self.buf.mov(Width::W64, merged.none_held, len);
            }
            let holding = if fails { taken.not() } else { taken };
            self.buf
                .mov_if(holding, Width::W64, merged.none_held, merged.failed);
            merged.in_alternatives = !fails && !is_last;
            if !merged.in_alternatives {
                mem::swap(&mut merged.failed, &mut merged.none_held);
            }
        } else {
            self.buf.mov_if(taken, Width::W64, merged.failed, len);
        }
        self.merged = (!is_last).then_some(merged);
        is_last.then_some(MergedOutcome {
            failed: merged.failed,
            taken: if fails { Cc::Ne } else { Cc::E },
        })
    }

    /// Compares the merged outcome with 0; returns the condition on which the branch of the
    /// last test is taken.
    pub(super) fn test_merged(&mut self, outcome: MergedOutcome) -> Cc {
        self.buf.test(Width::W64, outcome.failed, outcome.failed);
        outcome.taken
    }

    /// Returns the second result if the branch of the last test is taken, else the first,
    /// if one of them is 0: a mask takes fewer instructions than a conditional move. True
    /// if it did.
    pub(super) fn return_masked(
        &mut self,
        outcome: MergedOutcome,
        [first, second]: [u32; 2],
    ) -> bool {
        let [failed, held] = match outcome.taken {
            Cc::Ne => [second, first],
            _ => [first, second],
        };
        let result = self.gpr(Reg::R0);
        match (failed, held) {
            // The carry flag has the outcome, and `sbb` spreads it to all bits.
            (0, _) => self.buf.alu_imm(Alu::Cmp, Width::W64, outcome.failed, 1),
            (_, 0) => self.buf.unary(Unary::Neg, Width::W64, outcome.failed),
            _ => return false,
        }
        self.applies(Optimization::ConditionalReturn);
        self.buf.alu(Alu::Sbb, Width::W32, result, result);
        self.buf
            .alu_imm(Alu::And, Width::W32, result, (failed | held) as i32);
        self.exit();
        true
    }

    /// Records the first test as a difference, if it fails unless the low half of a
    /// register equals a constant. True if it did.
    pub(super) fn record_difference(
        &mut self,
        slot: usize,
        cond: Cond,
        gpr: Gpr,
        imm: i32,
    ) -> bool {
        let Some(mut merged) = self.merged else {
            return false;
        };
        let says_all =
            cond == Cond::Ne && self.target(slot) == merged.fail && !merged.is_initialised;
        if says_all {
            merged.is_initialised = true;
            self.merged = Some(merged);
            let difference = Mem::at(gpr, imm.wrapping_neg());
            self.buf.lea(Width::W32, merged.failed, difference);
        }
        says_all
    }

    /// The memory operand of an indexed load of a merged test, after one bounds check for
    /// all of them. The index has 32 bits, as all registers of a classic filter.
    pub(super) fn merged_load_address(&mut self, slot: usize, src: Reg, imm: i32) -> Option<Mem> {
        let mut merged = self.merged?;
        let (data, len) = self.frame.packet?;
        let index = self.gpr(src);
        if merged.reach.is_none_or(|until| slot > until) {
            let (reach, until) = self.reach(slot, merged.last, src);
            self.buf.lea(Width::W64, Gpr::RAX, Mem::at(index, reach));
            self.buf.alu(Alu::Cmp, Width::W64, Gpr::RAX, len);
            let from_the_start = Label::FIRST.plus(self.function.start);
            self.buf.jump_if(Cc::A, from_the_start);
            merged.reach = Some(until);
            self.merged = Some(merged);
        }
        Some(Mem::indexed(data, index, imm))
    }

    /// Largest end of the loads at the index register, relative to it, from a slot to the
    /// last test or to the slot that writes the register, which is returned too.
    fn reach(&self, slot: usize, last: usize, index: Reg) -> (i32, usize) {
        let until = (slot..last).find(|&at| self.facts[at].writes(index));
        let until = until.unwrap_or(last);
        let loads = self.insns[slot..=until].iter();
        let ends = loads.filter_map(|insn| match *insn {
            Insn::PacketInd { size, imm, .. } => Some(imm + size.bytes() as i32),
            _ => None,
        });
        (ends.max().unwrap_or(0), until)
    }
}

/// True if an operation can be executed speculatively: arithmetic that does not use the scratch
/// register.
fn is_speculative(insn: Insn) -> bool {
    let Insn::Alu { op, src, .. } = insn else {
        return false;
    };
    match op {
        AluOp::Mov | AluOp::Add | AluOp::Sub | AluOp::And | AluOp::Or | AluOp::Xor => true,
        AluOp::Lsh | AluOp::Rsh => matches!(src, Operand::Imm(_)),
        AluOp::Mul | AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod | AluOp::Arsh => false,
    }
}
