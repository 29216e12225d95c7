//! `beebox seccomp table`.

use std::fmt::Write;

use beebox::Engine;
use beebox::seccomp::{Analysis, Arch};
use report::seccomp::{
    finding_json, finding_text, foreign_text, others_json, table_json, table_text,
};

use super::input::{Inputs, Program};
use super::too_complex;
use super::value::parse_arch;
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::program_output::print;

/// Show the action for every system call, with the exact conditions
///
/// The filters are run symbolically, on all calls at once: the conditions shown
/// are exact. `(u32)arg0` is the low half of an argument.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp table filter.bpf
  beebox seccomp table profile.json --arch x86_64 --arch i386
  beebox seccomp table filter.bpf --format json | jq '.tables[0].calls[] | select(.name == \"clone\")'")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Architectures to show [default: those that the filters treat specially]
    #[arg(long, value_name = "ARCH")]
    arch: Vec<String>,
    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
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
    let (programs, stack) = args.inputs.stack(Engine::Classic)?;
    let mut analysis = stack.analyze().map_err(too_complex)?;
    let text = match args.format.format() {
        AnswerFormat::Text => text(&programs, &mut analysis, given),
        AnswerFormat::Json => json(&programs, &mut analysis, given),
    };
    print(&text.map_err(too_complex)?)?;
    Ok(Answer::Yes)
}

/// The architectures to show: those given, or those that the filters treat specially, or
/// this machine's.
fn shown(
    analysis: &mut Analysis,
    given: Vec<Arch>,
) -> Result<Vec<Arch>, beebox::seccomp::TooComplex> {
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
    given: Vec<Arch>,
) -> Result<String, beebox::seccomp::TooComplex> {
    let mut text = String::new();
    for arch in shown(analysis, given)? {
        let _ = writeln!(text, "{}", table_text(&analysis.table(arch)?));
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
            let line = beebox::text::dump_line(at, program.insns[at]).replace('\t', " ");
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
    given: Vec<Arch>,
) -> Result<String, beebox::seccomp::TooComplex> {
    let mut tables = Vec::new();
    for arch in shown(analysis, given)? {
        tables.push(table_json(&analysis.table(arch)?));
    }
    let foreign = analysis.foreign_architectures()?;
    let findings = analysis.findings()?;
    let filters = programs.iter().zip(analysis.unreachable());
    let filters = filters.map(|(program, unreachable)| {
        serde_json::json!({
            "file": program.name,
            "instructions": program.insns.len(),
            "unreachable": unreachable,
        })
    });
    let answer = serde_json::json!({
        "filters": filters.collect::<Vec<_>>(),
        "tables": tables,
        "other_architectures": others_json(&foreign),
        "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
    });
    Ok(format!("{answer:#}\n"))
}
