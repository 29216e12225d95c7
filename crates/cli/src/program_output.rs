//! Output forms of classic programs.

use beebox::SockFilter;
use beebox::internal::listing::{InsnRecord, insn_records as records};
use beebox::internal::text;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use crate::answer::Failure;
use crate::output_path::OutputPath;
use crate::program_input::ClassicForm;
use crate::stdout::{Shown, json, with_schema, write_as};

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
    /// True for formats of classic programs.
    pub(crate) fn is_classic(&self) -> bool {
        matches!(self, ProgramFormat::Form(_) | ProgramFormat::Json)
    }

    /// True for formats of programs without an object.
    pub(crate) fn is_alone(&self) -> bool {
        *self != ProgramFormat::Case
    }

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

/// Parser of a format that has the name `text` too.
pub(crate) fn text_as<F>(text: F, accepts: fn(&F) -> bool) -> impl TypedValueParser<Value = F>
where
    F: ValueEnum + Send + Sync + 'static,
{
    let formats = F::value_variants().iter().filter(|format| accepts(format));
    let formats = formats.filter_map(F::to_possible_value);
    let help = match text.to_possible_value() {
        Some(value) => format!("the same as {}", value.get_name()),
        None => String::new(),
    };
    let text_value = PossibleValue::new("text").help(help);
    let values: Vec<PossibleValue> = std::iter::once(text_value).chain(formats).collect();
    PossibleValuesParser::new(values).map(move |word| {
        // Words are names of formats but for one.
        F::from_str(&word, false).unwrap_or_else(|_| text.clone())
    })
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

/// The format of a seccomp filter: raw into a file, a listing on standard output, unless another
/// is chosen.
pub(crate) fn filter_format(
    chosen: Option<ProgramFormat>,
    is_json: bool,
    is_file: bool,
) -> ProgramFormat {
    match (chosen, is_json, is_file) {
        (_, true, _) => ProgramFormat::Json,
        (Some(chosen), ..) => chosen,
        (None, false, true) => ProgramFormat::Form(ClassicForm::Raw),
        (None, false, false) => ProgramFormat::Form(ClassicForm::D),
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
    match format {
        ProgramFormat::Json => write_as(shown, &with_schema(bytes), out),
        _ => write_as(shown, bytes, out),
    }
}
