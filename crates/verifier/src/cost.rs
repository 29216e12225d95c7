//! Verification cost by instruction, by subprogram and by call chain.
//!
//! Counted only on request ([`Options::collect_cost`](crate::Options::collect_cost)): two
//! numbers for each slot of the program, and two for each slot on each call chain that
//! reaches it. Their sums are the kernel's counts of processed instructions and of states
//! made.

use std::collections::BTreeMap;

use isa::ebpf::{Callee, Imm64, Insn};

use crate::analysis::Analysis;
use crate::env::SubprogAux;
use crate::input::Input;
use crate::state::State;

/// Bytes to which the kernel rounds the stack of a function.
const STACK_GRANULE: u32 = 16;

/// Number of times that the walk passed an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InsnCost {
    /// Times that it was walked over.
    pub processed: u32,
    /// States made at it.
    pub states: u32,
}

/// A subprogram, with its stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubprogCost {
    /// Name, if BTF has one.
    pub name: String,
    /// First instruction.
    pub start: u32,
    /// Instruction behind the last.
    pub end: u32,
    /// Bytes of stack, as far as the walk came.
    pub stack_depth: u32,
    /// Subprograms that it calls or passes as callbacks: the instruction, and the index of
    /// the subprogram.
    pub calls: Vec<(u32, usize)>,
}

impl SubprogCost {
    /// Bytes of stack as the kernel counts them along a call chain.
    pub fn counted_stack(&self) -> u32 {
        self.stack_depth.next_multiple_of(STACK_GRANULE)
    }
}

/// Cost of a function on one call chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainCost {
    /// The chain that calls it: an index lower than its own; `None` for the functions that
    /// verification enters with.
    pub caller: Option<usize>,
    /// The call instruction in the caller.
    pub call: Option<u32>,
    /// First instruction of the function.
    pub start: u32,
    /// By instruction, what was counted there on this chain.
    pub insns: BTreeMap<u32, InsnCost>,
}

/// Cost of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// By instruction slot.
    pub insns: Vec<InsnCost>,
    /// By subprogram, in the order of the program.
    pub subprogs: Vec<SubprogCost>,
    /// By call chain, callers before what they call.
    pub chains: Vec<ChainCost>,
}

impl Cost {
    /// The call chain with the most stack, as indices of subprograms, outermost first.
    pub fn deepest_chain(&self) -> Vec<usize> {
        self.heaviest_chain(SubprogCost::counted_stack)
    }

    /// The call chain with the most functions, as indices of subprograms.
    pub fn longest_chain(&self) -> Vec<usize> {
        self.heaviest_chain(|_| 1)
    }

    /// The chain from the main program or a root with the greatest sum. Programs do not
    /// recurse; a chain that would is cut.
    fn heaviest_chain(&self, weight: impl Fn(&SubprogCost) -> u32) -> Vec<usize> {
        let count = self.subprogs.len();
        // Sum and next function of the best chain from each subprogram.
        let mut best: Vec<Option<(u32, Option<usize>)>> = vec![None; count];
        for root in 0..count {
            self.weigh(root, &weight, &mut best, 0);
        }
        let heaviest = (0..count)
            .rev()
            .max_by_key(|&index| best[index].map(|(sum, _)| sum));
        let mut chain = Vec::new();
        let mut next = heaviest;
        while let Some(index) = next.filter(|_| chain.len() < count) {
            chain.push(index);
            next = best[index].and_then(|(_, next)| next);
        }
        chain
    }

    fn weigh(
        &self,
        index: usize,
        weight: &impl Fn(&SubprogCost) -> u32,
        best: &mut [Option<(u32, Option<usize>)>],
        depth: usize,
    ) -> u32 {
        if let Some((sum, _)) = best[index] {
            return sum;
        }
        let subprog = &self.subprogs[index];
        let own = weight(subprog);
        let mut found = (own, None);
        if depth < self.subprogs.len() {
            for &(_, callee) in &subprog.calls {
                let sum = own.saturating_add(self.weigh(callee, weight, best, depth + 1));
                if sum > found.0 {
                    found = (sum, Some(callee));
                }
            }
        }
        best[index] = Some(found);
        found.0
    }
}

/// Counts while the walk goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct CostCounter {
    insns: Vec<InsnCost>,
    chains: Vec<ChainCost>,
    /// Chains by caller, call and function.
    index: BTreeMap<(Option<usize>, i32, u32), usize>,
}

impl CostCounter {
    /// A counter for a program of so many slots.
    pub(crate) fn new(slots: usize) -> CostCounter {
        CostCounter {
            insns: vec![InsnCost::default(); slots],
            ..CostCounter::default()
        }
    }

    /// Counts that the walk passes the instruction of `state`.
    pub(crate) fn count_insn(&mut self, state: &State, analysis: &Analysis, insn_idx: u32) {
        self.add(state, analysis, insn_idx, |cost| cost.processed += 1);
    }

    /// Counts that a state is made at the instruction of `state`.
    pub(crate) fn count_state(&mut self, state: &State, analysis: &Analysis, insn_idx: u32) {
        self.add(state, analysis, insn_idx, |cost| cost.states += 1);
    }

    fn add(
        &mut self,
        state: &State,
        analysis: &Analysis,
        insn_idx: u32,
        count: impl Fn(&mut InsnCost),
    ) {
        if let Some(cost) = self.insns.get_mut(insn_idx as usize) {
            count(cost);
        }
        let mut chain = None;
        for number in 0..=state.curframe {
            let frame = state.frame(number);
            let start = analysis.subprogs[frame.subprogno as usize].start;
            chain = Some(self.chain(chain, frame.callsite, start));
        }
        if let Some(chain) = chain {
            count(self.chains[chain].insns.entry(insn_idx).or_default());
        }
    }

    fn chain(&mut self, caller: Option<usize>, callsite: i32, start: u32) -> usize {
        let next = self.chains.len();
        let index = *self.index.entry((caller, callsite, start)).or_insert(next);
        if index == next {
            self.chains.push(ChainCost {
                caller,
                call: u32::try_from(callsite).ok(),
                start,
                insns: BTreeMap::new(),
            });
        }
        index
    }

    /// The counts, with the subprograms that contain them.
    pub(crate) fn finish(
        self,
        input: &Input<'_>,
        analysis: &Analysis,
        subprogs: &[SubprogAux],
    ) -> Cost {
        let of_subprog = |(index, info): (usize, &crate::analysis::SubprogInfo)| SubprogCost {
            name: info.name.clone(),
            start: info.start,
            end: info.end,
            stack_depth: subprogs.get(index).map_or(0, |aux| aux.stack_depth),
            calls: calls(input, analysis, subprogs, info.start..info.end),
        };
        Cost {
            insns: self.insns,
            subprogs: analysis
                .subprogs
                .iter()
                .enumerate()
                .map(of_subprog)
                .collect(),
            chains: self.chains,
        }
    }
}

/// The subprograms that instructions call or pass as callbacks. Asynchronous callbacks run
/// on a stack of their own.
fn calls(
    input: &Input<'_>,
    analysis: &Analysis,
    subprogs: &[SubprogAux],
    range: std::ops::Range<u32>,
) -> Vec<(u32, usize)> {
    let mut calls = Vec::new();
    for at in range {
        let (off, is_call) = match input.insns[at as usize] {
            Insn::Call(Callee::Local(off)) => (off, true),
            Insn::LoadImm64 {
                imm: Imm64::Func { off, .. },
                ..
            } => (off, false),
            _ => continue,
        };
        let target = at.wrapping_add_signed(off.wrapping_add(1));
        let Some(callee) = analysis.subprog_at(target) else {
            continue;
        };
        if is_call || subprogs.get(callee).is_some_and(|aux| !aux.is_async_cb) {
            calls.push((at, callee));
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::{Cost, SubprogCost};

    fn subprog(stack_depth: u32, calls: &[usize]) -> SubprogCost {
        SubprogCost {
            stack_depth,
            calls: calls.iter().map(|&callee| (0, callee)).collect(),
            ..SubprogCost::default()
        }
    }

    #[test]
    fn the_deepest_chain_is_the_one_with_the_most_stack() {
        let cost = Cost {
            subprogs: vec![
                subprog(8, &[1, 2]),
                subprog(100, &[]),
                subprog(16, &[3]),
                subprog(200, &[]),
            ],
            ..Cost::default()
        };
        assert_eq!(cost.deepest_chain(), [0, 2, 3]);
        assert_eq!(cost.longest_chain(), [0, 2, 3]);
        assert_eq!(cost.subprogs[0].counted_stack(), 16);
    }

    #[test]
    fn a_recursion_ends() {
        let cost = Cost {
            subprogs: vec![subprog(8, &[1]), subprog(8, &[0])],
            ..Cost::default()
        };
        assert_eq!(cost.longest_chain().len(), 2);
    }
}
