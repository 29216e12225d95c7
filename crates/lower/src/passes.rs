//! Passes over programs, by the verifier's facts or by definitions and uses. Each is optional: a
//! program computes the same without it.

mod accesses;
mod bits;
mod constants;
mod key_stores;
mod loops;
mod masks;
mod tail_calls;
pub(crate) mod unused;

use std::sync::Arc;

use isa::ebpf::Insn;
use verifier::ProgramFacts;
use vm::{DirectAccess, MapHandle, TailTable};

use crate::callbacks::{Callbacks, OneFunction};
use crate::code::FunctionStack;
use crate::counts::CountPlan;
use crate::flow::Cfg;
use crate::packet_loads;
use crate::patch::{Patched, Patches};

/// A pass over programs; those that rest on definitions and uses alone ([`Passes::OF_ALL`]) are
/// made over all programs, the others over verified ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Pass {
    /// Results that are constant, among them loads of frozen data, become moves.
    Constants,
    /// Branches that always go the same way become jumps.
    Branches,
    /// Instructions that no run reaches are removed.
    DeadCode,
    /// Lookups in arrays become computations of addresses.
    ArrayLookups,
    /// Lookups in other maps, and output to ring buffers, call a function of the map.
    MapFunctions,
    /// Tail calls to a constant index load the target without the checks of the index.
    TailCalls,
    /// Helpers that call one function over and over become loops.
    Loops,
    /// Lookups in hash tables are made without a call.
    HashLookups,
    /// Zero extensions and masks of bits that the verifier proved zero are removed.
    Masks,
    /// Instructions whose results nothing uses are removed.
    UnusedResults,
    /// Zero extensions of upper halves that are zero, or that nothing uses, are removed.
    ZeroExtensions,
}

/// A set of passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes(u16);

impl Pass {
    /// All passes.
    pub const ALL: &[Pass] = &[
        Pass::Constants,
        Pass::Branches,
        Pass::DeadCode,
        Pass::ArrayLookups,
        Pass::MapFunctions,
        Pass::TailCalls,
        Pass::Loops,
        Pass::HashLookups,
        Pass::Masks,
        Pass::UnusedResults,
        Pass::ZeroExtensions,
    ];
}

impl Passes {
    /// All passes.
    pub const ALL: Passes = Passes(u16::MAX >> (16 - Pass::ALL.len()));
    /// The passes over all programs.
    pub const OF_ALL: Passes = Passes::NONE
        .with(Pass::UnusedResults)
        .with(Pass::ZeroExtensions);
    /// No pass.
    pub const NONE: Passes = Passes(0);

    /// The set without a pass.
    #[must_use]
    pub const fn without(self, pass: Pass) -> Passes {
        Passes(self.0 & !(1 << pass as u8))
    }

    /// The set with a pass.
    #[must_use]
    pub const fn with(self, pass: Pass) -> Passes {
        Passes(self.0 | 1 << pass as u8)
    }

    /// True if the pass is in the set.
    pub const fn contains(self, pass: Pass) -> bool {
        self.0 & 1 << pass as u8 != 0
    }
}

impl Default for Passes {
    fn default() -> Passes {
        Passes::ALL
    }
}

/// A program after the passes.
pub(crate) struct Optimized {
    pub(crate) code: Patched,
    /// First slots of functions, ascending, and the stack that they access.
    pub(crate) stack: Vec<(usize, FunctionStack)>,
    /// Operations on maps, to which instructions refer by address or by
    /// [`LoweredCall::MapFunction`](crate::LoweredCall::MapFunction) and
    /// [`LoweredCall::HashLookup`](crate::LoweredCall::HashLookup).
    pub(crate) accesses: Vec<DirectAccess>,
    /// Addresses of slots of program arrays, by the index of
    /// [`LoweredCall::TailSlot`](crate::LoweredCall::TailSlot).
    pub(crate) tail_slots: Vec<u64>,
}

/// What is known of a program beside its instructions.
pub(crate) struct Source<'a> {
    pub(crate) callbacks: &'a Callbacks,
    pub(crate) facts: &'a ProgramFacts,
    pub(crate) maps: &'a [Option<MapHandle>],
    pub(crate) tables: &'a [Option<Arc<TailTable>>],
    /// One function of it, whose code alone is made; `None` for the whole program.
    pub(crate) function: Option<&'a OneFunction>,
    /// Where it counts, if it does.
    pub(crate) counts: Option<&'a CountPlan>,
}

/// Applies the passes. `insns` are the instructions of the program, with references to maps
/// and contexts resolved. Calls of helpers that call functions of the program and packet
/// loads of classic BPF are replaced in any case.
///
/// `None` if a jump becomes too long even without the passes that add instructions.
pub(crate) fn apply(
    mut insns: Vec<Insn>,
    source: &Source<'_>,
    passes: Passes,
) -> Option<Optimized> {
    let facts = source.facts;
    if passes.contains(Pass::Constants) {
        constants::fold_constants(&mut insns, facts);
    }
    if passes.contains(Pass::Branches) {
        constants::decide_branches(&mut insns, facts);
    }
    patched(&insns, source, passes).or_else(|| patched(&insns, source, Passes::NONE))
}

/// The program with its sequences in place.
fn patched(insns: &[Insn], source: &Source<'_>, passes: Passes) -> Option<Optimized> {
    let Source {
        callbacks,
        facts,
        maps,
        tables,
        function,
        counts,
    } = *source;
    let mut patches = Patches::default();
    let mut accesses = accesses::Accesses::new(maps, passes);
    let mut tail_calls = tail_calls::TailCalls::new(tables, passes);
    let mut loops = loops::Loops::new(insns.len(), passes);
    let jumps = Cfg::of(insns);
    // The slot behind those that were replaced together.
    let mut next = 0;
    let removes_dead = passes.contains(Pass::DeadCode);
    for (slot, (&insn, fact)) in insns.iter().zip(&facts.insns).enumerate() {
        if slot < next || matches!(insn, Insn::Imm64High) {
            continue;
        }
        if slot == 0
            && let Some(function) = function
        {
            patches.replace(slot, insn, function.entry.clone());
            continue;
        }
        if function.is_some_and(|function| !function.keeps(slot))
            || !fact.is_reached && removes_dead
        {
            patches.replace(slot, insn, Vec::new());
            continue;
        }
        if passes.contains(Pass::Masks) {
            next = slot + masks::redundant(insns, slot, facts, &jumps);
            (slot..next).for_each(|slot| patches.replace(slot, insns[slot], Vec::new()));
            if next > slot {
                continue;
            }
        }
        if let Some(sequence) = loops
            .replace(insn, slot, fact, facts, &mut accesses)
            .or_else(|| callbacks.replace(insn, slot, fact, facts))
            .or_else(|| packet_loads::replace(insn))
            .or_else(|| bits::expand(insn))
            .or_else(|| accesses.replace(insns, slot, facts))
            .or_else(|| tail_calls.replace(insn, fact))
        {
            patches.replace(slot, insn, sequence);
        }
    }
    let insns: Vec<Insn> = insns.iter().copied().chain(loops.insns()).collect();
    let mut code = patches.apply(&insns)?;
    code.set_last_origins(&loops.origins());
    if let Some(plan) = counts {
        code = code.counting(plan, |slot| {
            facts.insns[slot].is_reached
                && function.is_none_or(|function| slot > 0 && function.keeps(slot))
        })?;
    }
    let stacks = facts.stack.iter().zip(&facts.address_slots);
    let reached = stacks.map(|(&(start, bytes), &address_slots)| {
        let stack = FunctionStack {
            bytes,
            address_slots,
        };
        (start as usize, stack)
    });
    let is_kept = |start| {
        let of_function = function.is_none_or(|function| start == 0 || function.keeps(start));
        of_function && facts.insns[start].is_reached
    };
    let reached = reached.filter(|(start, _)| is_kept(*start));
    let stack = reached.chain(loops.stack());
    let stack = stack
        .map(|(start, stack)| (code.place(start), stack))
        .collect();
    Some(Optimized {
        code,
        stack,
        accesses: accesses.into_used(),
        tail_slots: tail_calls.into_slots(),
    })
}
