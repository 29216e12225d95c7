//! eBPF programs in files, and the forms in which they are printed.

use std::fmt::Write;

use beebox::raw::{Form, ReadError, read_program};
use isa::ebpf::{Callee, Insn, RawInsn, encode, to_bytes};
use serde::Serialize;
use spec::calls;

use super::converted::Slot;
use crate::answer::Failure;
use crate::program_input::{FormName, ProgramInput, excerpt};
use crate::program_output::{Format, json};

/// Bytes of the longest text that is read: a million instructions with a label
/// each.
const LONGEST_TEXT: u64 = 64 << 20;

/// Reads a program in any form.
pub(crate) fn read(input: &ProgramInput) -> Result<Vec<Insn>, Failure> {
    let file = input.read_file(LONGEST_TEXT)?;
    let program = read_program(&file, Some(Form::detect(&file))).map_err(|error| {
        let failure = Failure::new(&error).within(input.name());
        let lines = match &error {
            ReadError::Asm(error) => excerpt(&file, error.line, error.column),
            _ => None,
        };
        match lines {
            Some(lines) => failure.excerpt(lines),
            None => failure,
        }
    })?;
    Ok(program.insns().to_vec())
}

/// The instructions with their numbers; the second slots of 64-bit immediates
/// belong to the first ones.
pub(super) fn slots(insns: &[Insn]) -> Vec<Slot> {
    let numbered = insns.iter().enumerate();
    numbered
        .filter(|(_, insn)| !matches!(insn, Insn::Imm64High))
        .map(|(index, &insn)| Slot {
            index,
            origin: None,
            insn,
            sees_packets: false,
        })
        .collect()
}

/// A program in a format.
pub(crate) fn format(insns: &[Insn], format: Format) -> Result<Vec<u8>, Failure> {
    let raw = encode(insns).map_err(Failure::new)?;
    let line_each = |line: &dyn Fn(&Slot) -> String| {
        let lines = slots(insns);
        lines
            .iter()
            .map(|slot| line(slot) + "\n")
            .collect::<String>()
    };
    let text = match format {
        Format::Form(FormName::Raw | FormName::RawLe) => return Ok(to_bytes(&raw)),
        Format::Json => return Ok(json(&records(insns, &raw))),
        Format::Hex => raw.iter().map(|&slot| hex(slot) + "\n").collect(),
        Format::Form(FormName::Dd) => raw.iter().map(|&slot| initializer(slot)).collect(),
        Format::Form(FormName::D) => line_each(&Slot::line),
        Format::Form(FormName::Asm) => line_each(&|slot| slot.insn.to_string()),
        Format::Log => line_each(&|slot| format!("{}: {}", slot.index, log_text(slot.insn))),
        Format::Form(FormName::RawBe | FormName::Ddd | FormName::Oneline) => {
            return Err(Failure::new("eBPF programs have no such form")
                .hint("they have raw, hex, d, dd, asm, log and json"));
        }
    };
    Ok(text.into_bytes())
}

/// The eight bytes of a slot.
fn hex(slot: RawInsn) -> String {
    slot.to_le_bytes()
        .map(|byte| format!("{byte:02x}"))
        .join(" ")
}

/// A slot as C code initialises a `struct bpf_insn`.
fn initializer(slot: RawInsn) -> String {
    let (dst, src) = (slot.dst(), slot.src());
    let RawInsn { code, off, imm, .. } = slot;
    format!("{{ {code:#04x}, {dst}, {src}, {off}, {imm} }},\n")
}

/// The instruction as the verifier's log has it.
fn log_text(insn: Insn) -> String {
    let name = |callee| match callee {
        Callee::Helper(number) => calls::name(number),
        _ => None,
    };
    insn.kernel_form(&name).to_string()
}

#[derive(Serialize)]
struct Program {
    insns: Vec<Record>,
}

/// One instruction in JSON.
#[derive(Serialize)]
struct Record {
    index: usize,
    /// Its slot, or both.
    bytes: String,
    text: String,
    log: String,
}

fn records(insns: &[Insn], raw: &[RawInsn]) -> Program {
    let record = |slot: &Slot| {
        let mut bytes = hex(raw[slot.index]);
        if let Some(Insn::Imm64High) = insns.get(slot.index + 1) {
            let _ = write!(bytes, " {}", hex(raw[slot.index + 1]));
        }
        Record {
            index: slot.index,
            bytes,
            text: slot.insn.to_string(),
            log: log_text(slot.insn),
        }
    };
    Program {
        insns: slots(insns).iter().map(record).collect(),
    }
}
