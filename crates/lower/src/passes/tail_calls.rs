//! Tail calls with the same program array and index in every run.

use std::sync::Arc;

use isa::ebpf::{Insn, Reg};
use verifier::{InsnFact, PointerKind};
use vm::TailTable;

use super::{Pass, Passes};
use crate::LoweredCall;

/// The tail calls of a program through slots that are known.
pub(super) struct TailCalls<'a> {
    /// By map; empty if the pass is left out.
    tables: &'a [Option<Arc<TailTable>>],
    /// Addresses of the slots.
    slots: Vec<u64>,
}

impl<'a> TailCalls<'a> {
    pub(super) fn new(tables: &'a [Option<Arc<TailTable>>], passes: Passes) -> TailCalls<'a> {
        let is_chosen = passes.contains(Pass::TailCalls);
        TailCalls {
            tables: if is_chosen { tables } else { &[] },
            slots: Vec::new(),
        }
    }

    /// Replacement of an instruction, if it is a tail call through one slot. The
    /// verifier takes a constant index as precise, so that it is the same in all runs.
    pub(super) fn replace(&mut self, insn: Insn, fact: &InsnFact) -> Option<Vec<Insn>> {
        if insn != LoweredCall::TailCall.insn() {
            return None;
        }
        let PointerKind::Map(map) = fact.operand(Reg::R2)?.pointer()?.kind else {
            return None;
        };
        let table = self.tables.get(map.0 as usize)?.as_ref()?;
        // Its low 32 bits count.
        let index = fact.operand(Reg::R3)?.constant()? as u32;
        let call = LoweredCall::TailSlot(self.slots.len() as u32);
        self.slots.push(table.slot(index)?);
        Some(vec![call.insn()])
    }

    /// The addresses of the slots, by the index of their calls.
    pub(super) fn into_slots(self) -> Vec<u64> {
        self.slots
    }
}
