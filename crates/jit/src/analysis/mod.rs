//! What the code generator wants to know of a program before it writes a byte:
//! where jumps lead, which values are still wanted after each instruction, what
//! each function uses, what can be done in a better way.
//!
//! Liveness is kept for the halves of registers apart, because most 64-bit
//! operations whose upper half no one reads can be done on 32 bits, and because
//! an instruction whose result no one reads at all is left out. One pass backward
//! (`scan.rs`) notes what each instruction reads and writes (`transfer.rs`), what is
//! wanted after it, and what each function uses (`usage.rs`). Rewrites are found where
//! it saw that there may be some (`idiom.rs`); if there are any, liveness is carried
//! backward again. Then what loops carry from one round to the next is made up for
//! (`liveness.rs`). Rewrites that depend on all that are found last, and if there are
//! any, it is done again. Last, copies at the end of loops are looked at (`copies.rs`).

mod copies;
mod fact;
mod idiom;
mod liveness;
mod scan;
mod transfer;
mod usage;
mod window;

pub(crate) use fact::Fact;
pub(crate) use idiom::{Count, Counts, Rewrite};
pub(crate) use transfer::Halves;
pub(crate) use usage::Usage;
pub(crate) use window::Window;

use std::mem;
use std::thread::LocalKey;

use isa::ebpf::AluOp;
use lower::trees::Trees;
use lower::{Evidence, Lowered};

use scan::{Lists, Scan};

use crate::spare::Spare;

/// See the module's text.
pub(crate) struct Analysis {
    pub(crate) facts: Vec<Fact>,
    /// For each function.
    pub(crate) usage: Vec<Usage>,
    /// Comparisons of one register that are done by a look-up.
    pub(crate) trees: Trees,
    rewrites: Vec<Rewrite>,
}

thread_local! {
    static FACTS: Spare<Fact> = const { Spare::none() };
    static JUMPS: Spare<u32> = const { Spare::none() };
    static BACKWARD: Spare<u32> = const { Spare::none() };
    static CANDIDATES: Spare<u32> = const { Spare::none() };
}

/// The thread's spare vector, empty.
fn spare<T>(of: &'static LocalKey<Spare<T>>) -> Vec<T> {
    let mut vector = of.with(Spare::take);
    vector.clear();
    vector
}

impl Drop for Analysis {
    fn drop(&mut self) {
        FACTS.with(|spare| spare.give_back(mem::take(&mut self.facts)));
    }
}

impl Analysis {
    pub(crate) fn of(program: &Lowered, counts: Counts) -> Analysis {
        let insns = program.insns();
        let functions = program.functions();
        // Whatever they held, every slot is visited.
        let mut facts = FACTS.with(Spare::take);
        facts.resize(insns.len(), Fact::NONE);
        let lists = Lists {
            jumps: spare(&JUMPS),
            backward: spare(&BACKWARD),
            candidates: spare(&CANDIDATES),
        };
        let mut scan = Scan::new(program, facts, lists);
        let last_first = functions.iter().rev();
        let mut usage: Vec<Usage> = last_first
            .map(|&function| scan.visit_function(function))
            .collect();
        usage.reverse();
        scan.settle_selections();
        let trees = scan.find_trees(program);
        let Scan {
            mut facts,
            lists,
            ops,
            ..
        } = scan;
        let Lists {
            jumps,
            backward,
            candidates,
        } = lists;
        let candidate_slots = || candidates.iter().rev().map(|&slot| slot as usize);
        let carry = |facts: &mut [Fact]| {
            for &function in functions {
                liveness::carry(function, Halves::EFFECT, facts);
            }
        };
        let settle = |facts: &mut [Fact]| {
            if !backward.is_empty() {
                liveness::settle(functions, &usage, &jumps, facts);
            }
        };
        let mut rewrites = Vec::new();
        if ops.has(AluOp::Lsh) && ops.has(AluOp::Rsh) {
            idiom::find_rotations(insns, candidate_slots(), &mut facts, &mut rewrites);
        }
        if usage[0].packet && backward.is_empty() && functions.len() == 1 {
            idiom::find_header_lengths(insns, candidate_slots(), &mut facts, &mut rewrites);
        }
        if !rewrites.is_empty() {
            carry(&mut facts);
        }
        settle(&mut facts);
        if counts.ones && ops.has(AluOp::Mul) && ops.has(AluOp::Rsh) {
            let slots = candidate_slots();
            if idiom::find_counts(insns, functions, slots, counts, &mut facts, &mut rewrites) {
                carry(&mut facts);
                settle(&mut facts);
            }
        }
        if program.evidence() == Evidence::Trusted {
            let jumps = backward.iter().rev().map(|&slot| slot as usize);
            copies::find(insns, jumps, &mut facts, &mut rewrites);
        }
        JUMPS.with(|spare| spare.give_back(jumps));
        BACKWARD.with(|spare| spare.give_back(backward));
        CANDIDATES.with(|spare| spare.give_back(candidates));
        Analysis {
            facts,
            usage,
            trees,
            rewrites,
        }
    }

    /// How a slot is done otherwise than it is written.
    pub(crate) fn rewrite(&self, slot: usize) -> Option<Rewrite> {
        self.facts[slot].rewritten(&self.rewrites)
    }

    /// How many jumps lead to each slot, other than selections; many are counted as
    /// 255.
    pub(crate) fn arrivals(&self) -> Vec<u8> {
        let mut counts = vec![0u8; self.facts.len()];
        for target in self.facts.iter().filter_map(|fact| match fact.jump() {
            Some(target) if !fact.is_selection() => Some(target),
            _ => None,
        }) {
            counts[target] = counts[target].saturating_add(1);
        }
        counts
    }
}
