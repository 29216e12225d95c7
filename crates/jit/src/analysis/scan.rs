//! The backward pass over all slots.
//!
//! It records for each instruction what it reads and writes, its live-out set, its jump
//! target, what its function uses, and where a conditional move or a rewrite may be. Going
//! backward, the live-in set of every forward jump's target is known; back edges are left
//! to `liveness.rs`.

use std::mem;

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size};
use lower::jumps::{Arrivals, jump_target};
use lower::trees::{self, Trees};
use lower::{Evidence, Function, Lowered};

use super::fact::{Fact, Marks};
use super::idiom::Sought;
use super::lists::Lists;
use super::transfer::{Halves, Transfer};
use super::usage::{Ops, Tally, Usage};
use super::window::Window;
use crate::{Optimization, Optimizations};

/// How many slots behind a selection may ask the same again.
const AGAIN: usize = 3;

/// What the pass knows. It has to visit the last function first.
pub(super) struct Scan<'a> {
    insns: &'a [Insn],
    /// What is live where a function ends.
    result: Halves,
    /// What every instruction writes beside its result: [`Halves::EFFECT`], if none is
    /// to be left out as dead.
    effects: Halves,
    pub(super) lists: &'a mut Lists,
    /// The arithmetic of all functions.
    pub(super) ops: Ops,
    /// What is known of the function under way.
    tally: Tally,
    sought: Sought,
}

impl<'a> Scan<'a> {
    /// A pass over a program.
    pub(super) fn new(
        program: &'a Lowered,
        lists: &'a mut Lists,
        optimizations: Optimizations,
    ) -> Scan<'a> {
        Scan {
            insns: program.insns(),
            // A classic filter's result is 32 bits.
            result: match program.evidence() {
                Evidence::Classic(_) => Halves::low(Reg::R0),
                Evidence::CallerAsserted => Halves::both(Reg::R0),
            },
            effects: match optimizations.contains(Optimization::DeadCode) {
                true => Halves::NONE,
                false => Halves::EFFECT,
            },
            lists,
            ops: Ops::default(),
            tally: Tally::default(),
            sought: Sought::default(),
        }
    }

    /// Visits every slot of a function; there is a fact for each, whatever it says.
    /// What few slots have to do is in functions of their own, and what is known stays
    /// in memory, so that registers suffice for the rest.
    #[inline(never)]
    pub(super) fn visit_function(&mut self, function: Function, facts: &mut [Fact]) -> Usage {
        let Function { start, end } = function;
        let insns = self.insns;
        // One check does for both.
        let facts = &mut facts[..insns.len()];
        let first_backward = self.lists.backward.len();
        let mut live = Halves::EFFECT;
        for slot in (start..end).rev() {
            live = match insns[slot] {
                Insn::Alu {
                    op,
                    width,
                    dst,
                    src: Operand::Imm(_),
                } => {
                    let transfer = Transfer::of_alu_imm(op, width, dst);
                    self.tally.note_alu(op, transfer);
                    if let Some(end) = self.sought.shift_or_forget(op, transfer) {
                        self.lists.push_candidate(end);
                    }
                    facts[slot].note(transfer.and_effects(self.effects), live)
                }
                Insn::Alu {
                    op,
                    width,
                    dst,
                    src: Operand::Reg(src),
                } => {
                    let transfer = Transfer::of_alu_reg(op, width, dst, src);
                    self.tally.note_alu(op, transfer);
                    self.sought.forget(transfer);
                    if Sought::may_join(op)
                        && let Some(end) = self.sought.join(slot, transfer)
                    {
                        self.lists.push_candidate(end);
                    }
                    facts[slot].note(transfer.and_effects(self.effects), live)
                }
                Insn::Load { dst, base, off, .. } => {
                    let transfer = Transfer::of_load(dst, base);
                    self.tally.note_load(base, off, transfer);
                    self.sought.forget(transfer);
                    facts[slot].note(transfer.and_effects(self.effects), live)
                }
                Insn::Store {
                    size,
                    base,
                    off,
                    src,
                } => {
                    let transfer = Transfer::of_store(size, base, src);
                    self.tally.note_store(base, off, src, transfer);
                    facts[slot].note(transfer.and_effects(self.effects), live)
                }
                Insn::Jump {
                    width,
                    dst,
                    src,
                    off,
                    ..
                } => {
                    let transfer = Transfer::of_branch(width, dst, src);
                    self.tally.note_values(transfer);
                    let target = target_of(Insn::Goto { off }, slot);
                    let after = live.union(self.visit_jump(slot, target, facts));
                    facts[slot].leave(Marks::JUMPS, target);
                    facts[slot].note_leaving(transfer, after)
                }
                Insn::Goto { off } => {
                    let target = target_of(Insn::Goto { off }, slot);
                    let after = self.visit_jump(slot, target, facts);
                    facts[slot].leave(Marks::LEAVES, target);
                    facts[slot].note_leaving(Transfer::GOTO, after.union(Halves::EFFECT))
                }
                Insn::Endian { order, size, dst } => {
                    let transfer = Transfer::of_endian(order, size, dst);
                    self.tally.note_values(transfer);
                    facts[slot].note(transfer.and_effects(self.effects), live)
                }
                insn => self.visit_rare(slot, insn, live, facts),
            };
        }
        facts[start].mark(Marks::TARGET);
        let backward = &self.lists.backward[first_backward..];
        for &slot in backward {
            if let Some(head) = facts[slot as usize].jump() {
                facts[head].mark(Marks::TARGET.union(Marks::LOOP));
            }
        }
        let tally = mem::take(&mut self.tally);
        self.ops.join(tally.ops());
        self.sought = Sought::default();
        tally.finish(!backward.is_empty())
    }

    /// Visits an instruction of another kind than most; what is live before it.
    #[inline(never)]
    fn visit_rare(&mut self, slot: usize, insn: Insn, live: Halves, facts: &mut [Fact]) -> Halves {
        let transfer = Transfer::of(insn, self.result);
        self.tally.note(insn, transfer);
        let marks = match insn {
            Insn::MayGoto { .. } => Marks::JUMPS,
            Insn::GotoLong { .. } => Marks::LEAVES,
            Insn::Exit => Marks::STOPS,
            _ => {
                if let Insn::PacketAbs { size: Size::B, .. } = insn {
                    self.lists.push_candidate(slot as u32);
                }
                return facts[slot].note(transfer.and_effects(self.effects), live);
            }
        };
        let mut after = Halves::EFFECT;
        if !marks.overlap(Marks::STOPS) {
            after = live;
        }
        let mut target = slot;
        if marks.overlap(Marks::JUMPS) {
            target = target_of(insn, slot);
            after = after.union(self.visit_jump(slot, target, facts));
        }
        facts[slot].leave(marks, target);
        facts[slot].note_leaving(transfer, after)
    }

    /// Notes that a slot jumps; what is live there, as far as it is known. It calls
    /// nothing but as its last act, so that it saves few registers.
    #[inline(never)]
    fn visit_jump(&mut self, slot: usize, target: usize, facts: &mut [Fact]) -> Halves {
        if target <= slot {
            self.lists.push_backward(slot);
            return Halves::EFFECT;
        }
        let there = &mut facts[target];
        let live = there.before();
        if target == slot + 2 {
            self.lists.push_short(slot);
            return live;
        }
        there.mark(Marks::TARGET);
        if there.marks.overlap(Marks::JUMPS) || facts[slot + 1].marks.overlap(Marks::JUMPS) {
            self.lists.push_fork(slot);
        } else {
            self.lists.push_jump(slot);
        }
        live
    }

    /// Finds selections among the jumps over one slot. A branch over a move to which
    /// something else leads is none.
    pub(super) fn decide_selections(&self, facts: &mut [Fact], selects: bool) {
        let candidates = self.lists.candidates.iter().map(|&slot| slot as usize);
        let mut any = false;
        for slot in candidates.clone() {
            if facts[slot].jump() == Some(slot + 2) {
                if selects && is_selection(self.insns, slot) {
                    facts[slot].mark(Marks::SELECTION);
                    any = true;
                } else {
                    facts[slot + 2].mark(Marks::TARGET);
                }
            }
        }
        if !any {
            return;
        }
        for slot in candidates {
            if facts[slot].is_selection() && facts[slot + 1].is_target() {
                jumps_after_all(slot, facts);
            }
        }
    }

    /// The trees of comparisons. Their look-ups jump to every leaf, and their
    /// comparisons are no selections.
    pub(super) fn find_trees(&self, program: &Lowered, facts: &mut [Fact]) -> Trees {
        let mut forks = self.lists.forks.iter().map(|&slot| slot as usize);
        if !forks.any(|slot| trees::begins(self.insns, slot)) {
            return Trees::default();
        }
        // Backward jumps of the others draw on a budget.
        let functions = match program.evidence() {
            Evidence::Classic(_) => None,
            Evidence::CallerAsserted => Some(program.functions()),
        };
        let jumps = self.lists.jumps.iter().rev().copied();
        let arrivals = Arrivals::of_jumps(self.insns, jumps.collect());
        let trees = Trees::find(self.insns, &arrivals, functions, Window::is_worth_it);
        for slot in trees.slots() {
            if facts[slot].is_selection() {
                jumps_after_all(slot, facts);
            }
            let marks = &mut facts[slot].marks;
            marks.set(Marks::LOOK_UP, trees.starts(slot));
            marks.set(Marks::ABSORBED, trees.absorb(slot));
        }
        for leaf in trees.iter().flat_map(|tree| [tree.keys, tree.ranges]) {
            for piece in leaf {
                facts[piece.target as usize].mark(Marks::TARGET);
            }
        }
        trees
    }
}

/// Where an instruction jumps.
#[inline(always)]
fn target_of(insn: Insn, slot: usize) -> usize {
    jump_target(insn, slot).expect("a lowered program's jumps lead to slots")
}

/// Makes a branch of a selection.
fn jumps_after_all(slot: usize, facts: &mut [Fact]) {
    facts[slot].marks.set(Marks::SELECTION, false);
    facts[slot + 2].mark(Marks::TARGET);
}

/// Whether a branch leads over nothing but a move to a register, which is how
/// compilers write a choice between two values if they expect no pattern in it. If the same
/// comparison follows soon after, it stays a branch: its outcome must be predicted anyway,
/// and the chosen value need not wait for the comparison.
fn is_selection(insns: &[Insn], slot: usize) -> bool {
    let target = slot + 2;
    if !leads_over_move(insns, slot, target) {
        return false;
    }
    let asked = |slot: usize| match insns.get(slot) {
        Some(&Insn::Jump {
            width, dst, src, ..
        }) => Some((width, dst, src)),
        _ => None,
    };
    let again = |at: usize| {
        asked(at) == asked(slot)
            && jump_target(insns[at], at).is_some_and(|to| !leads_over_move(insns, at, to))
    };
    !(target..target + AGAIN).any(again)
}

fn leads_over_move(insns: &[Insn], slot: usize, target: usize) -> bool {
    let moves = |insn: &Insn| match *insn {
        Insn::Alu {
            op: AluOp::Mov,
            src,
            ..
        } => src != Operand::Reg(Reg::R10),
        _ => false,
    };
    target == slot + 2
        && matches!(insns[slot], Insn::Jump { .. })
        && insns.get(slot + 1).is_some_and(moves)
}
