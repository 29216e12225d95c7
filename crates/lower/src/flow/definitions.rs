//! Reaching definitions: the instructions whose result a register may hold at a slot.
//!
//! They are searched backward along all edges on demand, as passes query few registers. Cost: a
//! search visits at most [`REACH`] slots.

use isa::ebpf::{Insn, Reg};

use super::{DefUse, Function};

/// Most slots that a search visits.
const REACH: usize = 64;

/// Searches for definitions; a search reuses the memory of the one before it.
pub(crate) struct Definitions<'a> {
    insns: &'a [Insn],
    functions: &'a [Function],
    def_use: &'a DefUse,
    /// Slots in front of which the search goes on.
    open: Vec<usize>,
    /// Jump targets that were searched.
    visited: Vec<usize>,
    found: Vec<usize>,
}

impl<'a> Definitions<'a> {
    pub(crate) fn new(
        insns: &'a [Insn],
        functions: &'a [Function],
        def_use: &'a DefUse,
    ) -> Definitions<'a> {
        Definitions {
            insns,
            functions,
            def_use,
            open: Vec::new(),
            visited: Vec::new(),
            found: Vec::new(),
        }
    }

    /// The slots whose definition of a register reaches a slot. `None` if the register may hold
    /// what it held when the function was entered, or the search goes too far.
    pub(crate) fn reaching(&mut self, slot: usize, reg: Reg) -> Option<&[usize]> {
        self.visited.clear();
        self.found.clear();
        self.open.clear();
        self.open.push(slot);
        let mut steps = 0;
        while let Some(at) = self.open.pop() {
            let node = &self.def_use.nodes[at];
            if node.is_target() {
                if self.is_entry(at) {
                    return None;
                }
                if self.visited.contains(&at) {
                    continue;
                }
                self.visited.push(at);
            }
            for before in self.def_use.cfg().predecessors(self.insns, at) {
                steps += 1;
                if steps > REACH {
                    return None;
                }
                match self.def_use.nodes[before].writes(reg) {
                    true => self.found.push(before),
                    false => self.open.push(before),
                }
            }
        }
        Some(&self.found)
    }

    /// True if the slot is the first of a function.
    fn is_entry(&self, slot: usize) -> bool {
        let found = (self.functions).binary_search_by_key(&slot, |function| function.start);
        found.is_ok()
    }
}
