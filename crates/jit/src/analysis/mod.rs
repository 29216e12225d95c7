//! What the code generator wants to know of a program before it writes a byte:
//! where jumps lead, which values are still wanted after each instruction, what
//! each function uses, what can be done in a better way.
//!
//! Liveness is kept for the halves of registers apart, because most 64-bit
//! operations whose upper half no one reads can be done on 32 bits, and because
//! an instruction whose result no one reads at all is left out. One pass forward
//! notes what each instruction reads and writes (`transfer.rs`) and what each
//! function uses (`usage.rs`); rewrites are found (`idiom.rs`); passes backward
//! over each function then carry what is wanted from its uses to where it is made
//! (`liveness.rs`). Rewrites that depend on that are found last, and if there are
//! any, it is carried again.

mod idiom;
mod liveness;
mod transfer;
mod usage;

pub(crate) use idiom::{Count, Counts, Rewrite};
pub(crate) use transfer::Halves;
pub(crate) use usage::Usage;

use isa::ebpf::{AluOp, Insn, Operand, Reg};
use lower::chains::{self, Chains};
use lower::jumps::{Arrivals, jump_target};
use lower::{Evidence, Lowered};

use idiom::Candidates;
use transfer::Transfer;

/// How control leaves a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// To the next slot.
    #[default]
    Next,
    /// To the next slot or to the target.
    Branch,
    /// To the target.
    Goto,
    /// Out of the function.
    Exit,
}

/// What is known of one slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fact {
    transfer: Transfer,
    /// What is wanted after it.
    pub(crate) after: Halves,
    /// What is wanted before it.
    pub(crate) before: Halves,
    /// Where a jump leads; for what is no jump and done in another way, the
    /// position in [`Analysis::rewrites`] and 1.
    link: u32,
    way: Way,
    /// How many jumps lead here, other than selections; many are counted as 255.
    pub(crate) arrivals: u8,
    /// A jump leads here, other than one that is a selection.
    pub(crate) is_target: bool,
    /// A branch over a single move: the move is done or not, without a jump.
    pub(crate) is_selection: bool,
    /// A jump backward leads here.
    pub(crate) is_loop: bool,
    /// Its result is not wanted.
    pub(crate) is_dead: bool,
}

impl Fact {
    /// Whether it is done otherwise than it is written.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.link != 0 && matches!(self.way, Way::Next)
    }

    /// Whether control may leave it for elsewhere and for the next slot.
    fn branches(&self) -> bool {
        self.way == Way::Branch
    }
}

/// See the module's text.
pub(crate) struct Analysis {
    pub(crate) facts: Vec<Fact>,
    /// For each function.
    pub(crate) usage: Vec<Usage>,
    /// Comparisons of one register that are done by a look-up.
    pub(crate) chains: Chains,
    rewrites: Vec<Rewrite>,
}

impl Analysis {
    pub(crate) fn of(program: &Lowered, counts: Counts) -> Analysis {
        let insns = program.insns();
        let mut scan = Scan {
            insns,
            // A classic filter's result is 32 bits.
            result: match program.evidence() {
                Evidence::Classic(_) => Halves::low(Reg::R0),
                Evidence::Trusted => Halves::both(Reg::R0),
            },
            facts: vec![Fact::default(); insns.len()],
            candidates: Candidates::default(),
            branches: 0,
            selections: Vec::new(),
        };
        let functions = program.functions();
        let usage: Vec<Usage> = functions
            .iter()
            .map(|function| {
                let mut usage = Usage::default();
                for slot in function.start..function.end {
                    scan.visit(slot, &mut usage);
                }
                usage
            })
            .collect();
        scan.settle_selections();
        let chains = scan.find_chains();
        let Scan {
            mut facts,
            candidates,
            ..
        } = scan;
        let mut rewrites = idiom::find(insns, &candidates, &mut facts);
        let settle = |facts: &mut Vec<Fact>| {
            for (function, usage) in functions.iter().zip(&usage) {
                liveness::settle(*function, usage.loops, facts);
            }
        };
        settle(&mut facts);
        if idiom::find_counts(
            insns,
            functions,
            &candidates,
            counts,
            &mut facts,
            &mut rewrites,
        ) {
            for fact in &mut facts {
                fact.before = Halves::NONE;
            }
            settle(&mut facts);
        }
        Analysis {
            facts,
            usage,
            chains,
            rewrites,
        }
    }

    /// How a slot is done otherwise than it is written.
    pub(crate) fn rewrite(&self, slot: usize) -> Option<Rewrite> {
        let fact = &self.facts[slot];
        fact.is_rewritten()
            .then(|| self.rewrites[fact.link as usize - 1])
    }
}

/// The pass forward.
struct Scan<'a> {
    insns: &'a [Insn],
    /// What is wanted where a function ends.
    result: Halves,
    facts: Vec<Fact>,
    candidates: Candidates,
    /// How many there are.
    branches: usize,
    /// Their slots.
    selections: Vec<usize>,
}

impl Scan<'_> {
    #[inline(always)]
    fn visit(&mut self, slot: usize, usage: &mut Usage) {
        let insn = self.insns[slot];
        let transfer = Transfer::of(insn, self.result);
        usage.note(insn, transfer);
        self.facts[slot].transfer = transfer;
        self.candidates.visit(slot, insn, transfer);
        let way = match insn {
            Insn::Jump { .. } | Insn::MayGoto { .. } => Way::Branch,
            Insn::Goto { .. } | Insn::GotoLong { .. } => Way::Goto,
            Insn::Exit => Way::Exit,
            _ => return,
        };
        self.facts[slot].way = way;
        if let Some(target) = jump_target(insn, slot) {
            usage.loops |= target <= slot;
            self.branches += usize::from(way == Way::Branch);
            self.note_jump(slot, target);
        }
    }

    fn note_jump(&mut self, slot: usize, target: usize) {
        self.facts[slot].link = target as u32;
        if is_selection(self.insns, slot, target) {
            self.facts[slot].is_selection = true;
            self.selections.push(slot);
        } else {
            let fact = &mut self.facts[target];
            fact.is_target = true;
            fact.arrivals = fact.arrivals.saturating_add(1);
        }
        self.facts[target].is_loop |= target <= slot;
    }

    /// A branch over a move to which something else leads is no selection.
    fn settle_selections(&mut self) {
        for slot in std::mem::take(&mut self.selections) {
            if self.facts[slot + 1].is_target {
                self.facts[slot].is_selection = false;
                self.facts[slot + 2].is_target = true;
            }
        }
    }

    /// The chains of comparisons. Their look-ups jump to every target, and their
    /// comparisons are no selections.
    fn find_chains(&mut self) -> Chains {
        if self.branches < chains::SHORTEST {
            return Chains::default();
        }
        let chains = Chains::find(self.insns, &Arrivals::of(self.insns));
        for chain in chains.iter() {
            for link in chain.links {
                let slot = link.slot as usize;
                self.facts[link.target as usize].is_target = true;
                if self.facts[slot].is_selection {
                    self.facts[slot].is_selection = false;
                    self.facts[slot + 2].is_target = true;
                }
            }
            self.facts[chain.default].is_target = true;
        }
        chains
    }
}

/// Whether a branch leads over nothing but a move to a register, which is how
/// compilers write a choice between two values. They choose so where they expect
/// no pattern in the choice, so there is no jump to predict.
fn is_selection(insns: &[Insn], slot: usize, target: usize) -> bool {
    let over_one = target == slot + 2 && matches!(insns[slot], Insn::Jump { .. });
    over_one
        && match insns[slot + 1] {
            Insn::Alu {
                op: AluOp::Mov,
                src,
                ..
            } => src != Operand::Reg(Reg::R10),
            _ => false,
        }
}
