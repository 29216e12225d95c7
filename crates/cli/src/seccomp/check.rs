//! `beebox seccomp check`: findings about filters and profiles.

use beebox::internal::seccomp::FilterCheck;
use beebox::internal::seccomp::profile::ProfileNote;
use report::json::pretty;

use super::input::{Inputs, NamedFilter, note_text, print_notes};
use super::too_complex;
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::output_path::OutputArg;
use crate::stdout::write_folded;

/// Check whether the kernel installs these filters, and why not
///
/// Common mistakes in filters that it installs are shown by name; they do not change
/// the answer, unless --deny-findings is given.
///
/// Exit codes: 0 installed, 1 a filter is refused (or there are findings to deny), 2 a
/// file can't be read.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp check filter.bpf
  beebox seccomp check profile.json --deny-findings
  beebox seccomp check base.bpf extra.bpf    # installed one after the other
  beebox seccomp check filter.bpf --format json | jq -r '.findings[].name'")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Exit with 1 if there are findings
    #[arg(long)]
    deny_findings: bool,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArg,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path(args.inputs.files())?;
    let order = args.inputs.byte_order()?;
    let mut programs = args.inputs.programs()?;
    let ineffective = take_ineffective(&mut programs);
    print_notes(&programs);
    let check = FilterCheck::new(&programs, order);
    write_folded(
        args.format.format(),
        match args.format.format() {
            AnswerFormat::Text => check.text(&ineffective),
            AnswerFormat::Json => pretty(&check.json(&ineffective)),
        },
        output,
    )?;
    let is_installed = check.is_installed();
    match check.findings {
        _ if !is_installed => Ok(Answer::No),
        // Whether the kernel installs it is answered nevertheless.
        _ if args.deny_findings && !ineffective.is_empty() => Ok(Answer::No),
        Err(error) if args.deny_findings => Err(too_complex(error)),
        Ok(findings) if args.deny_findings && !findings.is_empty() => Ok(Answer::No),
        _ => Ok(Answer::Yes),
    }
}

/// Takes the notes about rules without effect out of the programs: here they are findings.
fn take_ineffective(programs: &mut [NamedFilter]) -> Vec<String> {
    let mut messages = Vec::new();
    for program in programs {
        let is_ineffective = |note: &ProfileNote| matches!(note, ProfileNote::Ineffective { .. });
        let notes = std::mem::take(&mut program.notes);
        let (taken, kept): (Vec<_>, Vec<_>) = notes.into_iter().partition(is_ineffective);
        let of_file = |note: &ProfileNote| format!("{}: {}", program.name, note_text(note));
        messages.extend(taken.iter().map(of_file));
        program.notes = kept;
    }
    messages
}
