//! The live-out set of each slot is compared with the least solution of the data-flow
//! equations, computed by naive iteration.

use isa::ebpf::Insn;
use lower::Lowered;
use testkit::ebpf::{Choices, Dialect, Entry, Generator};
use vm::Unchecked;

use super::Analysis;
use super::fact::Fact;
use super::transfer::Halves;
use crate::Optimizations;

/// Live-out set of a slot, given the live-in sets of all slots.
fn live_out(facts: &[Fact], slot: usize, before: &[Halves]) -> Halves {
    let fact = &facts[slot];
    let next = (!fact.stops()).then_some(slot + 1);
    let ways = [next, fact.jump()].into_iter().flatten();
    ways.fold(Halves::EFFECT, |all, way| all.union(before[way]))
}

/// The least solution of the data-flow equations: the live-out set of each slot.
fn live(facts: &[Fact]) -> Vec<Halves> {
    let mut before = vec![Halves::EFFECT; facts.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for slot in (0..facts.len()).rev() {
            let live_out = live_out(facts, slot, &before);
            let now = facts[slot].transfer.propagate(live_out).unwrap_or(live_out);
            changed |= before[slot] != now;
            before[slot] = now;
        }
    }
    let slots = 0..facts.len();
    slots.map(|slot| live_out(facts, slot, &before)).collect()
}

#[test]
fn liveness_is_the_least_solution() {
    let generator = Generator::new(Dialect::Engines);
    let mut slots = 0;
    for seed in 0..6000 {
        let program = generator.program(&mut Choices::from_seed(seed));
        let insns: Vec<Insn> = program.code(Entry::Memory);
        // SAFETY: nothing runs it.
        let program = unsafe { Unchecked::assume_safe(insns) };
        let Ok(program) = Lowered::from_unchecked(program) else {
            continue;
        };
        let analysis = Analysis::of(&program, Optimizations::ALL);
        let facts = analysis.facts();
        for (slot, least) in live(facts).into_iter().enumerate() {
            assert_eq!(facts[slot].live_out, least, "seed {seed}, slot {slot}");
            slots += 1;
        }
    }
    assert!(slots > 100_000, "{slots}");
}
