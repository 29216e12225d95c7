//! `beebox seccomp table`: actions of all calls.

use beebox::Engine;
use beebox::internal::seccomp::{Analysis, parse_arch, parse_syscall};
use beebox::seccomp::Arch;
use report::json::pretty;

use super::input::{Inputs, NamedFilter};
use super::too_complex;
use super::value::failure;
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::output_path::OutputArg;
use crate::stdout::write_folded;

/// Show the action for every system call, with the exact conditions
///
/// The filters are run symbolically, on all calls at once: the conditions shown
/// are exact. `(u32)arg0` is the low half of an argument.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp table filter.bpf
  beebox seccomp table profile.json --arch x86_64 --arch i386
  beebox seccomp table filter.bpf --syscall clone --syscall clone3
  beebox seccomp table filter.bpf --format json | jq '.tables[0].calls[].name'")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Architectures to show [default: those that the filters treat specially]
    #[arg(long, value_name = "ARCH")]
    arch: Vec<String>,
    /// Show only these calls, by name or number
    #[arg(long, value_name = "NAME|NR", allow_hyphen_values = true)]
    syscall: Vec<String>,
    /// List the calls that get the default action, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArg,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path(args.inputs.files())?;
    let mut given = Vec::new();
    for text in &args.arch {
        let (arch, _) = parse_arch(Some(text)).map_err(failure)?;
        let unnamed = || {
            Failure::new(format!(
                "the calls of architecture {text} have no names here"
            ))
        };
        given.push(arch.ok_or_else(unnamed)?);
    }
    let (programs, stack) = args
        .inputs
        .stack(Engine::Checked, args.inputs.byte_order()?)?;
    let mut analysis = stack.analyze().map_err(too_complex)?;
    let archs = match given.is_empty() {
        true => analysis.shown_architectures().map_err(too_complex)?,
        false => given,
    };
    let text = match (args.syscall.is_empty(), args.format.format()) {
        (false, _) => calls(&mut analysis, &archs, &args)?,
        (true, AnswerFormat::Text) => {
            let rest = (args.all, " (--all lists them)");
            let text = analysis.tables_text(&programs, &archs, rest);
            text.map_err(too_complex)?
        }
        (true, AnswerFormat::Json) => {
            json(&programs, &mut analysis, &archs).map_err(too_complex)?
        }
    };
    write_folded(args.format.format(), text, output)?;
    Ok(Answer::Yes)
}

/// The cases of the calls that `--syscall` names, on the architectures that have them.
fn calls(analysis: &mut Analysis, archs: &[Arch], args: &Args) -> Result<String, Failure> {
    let number = |arch, name: &String| parse_syscall(Some(arch), name);
    let cases = analysis.cases_of_calls(archs, &args.syscall, |arch, name| number(arch, name).ok());
    let cases = cases.map_err(too_complex)?;
    for name in &args.syscall {
        let parsed: Vec<_> = archs.iter().map(|&arch| number(arch, name)).collect();
        if parsed.iter().all(Result::is_err) {
            let mut errors = parsed.into_iter().filter_map(Result::err);
            let first = errors.next().map(failure);
            return Err(first.unwrap_or_else(|| Failure::new("no architecture is shown")));
        }
    }
    Ok(match args.format.format() {
        AnswerFormat::Text => cases.text(),
        AnswerFormat::Json => pretty(&cases.json()),
    })
}

fn json(
    programs: &[NamedFilter],
    analysis: &mut Analysis,
    archs: &[Arch],
) -> Result<String, beebox::Error> {
    let mut answer = analysis.tables_json(archs)?;
    let filters = programs.iter().zip(analysis.unreachable());
    let filters = filters.map(|(program, unreachable)| {
        serde_json::json!({
            "file": program.name,
            "insn_count": program.insns.len(),
            "unreachable": unreachable,
        })
    });
    answer["filters"] = filters.collect();
    Ok(pretty(&answer))
}
