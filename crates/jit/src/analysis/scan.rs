//! The backward pass over all slots.
//!
//! It records for each instruction what it reads and writes, its live-out set, its jump
//! target, what its function uses, and where a conditional move or a rewrite may be. Going
//! backward, the live-in set of every forward jump's target is known; back edges are left
//! to `liveness.rs`.

use std::mem;

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size};
use lower::jumps::{IncomingJumps, jump_target};
use lower::trees::{self, Trees};
use lower::{Evidence, Function, Lowered};

use super::fact::{Fact, Marks};
use super::lists::SlotLists;
use super::transfer::{Halves, Transfer};
use super::usage::{Ops, Tally, Usage};
use super::window::Window;
use crate::{Optimization, Optimizations};

/// Number of slots after a selection that are searched for the same comparison.
const REPEAT_DISTANCE: usize = 3;

/// State of the pass. Functions are visited in descending order.
pub(super) struct Scan<'a> {
    insns: &'a [Insn],
    /// Live-in set of `exit`.
    result: Halves,
    /// [`Halves::EFFECT`] without dead code elimination: then every instruction has an
    /// effect.
    effects: Halves,
    pub(super) lists: &'a mut SlotLists,
    /// Arithmetic operations of all functions.
    pub(super) ops: Ops,
    /// Usage of the function that is visited.
    tally: Tally,
}

impl<'a> Scan<'a> {
    /// A pass over a program.
    pub(super) fn new(
        program: &'a Lowered,
        lists: &'a mut SlotLists,
        optimizations: Optimizations,
    ) -> Scan<'a> {
        Scan {
            insns: program.insns(),
            // A classic filter's result is 32 bits.
            result: match program.evidence() {
                Evidence::Classic(_) => Halves::low(Reg::R0),
                Evidence::CallerAsserted | Evidence::Verified(_) => Halves::both(Reg::R0),
            },
            effects: match optimizations.contains(Optimization::DeadCode) {
                true => Halves::NONE,
                false => Halves::EFFECT,
            },
            lists,
            ops: Ops::default(),
            tally: Tally::default(),
        }
    }

    /// Visits every slot of a function and records its fact; returns the function's usage.
    pub(super) fn visit_function(&mut self, function: Function, facts: &mut [Fact]) -> Usage {
        let Function { start, end } = function;
        let first_backward = self.lists.backward.len();
        let mut live = Halves::EFFECT;
        for slot in (start..end).rev() {
            live = self.visit(slot, live, facts);
        }
        facts[start].mark(Marks::TARGET);
        let backward = &self.lists.backward[first_backward..];
        for &slot in backward {
            if let Some(head) = facts[slot as usize].jump() {
                facts[head].mark(Marks::TARGET.union(Marks::LOOP));
            }
        }
        let tally = mem::take(&mut self.tally);
        self.ops.merge(tally.ops());
        tally.finish(!backward.is_empty())
    }

    /// Records the fact of a slot with the live-in set of the next one; returns its live-in
    /// set.
    fn visit(&mut self, slot: usize, next: Halves, facts: &mut [Fact]) -> Halves {
        let transfer = match self.insns[slot] {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let transfer = Transfer::of_alu(op, width, dst, src);
                self.tally.record_alu(op, transfer);
                if may_combine_shifts(op, src) {
                    self.lists.candidates.push(slot as u32);
                }
                transfer
            }
            Insn::Load { dst, base, off, .. } => {
                let transfer = Transfer::of_load(dst, base);
                self.tally.record_load(base, off, transfer);
                transfer
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let transfer = Transfer::of_store(size, base, src);
                self.tally.record_store(base, off, src, transfer);
                transfer
            }
            Insn::Jump {
                width, dst, src, ..
            } => {
                let transfer = Transfer::of_branch(width, dst, src);
                self.tally.record_values(transfer);
                return self.visit_control_flow(slot, Marks::JUMPS, transfer, next, facts);
            }
            insn => {
                let transfer = Transfer::of(insn, self.result);
                self.tally.record(insn, transfer);
                let marks = match insn {
                    Insn::MayGoto { .. } => Marks::JUMPS,
                    Insn::Goto { .. } | Insn::GotoLong { .. } => Marks::LEAVES,
                    Insn::Exit => Marks::STOPS,
                    Insn::Alu { .. }
                    | Insn::Neg { .. }
                    | Insn::MovSx { .. }
                    | Insn::Endian { .. }
                    | Insn::Cast { .. }
                    | Insn::LoadImm64 { .. }
                    | Insn::Imm64High
                    | Insn::Load { .. }
                    | Insn::Store { .. }
                    | Insn::Atomic { .. }
                    | Insn::LoadAcquire { .. }
                    | Insn::StoreRelease { .. }
                    | Insn::PacketAbs { .. }
                    | Insn::PacketInd { .. }
                    | Insn::Jump { .. }
                    | Insn::GotoReg { .. }
                    | Insn::Call(_)
                    | Insn::CallReg { .. }
                    | Insn::Invalid { .. } => Marks::NONE,
                };
                if marks != Marks::NONE {
                    return self.visit_control_flow(slot, marks, transfer, next, facts);
                }
                if let Insn::PacketAbs { size: Size::B, .. } = insn {
                    self.lists.candidates.push(slot as u32);
                }
                transfer
            }
        };
        facts[slot].record(transfer.and_effects(self.effects), next)
    }

    /// Records the fact of a jump or exit; returns its live-in set.
    fn visit_control_flow(
        &mut self,
        slot: usize,
        marks: Marks,
        transfer: Transfer,
        next: Halves,
        facts: &mut [Fact],
    ) -> Halves {
        let mut live_out = match marks.overlap(Marks::STOPS) {
            true => Halves::EFFECT,
            false => next,
        };
        let mut target = slot;
        if marks.overlap(Marks::JUMPS) {
            target = target_of(self.insns[slot], slot);
            live_out = live_out.union(self.visit_jump(slot, target, facts));
        }
        facts[slot].set_control_flow(marks, target);
        facts[slot].record_control_flow(transfer, live_out)
    }

    /// Records a jump; returns the live-in set of its target, as far as it is known.
    fn visit_jump(&mut self, slot: usize, target: usize, facts: &mut [Fact]) -> Halves {
        self.lists.jumps.push(slot as u32);
        if target <= slot {
            self.lists.backward.push(slot as u32);
            self.lists.forks.push(slot as u32);
            return Halves::EFFECT;
        }
        if target == slot + 2 {
            self.lists.candidates.push(slot as u32);
            self.lists.forks.push(slot as u32);
        } else {
            facts[target].mark(Marks::TARGET);
            let is_jump = |slot: usize| facts[slot].marks.overlap(Marks::JUMPS);
            if is_jump(target) || is_jump(slot + 1) {
                self.lists.forks.push(slot as u32);
            }
        }
        facts[target].live_in()
    }

    /// Finds selections among the branches over one slot. If the move is also the target of
    /// another jump, the branch is no selection.
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
                restore_branch(slot, facts);
            }
        }
    }

    /// Finds the comparison trees. Every leaf becomes a jump target, and comparisons of a
    /// tree are no selections.
    pub(super) fn find_trees(&self, program: &Lowered, facts: &mut [Fact]) -> Trees {
        let mut forks = self.lists.forks.iter().map(|&slot| slot as usize);
        if !forks.any(|slot| trees::may_be_root(self.insns, slot)) {
            return Trees::default();
        }
        // Backward jumps of classic filters are limited by a budget, so their trees have
        // none.
        let functions = match program.evidence() {
            Evidence::Classic(_) => None,
            Evidence::CallerAsserted | Evidence::Verified(_) => Some(program.functions()),
        };
        let jumps = self.lists.jumps.iter().rev().copied();
        let incoming_jumps = IncomingJumps::of_jumps(self.insns, jumps.collect());
        let trees = Trees::find(
            self.insns,
            &incoming_jumps,
            functions,
            Window::is_profitable,
        );
        for slot in trees.slots() {
            if facts[slot].is_selection() {
                restore_branch(slot, facts);
            }
            let marks = &mut facts[slot].marks;
            marks.set(Marks::TREE_ROOT, trees.is_root(slot));
            marks.set(Marks::SUBSUMED, trees.is_subsumed(slot));
        }
        for leaf in trees.iter().flat_map(|tree| [tree.keys, tree.ranges]) {
            for piece in leaf {
                facts[piece.target as usize].mark(Marks::TARGET);
            }
        }
        trees
    }
}

/// True if an operation may combine two shifts to a rotation.
fn may_combine_shifts(op: AluOp, src: Operand) -> bool {
    matches!(op, AluOp::Or | AluOp::Xor | AluOp::Add) && matches!(src, Operand::Reg(_))
}

/// The jump target of an instruction.
fn target_of(insn: Insn, slot: usize) -> usize {
    jump_target(insn, slot).expect("a lowered program's jumps lead to slots")
}

/// Turns a selection back into a branch.
fn restore_branch(slot: usize, facts: &mut [Fact]) {
    facts[slot].marks.set(Marks::SELECTION, false);
    facts[slot + 2].mark(Marks::TARGET);
}

/// True if a branch skips a single register move, which becomes a conditional move. If the
/// same comparison follows within [`REPEAT_DISTANCE`] slots, it stays a branch: its outcome must be
/// predicted anyway, and the value need not wait for the comparison.
fn is_selection(insns: &[Insn], slot: usize) -> bool {
    let target = slot + 2;
    if !skips_move(insns, slot, target) {
        return false;
    }
    let operands = |slot: usize| match insns.get(slot) {
        Some(&Insn::Jump {
            width, dst, src, ..
        }) => Some((width, dst, src)),
        _ => None,
    };
    let again = |at: usize| {
        operands(at) == operands(slot)
            && jump_target(insns[at], at).is_some_and(|to| !skips_move(insns, at, to))
    };
    !(target..target + REPEAT_DISTANCE).any(again)
}

fn skips_move(insns: &[Insn], slot: usize, target: usize) -> bool {
    let changes_address = |insn: &Insn| match *insn {
        Insn::Alu {
            op: AluOp::Mov,
            src,
            ..
        } => src != Operand::Reg(Reg::R10),
        _ => false,
    };
    target == slot + 2
        && matches!(insns[slot], Insn::Jump { .. })
        && insns.get(slot + 1).is_some_and(changes_address)
}
