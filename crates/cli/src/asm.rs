//! `beebox asm`.

use std::path::PathBuf;

use crate::answer::{Answer, Failure};
use crate::program_input::{FormName, ProgramInput};
use crate::program_output::{Format, format_program, write_output};

/// Assemble a classic filter: from any form to any binary or text form
///
/// Reads a classic BPF program in any form, most often the assembly language of
/// bpf_asm, and writes it in another. The program is translated, not checked.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox asm drop.asm                       one line, for xt_bpf and tc
  beebox asm drop.asm -o drop.bpf           a raw sock_filter array
  beebox asm drop.asm --format dd           a C array
  tcpdump -ddd tcp | beebox asm -o tcp.bpf  any other form is read as well
  beebox asm -e 'port 22' -o ssh.bpf        compiled by the system's libpcap")]
pub(crate) struct Args {
    #[command(flatten)]
    input: ProgramInput,

    /// Where to write [default: standard output]
    #[arg(short, long = "output", value_name = "OUT")]
    out: Option<PathBuf>,

    /// What to write [default: raw with -o, else oneline]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let program = args.input.read()?;
    let default = match args.out {
        Some(_) => FormName::Raw,
        None => FormName::Oneline,
    };
    let format = args.format.unwrap_or(Format::Form(default));
    write_output(&format_program(&program, format), args.out.as_deref())?;
    Ok(Answer::Yes)
}
