//! Liveness of register halves: backward propagation, iterated to a fixpoint.
//!
//! The first pass assumes that nothing is live at the targets of back edges ([`propagate`]).
//! Then the jumps are visited in descending order: where more is live at a target than was
//! assumed, the difference is propagated from the jump backward until it is empty
//! ([`iterate`]).
//!
//! Cost: linear: after [`MOST_PASSES`] passes over the jumps of a function, everything is
//! assumed to be live at the targets of its back edges, which is safe.

use crate::Function;

use super::node::Node;
use super::transfer::Halves;
use super::{OfSlot, jumps_of};

/// Passes after which everything is assumed to be live at back edges.
const MOST_PASSES: usize = 8;

/// Computes the live-out set of every slot of a function, with `behind` live at the
/// targets of back edges.
pub(super) fn propagate(function: Function, behind: Halves, slots: &mut [impl OfSlot]) {
    let mut live = Halves::EFFECT;
    for at in (function.start..function.end).rev() {
        let node = slots[at].node();
        if node.leaves() {
            live = live_behind(node, at, live, behind, slots);
        }
        live = slots[at].node_mut().set_live_out(live);
    }
}

/// Live-out set of an instruction with control flow; `next` is the live-in set of its next
/// slot.
fn live_behind(
    node: &Node,
    at: usize,
    next: Halves,
    behind: Halves,
    slots: &[impl OfSlot],
) -> Halves {
    let live = match node.stops() {
        true => Halves::EFFECT,
        false => next,
    };
    live.union(match node.jump() {
        Some(target) if target > at => slots[target].node().live_in(),
        Some(_) => behind,
        None => Halves::NONE,
    })
}

/// Propagates liveness backward after the definitions and uses of slots from `first` to `last`
/// changed, until the live sets are as before; expects the state after [`propagate`] with
/// nothing live at back edges. False if a jump target was reached before that, so that other
/// paths may be affected.
pub(super) fn propagate_change(first: usize, last: usize, slots: &mut [impl OfSlot]) -> bool {
    let mut live = slots[last].node().live_out;
    let mut at = last;
    loop {
        live = slots[at].node_mut().set_live_out(live);
        let Some(before) = at.checked_sub(1) else {
            return false;
        };
        let node = slots[before].node();
        if slots[at].node().is_target() {
            // The jumps to this slot see the same live-in set.
            return at <= first && !node.leaves() && node.live_out == live;
        }
        if node.stops() {
            return true;
        }
        live = live.union(match node.jump() {
            Some(target) if target > before => slots[target].node().live_in(),
            Some(_) | None => Halves::EFFECT,
        });
        // The target of a branch may hide a difference before the branch.
        let follows_branch = before > 0 && slots[before - 1].node().branches();
        if at <= first && live == node.live_out && !follows_branch {
            return true;
        }
        at = before;
    }
}

/// Iterates to the fixpoint after [`propagate`] with nothing live at back edges; `jumps` in
/// ascending order.
pub(super) fn iterate(functions: &[Function], jumps: &[u32], slots: &mut [impl OfSlot]) {
    for &function in functions.iter().rev() {
        let jumps = jumps_of(function, jumps);
        let is_back_edge = |slot: &u32| slots[*slot as usize].node().jump() <= Some(*slot as usize);
        // Slots after the last back edge are unaffected.
        if let Some(last) = jumps.iter().rposition(is_back_edge) {
            iterate_loops(function, &jumps[..=last], slots);
        }
    }
}

/// Iterates one function with the jumps up to its last back edge.
fn iterate_loops(function: Function, jumps: &[u32], slots: &mut [impl OfSlot]) {
    for _ in 1..MOST_PASSES {
        if !propagate_from_jumps(jumps, slots) {
            return;
        }
    }
    propagate(function, Halves::ALL, slots);
}

/// Propagates from the target of each jump; true if the live-in set of a loop header
/// changed.
fn propagate_from_jumps(jumps: &[u32], slots: &mut [impl OfSlot]) -> bool {
    let mut changed = false;
    for &jump in jumps.iter().rev() {
        let at = jump as usize;
        if let Some(target) = slots[at].node().jump() {
            let live = slots[target].node().live_in();
            changed |= propagate_more(&mut slots[..=at], live);
        }
    }
    changed
}

/// Adds to the live-out set of the last of some slots, which jumps, and propagates the
/// difference along fall-through edges; true if the live-in set of a loop header changed.
fn propagate_more(slots: &mut [impl OfSlot], more: Halves) -> bool {
    let Some((jump, before)) = slots.split_last_mut() else {
        return false;
    };
    let jump = jump.node_mut();
    let mut more = more.without(jump.live_out);
    if more == Halves::NONE {
        return false;
    }
    let mut changed = jump.is_loop();
    more = jump.add_live_out(more);
    for slot in before.iter_mut().rev() {
        let node = slot.node_mut();
        more = more.without(node.live_out);
        if more == Halves::NONE {
            break;
        }
        if node.is_rare() {
            if node.stops() {
                break;
            }
            changed |= node.is_loop();
        }
        more = node.add_live_out(more);
    }
    changed
}
