//! `beebox dis`.

use crate::answer::{Answer, Failure};
use crate::program_input::ProgramInput;
use crate::program_output::{Format, format_program, write_output};

/// Disassemble a classic filter, or show what it is converted to
///
/// Reads a classic BPF program in any form and lists it, by default as
/// `tcpdump -d` does.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox dis ssh.bpf                   a listing, as tcpdump -d prints
  beebox dis -e 'port 22' --format ddd what tcpdump -ddd prints
  beebox dis filter.txt --format asm   source that bpf_asm assembles
  beebox dis -e tcp --format json | jq '.insns[].text'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: ProgramInput,

    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "d")]
    format: Format,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let program = args.input.read()?;
    write_output(&format_program(&program, args.format), None)?;
    Ok(Answer::Yes)
}
