//! eBPF programs in files, and the forms in which they are printed.

use beebox::internal::ebpf::{Insn, RawInsn, encode, to_bytes};
use beebox::internal::listing::{Record, Slot, hex, initializer, slots};
use beebox::internal::raw::{
    ElfError, ListingReadError, ProgramForm, ProgramReadError, read_listing, read_program,
};
use serde::Serialize;

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
        return read_listing(file).map_err(|error| {
            let failure = Failure::new(&error).within(name);
            match error {
                ListingReadError::Json(_) => failure
                    .hint("`beebox dis --ebpf --format json` writes {\"insns\": [{\"hex\": …}]}"),
                _ => failure,
            }
        });
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

#[derive(Serialize)]
struct Program<'s> {
    insns: Vec<Record<'s>>,
}

fn as_json(insns: &[Insn], raw: &[RawInsn]) -> Vec<u8> {
    let slots = slots(insns);
    json(&Program {
        insns: slots.iter().map(|slot| Record::of(slot, raw)).collect(),
    })
}
