//! Instructions and registers where a run is stopped.

use std::ops::Range;

use isa::ebpf::{Callee, Insn, Reg};

use super::view::View;

/// A register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterRow {
    /// Its name.
    pub name: &'static str,
    /// Its number in hexadecimals, and what it is.
    pub text: String,
    /// What the verifier knew of it here; empty if it knew nothing.
    pub known: String,
    /// Its number.
    pub value: u64,
}

/// Names of the registers.
pub(super) const REGISTERS: [&str; Reg::COUNT] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10",
];

impl View<'_, '_, '_> {
    /// The registers of a frame, with what the verifier knew of them there.
    pub fn registers(&self, number: usize) -> Vec<RegisterRow> {
        let number = self.physical(number);
        let (Some((frame, slot)), Some(registers)) =
            (self.frame(number), self.registers_of(number))
        else {
            return Vec::new();
        };
        let prepared = &self.scene.programs[frame.program as usize];
        let known = self.scene.known.at(
            (frame.program, &prepared.program, slot),
            self.scene.kernel,
            registers,
        );
        let names = REGISTERS.into_iter();
        let rows = names
            .zip(registers)
            .zip(known)
            .map(|((name, value), known)| {
                let text = match self.describe(*value) {
                    Some(what) => format!("{value:#x} = {what}"),
                    None => super::value::register_text(*value),
                };
                RegisterRow {
                    name,
                    text,
                    known,
                    value: *value,
                }
            });
        rows.collect()
    }

    /// Instructions of a program from a slot on: slot, bytes and text.
    pub fn instructions(
        &self,
        program: u32,
        from: u32,
        count: usize,
    ) -> Vec<(u32, String, String)> {
        let Some(prepared) = self.scene.programs.get(program as usize) else {
            return Vec::new();
        };
        let insns = prepared.checked.insns().iter().zip(0..).skip(from as usize);
        let raw = prepared.program.insns();
        let rows = insns.take(count).map(|(insn, slot): (&Insn, u32)| {
            let bytes = raw.get(slot as usize);
            let bytes = bytes.map(|insn| super::value::bytes_text(&insn.to_le_bytes()));
            let text = match insn {
                Insn::Imm64High => String::new(),
                Insn::Call(Callee::Helper(number)) => match self.scene.functions.get(number) {
                    Some((name, _)) => format!("call {name}"),
                    None => insn.to_string(),
                },
                Insn::Call(Callee::Local(off)) => {
                    let to = slot.wrapping_add_signed(1 + *off);
                    match prepared.program.subprog_at(to) {
                        Some(subprog) => format!("call {}", subprog.name),
                        None => insn.to_string(),
                    }
                }
                insn => insn.to_string(),
            };
            (slot, bytes.unwrap_or_default(), text)
        });
        rows.collect()
    }

    /// The program and the slots of the function of a frame, and the frame's slot.
    pub(super) fn function_of(&self, number: usize) -> Option<(u32, Range<u32>, u32)> {
        let (frame, slot) = self.frame(self.physical(number))?;
        let program = &self.scene.programs[frame.program as usize].program;
        let start = program.subprog_at(slot).map_or(0, |subprog| subprog.start);
        let mut starts = program.subprogs().iter().map(|subprog| subprog.start);
        let end = starts.find(|other| *other > start);
        let end = end.unwrap_or(program.insns().len() as u32);
        Some((frame.program, start..end, slot))
    }
}
