//! `beebox asm`: translates classic and eBPF programs between text and binary forms.

use std::path::PathBuf;

use crate::answer::{Answer, Failure};
use crate::dis::ebpf;
use crate::output_path::OutputPath;
use crate::program_input::{ClassicForm, ProgramInput};
use crate::program_output::{ProgramFormat, format_program, text_as, write_program};

/// Assemble a filter or an eBPF program: from any form to any binary or text form
///
/// Reads a classic BPF program in any form, most often the assembly language of
/// bpf_asm, and writes it in another. With --ebpf it reads and writes eBPF, most
/// often LLVM's assembly language. The program is translated, not checked.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox asm drop.asm                       one line, for xt_bpf and tc
  beebox asm drop.asm -o drop.bpf           a raw sock_filter array
  beebox asm drop.asm --format dd           a C array
  tcpdump -ddd tcp | beebox asm -o tcp.bpf  any other form is read as well
  beebox asm -e 'port 22' -o ssh.bpf        compiled by the system's libpcap
  beebox asm --ebpf program.s -o program.bin  eBPF, eight bytes for each slot
  beebox asm --ebpf program.s --format dd   struct bpf_insn for C")]
pub(crate) struct Args {
    #[command(flatten)]
    input: ProgramInput,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Output format [default: raw with -o, else oneline, or hex with --ebpf]
    #[arg(long, value_name = "FORMAT", value_parser = text_as(ProgramFormat::Form(ClassicForm::Asm), ProgramFormat::is_alone))]
    format: Option<ProgramFormat>,

    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    /// FILE holds eBPF instructions: text in LLVM's assembly language, bytes, bytes in
    /// hexadecimal, or an object
    #[arg(long, conflicts_with_all = ["form", "expression"])]
    ebpf: bool,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = OutputPath::optional(args.output.as_deref(), args.input.path())?;
    let default = match (&args.output, args.ebpf) {
        (Some(_), _) => ProgramFormat::Form(ClassicForm::Raw),
        (None, false) => ProgramFormat::Form(ClassicForm::Oneline),
        (None, true) => ProgramFormat::Hex,
    };
    let format = match (args.json, args.format) {
        (true, _) => ProgramFormat::Json,
        (false, given) => given.unwrap_or(default),
    };
    let bytes = match args.ebpf {
        true => ebpf::format(&ebpf::read(&args.input)?, format)?,
        false => format_program(&args.input.read()?, format)?,
    };
    write_program(&bytes, format, output)?;
    Ok(Answer::Yes)
}
