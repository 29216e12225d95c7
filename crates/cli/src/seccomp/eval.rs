//! `beebox seccomp eval`: runs filters on one call.

use report::json::pretty;
use report::seccomp::action_text;
use std::fmt::Write;

use beebox::internal::seccomp::ByteOrder;
use beebox::internal::seccomp::{Word, calls};
use beebox::internal::{ClassicInsn as Insn, Next, Step};
use beebox::seccomp::{Action, Arch, FilterStack, SeccompData};
use beebox::{Engine, SockFilter};

use super::input::{Inputs, Program};
use super::value::{
    Argument, argument_value, parse_arch, parse_argument, parse_number, parse_syscall,
};
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
    let (arch, audit) =
        parse_arch(args.arch.as_deref().or(args.inputs.machine())).map_err(|failure| {
            failure.within(match args.arch {
                Some(_) => "--arch",
                None => "--machine",
            })
        })?;
    let nr = parse_syscall(arch, &args.syscall)?;
    let mut data = SeccompData {
        nr: nr as i32,
        arch: audit,
        instruction_pointer: args.instruction_pointer,
        args: [0; 6],
    };
    for (index, value) in &args.args {
        data.args[*index] = argument_value(arch, value)?;
    }
    let order = arch.map_or(ByteOrder::Little, Arch::byte_order);
    let (programs, stack) = args.inputs.stack(args.engine, order)?;
    let filters = stack.filters().iter();
    let returns: Vec<u32> = filters.map(|filter| filter.runner().run(&data)).collect();
    let action = beebox::internal::seccomp::decide(returns.iter().copied());
    let text = match args.format.format() {
        AnswerFormat::Text => {
            let mut text = String::new();
            if args.trace {
                text = trace(&programs, &stack, &data, arch);
            }
            let _ = writeln!(text, "{}", action_text(action));
            if programs.len() > 1 {
                list_answers(&mut text, &programs, &returns);
            }
            text
        }
        AnswerFormat::Json => {
            let filters = programs.iter().zip(&returns).map(|(program, &value)| {
                serde_json::json!({
                    "file": program.name,
                    "return": value,
                    "action": Action::from_return(value).to_string(),
                })
            });
            let answer = serde_json::json!({
                "action": action.to_string(),
                "return": action.to_return(),
                "audit_arch": audit,
                "nr": nr,
                "syscall": arch.and_then(|arch| calls::name(arch, nr)),
                "args": data.args,
                "instruction_pointer": data.instruction_pointer,
                "filters": filters.collect::<Vec<_>>(),
            });
            pretty(&answer)
        }
    };
    write_folded(args.format.format(), &text, output)?;
    Ok(Answer::Yes)
}

/// The return value of each filter, with the one that decides.
fn list_answers(text: &mut String, programs: &[Program], returns: &[u32]) {
    let total = returns
        .iter()
        .copied()
        .reduce(beebox::internal::seccomp::combine);
    let deciding = (0..returns.len())
        .rev()
        .find(|&at| Some(returns[at]) == total);
    let width = programs.iter().map(|program| program.name.len()).max();
    for (at, (program, &value)) in programs.iter().zip(returns).enumerate() {
        let decides = if deciding == Some(at) {
            "  decides"
        } else {
            ""
        };
        let action = Action::from_return(value);
        let width = width.unwrap_or(0);
        let _ = writeln!(text, "  {:width$}  {action}{decides}", program.name);
    }
}

fn trace(
    programs: &[Program],
    stack: &FilterStack,
    data: &SeccompData,
    arch: Option<Arch>,
) -> String {
    let mut text = String::new();
    for (program, filter) in programs.iter().zip(stack.filters()) {
        if programs.len() > 1 {
            let _ = writeln!(text, "{}:", program.name);
        }
        let mut steps = Vec::new();
        filter.trace(data, &mut |step| steps.push(step));
        for step in steps {
            let insn = program.insns[step.at];
            let line = beebox::internal::text::dump_line(step.at, insn).replace('\t', " ");
            let _ = writeln!(
                text,
                "{:<52} {}",
                line.trim_end(),
                comment(insn, step, arch, filter.byte_order())
            );
        }
    }
    text
}

/// The effect of an instruction.
fn comment(insn: SockFilter, step: Step, arch: Option<Arch>, order: ByteOrder) -> String {
    let (a, x) = (
        beebox::internal::seccomp::number_text(step.a.into()),
        beebox::internal::seccomp::number_text(step.x.into()),
    );
    match (Insn::decode(insn), step.next) {
        (Insn::Jump { .. } | Insn::Goto(_), Next::Insn(at)) => format!("→ {at:03}"),
        (_, Next::End(value)) => Action::from_return(value).to_string(),
        (Insn::LoadAbs { k, .. }, _) => match Word::at(k, order) {
            Some(Word::NR) => match arch.and_then(|arch| calls::name(arch, step.a)) {
                Some(name) => format!("A = {a}  nr ({name})"),
                None => format!("A = {a}  nr"),
            },
            Some(Word::ARCH) => match arch {
                Some(arch) => format!("A = {a}  arch ({arch})"),
                None => format!("A = {a}  arch"),
            },
            Some(word) => format!("A = {a}  {word}"),
            None => format!("A = {a}"),
        },
        (Insn::Tax | Insn::LoadXImm(_) | Insn::LoadXMem(_) | Insn::LoadXLen, _) => {
            format!("X = {x}")
        }
        (Insn::Store(k), _) => format!("M[{k}] = {a}"),
        (Insn::StoreX(k), _) => format!("M[{k}] = {x}"),
        _ => format!("A = {a}"),
    }
}
