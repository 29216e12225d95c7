//! `beebox seccomp table`: actions of all calls.

use report::json::pretty;
use std::fmt::Write;

use beebox::Engine;
use beebox::seccomp::{Analysis, Arch};
use report::seccomp::{
    call_cases_json, call_cases_text, finding_json, finding_text, foreign_text, others_json,
    table_json, table_text,
};

use super::input::{Inputs, Program};
use super::too_complex;
use super::value::{parse_arch, parse_syscall};
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
        let (arch, _) = parse_arch(Some(text))?;
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
    let archs = shown(&mut analysis, given).map_err(too_complex)?;
    if !args.syscall.is_empty() {
        let text = calls(&mut analysis, &archs, &args)?;
        write_folded(args.format.format(), &text, output)?;
        return Ok(Answer::Yes);
    }
    let text = match args.format.format() {
        AnswerFormat::Text => text(&programs, &mut analysis, &archs, args.all),
        AnswerFormat::Json => json(&programs, &mut analysis, &archs),
    };
    write_folded(args.format.format(), text.map_err(too_complex)?, output)?;
    Ok(Answer::Yes)
}

/// The cases of the calls that `--syscall` names, on the architectures that have them.
fn calls(analysis: &mut Analysis, archs: &[Arch], args: &Args) -> Result<String, Failure> {
    let mut tables = Vec::new();
    for &arch in archs {
        let mut cases = Vec::new();
        for name in &args.syscall {
            let Ok(nr) = parse_syscall(Some(arch), name) else {
                continue;
            };
            cases.push((nr, analysis.cases_of(arch, nr).map_err(too_complex)?));
        }
        tables.push((arch, cases));
    }
    for name in &args.syscall {
        let parsed = archs.iter().map(|&arch| parse_syscall(Some(arch), name));
        let parsed = parsed.collect::<Vec<_>>();
        if parsed.iter().all(Result::is_err) {
            return Err(parsed
                .into_iter()
                .find_map(Result::err)
                .unwrap_or_else(|| Failure::new("no architecture is shown")));
        }
    }
    Ok(match args.format.format() {
        AnswerFormat::Text => tables
            .iter()
            .flat_map(|(arch, list)| list.iter().map(move |(nr, cases)| (*arch, *nr, cases)))
            .map(|(arch, nr, cases)| call_cases_text(arch, nr, cases))
            .collect(),
        AnswerFormat::Json => {
            let tables = tables
                .iter()
                .map(|(arch, list)| call_cases_json(*arch, list));
            let answer = serde_json::json!({ "tables": tables.collect::<Vec<_>>() });
            pretty(&answer)
        }
    })
}

/// The architectures to show: those given, or those that the filters treat specially, or
/// this machine's.
fn shown(analysis: &mut Analysis, given: Vec<Arch>) -> Result<Vec<Arch>, beebox::Error> {
    if !given.is_empty() {
        return Ok(given);
    }
    let mut archs = analysis.architectures()?;
    if archs.is_empty() {
        archs.push(Arch::native().unwrap_or(Arch::X86_64));
    }
    Ok(archs)
}

fn text(
    programs: &[Program],
    analysis: &mut Analysis,
    archs: &[Arch],
    all: bool,
) -> Result<String, beebox::Error> {
    let mut text = String::new();
    for &arch in archs {
        let _ = writeln!(
            text,
            "{}",
            table_text(&analysis.table(arch)?, all, " (--all lists them)")
        );
    }
    text.push_str(&foreign_text(&analysis.foreign_architectures()?));
    for (program, unreachable) in programs.iter().zip(analysis.unreachable()) {
        if unreachable.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n{}: no call reaches these instructions",
            program.name
        );
        for &at in unreachable {
            let line = beebox::internal::text::dump_line(at, program.insns[at]).replace('\t', " ");
            let _ = writeln!(text, "  {}", line.trim_end());
        }
    }
    let findings = analysis.findings()?;
    if !findings.is_empty() {
        text.push('\n');
    }
    for finding in &findings {
        let _ = writeln!(text, "{}", finding_text(finding));
    }
    Ok(text)
}

fn json(
    programs: &[Program],
    analysis: &mut Analysis,
    archs: &[Arch],
) -> Result<String, beebox::Error> {
    let mut tables = Vec::new();
    for &arch in archs {
        tables.push(table_json(&analysis.table(arch)?));
    }
    let foreign = analysis.foreign_architectures()?;
    let findings = analysis.findings()?;
    let filters = programs.iter().zip(analysis.unreachable());
    let filters = filters.map(|(program, unreachable)| {
        serde_json::json!({
            "file": program.name,
            "insn_count": program.insns.len(),
            "unreachable": unreachable,
        })
    });
    let answer = serde_json::json!({
        "filters": filters.collect::<Vec<_>>(),
        "tables": tables,
        "other_architectures": others_json(&foreign),
        "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
    });
    Ok(pretty(&answer))
}
