//! Merged branches of packet filters.
//!
//! In mixed traffic the branches of a capture filter cannot be predicted. Consecutive tests
//! that fail to the same target are merged if what lies between can be computed
//! unconditionally: each records its failure by a conditional move, and one jump behind the
//! last one tests for any. Alternatives (one of several protocols, one of two ports) are
//! merged likewise. Where a result follows directly, the recorded failure masks it.
//!
//! This is done in the version of the code without bounds checks (see `packet.rs`). Loads
//! are then executed that a test before them would have skipped; if one lies outside the
//! packet, the other version runs from the start. eBPF programs are not changed: their
//! compilers choose between jumps and conditional moves themselves.
//!
//! Cost: a search looks at no more than [`MOST_SLOTS`] instructions for each load and branch
//! that is not merged yet.

use std::mem;

use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width};

use super::asm::{Alu, Unary};
use super::buffer::Label;
use super::frame::SCRATCH;
use super::generator::{Flags, Generator};
use super::reg::{Cc, Gpr, Mem};
use crate::Optimization;
use crate::analysis::Halves;

/// How many slots may be done together, from the first load on: what a test that
/// fails would have spared is to cost less than a jump that was guessed wrongly.
const MOST_SLOTS: usize = 24;
/// Tests that are worth it.
const FEWEST: usize = 2;
/// A register to note failures in, beside the scratch register. It brings a classic
/// program its context, which one that may begin again does not look at.
const FREE: Reg = Reg::R1;

/// Tests that are asked together.
#[derive(Clone, Copy)]
pub(super) struct Merged {
    /// Where it goes on when they fail.
    fail: usize,
    /// The slot of the last.
    last: usize,
    /// What is not zero behind a test that failed.
    failed: Gpr,
    /// Whether it says something yet.
    is_made: bool,
    /// What is not zero, among tests of which one is enough, until one has held, and
    /// then what `failed` is.
    none_held: Gpr,
    /// Whether this is among such tests.
    in_choice: bool,
    /// Up to this slot, loads behind the index are known to lie inside.
    reach: Option<usize>,
}

/// What says whether tests failed that were asked together.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// Zero if none did.
    failed: Gpr,
    /// On which condition the branch of the last is taken, compared with zero.
    taken: Cc,
}

/// Tests as they are found.
#[derive(Clone, Copy)]
struct Found {
    count: usize,
    /// Where it goes on when they fail.
    fail: usize,
    /// The slot of the last.
    last: usize,
    /// Registers that are written behind the first.
    written: Halves,
    /// How many tests of the last choice lead to where one of them holds.
    arrivals: usize,
}

impl Generator<'_> {
    /// Whether the function may begin again from anywhere in it. A classic program does
    /// so without a trace if it wants nothing from before its first instruction and
    /// draws on no budget: it writes zeros first where it reads scratch memory that it
    /// has not written.
    pub(super) fn may_begin_again(&self) -> bool {
        self.filters_packets
            && self.facts[self.function.start].before().regs() == 0
            && !self.usage.loops
    }

    /// Joins the tests from a slot on, where there are several.
    #[inline(always)]
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
        let mut found: Option<Found> = None;
        // What is written, and whether a word is loaded, behind the last test.
        let mut written = Halves::NONE;
        let mut is_word = false;
        let mut at = start;
        while at < end && (at == start || self.is_only_behind(at, found)) {
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
            let next = match self.choice_from(at, end, fail) {
                Some(choice) => choice,
                None if fail.is_none_or(|fail| fail == self.target(at)) => Found {
                    count: 1,
                    fail: self.target(at),
                    last: at,
                    written: Halves::NONE,
                    arrivals: 0,
                },
                None => break,
            };
            written = match found {
                Some(found) => found.written.union(written).union(next.written),
                None => next.written,
            };
            if self.facts[next.fail].before().overlaps(written) {
                break;
            }
            found = Some(Found {
                count: next.count + found.map_or(0, |found| found.count),
                written,
                ..next
            });
            if is_word && self.fails_mostly(next) {
                break;
            }
            (written, is_word) = (Halves::NONE, false);
            at = next.last + 1;
        }
        // From between here and a lonely test, there is no more to be found.
        self.merges_from = found.map_or(at, |found| found.last + 1);
        let found = found.filter(|found| found.count >= FEWEST)?;
        Some(Merged {
            fail: found.fail,
            last: found.last,
            failed: self.gpr(FREE),
            is_made: false,
            none_held: SCRATCH,
            in_choice: false,
            reach: None,
        })
    }

    /// Whether control only comes to a slot from the one before it and from a choice
    /// that ended there.
    fn is_only_behind(&mut self, slot: usize, found: Option<Found>) -> bool {
        if !self.facts[slot].is_target() {
            return true;
        }
        // Look-ups jump, too.
        let has_look_ups = self.analysis.trees.iter().next().is_some();
        let arrivals = match found {
            Some(found) if found.last + 1 == slot && !has_look_ups => found.arrivals,
            _ => 0,
        };
        if self.arrivals.is_empty() {
            self.arrivals = self.analysis.arrivals();
        }
        arrivals > 0 && usize::from(self.arrivals[slot]) == arrivals
    }

    /// Whether tests of a whole word fail unless it is a certain one: few packets are
    /// of one address, and that is easy to predict.
    fn fails_mostly(&self, found: Found) -> bool {
        let last = self.insns[found.last];
        found.count > 1 || matches!(last, Insn::Jump { cond: Cond::Ne, .. })
    }

    /// Tests of which one is enough, from a slot on: they lead to one place where they
    /// hold. Behind them comes one that leads to the next slot or where tests fail, or
    /// the way to where tests fail.
    fn choice_from(&self, start: usize, end: usize, fail: Option<usize>) -> Option<Found> {
        let held = self.target(start);
        // Where tests fail is only known from others.
        if fail == Some(held) || fail.is_none() && held >= end {
            return None;
        }
        let mut found = Found {
            count: 0,
            fail: fail.unwrap_or(0),
            last: start,
            written: Halves::NONE,
            arrivals: 0,
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
                // A test that held would have spared it.
                if self.facts[held].before().overlaps(found.written) {
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
            found.arrivals += 1;
        }
        None
    }

    /// Whether the slot holds a branch that is written as it stands.
    fn is_test(&self, slot: usize) -> bool {
        let fact = &self.facts[slot];
        matches!(self.insns[slot], Insn::Jump { .. }) && !fact.is_look_up() && !fact.is_absorbed()
    }

    /// What a slot writes that may be done in any case: packet loads, and arithmetic
    /// that leaves the scratch register alone.
    fn computed(&self, slot: usize) -> Option<Halves> {
        let is_fit = match self.insns[slot] {
            Insn::PacketAbs { size, imm } => {
                imm >= 0 && imm as u32 + size.bytes() <= self.proven_len_always
            }
            Insn::PacketInd { size, imm, .. } => {
                imm >= 0 && imm.checked_add(size.bytes() as i32).is_some()
            }
            Insn::Alu {
                op: AluOp::Mov | AluOp::Add | AluOp::Sub | AluOp::And | AluOp::Or | AluOp::Xor,
                ..
            } => true,
            Insn::Alu {
                op: AluOp::Lsh | AluOp::Rsh,
                src: Operand::Imm(_),
                ..
            } => true,
            _ => false,
        };
        is_fit.then(|| self.facts[slot].written())
    }

    /// Notes what the test at a slot says, whose branch would be taken on the
    /// condition; where it is the last, what says whether one failed.
    pub(super) fn note_test(
        &mut self,
        mut merged: Merged,
        slot: usize,
        taken: Cc,
    ) -> Option<Asked> {
        let (_, len) = self.frame.packet.expect("long packets were asked for");
        self.flags = Flags::NONE;
        let fails = self.target(slot) == merged.fail;
        let is_last = slot == merged.last;
        if !merged.is_made {
            self.buf.set_keeping_flags(merged.failed, 0);
            merged.is_made = true;
        }
        // A packet that was asked to be long has a length that is not zero.
        if merged.in_choice || !fails {
            if !merged.in_choice {
                self.buf.mov(Width::W64, merged.none_held, len);
            }
            let holding = if fails { taken.not() } else { taken };
            self.buf
                .mov_if(holding, Width::W64, merged.none_held, merged.failed);
            merged.in_choice = !fails && !is_last;
            if !merged.in_choice {
                mem::swap(&mut merged.failed, &mut merged.none_held);
            }
        } else {
            self.buf.mov_if(taken, Width::W64, merged.failed, len);
        }
        self.merged = (!is_last).then_some(merged);
        is_last.then_some(Asked {
            failed: merged.failed,
            taken: if fails { Cc::Ne } else { Cc::E },
        })
    }

    /// Asks all; on which condition the branch of the last is taken.
    pub(super) fn ask(&mut self, asked: Asked) -> Cc {
        self.buf.test(Width::W64, asked.failed, asked.failed);
        asked.taken
    }

    /// Returns the second where the branch of the last would be taken, else the first,
    /// if one of them is zero: its mask takes fewer instructions than a choice.
    pub(super) fn return_masked(&mut self, asked: Asked, [first, second]: [u32; 2]) -> bool {
        let [failed, held] = match asked.taken {
            Cc::Ne => [second, first],
            _ => [first, second],
        };
        let result = self.gpr(Reg::R0);
        match (failed, held) {
            // The carry says which it is, and so do all bits of the difference.
            (0, _) => self.buf.alu_imm(Alu::Cmp, Width::W64, asked.failed, 1),
            (_, 0) => self.buf.unary(Unary::Neg, Width::W64, asked.failed),
            _ => return false,
        }
        self.applies(Optimization::ConditionalReturn);
        self.buf.alu(Alu::Sbb, Width::W32, result, result);
        self.buf
            .alu_imm(Alu::And, Width::W32, result, (failed | held) as i32);
        self.exit();
        true
    }

    /// Notes the first test of several by a difference, if it fails where the low half
    /// of a register is not a constant.
    pub(super) fn note_difference(&mut self, slot: usize, cond: Cond, gpr: Gpr, imm: i32) -> bool {
        let Some(mut merged) = self.merged else {
            return false;
        };
        let says_all = cond == Cond::Ne && self.target(slot) == merged.fail && !merged.is_made;
        if says_all {
            merged.is_made = true;
            self.merged = Some(merged);
            let difference = Mem::at(gpr, imm.wrapping_neg());
            self.buf.lea(Width::W32, merged.failed, difference);
        }
        says_all
    }

    /// Where a load of a merged test lies, once the packet is known to have it. An
    /// index has 32 bits, as all registers of a classic filter.
    pub(super) fn joined_address(&mut self, slot: usize, src: Reg, imm: i32) -> Option<Mem> {
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

    /// How far loads reach behind the one index register that classic programs have,
    /// from a slot to the last or to where it changes.
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
