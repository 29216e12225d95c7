//! Output forms of classic programs.

use std::io::{self, BufWriter, IsTerminal, Write};

use std::sync::LazyLock;

use beebox::SockFilter;
use beebox::internal::text;
use report::terminal::{LONGEST_LINE, TerminalWriter, cut, escape_controls_in_styled, fold};
use serde::Serialize;
use terminal_size::Width;

use crate::answer::Failure;
use crate::answer_format::AnswerFormat;
use crate::output_file;
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

/// Writes text to a file, or to standard output without one (or with `-`), there as
/// [`Shown::Text`].
pub(crate) fn write_output(text: &[u8], out: Option<OutputPath<'_>>) -> Result<(), Failure> {
    write_as(Shown::Text, text, out)
}

/// Writes JSON to standard output.
pub(crate) fn write_json(text: &[u8]) -> Result<(), Failure> {
    write_as(Shown::Whole, text, None)
}

/// Writes bytes to a file, or to standard output without one (or with `-`), as they are.
pub(crate) fn write_bytes(bytes: &[u8], out: Option<OutputPath<'_>>) -> Result<(), Failure> {
    write_as(Shown::AsItIs, bytes, out)
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

/// How standard output gets bytes.
#[derive(Clone, Copy)]
enum Shown {
    /// With control characters escaped and long lines cut.
    Text,
    /// With control characters escaped, as JSON escapes them.
    Whole,
    AsItIs,
}

fn write_as(shown: Shown, bytes: &[u8], out: Option<OutputPath<'_>>) -> Result<(), Failure> {
    if let Some(out) = out.filter(|out| !out.is_standard()) {
        return output_file::write_whole(out.path(), bytes);
    }
    let is_text = |bytes| std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
    if matches!(shown, Shown::AsItIs) && io::stdout().is_terminal() && !is_text(bytes) {
        return Err(Failure::new("a raw program is no text for a terminal")
            .hint("write it to a file with -o, or into a pipe"));
    }
    let mut stdout = io::stdout().lock();
    written(match shown {
        Shown::Text => {
            let mut out = TerminalWriter::cutting(stdout);
            out.write_all(bytes).and_then(|()| out.finish())
        }
        Shown::Whole => {
            let mut out = TerminalWriter::new(stdout);
            out.write_all(bytes).and_then(|()| out.finish())
        }
        Shown::AsItIs => stdout.write_all(bytes).and_then(|()| stdout.flush()),
    })
}

/// Standard output for an answer of any size, which is written piece by piece.
pub(crate) fn streamed_output(format: AnswerFormat) -> TerminalWriter<impl Write> {
    let out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    match format {
        AnswerFormat::Text => TerminalWriter::cutting(out),
        AnswerFormat::Json => TerminalWriter::new(out),
    }
}

/// Result of writing to standard output. A reader that closed the pipe is no failure.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::new(format_args!("standard output: {error}"))),
    }
}

/// Prints an answer: text with its styles, or JSON.
pub(crate) fn print_answer(format: AnswerFormat, answer: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_answer(format, answer, None)
}

/// Writes an answer to a file, text without its styles, or prints it without one (or with `-`).
pub(crate) fn write_answer(
    format: AnswerFormat,
    answer: impl AsRef<[u8]>,
    out: Option<OutputPath<'_>>,
) -> Result<(), Failure> {
    let out = out.filter(|out| !out.is_standard());
    match (format, out) {
        (AnswerFormat::Text, None) => print(&String::from_utf8_lossy(answer.as_ref())),
        (AnswerFormat::Text, Some(_)) => {
            let plain = anstream::adapter::strip_bytes(answer.as_ref()).into_vec();
            write_output(&plain, out)
        }
        (AnswerFormat::Json, _) => write_as(Shown::Whole, answer.as_ref(), out),
    }
}

/// Text in lines that fit the terminal that standard output is, if it is one.
pub(crate) fn fit(text: &str) -> String {
    let stdout = io::stdout();
    let size = terminal_size::terminal_size_of(&stdout).filter(|_| stdout.is_terminal());
    match size {
        Some((Width(width), _)) if width > 0 => fold(text, width.into()),
        _ => text.to_owned(),
    }
}

/// Prints text with styles, which a terminal gets.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let lines = text.split('\n').map(|line| cut(line, LONGEST_LINE));
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = escape_controls_in_styled(&text);
    written(out.write_all(&text).and_then(|()| out.flush()))
}
