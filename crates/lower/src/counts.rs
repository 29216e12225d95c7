//! Counting of what runs execute: where a verified program has counters, and what they say of its
//! instructions and branches.
//!
//! A counter stands at the start of each basic block, and on each way of a conditional jump that
//! leads to a block with other predecessors (a critical edge or a join). Every count is that of a
//! counter, none a difference, so that runs that end within a function count what they executed. Calls
//! after which a run may not go on end a block. Cost: linear.

use isa::ebpf::{Callee, Effect, Flow, Insn};
use spec::helpers::HelperId;
use verifier::{Branch, Proof};
use vm::Counters;

use crate::LoweredCall;
use crate::flow::{falls_through, jump_target};
use crate::patch::{Patched, moved};

/// Where a program counts.
#[derive(Clone, Debug)]
pub struct CountPlan {
    /// By slot: the counter of the block that begins there.
    blocks: Vec<Option<u32>>,
    /// By slot: the counters of both ways of a conditional jump.
    branches: Vec<Option<BranchCounts>>,
    /// Number of counters.
    len: usize,
}

/// The counters of a conditional jump; `None` for a way that no run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BranchCounts {
    jumps: Option<EdgeCounter>,
    falls: Option<EdgeCounter>,
}

/// The counter of one way of a conditional jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EdgeCounter {
    /// That of the block that it alone leads to.
    Block(u32),
    /// One of its own.
    Own(u32),
}

impl EdgeCounter {
    fn index(self) -> u32 {
        match self {
            EdgeCounter::Block(index) | EdgeCounter::Own(index) => index,
        }
    }

    fn own(self) -> Option<u32> {
        match self {
            EdgeCounter::Block(_) => None,
            EdgeCounter::Own(index) => Some(index),
        }
    }
}

/// How often runs took a conditional jump; `None` for a way that no run can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchCount {
    /// Runs that jumped.
    pub jumped: Option<u64>,
    /// Runs that went on behind it.
    pub fell: Option<u64>,
}

/// The counters of a program with the places where it increments them.
#[derive(Clone, Debug)]
pub struct Counting {
    /// The places.
    pub plan: CountPlan,
    /// The counters.
    pub counters: Counters,
}

impl Counting {
    /// Counters for a program that the verifier accepted, which several threads may run if they are shared.
    pub fn of(proof: &Proof, is_shared: bool) -> Counting {
        let plan = CountPlan::of(proof);
        Counting {
            counters: Counters::new(plan.len, is_shared),
            plan,
        }
    }

    /// How often each instruction was executed, by slot.
    pub fn insns(&self) -> Vec<u64> {
        let mut count = 0;
        let blocks = self.plan.blocks.iter();
        blocks
            .map(|block| {
                count = block.map_or(count, |index| self.counters.get(index as usize));
                count
            })
            .collect()
    }

    /// By counter: instructions of a run that each of its increments stands for.
    pub fn weights(&self, insns: &[Insn]) -> Vec<u32> {
        let mut weights = vec![0; self.counters.len()];
        let mut counter = None;
        for (block, insn) in self.plan.blocks.iter().zip(insns) {
            counter = block.or(counter);
            if let (Some(counter), false) = (counter, matches!(insn, Insn::Imm64High)) {
                weights[counter as usize] += 1;
            }
        }
        weights
    }

    /// How often the conditional jumps went either way, with their slots.
    pub fn branches(&self) -> impl Iterator<Item = (usize, BranchCount)> {
        let count =
            |edge: Option<EdgeCounter>| edge.map(|edge| self.counters.get(edge.index() as usize));
        let branches = self.plan.branches.iter().enumerate();
        branches.filter_map(move |(slot, branch)| {
            let branch = (*branch)?;
            let counts = BranchCount {
                jumped: count(branch.jumps),
                fell: count(branch.falls),
            };
            Some((slot, counts))
        })
    }
}

impl CountPlan {
    fn of(proof: &Proof) -> CountPlan {
        let insns = proof.program().decode();
        let facts = &proof.facts().insns;
        let reached = reached(proof);
        // By slot: the ways that lead there.
        let mut ways = vec![0_u32; insns.len() + 1];
        let mut leads = vec![false; insns.len() + 1];
        for subprog in proof.program().subprogs() {
            ways[subprog.start as usize] += 1;
            leads[subprog.start as usize] = true;
        }
        leads[0] = true;
        for (slot, insn) in insns.iter().enumerate() {
            if !reached[slot] {
                continue;
            }
            let (jumps, falls) = outcomes(*insn, facts[slot].branch);
            if let Some(target) = jump_target(insn, slot) {
                leads[target] = true;
                ways[target] += u32::from(jumps);
            }
            if falls {
                ways[slot + 1] += 1;
            }
            leads[slot + 1] |= ends_block(*insn);
        }
        let mut plan = CountPlan {
            blocks: vec![None; insns.len()],
            branches: vec![None; insns.len()],
            len: 0,
        };
        for slot in 0..insns.len() {
            // Code that no run reaches has a block of its own, whose count stays 0.
            let before = slot.checked_sub(1).is_none_or(|before| reached[before]);
            if leads[slot] && reached[slot] || before != reached[slot] {
                plan.blocks[slot] = Some(plan.counter());
            }
        }
        for (slot, insn) in insns.iter().enumerate() {
            let Insn::Jump { .. } = insn else {
                continue;
            };
            if !reached[slot] {
                continue;
            }
            let (jumps, falls) = outcomes(*insn, facts[slot].branch);
            let target = jump_target(insn, slot).unwrap_or(slot + 1);
            let mut edge = |is_taken: bool, to: usize| {
                is_taken.then(|| match (ways[to], plan.blocks.get(to)) {
                    (1, Some(Some(block))) => EdgeCounter::Block(*block),
                    _ => EdgeCounter::Own(plan.counter()),
                })
            };
            let branch = BranchCounts {
                jumps: edge(jumps, target),
                falls: edge(falls, slot + 1),
            };
            plan.branches[slot] = Some(branch);
        }
        plan
    }

    fn counter(&mut self) -> u32 {
        self.len += 1;
        (self.len - 1) as u32
    }
}

/// By slot: true if a run may come there; the second slot of a 64-bit immediate is as the first.
pub fn reached(proof: &Proof) -> Vec<bool> {
    let mut is_reached = false;
    let insns = proof.program().decode();
    let facts = insns.iter().zip(&proof.facts().insns);
    facts
        .map(|(insn, fact)| {
            is_reached = match insn {
                Insn::Imm64High => is_reached,
                _ => fact.is_reached,
            };
            is_reached
        })
        .collect()
}

/// The ways that an instruction may go: it jumps, it goes on behind.
fn outcomes(insn: Insn, branch: Option<Branch>) -> (bool, bool) {
    match (insn.flow(), branch) {
        (Flow::Branch(_), Some(Branch::Always)) => (true, false),
        (Flow::Branch(_), Some(Branch::Never)) => (false, true),
        (Flow::Branch(_), Some(Branch::Both) | None) => (true, true),
        (Flow::Goto(_), _) => (true, false),
        (
            Flow::Next
            | Flow::SkipOne
            | Flow::GotoReg(_)
            | Flow::Call(_)
            | Flow::Exit
            | Flow::Nowhere,
            _,
        ) => (false, falls_through(&insn)),
    }
}

/// True if a block ends behind an instruction: a run may go on elsewhere, or not at all.
fn ends_block(insn: Insn) -> bool {
    match insn.flow() {
        Flow::Next => insn.effect() == Some(Effect::Packet),
        Flow::SkipOne => false,
        Flow::Branch(_) | Flow::Goto(_) | Flow::GotoReg(_) | Flow::Exit => true,
        Flow::Call(_) => match insn {
            // Helpers that call functions of the program, from which an exception may leave.
            Insn::Call(Callee::Helper(number)) => HelperId::from_number(number)
                .is_some_and(|helper| helper == HelperId::TailCall || helper.callback().is_some()),
            _ => true,
        },
        Flow::Nowhere => insn != Insn::Imm64High,
    }
}

/// A way of a jump that counts, to be written behind the next instruction that does not fall
/// through.
struct Stub {
    counter: u32,
    /// Place of the jump in the counting code.
    jump: usize,
    target: usize,
    origin: u32,
}

impl Patched {
    /// The program with its counts. `has` tells which slots of the program it has.
    ///
    /// `None` if a jump becomes too long.
    pub(crate) fn counting(self, plan: &CountPlan, has: impl Fn(usize) -> bool) -> Option<Patched> {
        let mut blocks: Vec<Vec<u32>> = vec![Vec::new(); self.insns.len() + 1];
        let mut branches = vec![None; self.insns.len() + 1];
        for slot in (0..plan.blocks.len()).filter(|slot| has(*slot)) {
            let place = self.place(slot);
            blocks[place].extend(plan.blocks[slot]);
            let is_branch = |insn: &&Insn| {
                let is_jump = matches!(insn, Insn::Jump { .. } | Insn::Goto { .. });
                is_jump && self.origins[place] == slot as u32
            };
            if self.insns.get(place).filter(is_branch).is_some() {
                branches[place] = plan.branches[slot];
            }
        }
        let mut counting = Patched {
            insns: Vec::new(),
            origins: Vec::new(),
            places: Vec::new(),
        };
        // Of instructions: their places and the old ones. Of stubs: their places and the old ones of
        // their targets.
        let mut jumps = Vec::new();
        let mut stub_jumps = Vec::new();
        let mut stubs: Vec<Stub> = Vec::new();
        let mut places = Vec::with_capacity(self.insns.len() + 1);
        for (place, (insn, origin)) in self.insns.iter().zip(&self.origins).enumerate() {
            places.push(counting.insns.len());
            for counter in &blocks[place] {
                counting.push(*origin as usize, LoweredCall::Count(*counter).insn());
            }
            let now = counting.insns.len();
            counting.push(*origin as usize, *insn);
            let branch: Option<BranchCounts> = branches[place];
            let own = |edge: Option<EdgeCounter>| edge.and_then(EdgeCounter::own);
            let (jumps_to, falls) = match (branch, insn) {
                // It always goes one way.
                (Some(branch), Insn::Goto { .. }) => (own(branch.jumps.or(branch.falls)), None),
                (Some(branch), _) => (own(branch.jumps), own(branch.falls)),
                (None, _) => (None, None),
            };
            match (jump_target(insn, place), jumps_to) {
                (Some(target), Some(counter)) => stubs.push(Stub {
                    counter,
                    jump: now,
                    target,
                    origin: *origin,
                }),
                _ => jumps.push((now, place)),
            }
            if let Some(counter) = falls {
                counting.push(*origin as usize, LoweredCall::Count(counter).insn());
            }
            if !falls_through(insn) {
                for stub in stubs.drain(..) {
                    let start = counting.insns.len();
                    let distance = i32::try_from(start - stub.jump - 1).ok()?;
                    counting.insns[stub.jump] =
                        counting.insns[stub.jump].with_distance(distance)?;
                    counting.push(
                        stub.origin as usize,
                        LoweredCall::Count(stub.counter).insn(),
                    );
                    counting.push(stub.origin as usize, Insn::Goto { off: 0 });
                    stub_jumps.push((start + 1, stub.target));
                }
            }
        }
        places.push(counting.insns.len());
        for (now, before) in jumps {
            let place = |slot: usize| places[slot] as u32;
            counting.insns[now] = moved(counting.insns[now], before, now as u32, place)?;
        }
        for (now, target) in stub_jumps {
            let distance = places[target] as i64 - now as i64 - 1;
            let distance = i32::try_from(distance).ok()?;
            counting.insns[now] = counting.insns[now].with_distance(distance)?;
        }
        counting.places = self.places.iter().map(|place| places[*place]).collect();
        Some(counting)
    }
}
