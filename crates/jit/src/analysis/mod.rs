//! Analysis of a program before code generation: jump targets, liveness, the registers
//! and stack that each function uses, rewrites.
//!
//! Liveness is computed for both halves of every register: most 64-bit operations whose
//! upper half is not live are done on 32 bits, and an instruction whose result is dead is
//! left out. One backward pass (`scan.rs`) records what each instruction reads and writes
//! (`transfer.rs`), its live-out set, and what each function uses (`usage.rs`). Then the
//! rewrites are found (`idiom.rs`) and their effect on liveness is propagated, and the
//! back edges are iterated to a fixpoint (`liveness.rs`).
//!
//! Invariant: after the analysis the live-out set of each slot is the least solution of the
//! data-flow equations (`tests.rs` compares both). Cost: linear.

mod fact;
mod idiom;
mod lists;
mod liveness;
mod scan;
#[cfg(test)]
mod tests;
mod transfer;
mod usage;
mod window;

pub(crate) use fact::Fact;
pub(crate) use idiom::Rewrite;
pub(crate) use transfer::Halves;
pub(crate) use usage::Usage;
pub(crate) use window::Window;

use isa::ebpf::AluOp;
use lower::Lowered;
use lower::trees::Trees;

use lists::Lists;
use scan::Scan;

use crate::spare::{Spare, bytes_of};
use crate::{Applied, Optimization, Optimizations};

/// See the module's text.
pub(crate) struct Analysis {
    room: Box<Room>,
    /// Comparisons of one register that are done by a look-up.
    pub(crate) trees: Trees,
    rewrites: Vec<Rewrite>,
    pub(crate) applied: Applied,
}

/// The vectors of an analysis.
#[derive(Default)]
struct Room {
    facts: Vec<Fact>,
    /// For each function.
    usage: Vec<Usage>,
    lists: Lists,
}

thread_local! {
    static ROOM: Spare<Box<Room>> = const { Spare::none() };
}

impl Analysis {
    pub(crate) fn of(program: &Lowered, optimizations: Optimizations) -> Analysis {
        let uses = |optimization| optimizations.contains(optimization);
        let mut applied = Applied::NONE;
        let insns = program.insns();
        let functions = program.functions();
        let mut room = ROOM.with(Spare::take);
        let Room {
            facts,
            usage,
            lists,
        } = &mut *room;
        // Whatever they held, every slot is visited.
        facts.resize(insns.len(), Fact::NONE);
        lists.clear();
        let mut scan = Scan::new(program, lists, optimizations);
        usage.clear();
        for &function in functions.iter().rev() {
            usage.push(scan.visit_function(function, facts));
        }
        usage.reverse();
        scan.decide_selections(facts, uses(Optimization::ConditionalMove));
        let trees = match uses(Optimization::ComparisonTree) {
            true => scan.find_trees(program, facts),
            false => Trees::default(),
        };
        let Scan { lists, ops, .. } = scan;
        let candidates = || lists.candidates.iter().rev().map(|&slot| slot as usize);
        let propagate = |facts: &mut [Fact]| {
            for &function in functions {
                liveness::propagate(function, Halves::EFFECT, facts);
            }
        };
        let iterate = |facts: &mut [Fact]| {
            if !lists.backward.is_empty() {
                liveness::iterate(functions, usage, &lists.jumps, facts);
            }
        };
        let mut rewrites = Vec::new();
        if uses(Optimization::Rotation)
            && ops.has(AluOp::Lsh)
            && ops.has(AluOp::Rsh)
            && idiom::find_rotations(insns, candidates(), facts, &mut rewrites)
        {
            propagate(facts);
        }
        if uses(Optimization::HeaderLength)
            && usage[0].packet
            && lists.backward.is_empty()
            && functions.len() == 1
        {
            let known = rewrites.len();
            idiom::find_header_lengths(insns, candidates(), facts, &mut rewrites);
            if rewrites.len() > known {
                propagate(facts);
            }
        }
        iterate(facts);
        for rewrite in &rewrites {
            match rewrite {
                Rewrite::Skip => {}
                Rewrite::Rotate { .. } => applied.add(Optimization::Rotation),
                Rewrite::Copy { .. } => applied.add(Optimization::HeaderLength),
            }
        }
        Analysis {
            room,
            trees,
            rewrites,
            applied,
        }
    }

    /// Gives the thread what it worked in.
    pub(crate) fn end(self) {
        let room = self.room;
        let held = bytes_of(&room.facts) + bytes_of(&room.usage) + room.lists.bytes();
        ROOM.with(|spare| spare.give_back(room, held));
    }

    /// What is known of every slot.
    pub(crate) fn facts(&self) -> &[Fact] {
        &self.room.facts
    }

    /// What a function uses.
    pub(crate) fn usage(&self, function: usize) -> &Usage {
        &self.room.usage[function]
    }

    /// How a slot is done otherwise than it is written.
    pub(crate) fn rewrite(&self, slot: usize) -> Option<Rewrite> {
        self.facts()[slot].rewritten(&self.rewrites)
    }

    /// How many jumps lead to each slot, other than selections; many are counted as
    /// 255.
    pub(crate) fn arrivals(&self) -> Vec<u8> {
        let mut counts = vec![0u8; self.facts().len()];
        for target in self.facts().iter().filter_map(|fact| match fact.jump() {
            Some(target) if !fact.is_selection() => Some(target),
            _ => None,
        }) {
            counts[target] = counts[target].saturating_add(1);
        }
        counts
    }
}
