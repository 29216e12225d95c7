//! Loops that are entered in the middle, written in the order in which they run.
//!
//! Compilers for BPF write some loops as `goto body; test: ...; if more goto body;
//! ...; goto out; body: ...; goto test; out:`. Each round jumps twice where once is
//! enough. Here the body is written first, then what stood before it. Only the order
//! of writing changes.
//!
//! Only short loops are written so: one that counts to 254 took 0.75 of the time, but
//! long ones with jumps of their own up to 1.1 times it. Where the test falls into the
//! body (`if done goto out`), the other order gained nothing.

use isa::ebpf::Insn;
use lower::jumps::falls_through;

use super::generator::Generator;
use crate::Optimization;
use crate::analysis::Fact;

/// The longest loop that is rotated, in slots.
const LONGEST: usize = 16;

/// A loop from a slot behind the jump that enters it up to `body`, and from there up
/// to `end`, where it is left to.
#[derive(Clone, Copy)]
pub(super) struct Loop {
    start: usize,
    body: usize,
    end: usize,
}

impl Generator<'_> {
    /// Writes slots one after the other; the code of `next` follows.
    pub(super) fn write_range(&mut self, start: usize, end: usize, next: usize) {
        self.last = end - 1;
        self.next = next;
        self.write_slots(start, end);
    }

    /// The loop that the jump at a slot enters in the middle, if it is to be written
    /// in another order.
    pub(super) fn loop_entered(&self, slot: usize, body: usize) -> Option<Loop> {
        let start = slot + 1;
        let near = (start + 1..=start + LONGEST).contains(&body);
        if !near
            || !self.facts[start].is_loop()
            || self.has_budget()
            || !self.uses(Optimization::LoopRotation)
        {
            return None;
        }
        let leads_to_start = |at: &usize| {
            let jumps = matches!(self.insns[*at], Insn::Goto { .. } | Insn::GotoLong { .. });
            jumps && self.target(*at) == start
        };
        let back = (body..self.last.min(start + LONGEST)).find(leads_to_start)?;
        let found = Loop {
            start,
            body,
            end: back + 1,
        };
        self.pays(found).then_some(found)
    }

    /// Whether what stands before the body has a branch to it and does not fall into
    /// it, and no part of it is done by a look-up.
    fn pays(&self, Loop { start, body, end }: Loop) -> bool {
        let branches =
            |fact: &Fact| fact.branches() && !fact.is_selection() && fact.jump() == Some(body);
        let looked_up = |fact: &Fact| fact.is_look_up() || fact.is_absorbed();
        !falls_through(self.insns[body - 1])
            && self.facts[start..body - 1].iter().any(branches)
            && !self.facts[start..end].iter().any(looked_up)
    }

    /// Writes a loop; how many slots that was.
    pub(super) fn write_loop(&mut self, Loop { start, body, end }: Loop) -> usize {
        let outer = (self.last, self.next);
        self.write_range(body, end, start);
        self.write_range(start, body, end);
        self.forget_due();
        (self.last, self.next) = outer;
        end - start
    }

    /// The slot whose code stands behind that of a slot.
    pub(super) fn following(&self, slot: usize) -> usize {
        if slot == self.last {
            self.next
        } else {
            slot + 1
        }
    }
}
