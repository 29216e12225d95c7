//! The pass over all slots.
//!
//! It records what each function uses, and where a conditional move, a comparison tree or a
//! rewrite may be; control flow and liveness come with the program
//! ([`DefUse`](lower::flow::DefUse)).

use isa::ebpf::{AluOp, Insn, Operand, Reg};
use lower::flow::{DefUse, jump_target};
use lower::trees::{self, Trees};
use lower::{Evidence, Function, LoweredCode};

use super::lists::SlotLists;
use super::slot_info::{Marks, SlotInfo};
use super::usage::{Ops, Tally, Usage};
use super::window::Window;

/// Number of slots after a selection that are searched for the same comparison.
const REPEAT_DISTANCE: usize = 3;

/// State of the pass.
pub(super) struct Scan<'a> {
    insns: &'a [Insn],
    def_use: &'a DefUse,
    pub(super) lists: &'a mut SlotLists,
    /// Arithmetic operations of all functions.
    pub(super) ops: Ops,
}

impl<'a> Scan<'a> {
    /// A pass over a program.
    pub(super) fn new(
        insns: &'a [Insn],
        def_use: &'a DefUse,
        lists: &'a mut SlotLists,
    ) -> Scan<'a> {
        Scan {
            insns,
            def_use,
            lists,
            ops: Ops::default(),
        }
    }

    /// Visits every slot of a function; returns what the function uses.
    pub(super) fn visit_function(&mut self, function: Function, infos: &mut [SlotInfo]) -> Usage {
        let mut tally = Tally::default();
        for slot in function.start..function.end {
            let insn = &self.insns[slot];
            tally.record(insn, infos[slot].transfer());
            if may_end_rewrite(insn) {
                self.lists.candidates.push(slot as u32);
            }
            if let Some(target) = infos[slot].jump() {
                self.visit_jump(slot, target, infos);
            }
        }
        infos[function.start].mark(Marks::TARGET);
        self.ops.merge(tally.ops());
        tally.finish(self.def_use.loops(function))
    }

    /// Records a jump.
    fn visit_jump(&mut self, slot: usize, target: usize, infos: &mut [SlotInfo]) {
        if target == slot + 2 {
            self.lists.candidates.push(slot as u32);
        } else {
            infos[target].mark(Marks::TARGET);
        }
        let lists = &mut self.lists;
        lists.may_have_trees = lists.may_have_trees || trees::may_be_root(self.insns, slot);
    }

    /// Finds selections among the branches over one slot. If the move is also the target of
    /// another jump, the branch is no selection.
    pub(super) fn decide_selections(&self, infos: &mut [SlotInfo], selects: bool) {
        let candidates = self.lists.candidates.iter().map(|&slot| slot as usize);
        let mut any = false;
        for slot in candidates.clone() {
            if infos[slot].jump() == Some(slot + 2) {
                if selects && is_selection(self.insns, slot) {
                    infos[slot].mark(Marks::SELECTION);
                    any = true;
                } else {
                    infos[slot + 2].mark(Marks::TARGET);
                }
            }
        }
        if !any {
            return;
        }
        for slot in candidates {
            if infos[slot].is_selection() && infos[slot + 1].is_target() {
                restore_branch(slot, infos);
            }
        }
    }

    /// Finds the comparison trees. Every leaf becomes a jump target, and comparisons of a
    /// tree are no selections.
    pub(super) fn find_trees(&self, program: &LoweredCode, infos: &mut [SlotInfo]) -> Trees {
        if !self.lists.may_have_trees {
            return Trees::default();
        }
        // Backward jumps of classic filters are limited by a budget, so their trees have
        // none.
        let functions = match program.evidence() {
            Evidence::Classic(_) => None,
            Evidence::CallerAsserted | Evidence::Verified(_) => Some(program.functions()),
        };
        let cfg = self.def_use.cfg();
        let trees = Trees::find(self.insns, cfg, functions, Window::is_profitable);
        for slot in trees.slots() {
            if infos[slot].is_selection() {
                restore_branch(slot, infos);
            }
            let marks = &mut infos[slot].marks;
            marks.set(Marks::TREE_ROOT, trees.is_root(slot));
            marks.set(Marks::SUBSUMED, trees.is_subsumed(slot));
        }
        for leaf in trees.iter().flat_map(|tree| [tree.keys, tree.ranges]) {
            for piece in leaf {
                infos[piece.target as usize].mark(Marks::TARGET);
            }
        }
        trees
    }
}

/// True if a rewrite may end at an instruction: an operation that combines two shifts to a
/// rotation.
fn may_end_rewrite(insn: &Insn) -> bool {
    matches!(
        insn,
        Insn::Alu {
            op: AluOp::Or | AluOp::Xor | AluOp::Add,
            src: Operand::Reg(_),
            ..
        }
    )
}

/// Turns a selection back into a branch.
fn restore_branch(slot: usize, infos: &mut [SlotInfo]) {
    infos[slot].marks.set(Marks::SELECTION, false);
    infos[slot + 2].mark(Marks::TARGET);
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
            && jump_target(&insns[at], at).is_some_and(|to| !skips_move(insns, at, to))
    };
    !(target..target + REPEAT_DISTANCE).any(again)
}

fn skips_move(insns: &[Insn], slot: usize, target: usize) -> bool {
    let is_move = |insn: &Insn| matches!(insn, Insn::Alu { op: AluOp::Mov, src, .. } if *src != Operand::Reg(Reg::R10));
    target == slot + 2
        && matches!(insns[slot], Insn::Jump { .. })
        && insns.get(slot + 1).is_some_and(is_move)
}
