//! eBPF programs in files, and the forms in which they are printed.

use beebox::internal::ebpf::{Callee, Insn, RawInsn, encode, helper_name, to_bytes};
use beebox::internal::raw::{ElfError, ProgramForm, ProgramReadError, read_program};
use serde::Serialize;

use super::slot::{Slot, SlotRecord};
use super::written;
use crate::answer::Failure;
use crate::input::{LONGEST_TEXT, excerpt};
use crate::program_input::{ClassicForm, ProgramInput};
use crate::program_output::ProgramFormat;
use crate::stdout::json;

/// Reads a program in any form.
pub(crate) fn read(input: &ProgramInput) -> Result<Vec<Insn>, Failure> {
    let file = input.read_file(LONGEST_TEXT)?;
    parse(&input.name(), &file)
}

/// Parses the bytes of a program in any form. `name` is that of the input.
pub(crate) fn parse(name: &str, file: &[u8]) -> Result<Vec<Insn>, Failure> {
    if file.trim_ascii_start().starts_with(b"{") {
        return written::read(file).map_err(|failure| failure.within(name));
    }
    if file.trim_ascii().is_empty() {
        return Err(Failure::new("the input is empty").within(name));
    }
    let program = read_program(file, Some(ProgramForm::detect(file))).map_err(|error| {
        let failure = Failure::new(&error).within(name);
        if let ProgramReadError::Elf(ElfError::Relocations { .. }) = error {
            return failure.hint(format_args!(
                "beebox dis {name}, without --ebpf: it links objects"
            ));
        }
        let lines = match &error {
            ProgramReadError::Asm(error) => excerpt(file, error.line, error.column),
            _ => None,
        };
        match lines {
            Some(lines) => failure.excerpt(lines),
            None => failure,
        }
    })?;
    match program.insns() {
        [] => Err(Failure::new("no instructions").within(name)),
        insns => Ok(insns.to_vec()),
    }
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
            name: match insn {
                Insn::Call(Callee::Helper(number)) => helper_name(number).map(str::to_owned),
                _ => None,
            },
            source: None,
        })
        .collect()
}

/// A program in a format.
pub(crate) fn format(insns: &[Insn], format: ProgramFormat) -> Result<Vec<u8>, Failure> {
    let raw = encode(insns).map_err(Failure::new)?;
    let line_each = |line: &dyn Fn(&Slot) -> String| {
        let lines = slots(insns);
        lines
            .iter()
            .map(|slot| line(slot) + "\n")
            .collect::<String>()
    };
    let text = match format {
        ProgramFormat::Form(ClassicForm::Raw | ClassicForm::RawLe) => return Ok(to_bytes(&raw)),
        ProgramFormat::Json => return Ok(as_json(insns, &raw)),
        ProgramFormat::Hex => raw.iter().map(|&slot| hex(slot) + "\n").collect(),
        ProgramFormat::Form(ClassicForm::Dd) => raw.iter().map(|&slot| initializer(slot)).collect(),
        ProgramFormat::Form(ClassicForm::D) => line_each(&Slot::line),
        ProgramFormat::Form(ClassicForm::Asm) => line_each(&|slot| slot.insn.to_string()),
        ProgramFormat::Log => line_each(&|slot| format!("{}: {}", slot.index, slot.log_text())),
        ProgramFormat::Case => {
            return Err(Failure::new(
                "--format case: a case states the program type, which only objects do",
            )
            .hint("--format asm or --format json"));
        }
        ProgramFormat::Form(ClassicForm::RawBe | ClassicForm::Ddd | ClassicForm::Oneline) => {
            return Err(Failure::new("this --format is for classic programs")
                .hint("raw, hex, d, dd, asm, log or json"));
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

#[derive(Serialize)]
struct Program<'s> {
    insns: Vec<Record<'s>>,
}

/// One instruction in JSON.
#[derive(Serialize)]
pub(super) struct Record<'s> {
    #[serde(flatten)]
    slot: SlotRecord<'s>,
    /// Its slot, or both.
    bytes: String,
    log: String,
}

impl<'s> Record<'s> {
    /// An instruction of a program in these slots.
    pub(super) fn of(slot: &'s Slot, raw: &[RawInsn]) -> Record<'s> {
        let slots = match slot.insn {
            Insn::LoadImm64 { .. } => 2,
            _ => 1,
        };
        let slots = raw.iter().skip(slot.index).take(slots);
        let bytes: Vec<String> = slots.map(|&raw| hex(raw)).collect();
        Record {
            slot: slot.record(),
            bytes: bytes.join(" "),
            log: slot.log_text(),
        }
    }
}

fn as_json(insns: &[Insn], raw: &[RawInsn]) -> Vec<u8> {
    let slots = slots(insns);
    json(&Program {
        insns: slots.iter().map(|slot| Record::of(slot, raw)).collect(),
    })
}
