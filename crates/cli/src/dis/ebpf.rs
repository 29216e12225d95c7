//! eBPF programs in files, and the forms in which they are printed.

use beebox::internal::ebpf::Insn;
use beebox::internal::listing::{ListingForm, listing_of};
use beebox::internal::raw::{
    ElfError, ListingReadError, ProgramForm, ProgramReadError, read_listing, read_program,
};

use crate::answer::Failure;
use crate::input::{LONGEST_TEXT, excerpt};
use crate::program_input::{ClassicForm, ProgramInput};
use crate::program_output::ProgramFormat;

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
    let form = match format {
        ProgramFormat::Form(ClassicForm::Raw | ClassicForm::RawLe) => ListingForm::Bytes,
        ProgramFormat::Json => ListingForm::Json,
        ProgramFormat::Hex => ListingForm::Hex,
        ProgramFormat::Form(ClassicForm::Dd) => ListingForm::Initializers,
        ProgramFormat::Form(ClassicForm::D) => ListingForm::Llvm,
        ProgramFormat::Form(ClassicForm::Asm) => ListingForm::Asm,
        ProgramFormat::Log => ListingForm::Log,
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
    listing_of(insns, form).map_err(Failure::new)
}
