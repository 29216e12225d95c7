//! The instructions of a program with what is known of each.

use std::mem;

use isa::ebpf::Insn;

use crate::flow::DefUse;
use crate::passes::Passes;
use crate::passes::unused::{self, Unused};
use crate::patch;
use crate::{Evidence, Function};

/// The instructions of a lowered program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) insns: Vec<Insn>,
    pub(crate) functions: Vec<Function>,
    pub(crate) def_use: DefUse,
    /// The slot of the program that each instruction comes from, if passes moved them.
    pub(crate) origins: Option<Vec<u32>>,
    /// First slots of functions, ascending, and the stack that they access.
    pub(crate) stack: Vec<(usize, FunctionStack)>,
}

/// The stack of a function below its frame pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionStack {
    /// Bytes that the function, or one that it calls, accesses.
    pub bytes: u32,
    /// Slots of 8 bytes that may hold addresses; bit 0 ends at the frame pointer.
    pub address_slots: u64,
}

impl Code {
    /// Instructions in the slots of their program, which is divided into these functions.
    pub(crate) fn new(insns: Vec<Insn>, functions: Vec<Function>, evidence: Evidence) -> Code {
        Code {
            def_use: DefUse::of(&insns, &functions, evidence),
            insns,
            functions,
            origins: None,
            stack: Vec::new(),
        }
    }

    /// The code after those of the passes that rest on definitions and uses.
    pub(crate) fn optimized(mut self, passes: Passes, evidence: Evidence) -> Code {
        let Unused { dead, extensions } =
            unused::find(&self.insns, &self.functions, &self.def_use, passes);
        if dead.is_empty() && extensions.is_empty() {
            return self;
        }
        let changes_liveness = !extensions.is_empty();
        let mut is_removed = vec![false; self.insns.len()];
        for slot in dead.into_iter().chain(extensions) {
            is_removed[slot] = true;
            if let Insn::LoadImm64 { .. } = self.insns[slot] {
                is_removed[slot + 1] = true;
            }
        }
        let places = self.remove(&is_removed);
        self.def_use = match changes_liveness {
            true => DefUse::of(&self.insns, &self.functions, evidence),
            false => mem::take(&mut self.def_use).without(&is_removed, &places, &self.functions),
        };
        self
    }

    /// Removes instructions without control flow; returns the new place of each slot, or of
    /// the next one that stays, and of the end.
    fn remove(&mut self, is_removed: &[bool]) -> Vec<u32> {
        let mut places = Vec::with_capacity(is_removed.len() + 1);
        let mut place = 0;
        for &is_removed in is_removed {
            places.push(place);
            place += u32::from(!is_removed);
        }
        places.push(place);
        let mut origins = Vec::with_capacity(place as usize);
        for (slot, is_removed) in is_removed.iter().enumerate() {
            if *is_removed {
                continue;
            }
            let insn = moved(self.insns[slot], slot, places[slot], &places);
            // Places are never behind their slots.
            self.insns[origins.len()] = insn;
            origins.push(match &self.origins {
                Some(origins) => origins[slot],
                None => slot as u32,
            });
        }
        self.insns.truncate(origins.len());
        self.origins = Some(origins);
        for function in &mut self.functions {
            function.start = places[function.start] as usize;
            function.end = places[function.end] as usize;
        }
        for (start, _) in &mut self.stack {
            *start = places[*start] as usize;
        }
        places
    }
}

/// An instruction of a slot at a new place. Distances become no longer.
fn moved(insn: Insn, slot: usize, place: u32, places: &[u32]) -> Insn {
    patch::moved(insn, slot, place, |target| places[target])
        .expect("distances become no longer where instructions are removed")
}
