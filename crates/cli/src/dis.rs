//! `beebox dis`.

mod converted;

use classic::{Rules, Semantics, convert};

use crate::answer::{Answer, Failure};
use crate::program_input::{ProgramInput, check_program};
use crate::program_output::{Format, format_program, write_output};

/// Disassemble a classic filter, or show what it is converted to
///
/// Reads a classic BPF program in any form, or has libpcap compile an
/// expression, and lists it, by default as `tcpdump -d` does.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox dis ssh.bpf                        a listing, as tcpdump -d prints
  beebox dis -e 'port 22' --format ddd      what tcpdump -ddd prints
  beebox dis filter.txt --format asm        source that bpf_asm assembles
  beebox dis -e 'port 22' --converted       classic and internal code, side by side
  beebox dis -e tcp --format json | jq -r '.insns[].text'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: ProgramInput,

    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "d")]
    format: Format,

    /// Show the eBPF instructions that the program is converted to beside it
    #[arg(long)]
    converted: bool,

    /// Whose filter it is, which decides how it is converted
    #[arg(
        long,
        value_name = "RULES",
        default_value = "capture",
        requires = "converted"
    )]
    rules: RulesName,
}

/// The rules by name.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RulesName {
    /// libpcap's, for filters on captures
    Capture,
    /// Linux's, for filters on sockets
    Socket,
    /// Linux's, for filters of system calls
    Seccomp,
}

impl RulesName {
    fn rules(self) -> (Rules, Semantics) {
        match self {
            RulesName::Capture => (Rules::Capture, Semantics::Capture),
            RulesName::Socket => (Rules::Socket, Semantics::Kernel),
            RulesName::Seccomp => (Rules::Seccomp, Semantics::Kernel),
        }
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let program = args.input.read()?;
    let text = if args.converted {
        let (rules, semantics) = args.rules.rules();
        let converted = convert(&check_program(&program, rules)?, semantics);
        match args.format {
            Format::Json => converted::json(&program, &converted),
            format if format.is_listing() => converted::listing(&program, &converted).into_bytes(),
            _ => {
                return Err(Failure::new("converted code has one text form only")
                    .hint("leave --format out, or use --format json"));
            }
        }
    } else {
        format_program(&program, args.format)
    };
    write_output(&text, None)?;
    Ok(Answer::Yes)
}
