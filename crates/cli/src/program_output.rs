//! Output forms of classic programs.

use std::fs;
use std::io::{self, IsTerminal, Write};

use std::sync::LazyLock;

use beebox::{SockFilter, text};
use serde::Serialize;

use crate::answer::Failure;
use crate::output_path::OutputPath;
use crate::program_input::ClassicForm;

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

/// One instruction in JSON.
#[derive(Serialize)]
pub(crate) struct InsnRecord {
    index: usize,
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
    /// The line of `tcpdump -d`, without the number.
    text: String,
}

impl InsnRecord {
    fn new(index: usize, raw: SockFilter) -> InsnRecord {
        let line = text::dump_line(index, raw);
        let (_, words) = line.split_once(' ').unwrap_or_default();
        InsnRecord {
            index,
            code: raw.code,
            jt: raw.jt,
            jf: raw.jf,
            k: raw.k,
            text: words.split_whitespace().collect::<Vec<_>>().join(" "),
        }
    }
}

/// Every instruction of a program in JSON.
pub(crate) fn records(program: &[SockFilter]) -> Vec<InsnRecord> {
    let numbered = program.iter().enumerate();
    numbered
        .map(|(index, &raw)| InsnRecord::new(index, raw))
        .collect()
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

/// Any record as one line of JSON.
pub(crate) fn json(record: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).expect("records have string keys only");
    line.push(b'\n');
    line
}

/// Writes to a file, or to standard output without one (or with `-`).
pub(crate) fn write_output(bytes: &[u8], out: Option<OutputPath<'_>>) -> Result<(), Failure> {
    match out {
        Some(out) if !out.is_standard() => {
            let path = out.path();
            fs::write(path, bytes).map_err(|error| Failure::of_file(path, &error))
        }
        _ => write_standard_output(bytes),
    }
}

fn write_standard_output(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() && std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0')) {
        // Text may go to a terminal.
    } else if stdout.is_terminal() {
        return Err(Failure::new("a raw program is no text for a terminal")
            .hint("write it to a file with -o, or into a pipe"));
    }
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // The reader closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::new(format_args!("standard output: {error}"))),
    }
}

/// Prints an answer; a reader that went away is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
