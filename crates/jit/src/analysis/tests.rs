//! What is live after each slot is compared with the least solution of what it has to
//! hold, which is found by asking every slot again until nothing changes.

use isa::ebpf::Insn;
use lower::Lowered;
use testkit::ebpf::{Choices, Dialect, Entry, Generator};
use vm::Unchecked;

use super::Analysis;
use super::fact::Fact;
use super::transfer::Halves;
use crate::Optimizations;

/// All that is live after a slot, given what is live before every slot.
fn after(facts: &[Fact], slot: usize, before: &[Halves]) -> Halves {
    let fact = &facts[slot];
    let next = (!fact.stops()).then_some(slot + 1);
    let ways = [next, fact.jump()].into_iter().flatten();
    ways.fold(Halves::EFFECT, |all, way| all.union(before[way]))
}

/// The least solution.
fn live(facts: &[Fact]) -> Vec<Halves> {
    let mut before = vec![Halves::EFFECT; facts.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for slot in (0..facts.len()).rev() {
            let after = after(facts, slot, &before);
            let now = facts[slot].transfer.propagate(after).unwrap_or(after);
            changed |= before[slot] != now;
            before[slot] = now;
        }
    }
    let slots = 0..facts.len();
    slots.map(|slot| after(facts, slot, &before)).collect()
}

#[test]
fn nothing_is_wanted_without_use_and_all_that_has_one() {
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
            assert_eq!(facts[slot].after, least, "seed {seed}, slot {slot}");
            slots += 1;
        }
    }
    assert!(slots > 100_000, "{slots}");
}
