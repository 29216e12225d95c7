//! Output forms of classic programs.

use std::sync::LazyLock;

use beebox::SockFilter;
use beebox::internal::listing::{InsnRecord, insn_records as records};
use beebox::internal::text;
use serde::Serialize;

use crate::answer::Failure;
use crate::output_path::OutputPath;
use crate::program_input::ClassicForm;
use crate::stdout::{Shown, json, write_as};

/// The forms that a program is read in, those of eBPF programs only, and JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramFormat {
    Form(ClassicForm),
    /// eBPF only.
    Hex,
    /// eBPF only.
    Log,
    /// Programs of objects only.
    Case,
    Json,
}

impl ProgramFormat {
    /// True for the listing of `tcpdump -d`.
    pub(crate) fn is_listing(self) -> bool {
        self == ProgramFormat::Form(ClassicForm::D)
    }
}

impl clap::ValueEnum for ProgramFormat {
    fn value_variants<'a>() -> &'a [ProgramFormat] {
        const ALL: &[ProgramFormat] = &[
            ProgramFormat::Form(ClassicForm::Raw),
            ProgramFormat::Form(ClassicForm::RawLe),
            ProgramFormat::Form(ClassicForm::RawBe),
            ProgramFormat::Form(ClassicForm::D),
            ProgramFormat::Form(ClassicForm::Dd),
            ProgramFormat::Form(ClassicForm::Ddd),
            ProgramFormat::Form(ClassicForm::Oneline),
            ProgramFormat::Form(ClassicForm::Asm),
            ProgramFormat::Hex,
            ProgramFormat::Log,
            ProgramFormat::Case,
            ProgramFormat::Json,
        ];
        ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        match self {
            ProgramFormat::Form(form) => form.to_possible_value(),
            ProgramFormat::Hex => Some(
                clap::builder::PossibleValue::new("hex")
                    .help("bytes in hexadecimal, a line for each slot (eBPF)"),
            ),
            ProgramFormat::Log => Some(
                clap::builder::PossibleValue::new("log")
                    .help("text as the log of Linux's verifier has it (eBPF)"),
            ),
            ProgramFormat::Case => Some(
                clap::builder::PossibleValue::new("case")
                    .help("text with maps, BTF and source lines, for bug reports (objects)"),
            ),
            ProgramFormat::Json => Some(
                clap::builder::PossibleValue::new("json")
                    .help("fields and text of every instruction, for scripts"),
            ),
        }
    }
}

/// The formats that programs without an object are written in.
#[derive(Clone, Copy)]
pub(crate) struct AloneFormat(pub(crate) ProgramFormat);

impl clap::ValueEnum for AloneFormat {
    fn value_variants<'a>() -> &'a [AloneFormat] {
        static ALL: LazyLock<Vec<AloneFormat>> = LazyLock::new(|| {
            let all = ProgramFormat::value_variants().iter();
            let all = all.filter(|format| **format != ProgramFormat::Case);
            all.map(|format| AloneFormat(*format)).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        self.0.to_possible_value()
    }
}

#[derive(Serialize)]
struct ProgramRecord {
    insns: Vec<InsnRecord>,
}

/// A classic program in a format.
pub(crate) fn format_program(
    program: &[SockFilter],
    format: ProgramFormat,
) -> Result<Vec<u8>, Failure> {
    match format {
        ProgramFormat::Form(form) => Ok(text::write(program, form.form())),
        ProgramFormat::Json => Ok(json(&ProgramRecord {
            insns: records(program),
        })),
        ProgramFormat::Hex | ProgramFormat::Log | ProgramFormat::Case => {
            Err(Failure::new("this --format is for eBPF programs")
                .hint("--ebpf, if the input is one"))
        }
    }
}

/// Writes a program in a format to a file, or to standard output without one (or with `-`).
pub(crate) fn write_program(
    bytes: &[u8],
    format: ProgramFormat,
    out: Option<OutputPath<'_>>,
) -> Result<(), Failure> {
    let shown = match format {
        ProgramFormat::Form(ClassicForm::Raw | ClassicForm::RawLe | ClassicForm::RawBe) => {
            Shown::AsItIs
        }
        ProgramFormat::Form(ClassicForm::D) | ProgramFormat::Log => Shown::Text,
        // Other tools and JSON parsers read these, in lines of any length.
        ProgramFormat::Form(
            ClassicForm::Dd | ClassicForm::Ddd | ClassicForm::Oneline | ClassicForm::Asm,
        )
        | ProgramFormat::Hex
        | ProgramFormat::Case
        | ProgramFormat::Json => Shown::Whole,
    };
    write_as(shown, bytes, out)
}
