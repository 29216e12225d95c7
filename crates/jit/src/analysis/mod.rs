//! What the code generator wants to know of a program before it writes a byte:
//! where jumps lead, which values are still wanted after each instruction, what
//! each function uses, what can be done in a better way.
//!
//! Liveness is kept for the halves of registers apart, because most 64-bit
//! operations whose upper half no one reads can be done on 32 bits, and because
//! an instruction whose result no one reads at all is left out. One pass forward
//! notes what each instruction reads and writes (`transfer.rs`), what each
//! function uses (`usage.rs`) and where idioms may be; it asks each instruction
//! once of what kind it is. Jumps are gathered on the way, and then mark their
//! targets. Rewrites are found (`idiom.rs`); passes backward
//! over each function then carry what is wanted from its uses to where it is made
//! (`liveness.rs`). Rewrites that depend on that are found last, and if there are
//! any, it is carried again. Last, copies at the end of loops are looked at (`copies.rs`).

mod copies;
mod idiom;
mod liveness;
mod transfer;
mod usage;
mod window;

pub(crate) use idiom::{Count, Counts, Rewrite};
pub(crate) use transfer::Halves;
pub(crate) use usage::Usage;
pub(crate) use window::Window;

use isa::ebpf::{AluOp, Insn, Operand, Reg, Size};
use lower::jumps::{Arrivals, jump_target};
use lower::trees::{self, Trees};
use lower::{Evidence, Function, Lowered};

use idiom::Candidates;
use transfer::Transfer;
use usage::Tally;

use crate::spare::{Spare, bytes_of};

/// How many slots behind a selection may ask the same again.
const AGAIN: usize = 3;

/// How control leaves a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To the next slot.
    Next,
    /// To the next slot or to the target.
    Branch,
    /// To the target.
    Goto,
    /// Out of the function.
    Exit,
}

/// What makes a slot more than the next of its kind, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks(u8);

impl Marks {
    const NONE: Marks = Marks(0);
    const TARGET: Marks = Marks(1);
    const LOOP: Marks = Marks(2);
    const SELECTION: Marks = Marks(4);
    const DEAD: Marks = Marks(8);
    const REWRITTEN: Marks = Marks(16);
    const LOOK_UP: Marks = Marks(32);
    const ABSORBED: Marks = Marks(64);
    /// Control may leave it for elsewhere than the next slot.
    const LEAVES: Marks = Marks(128);

    const fn and(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    const fn overlap(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    fn set(&mut self, mark: Marks, holds: bool) {
        self.0 = self.0 & !mark.0 | if holds { mark.0 } else { 0 };
    }
}

/// What is known of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fact {
    transfer: Transfer,
    /// What is wanted after it.
    pub(crate) after: Halves,
    /// Where a jump leads; for what is done in another way, the position in
    /// [`Analysis::rewrites`].
    link: u32,
    way: Way,
    marks: Marks,
}

impl Fact {
    /// Of an instruction that no jump leads to, as far as is known.
    #[inline(always)]
    fn new(transfer: Transfer, way: Way) -> Fact {
        Fact {
            transfer,
            after: Halves::EFFECT,
            link: 0,
            way,
            marks: match way {
                Way::Next => Marks::NONE,
                _ => Marks::LEAVES,
            },
        }
    }

    /// Notes that it is done in another way.
    fn rewrite(&mut self, rewrite: Rewrite, rewrites: &mut Vec<Rewrite>) {
        self.link = rewrites.len() as u32;
        self.transfer = rewrite.transfer().unwrap_or(self.transfer);
        self.marks.set(Marks::REWRITTEN, true);
        rewrites.push(rewrite);
    }

    /// Whether it is written as it stands, for those only that come from the slot
    /// before it.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        const OTHERWISE: Marks = Marks::TARGET
            .and(Marks::DEAD)
            .and(Marks::REWRITTEN)
            .and(Marks::LOOK_UP);
        !self.marks.overlap(OTHERWISE)
    }

    /// Whether nothing is to be done before it is written as it stands.
    #[inline(always)]
    pub(crate) fn is_unmarked(&self) -> bool {
        const UNSETTLING: Marks = Marks(!Marks::SELECTION.and(Marks::LEAVES).0);
        !self.marks.overlap(UNSETTLING)
    }

    /// Whether a jump leads here, other than one that is a selection, or a call.
    #[inline(always)]
    pub(crate) fn is_target(&self) -> bool {
        self.marks.overlap(Marks::TARGET)
    }

    /// Whether a jump backward leads here.
    pub(crate) fn is_loop(&self) -> bool {
        self.marks.overlap(Marks::LOOP)
    }

    /// Whether it is a branch over a single move: the move is done or not, without
    /// a jump.
    pub(crate) fn is_selection(&self) -> bool {
        self.marks.overlap(Marks::SELECTION)
    }

    /// Whether its result is not wanted.
    #[inline(always)]
    pub(crate) fn is_dead(&self) -> bool {
        self.marks.overlap(Marks::DEAD)
    }

    /// Whether it is done otherwise than it is written.
    pub(crate) fn is_rewritten(&self) -> bool {
        self.marks.overlap(Marks::REWRITTEN)
    }

    /// Whether a look-up that does for a tree of comparisons begins here.
    pub(crate) fn is_look_up(&self) -> bool {
        self.marks.overlap(Marks::LOOK_UP)
    }

    /// Whether a look-up before it does what it does whenever control gets here.
    pub(crate) fn is_absorbed(&self) -> bool {
        self.marks.overlap(Marks::ABSORBED)
    }

    /// What is wanted before it.
    #[inline(always)]
    pub(crate) fn before(&self) -> Halves {
        self.transfer.carry(self.after).unwrap_or(self.after)
    }

    /// Whether it reads any part of the register.
    #[inline(always)]
    pub(crate) fn reads(&self, reg: Reg) -> bool {
        self.transfer.uses(reg)
    }

    /// What it writes.
    pub(crate) fn written(&self) -> Halves {
        self.transfer.written()
    }

    /// Whether it writes the register.
    #[inline(always)]
    pub(crate) fn writes(&self, reg: Reg) -> bool {
        self.transfer.writes(reg)
    }

    /// Whether control may leave it for elsewhere and for the next slot.
    pub(crate) fn branches(&self) -> bool {
        self.way == Way::Branch
    }

    /// Where it jumps, always or sometimes.
    #[inline(always)]
    pub(crate) fn jump(&self) -> Option<usize> {
        matches!(self.way, Way::Branch | Way::Goto).then_some(self.link as usize)
    }
}

/// See the module's text.
pub(crate) struct Analysis {
    room: Box<Room>,
    /// Comparisons of one register that are done by a look-up.
    pub(crate) trees: Trees,
    rewrites: Vec<Rewrite>,
}

/// The vectors of an analysis.
#[derive(Default)]
struct Room {
    facts: Vec<Fact>,
    /// For each function.
    usage: Vec<Usage>,
    /// The slots that jump.
    jumps: Vec<u32>,
    /// Those of them that lead backward.
    backward: Vec<u32>,
    /// Slots that may be selections.
    selections: Vec<u32>,
}

thread_local! {
    static ROOM: Spare<Box<Room>> = const { Spare::none() };
}

impl Analysis {
    pub(crate) fn of(program: &Lowered, counts: Counts) -> Analysis {
        let insns = program.insns();
        let functions = program.functions();
        let mut room = ROOM.with(Spare::take);
        let Room {
            facts,
            usage,
            jumps,
            backward,
            selections,
        } = &mut *room;
        facts.clear();
        facts.reserve(insns.len());
        usage.clear();
        jumps.clear();
        backward.clear();
        selections.clear();
        let mut scan = Scan {
            insns,
            // A classic filter's result is 32 bits.
            result: match program.evidence() {
                Evidence::Classic(_) => Halves::low(Reg::R0),
                Evidence::Trusted => Halves::both(Reg::R0),
            },
            facts,
            candidates: Candidates::default(),
            jumps,
            backward,
            selections,
        };
        for &function in functions {
            usage.push(scan.visit_function(function));
        }
        scan.settle_selections();
        let trees = scan.find_trees(program);
        let Scan {
            facts,
            ref candidates,
            backward,
            ..
        } = scan;
        let mut rewrites = idiom::find(insns, candidates, facts);
        if !usage[0].loops && functions.len() == 1 {
            let loads = &candidates.byte_loads;
            idiom::find_header_lengths(insns, loads, facts, &mut rewrites);
        }
        let settle = |facts: &mut Vec<Fact>| {
            for (function, usage) in functions.iter().zip(&*usage) {
                liveness::settle(*function, usage.loops, facts);
            }
        };
        settle(facts);
        if idiom::find_counts(insns, functions, candidates, counts, facts, &mut rewrites) {
            for fact in &mut *facts {
                fact.after = Halves::EFFECT;
            }
            settle(facts);
        }
        if program.evidence() == Evidence::Trusted {
            copies::find(insns, backward, facts, &mut rewrites);
        }
        Analysis {
            room,
            trees,
            rewrites,
        }
    }

    /// Gives the thread what it worked in.
    pub(crate) fn end(self) {
        let room = self.room;
        // The others have a place for each jump, at most.
        let held = bytes_of(&room.facts) + bytes_of(&room.usage) + 3 * bytes_of(&room.jumps);
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
        let fact = &self.facts()[slot];
        fact.is_rewritten()
            .then(|| self.rewrites[fact.link as usize])
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

/// The pass forward.
struct Scan<'a> {
    insns: &'a [Insn],
    /// What is wanted where a function ends.
    result: Halves,
    facts: &'a mut Vec<Fact>,
    candidates: Candidates,
    /// As in [`Room`].
    jumps: &'a mut Vec<u32>,
    backward: &'a mut Vec<u32>,
    selections: &'a mut Vec<u32>,
}

impl Scan<'_> {
    fn visit_function(&mut self, function: Function) -> Usage {
        let Function { start, end } = function;
        let insns = &self.insns[start..end];
        let mut tally = Tally::default();
        let first_jump = self.jumps.len();
        let Scan {
            facts,
            candidates,
            jumps,
            result,
            ..
        } = self;
        let visited = insns.iter().zip(start..).map(|(&insn, slot)| match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let transfer = Transfer::of_alu(op, width, dst, src);
                tally.note_alu(op, transfer);
                candidates.visit_alu(slot, op, dst, src);
                Fact::new(transfer, Way::Next)
            }
            Insn::Load { dst, base, off, .. } => {
                tally.note_load(dst, base, off);
                candidates.forget(Halves::both(dst));
                Fact::new(Transfer::of_load(dst, base), Way::Next)
            }
            Insn::Jump {
                width, dst, src, ..
            } => {
                let transfer = Transfer::of_branch(width, dst, src);
                tally.note_values(transfer);
                jumps.push(slot as u32);
                Fact::new(transfer, Way::Branch)
            }
            _ => {
                let transfer = Transfer::of(insn, *result);
                tally.note(insn, transfer);
                candidates.forget(transfer.written());
                let way = match insn {
                    Insn::PacketAbs { size: Size::B, .. } => {
                        candidates.byte_loads.push(slot);
                        Way::Next
                    }
                    Insn::MayGoto { .. } => Way::Branch,
                    Insn::Goto { .. } | Insn::GotoLong { .. } => Way::Goto,
                    Insn::Exit => Way::Exit,
                    _ => Way::Next,
                };
                if matches!(way, Way::Branch | Way::Goto) {
                    jumps.push(slot as u32);
                }
                Fact::new(transfer, way)
            }
        });
        facts.extend(visited);
        facts[start].marks.set(Marks::TARGET, true);
        let mut loops = false;
        for index in first_jump..self.jumps.len() {
            loops |= self.note_jump(self.jumps[index] as usize);
        }
        tally.finish(loops)
    }

    /// Notes where a jump leads; says whether it leads backward.
    fn note_jump(&mut self, slot: usize) -> bool {
        let target =
            jump_target(self.insns[slot], slot).expect("a lowered program's jumps lead to slots");
        self.facts[slot].link = target as u32;
        if is_selection(self.insns, slot, target) {
            self.facts[slot].marks.set(Marks::SELECTION, true);
            self.selections.push(slot as u32);
            return false;
        }
        let marks = &mut self.facts[target].marks;
        marks.set(Marks::TARGET, true);
        let backward = target <= slot;
        if backward {
            marks.set(Marks::LOOP, true);
            self.backward.push(slot as u32);
        }
        backward
    }

    /// A branch over a move to which something else leads is no selection.
    fn settle_selections(&mut self) {
        for index in 0..self.selections.len() {
            let slot = self.selections[index] as usize;
            if self.facts[slot + 1].is_target() {
                self.jumps_after_all(slot);
            }
        }
    }

    /// Makes a branch of a selection.
    fn jumps_after_all(&mut self, slot: usize) {
        self.facts[slot].marks.set(Marks::SELECTION, false);
        self.facts[slot + 2].marks.set(Marks::TARGET, true);
    }

    /// The trees of comparisons. Their look-ups jump to every leaf, and their
    /// comparisons are no selections.
    fn find_trees(&mut self, program: &Lowered) -> Trees {
        let mut jumps = self.jumps.iter().map(|&slot| slot as usize);
        if self.jumps.len() < trees::SMALLEST || !jumps.any(|slot| trees::begins(self.insns, slot))
        {
            return Trees::default();
        }
        // Backward jumps of the others draw on a budget.
        let functions = match program.evidence() {
            Evidence::Classic(_) => None,
            Evidence::Trusted => Some(program.functions()),
        };
        let arrivals = Arrivals::of_jumps(self.insns, self.jumps.clone());
        let trees = Trees::find(self.insns, &arrivals, functions, Window::is_worth_it);
        for slot in trees.slots() {
            if self.facts[slot].is_selection() {
                self.jumps_after_all(slot);
            }
            let marks = &mut self.facts[slot].marks;
            marks.set(Marks::LOOK_UP, trees.starts(slot));
            marks.set(Marks::ABSORBED, trees.absorb(slot));
        }
        for leaf in trees.iter().flat_map(|tree| [tree.keys, tree.ranges]) {
            for piece in leaf {
                self.facts[piece.target as usize]
                    .marks
                    .set(Marks::TARGET, true);
            }
        }
        trees
    }
}

/// Whether a branch leads over nothing but a move to a register, which is how
/// compilers write a choice between two values. They choose so where they expect
/// no pattern in the choice, so there is no jump to predict. Where the same is asked
/// again soon after, there is one anyway, and what is chosen need not wait for what
/// is compared: a binary search then takes 0.87 of the time.
fn is_selection(insns: &[Insn], slot: usize, target: usize) -> bool {
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
