//! `beebox dis`.

pub(crate) mod ebpf;
mod native;
mod object;

use beebox::internal::classic::convert;
use beebox::internal::ebpf::{Insn, decode};
use beebox::internal::listing::{
    ConvertedRecord, LineForm, NativeListing, Slot, converted_slots, converted_text, native_record,
    native_text, slots, unlinked_json, unlinked_text,
};
use beebox::internal::native::{CodeOptions, NativeDraft};
use beebox::internal::object::UnlinkedObject;
use beebox::internal::program::case::Case;
use beebox::{Rules, Semantics, SockFilter};
use clap::ArgGroup;

use crate::answer::{Answer, Failure};
use crate::kernel_input::KernelArgs;
use crate::loading::LoadingArgs;
use crate::object_input::ObjectFile;
use crate::output_path::{OutputArg, OutputPath};
use crate::program_input::{ClassicForm, ProgramInput, check_program};
use crate::program_output::{ProgramFormat, format_program, text_as, write_program};

/// Disassemble a filter or an eBPF program, and show its native code
///
/// Reads a classic BPF program in any form, or has libpcap compile an
/// expression, and lists it, by default as `tcpdump -d` does. Of a BPF object it
/// links the programs and lists them as llvm-objdump does, with the names of what
/// they refer to; a big-endian object, or one with legacy maps, is listed unlinked. With --ebpf it reads an eBPF program that is no object.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("shown").args(["converted", "jit"]))]
#[command(after_help = "\
Examples:
  beebox dis ssh.bpf                        a listing, as tcpdump -d prints
  beebox dis -e 'port 22' --format ddd      what tcpdump -ddd prints
  beebox dis filter.txt --format asm        source that bpf_asm assembles
  beebox dis -e 'port 22' --converted       classic and internal code, side by side
  beebox dis -e 'port 22' --jit             and the native code of this processor
  beebox dis prog.bpf.o --source            an object's programs, with source lines
  beebox dis prog.bpf.o --prog xdp_main --format log   as in the verifier's log
  beebox dis prog.bpf.o --jit --source      and their native code
  beebox dis prog.bpf.o --xlated            what Linux keeps of them after verification
  beebox dis found.case                     a text case
  beebox dis --ebpf program.bin             an eBPF program, as LLVM writes it
  beebox dis --ebpf program.bin --format log  and as the verifier's log has it
  beebox dis --jit --ebpf program.s         an eBPF program and its native code
  beebox dis -e tcp --format json | jq -r '.insns[].text'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: ProgramInput,

    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_as(ProgramFormat::Form(ClassicForm::D), |_| true))]
    format: ProgramFormat,

    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    /// Show the eBPF instructions that the program is converted to beside it
    #[arg(long)]
    converted: bool,

    /// Show the native code beside the eBPF instructions that it comes from
    #[arg(long, conflicts_with = "converted")]
    jit: bool,

    /// Show what Linux keeps of an object's programs after verification, numbered as in the
    /// kernel, as `bpftool prog dump xlated` does: without dead code, divisions and may_goto
    /// rewritten. Where the kernel puts instructions of its own, the line says how many
    #[arg(long, conflicts_with_all = ["jit", "converted", "ebpf", "form", "expression", "semantics"])]
    xlated: bool,

    /// FILE holds eBPF instructions: bytes, bytes in hexadecimal, text in LLVM's
    /// assembly language, or an object
    #[arg(long, conflicts_with_all = ["form", "expression", "semantics", "converted"])]
    ebpf: bool,

    /// Of an object only the program of this name
    #[arg(long = "prog", value_name = "NAME", conflicts_with_all = ["ebpf", "form", "expression", "semantics", "converted"])]
    programs: Vec<String>,

    /// Show the source lines that instructions come from
    #[arg(long, conflicts_with_all = ["ebpf", "form", "expression", "semantics", "converted"])]
    source: bool,

    /// The processor that the native code is for
    #[arg(long, value_name = "NAME", default_value = "this", requires = "jit")]
    processor: Processor,

    /// Have indirect jumps and calls of the native code go through a retpoline
    #[arg(long, requires = "jit")]
    retpoline: bool,

    /// Begin the functions of the native code with a slot of five bytes, which a call or jump
    /// can replace
    #[arg(long, requires = "jit")]
    entry_slots: bool,

    /// Semantics of the filter, which determine its conversion
    #[arg(
        long,
        value_name = "NAME",
        default_value = "capture",
        requires = "shown"
    )]
    semantics: SemanticsName,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    loading: LoadingArgs,

    #[command(flatten)]
    kernel: KernelArgs,
}

/// Processors by what they can do.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Processor {
    /// This machine's, with all that it can do
    This,
    /// Any x86-64
    Plain,
}

impl Args {
    /// Options of native code.
    fn code(&self) -> CodeOptions {
        CodeOptions {
            processor: self.processor.target(),
            retpoline: self.retpoline,
            entry_slots: self.entry_slots,
        }
    }
}

impl Processor {
    fn target(self) -> beebox::internal::native::Processor {
        match self {
            Processor::This => beebox::internal::native::Processor::Host,
            Processor::Plain => beebox::internal::native::Processor::Baseline,
        }
    }
}

/// Rules and semantics by name.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SemanticsName {
    /// As libpcap runs it on a capture
    Capture,
    /// As Linux runs it on a socket
    Kernel,
    /// As Linux runs it on system calls
    Seccomp,
}

impl SemanticsName {
    fn rules(self) -> (Rules, Semantics) {
        match self {
            SemanticsName::Capture => (Rules::Capture, Semantics::Capture),
            SemanticsName::Kernel => (Rules::Socket, Semantics::Kernel),
            SemanticsName::Seccomp => (Rules::Seccomp, Semantics::Kernel),
        }
    }
}

pub(crate) fn run(mut args: Args) -> Result<Answer, Failure> {
    if args.json {
        args.format = ProgramFormat::Json;
    }
    let output = args
        .output
        .path(args.input.path().into_iter().chain(args.kernel.files()))?;
    if !args.ebpf
        && let Some(file) = args.input.read_object()?
    {
        return show_object(&file, &args, output);
    }
    if !args.programs.is_empty()
        || args.source
        || args.xlated
        || args.loading.is_given()
        || args.kernel.is_given()
    {
        return Err(Failure::new(format_args!(
            "--prog, --source, --xlated, --loader, --type, --attach, --define, --set, and the \
             options of a kernel (--{}) are for objects",
            KernelArgs::options().join(", --")
        ))
        .within(args.input.name()));
    }
    let text = if !args.ebpf
        && let Some(case) = args.input.read_case()?
    {
        show_case(&case, &args)?
    } else if args.ebpf {
        let insns = ebpf::read(&args.input)?;
        match args.jit {
            true => show_ebpf(insns, &args)?,
            false => ebpf::format(&insns, args.format)?,
        }
    } else {
        let program = args.input.read()?;
        match (args.converted, args.jit) {
            (true, _) => show_converted(&program, &args)?,
            (_, true) => show_native(&program, &args)?,
            _ => format_program(&program, args.format)?,
        }
    };
    write_program(&text, args.format, output)?;
    Ok(Answer::Yes)
}

/// The programs of an object; the answer is no if one of them can't be linked.
fn show_object(
    file: &ObjectFile,
    args: &Args,
    output: Option<OutputPath<'_>>,
) -> Result<Answer, Failure> {
    let refused = |failure: Failure| Err(failure.within(file.path().display()));
    if args.converted {
        let what = "--converted is for classic programs; an object has eBPF instructions";
        return refused(Failure::new(what).hint("no --converted"));
    }
    if args.semantics != SemanticsName::Capture {
        let what = "--semantics is for classic programs; an object has eBPF instructions";
        return refused(Failure::new(what).hint("no --semantics"));
    }
    if let ProgramFormat::Form(ClassicForm::RawBe | ClassicForm::Ddd | ClassicForm::Oneline) =
        args.format
    {
        return refused(
            Failure::new("this --format is for classic programs")
                .hint("raw, hex, d, dd, asm, log, case or json"),
        );
    }
    let loading = args.loading.read()?;
    if let Some(object) = file.unlinked(&loading)
        && !args.jit
        && !args.xlated
        && let Some(text) =
            unlinked(&object, args).map_err(|failure| failure.within(file.path().display()))?
    {
        write_program(&text, args.format, output)?;
        return Ok(Answer::No);
    }
    let kernel = args.kernel.read()?;
    let view = object::View {
        loading: &loading,
        format: args.format,
        source: args.source,
        native: args.jit.then(|| args.code()),
        xlated: args.xlated,
    };
    let shown = object::show(file, &kernel, &args.programs, &view)?;
    write_program(&shown.bytes, args.format, output)?;
    Ok(match shown.complete {
        true => Answer::Yes,
        false => Answer::No,
    })
}

/// The listing of an object that is not linked; `None` if the format is for linked programs only.
fn unlinked(object: &UnlinkedObject<'_>, args: &Args) -> Result<Option<Vec<u8>>, Failure> {
    let text = |form| unlinked_text(object, &args.programs, form, args.source);
    let shown = match args.format {
        ProgramFormat::Json => {
            unlinked_json(object, &args.programs).map(|value| crate::stdout::json(&value))
        }
        ProgramFormat::Form(ClassicForm::D) => text(LineForm::Llvm).map(String::into_bytes),
        ProgramFormat::Log => text(LineForm::Log).map(String::into_bytes),
        _ => return Ok(None),
    };
    shown.map(Some).map_err(object::unknown_program)
}

fn show_converted(program: &[SockFilter], args: &Args) -> Result<Vec<u8>, Failure> {
    let (rules, semantics) = args.semantics.rules();
    let converted = convert(&check_program(program, rules)?, semantics);
    match args.format {
        ProgramFormat::Json => {
            let slots: Vec<Slot> = converted_slots(&converted).collect();
            Ok(crate::stdout::json(&ConvertedRecord::new(program, &slots)))
        }
        format if format.is_listing() => Ok(converted_text(program, &converted).into_bytes()),
        _ => Err(only_listing("converted")),
    }
}

/// A classic program and its native code.
fn show_native(program: &[SockFilter], args: &Args) -> Result<Vec<u8>, Failure> {
    let (rules, semantics) = args.semantics.rules();
    let converted = convert(&check_program(program, rules)?, semantics);
    let slots = converted_slots(&converted).collect();
    let draft = NativeDraft::from_classic(converted, args.code());
    show_sides(Some(program), slots, &draft, args.format)
}

/// The program of a text case: its instructions, or the case as it is written.
fn show_case(case: &Case, args: &Args) -> Result<Vec<u8>, Failure> {
    let insns = decode(case.program.insns());
    match (args.jit, args.format) {
        (true, _) => show_ebpf(insns, args),
        (false, ProgramFormat::Case) => Ok(case.to_string().into_bytes()),
        (false, format) => ebpf::format(&insns, format),
    }
}

/// An eBPF program and its native code.
fn show_ebpf(insns: Vec<Insn>, args: &Args) -> Result<Vec<u8>, Failure> {
    let slots = slots(&insns);
    let draft = NativeDraft::from_insns(insns, args.code())
        .map_err(|malformed| Failure::new(malformed).within(args.input.name()))?;
    show_sides(None, slots, &draft, args.format)
}

fn show_sides(
    classic: Option<&[SockFilter]>,
    slots: Vec<Slot>,
    draft: &NativeDraft,
    format: ProgramFormat,
) -> Result<Vec<u8>, Failure> {
    let sides = NativeListing::new(classic, slots, draft, native::disassemble);
    match format {
        ProgramFormat::Json => Ok(crate::stdout::json(&native_record(&sides))),
        format if format.is_listing() => Ok(native_text(&sides).into_bytes()),
        _ => Err(only_listing("native")),
    }
}

fn only_listing(kind: &str) -> Failure {
    Failure::new(format_args!(
        "{kind} code is written as a listing or as JSON"
    ))
    .hint("no --format, or --format json")
}
