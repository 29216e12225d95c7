//! Control flow and data flow of a program: one graph with definitions and uses, which every
//! later stage shares.
//!
//! [`Cfg`] holds the edges. [`DefUse`] adds for each slot what the instruction reads and
//! writes, which parts of that depend on how much of the result is live, and the live-out set,
//! for both halves of every register ([`Node`]). It is computed once, after the last pass
//! that rewrites the program, and carried in [`LoweredCode`](crate::LoweredCode). A stage that
//! replaces instructions by others for its own purpose, as instruction selection does, keeps
//! a copy of the nodes in records of its own ([`OfSlot`]) and has the change propagated
//! ([`DefUse::propagate_change`]).
//!
//! Invariant: the live-out set of each slot is the least solution of the data-flow equations
//! (`tests/liveness.rs` compares both), or a superset where loops nest deeply. Cost: linear.
//! Instructions are read by reference, field by field: a copy of one that was just written in
//! parts waits for the stores.

mod definitions;
mod graph;
mod liveness;
mod node;
mod transfer;

use std::sync::OnceLock;

use isa::ebpf::{Insn, Reg};

use crate::{Evidence, Function};

pub use graph::{Cfg, falls_through, jump_target};
pub use node::Node;
pub use transfer::{Halves, Transfer};

pub(crate) use definitions::Definitions;
pub(crate) use graph::call_target;

/// A record of one slot with its node.
pub trait OfSlot {
    /// The node.
    fn node(&self) -> &Node;
    /// The node, to change.
    fn node_mut(&mut self) -> &mut Node;
}

impl OfSlot for Node {
    fn node(&self) -> &Node {
        self
    }

    fn node_mut(&mut self) -> &mut Node {
        self
    }
}

/// Selection of the instructions that are kept although nothing uses their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Effects, but no unused results.
    Effects,
    /// Every instruction: each one counts as an effect.
    All,
}

/// The control-flow graph of a program with definitions and uses.
#[derive(Clone, Debug, Default)]
pub struct DefUse {
    nodes: Vec<Node>,
    /// The slots of the jumps, ascending.
    jumps: Vec<u32>,
    has_loops: bool,
    /// Computed on demand: few programs need them.
    cfg: OnceLock<Cfg>,
}

impl DefUse {
    /// Analyses a program that is divided into these functions.
    pub(crate) fn of(insns: &[Insn], functions: &[Function], evidence: Evidence) -> DefUse {
        DefUse::keeping(insns, functions, evidence, Kept::Effects)
    }

    /// Analyses a program of which something is kept although nothing uses it.
    pub fn keeping(
        insns: &[Insn],
        functions: &[Function],
        evidence: Evidence,
        kept: Kept,
    ) -> DefUse {
        // Live at the end of functions: a classic filter's result is 32 bits.
        let result = match evidence {
            Evidence::Classic(_) => Halves::low(Reg::R0),
            Evidence::CallerAsserted | Evidence::Verified(_) => Halves::both(Reg::R0),
        };
        let mut nodes = vec![Node::NONE; insns.len()];
        let mut jumps = Vec::with_capacity(insns.len() / 4 + 1);
        let mut back_edges = Vec::new();
        for function in functions.iter().rev() {
            let mut live = Halves::EFFECT;
            for slot in (function.start..function.end).rev() {
                let insn = &insns[slot];
                let transfer = Transfer::of(insn, result);
                let mut node = Node::new(insn, slot, transfer);
                if node.leaves() {
                    if node.stops() {
                        live = Halves::EFFECT;
                    }
                    if let Some(target) = node.jump() {
                        jumps.push(slot as u32);
                        if target <= slot {
                            back_edges.push(target);
                        } else {
                            nodes[target].mark_target(false);
                            live = live.union(nodes[target].live_in());
                        }
                    }
                } else if kept == Kept::All {
                    node.replace(transfer.with_effect());
                }
                live = node.set_live_out(live);
                nodes[slot] = node;
            }
            nodes[function.start].mark_target(false);
        }
        jumps.reverse();
        for &head in &back_edges {
            nodes[head].mark_target(true);
        }
        let has_loops = !back_edges.is_empty();
        if has_loops {
            liveness::iterate(functions, &jumps, &mut nodes);
        }
        DefUse {
            nodes,
            jumps,
            has_loops,
            cfg: OnceLock::new(),
        }
    }

    /// The graph without some slots, of functions at their new places; `places` has the new place
    /// of each slot, or of the next one that stays. What is removed has neither control flow nor
    /// an influence on what is live elsewhere.
    pub(crate) fn without(
        mut self,
        is_removed: &[bool],
        places: &[u32],
        functions: &[Function],
    ) -> DefUse {
        let mut slots = is_removed.iter();
        self.nodes.retain(|_| slots.next() == Some(&false));
        for slot in &mut self.jumps {
            *slot = places[*slot as usize];
            self.nodes[*slot as usize].move_target(places);
        }
        // What follows a target that was removed is one.
        for function in functions {
            self.nodes[function.start].mark_target(false);
        }
        for slot in &self.jumps {
            let node = self.nodes[*slot as usize];
            if let Some(target) = node.jump() {
                self.nodes[target].mark_target(target <= *slot as usize);
            }
        }
        self.cfg = OnceLock::new();
        self
    }

    /// The edges.
    pub fn cfg(&self) -> &Cfg {
        self.cfg.get_or_init(|| {
            let target = |slot: usize| self.nodes[slot].jump();
            Cfg::of_jumps(self.nodes.len(), self.jumps.clone(), target)
        })
    }

    /// The nodes, one for each slot.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// True if some function has back edges.
    pub fn has_loops(&self) -> bool {
        self.has_loops
    }

    /// True if a function has back edges.
    pub fn loops(&self, function: Function) -> bool {
        let is_back_edge = |&slot: &u32| self.nodes[slot as usize].jump() <= Some(slot as usize);
        self.has_loops && jumps_of(function, &self.jumps).iter().any(is_back_edge)
    }

    /// Computes the live-out sets again in records whose nodes were changed.
    pub fn propagate(&self, functions: &[Function], slots: &mut [impl OfSlot]) {
        for &function in functions {
            liveness::propagate(function, Halves::EFFECT, slots);
        }
        if self.has_loops {
            liveness::iterate(functions, &self.jumps, slots);
        }
    }

    /// Propagates a change of the nodes of slots from `first` to `last` backward, until the
    /// live-out sets are as before. False if other paths may be affected, so that
    /// [`DefUse::propagate`] has to follow. With back edges it always has to.
    #[must_use]
    pub fn propagate_change(&self, first: usize, last: usize, slots: &mut [impl OfSlot]) -> bool {
        !self.has_loops && liveness::propagate_change(first, last, slots)
    }
}

/// Those of the jumps, in ascending order, that are in a function.
fn jumps_of(function: Function, jumps: &[u32]) -> &[u32] {
    let position = |end: usize| jumps.partition_point(|&slot| (slot as usize) < end);
    &jumps[position(function.start)..position(function.end)]
}
