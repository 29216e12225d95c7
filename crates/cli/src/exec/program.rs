//! The program of `beebox exec`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use beebox::internal::raw::{self, CheckedProgram, ElfError, ProgramForm, ProgramReadError};

use crate::answer::Failure;
use crate::input::read_file;
use crate::input::{excerpt, name};

/// The options that name the program.
#[derive(clap::Args)]
pub(crate) struct RawProgram {
    /// Bytes, bytes in hexadecimal, text in LLVM's assembly language, or the code section of an
    /// object; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The form of FILE [default: detected]
    #[arg(long, value_name = "FORM")]
    pub(super) form: Option<RawForm>,

    /// The section of an object to run [default: the first one with code]
    #[arg(long, value_name = "NAME")]
    pub(super) section: Option<String>,
}

/// Names of the forms on the command line.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RawForm {
    /// Eight bytes for each instruction slot
    Bytes,
    /// Hexadecimal bytes
    Hex,
    /// Assembler text, as LLVM prints it
    Asm,
    /// A section of an ELF object
    Elf,
}

impl RawProgram {
    /// The file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the program.
    pub(crate) fn read(&self) -> Result<CheckedProgram, Failure> {
        let path = self.file.as_path();
        if path == Path::new("-") && io::stdin().is_terminal() {
            diagnostic!("beebox: type a program and end it with Ctrl-D");
        }
        if let (Some(_), Some(RawForm::Bytes | RawForm::Hex | RawForm::Asm)) =
            (&self.section, self.form)
        {
            return Err(Failure::new("--section is for objects").hint("--form elf"));
        }
        let file = read_file(path)?;
        let form = match self.form {
            Some(RawForm::Bytes) => ProgramForm::Bytes,
            Some(RawForm::Hex) => ProgramForm::Hex,
            Some(RawForm::Asm) => ProgramForm::Asm,
            Some(RawForm::Elf) => ProgramForm::Elf,
            None if self.section.is_some() => ProgramForm::Elf,
            None => ProgramForm::detect(&file),
        };
        let program = match form {
            ProgramForm::Elf => raw::elf_program(&file, self.section.as_deref()),
            form => raw::read_program(&file, Some(form)),
        };
        let program = program.map_err(|error| self.unreadable(path, &file, form, &error))?;
        if program.insns().is_empty() {
            return Err(Failure::new(format_args!(
                "{}: no instructions",
                name(path)
            )));
        }
        Ok(program)
    }

    fn unreadable(
        &self,
        path: &Path,
        file: &[u8],
        form: ProgramForm,
        error: &ProgramReadError,
    ) -> Failure {
        let failure = Failure::new(format_args!("{}: {error}", name(path)));
        let failure = match error {
            ProgramReadError::Asm(error) => match excerpt(file, error.line, error.column) {
                Some(lines) => failure.excerpt(lines),
                None => failure,
            },
            _ => failure,
        };
        match error {
            ProgramReadError::Elf(ElfError::NoCode { section: Some(_) }) => {
                failure.hint("llvm-objdump -h lists the sections")
            }
            ProgramReadError::Elf(ElfError::Relocations { .. }) => failure.hint(format_args!(
                "beebox run {}, which links objects",
                path.display()
            )),
            ProgramReadError::Elf(_) => failure,
            _ if self.form.is_none() => failure.hint(format_args!(
                "--form, if FILE is not {}",
                match form {
                    ProgramForm::Bytes => "bytes",
                    ProgramForm::Hex => "hexadecimal",
                    ProgramForm::Asm => "assembler text",
                    ProgramForm::Elf => "an object",
                }
            )),
            _ => failure,
        }
    }
}
