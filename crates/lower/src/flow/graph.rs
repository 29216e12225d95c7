//! The edges of a program: jumps and where they lead.

use std::iter;

use Flow::{Branch, Call, Exit, Goto, GotoReg, Next, Nowhere, SkipOne};
use isa::ebpf::{Flow, Insn};

/// The target of a jump at `slot`; `None` for other instructions and for targets before the
/// program.
#[inline]
pub fn jump_target(insn: &Insn, slot: usize) -> Option<usize> {
    match insn.flow() {
        Branch(distance) | Goto(distance) => target(slot, distance),
        Next | SkipOne | GotoReg(_) | Call(_) | Exit | Nowhere => None,
    }
}

/// The target of a local call at `slot`; `None` for other instructions and for targets before the
/// program.
pub(crate) fn call_target(insn: &Insn, slot: usize) -> Option<usize> {
    match insn.flow() {
        Call(distance) => target(slot, distance?),
        Next | SkipOne | Branch(_) | Goto(_) | GotoReg(_) | Exit | Nowhere => None,
    }
}

/// The slot at a distance from the next one.
#[inline]
fn target(slot: usize, distance: i32) -> Option<usize> {
    usize::try_from(slot as i64 + 1 + i64::from(distance)).ok()
}

/// True if the instruction falls through to the next slot.
#[inline]
pub fn falls_through(insn: &Insn) -> bool {
    match insn.flow() {
        Next | SkipOne | Branch(_) | Call(_) | Nowhere => true,
        Goto(_) | GotoReg(_) | Exit => false,
    }
}

/// The control-flow graph of a program. Calls are no edges, so that functions are apart.
///
/// Cost: two passes over the slots and two over the jumps.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    /// The slots of the jumps, ascending.
    jumps: Vec<u32>,
    /// The slots of the jumps by their targets.
    sources: Vec<u32>,
    /// By slot: the index of the first of its jumps in `sources`; one more for the end.
    first_source: Vec<u32>,
}

impl Cfg {
    /// The graph of a program.
    pub fn of(insns: &[Insn]) -> Cfg {
        let mut jumps = Vec::with_capacity(insns.len() / 4 + 1);
        for (slot, insn) in (0..).zip(insns) {
            if let Branch(_) | Goto(_) = insn.flow() {
                jumps.push(slot);
            }
        }
        let target = |slot: usize| jump_target(&insns[slot], slot);
        Cfg::of_jumps(insns.len(), jumps, target)
    }

    /// The graph of a program of `len` slots with these jumps, in ascending order.
    pub(super) fn of_jumps(
        len: usize,
        jumps: Vec<u32>,
        target: impl Fn(usize) -> Option<usize>,
    ) -> Cfg {
        let edges = || {
            jumps.iter().filter_map(|&slot| {
                let target = target(slot as usize)?;
                (target < len).then_some((slot, target))
            })
        };
        // The counts, then the ends, then from the last jump on the starts.
        let mut first_source = vec![0; len + 1];
        for (_, target) in edges() {
            first_source[target] += 1;
        }
        let mut end = 0;
        for first in &mut first_source {
            end += *first;
            *first = end;
        }
        let mut sources = vec![0; end as usize];
        for (slot, target) in edges() {
            first_source[target] -= 1;
            sources[first_source[target] as usize] = slot;
        }
        Cfg {
            jumps,
            sources,
            first_source,
        }
    }

    /// The slots of the jumps, in ascending order.
    pub fn jumps(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.jumps.iter().map(|&slot| slot as usize)
    }

    /// Number of jumps.
    pub(crate) fn jump_count(&self) -> usize {
        self.jumps.len()
    }

    /// The slots of the jumps to a slot.
    pub fn jumps_to(&self, slot: usize) -> &[u32] {
        &self.sources[self.first_source[slot] as usize..self.first_source[slot + 1] as usize]
    }

    /// Number of jumps to a slot.
    #[inline]
    pub fn count(&self, slot: usize) -> u32 {
        self.first_source[slot + 1] - self.first_source[slot]
    }

    /// True if the slot is a jump target.
    #[inline]
    pub fn is_target(&self, slot: usize) -> bool {
        self.count(slot) != 0
    }

    /// True if none of the `count` slots after `slot` is a jump target.
    pub fn none_within(&self, slot: usize, count: usize) -> bool {
        self.first_source[slot + 1] == self.first_source[slot + 1 + count]
    }

    /// The slots from which control comes to a slot: that before it, and the jumps to it.
    pub fn predecessors(&self, insns: &[Insn], slot: usize) -> impl Iterator<Item = usize> {
        let before = slot.checked_sub(1);
        let before = before.filter(|&before| falls_through(&insns[before]));
        iter::chain(
            before,
            self.jumps_to(slot).iter().map(|&slot| slot as usize),
        )
    }
}
