//! The live-out set of each slot is compared with the least solution of the data-flow
//! equations, computed by naive iteration, and generated programs with what the passes over
//! definitions and uses remove.

use isa::ebpf::{Insn, assemble};
use lower::flow::{Halves, Node};
use lower::{Lowered, MemoryProgram, Pass, Passes};
use testkit::ebpf::{Choices, Dialect, Entry, Generator};
use vm::Unchecked;

/// Live-out set of a slot, given the live-in sets of all slots.
fn live_out(nodes: &[Node], slot: usize, before: &[Halves]) -> Halves {
    let node = &nodes[slot];
    let next = (!node.stops()).then_some(slot + 1);
    let ways = [next, node.jump()].into_iter().flatten();
    ways.fold(Halves::EFFECT, |all, way| all.union(before[way]))
}

/// The least solution of the data-flow equations: the live-out set of each slot.
fn live(nodes: &[Node]) -> Vec<Halves> {
    let mut before = vec![Halves::EFFECT; nodes.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for slot in (0..nodes.len()).rev() {
            let live_out = live_out(nodes, slot, &before);
            let transfer = nodes[slot].transfer();
            let now = transfer.propagate(live_out).unwrap_or(live_out);
            changed |= before[slot] != now;
            before[slot] = now;
        }
    }
    let slots = 0..nodes.len();
    slots.map(|slot| live_out(nodes, slot, &before)).collect()
}

fn lowered(insns: Vec<Insn>, passes: Passes) -> Option<Lowered<MemoryProgram>> {
    // SAFETY: nothing runs it.
    let program = unsafe { Unchecked::assume_safe(insns) };
    Lowered::from_unchecked_with(program, passes).ok()
}

#[oracle::test]
fn liveness_is_the_least_solution() {
    let generator = Generator::new(Dialect::Engines);
    let mut slots = 0;
    for seed in 0..6000 {
        let program = generator.program(&mut Choices::from_seed(seed));
        let insns: Vec<Insn> = program.code(Entry::Memory);
        for passes in [Passes::NONE, Passes::OF_ALL] {
            let Some(program) = lowered(insns.clone(), passes) else {
                continue;
            };
            let nodes = program.def_use().nodes();
            for (slot, least) in live(nodes).into_iter().enumerate() {
                assert_eq!(nodes[slot].live_out, least, "seed {seed}, slot {slot}");
                slots += 1;
            }
        }
    }
    assert!(slots > 200_000, "{slots}");
}

/// The slots that passes leave of a program.
fn kept(text: &str, passes: Passes) -> Vec<usize> {
    let insns = assemble(text).expect(text);
    let lowered = lowered(insns, passes).expect(text);
    let slots = 0..lowered.insns().len();
    slots.map(|slot| lowered.origin(slot)).collect()
}

#[oracle::test]
fn unused_results_are_removed() {
    let text =
        "r3 = 5 ll\nr2 = *(u32 *)(r1 + 0)\nr4 = 1\nr0 = r2\nif r0 == 0 goto +1\nr4 = 2\nexit";
    let passes = Passes::NONE.with(Pass::UnusedResults);

    assert_eq!(kept(text, passes), [2, 4, 5, 7]);
    assert_eq!(kept(text, Passes::NONE), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[oracle::test]
fn zero_extensions_are_removed_by_every_definition() {
    let passes = Passes::NONE.with(Pass::ZeroExtensions);
    let rest = "r0 = r2\nexit";
    let kept = |text: &str| kept(&format!("{text}\n{rest}"), passes).len();
    // The definition clears the upper half.
    assert_eq!(kept("w2 = *(u32 *)(r1 + 0)\nw2 = w2"), 3);
    assert_eq!(kept("r2 = *(u64 *)(r1 + 0)\nw2 = w2"), 4);
    // Through a copy, and as two shifts.
    assert_eq!(
        kept("r3 = *(u16 *)(r1 + 0)\nr2 = r3\nr2 <<= 32\nr2 >>= 32"),
        4
    );
    // Each of two definitions, or one of them only.
    let either = |other: &str| {
        let branch = "r2 = *(u8 *)(r1 + 0)\nif r2 == 0 goto +1";
        format!("{branch}\n{other}\nw2 = w2")
    };
    assert_eq!(kept(&either("w2 += 1")), 5);
    assert_eq!(kept(&either("r2 -= 1")), 6);
    // What the function was entered with.
    assert_eq!(kept("w2 = w2"), 3);
    // One that clears the half for another only stays.
    assert_eq!(kept("w2 = w2\nw2 = w2"), 3);
    // The upper half of the result is not used.
    assert_eq!(kept("w2 = w2\nw2 += 1"), 3);
    assert_eq!(kept("r2 <<= 32\nr2 >>= 32\nw2 += 1"), 3);
}
