//! `beebox seccomp eval`: runs filters on one call.

use beebox::Engine;
use beebox::internal::seccomp::{
    Argument, ByteOrder, Decision, argument_value, parse_arch, parse_argument, parse_number,
    parse_syscall,
};
use beebox::seccomp::{Arch, SeccompData};
use report::json::pretty;

use super::input::Inputs;
use super::value::failure;
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::engine;
use crate::output_path::OutputArg;
use crate::stdout::write_folded;

/// Show the action for one system call, and why
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp eval filter.bpf --syscall openat
  beebox seccomp eval filter.bpf --syscall socket --arg 0=AF_INET --trace
  beebox seccomp eval filter.bpf --syscall clone --arg '0=CLONE_NEWUSER|CLONE_NEWNS'
  beebox seccomp eval a.bpf b.bpf --arch i386 --syscall socketcall --arg 0=1
  beebox seccomp eval profile.json --syscall 452")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Architecture of the call, by name or by audit number [default: that of
    /// --machine, else this machine's]
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// The call, by name or number
    #[arg(long, value_name = "NAME|NR", allow_hyphen_values = true)]
    syscall: String,
    /// An argument of the call, 0 to 5: a number or names of constants combined by |;
    /// those not given are 0
    #[arg(long = "arg", value_name = "N=VALUE", value_parser = parse_argument, allow_hyphen_values = true)]
    args: Vec<Argument>,
    /// The instruction pointer
    #[arg(long, value_name = "ADDRESS", value_parser = parse_number, default_value = "0")]
    instruction_pointer: u64,
    /// Show every instruction of the run
    #[arg(long)]
    trace: bool,
    /// Engine [default: native; interp where there is no native code]
    #[arg(long, value_name = "NAME", value_parser = engine::parser(), default_value = Engine::default().name(), hide_default_value = true)]
    engine: Engine,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArg,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path(args.inputs.files())?;
    let named = args.arch.as_deref().or(args.inputs.machine());
    let (arch, audit) = parse_arch(named).map_err(|error| {
        failure(error).within(match args.arch {
            Some(_) => "--arch",
            None => "--machine",
        })
    })?;
    let nr = parse_syscall(arch, &args.syscall).map_err(failure)?;
    let mut data = SeccompData {
        nr: nr as i32,
        arch: audit,
        instruction_pointer: args.instruction_pointer,
        args: [0; 6],
    };
    for (index, value) in &args.args {
        data.args[*index] = argument_value(arch, value).map_err(failure)?;
    }
    let order = arch.map_or(ByteOrder::Little, Arch::byte_order);
    let (programs, stack) = args.inputs.stack(args.engine, order)?;
    let decision = Decision::new(&programs, &stack, arch, data);
    let text = match (args.format.format(), args.trace) {
        (AnswerFormat::Text, false) => decision.text(),
        (AnswerFormat::Text, true) => decision.trace() + &decision.text(),
        (AnswerFormat::Json, _) => pretty(&decision.json()),
    };
    write_folded(args.format.format(), &text, output)?;
    Ok(Answer::Yes)
}
