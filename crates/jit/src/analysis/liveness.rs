//! Liveness of register halves: backward propagation, iterated to a fixpoint.
//!
//! The first pass assumes that nothing is live at the targets of back edges
//! ([`propagate`]; the scan does the same as it goes). Then the jumps are visited in
//! descending order: where more is live at a target than was assumed, the difference is
//! propagated from the jump backward until it is empty ([`iterate`]).
//!
//! Cost: linear: after [`MOST_PASSES`] passes over the jumps of a function, everything is
//! assumed to be live at the targets of its back edges, which is safe.

use lower::Function;

use super::fact::{Fact, Marks};
use super::transfer::Halves;
use super::usage::Usage;

/// Passes after which everything is assumed to be live at back edges.
const MOST_PASSES: usize = 8;

/// Computes the live-out set of every slot of a function, with `behind` live at the
/// targets of back edges.
pub(super) fn propagate(function: Function, behind: Halves, facts: &mut [Fact]) {
    let mut live = Halves::EFFECT;
    for at in (function.start..function.end).rev() {
        let fact = &facts[at];
        if fact.leaves() {
            if fact.stops() {
                live = Halves::EFFECT;
            }
            live = live.union(match fact.jump() {
                Some(target) if target > at => facts[target].live_in(),
                Some(_) => behind,
                None => Halves::NONE,
            });
        }
        live = facts[at].set_live_out(live);
    }
}

/// Propagates liveness backward after the transfer functions of slots from `first` to
/// `last` changed, until the live sets are as before; expects the state after [`propagate`]
/// with nothing live at back edges. False if a jump target was reached before that, so that
/// other paths may be affected.
pub(super) fn propagate_change(first: usize, last: usize, facts: &mut [Fact]) -> bool {
    let mut live = facts[last].live_out;
    let mut at = last;
    loop {
        live = facts[at].set_live_out(live);
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let fact = &facts[before];
        if facts[at].is_target() {
            // The jumps to this slot see the same live-in set.
            return at <= first && !fact.leaves() && fact.live_out == live;
        }
        if fact.stops() {
            return true;
        }
        live = live.union(match fact.jump() {
            Some(target) if target > before => facts[target].live_in(),
            _ => Halves::EFFECT,
        });
        // The move of a selection may hide a difference before it.
        let is_conditional_move = before > 0 && facts[before - 1].is_selection();
        if at <= first && live == fact.live_out && !is_conditional_move {
            return true;
        }
        at = before;
    }
}

/// Iterates to the fixpoint after [`propagate`] with nothing live at back edges; `jumps` in
/// descending order.
pub(super) fn iterate(functions: &[Function], usage: &[Usage], jumps: &[u32], facts: &mut [Fact]) {
    let mut before = jumps;
    for (&function, usage) in functions.iter().zip(usage).rev() {
        let own = before.partition_point(|&slot| slot as usize >= function.start);
        let (jumps, rest) = before.split_at(own);
        before = rest;
        if usage.loops {
            iterate_loops(function, jumps, facts);
        }
    }
}

/// Iterates one function with the given jumps.
fn iterate_loops(function: Function, jumps: &[u32], facts: &mut [Fact]) {
    let is_back_edge = |slot: &u32| facts[*slot as usize].jump() <= Some(*slot as usize);
    // Slots after the last back edge are unaffected.
    let first = jumps.iter().position(is_back_edge).unwrap_or(jumps.len());
    for _ in 1..MOST_PASSES {
        if !propagate_from_jumps(&jumps[first..], facts) {
            return;
        }
    }
    propagate(function, Halves::ALL, facts);
}

/// Propagates from the target of each jump; true if the live-in set of a loop header
/// changed.
fn propagate_from_jumps(jumps: &[u32], facts: &mut [Fact]) -> bool {
    let mut changed = false;
    for &jump in jumps {
        let at = jump as usize;
        if let Some(target) = facts[at].jump() {
            let live = facts[target].live_in();
            changed |= propagate_more(&mut facts[..=at], live);
        }
    }
    changed
}

/// Adds to the live-out set of the last of some slots, which jumps, and propagates the
/// difference along fall-through edges; true if the live-in set of a loop header changed.
fn propagate_more(facts: &mut [Fact], more: Halves) -> bool {
    /// Properties that few slots have.
    const RARE: Marks = Marks::LOOP.union(Marks::STOPS);
    let Some((jump, before)) = facts.split_last_mut() else {
        return false;
    };
    let mut more = more.without(jump.live_out);
    if more == Halves::NONE {
        return false;
    }
    let mut changed = jump.is_loop();
    more = jump.add_live_out(more);
    for fact in before.iter_mut().rev() {
        more = more.without(fact.live_out);
        if more == Halves::NONE {
            break;
        }
        if fact.marks.overlap(RARE) {
            if fact.stops() {
                break;
            }
            changed |= fact.is_loop();
        }
        more = fact.add_live_out(more);
    }
    changed
}
