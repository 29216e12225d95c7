//! `beebox seccomp check`: findings about filters and profiles.

use report::json::pretty;
use std::fmt::Write;

use beebox::Engine;
use beebox::internal::seccomp::Finding;
use beebox::internal::seccomp::profile::ProfileNote;
use beebox::seccomp::FilterStack;
use report::seccomp::{ACCEPTED, REFUSED, finding_json, finding_text};

use super::input::{Inputs, Program, install_one, note_text, refusal_text};
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

/// A filter and why the kernel refuses it, if it does.
struct Installation<'a> {
    program: &'a Program,
    refusal: Option<String>,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path(args.inputs.files())?;
    let order = args.inputs.byte_order()?;
    let mut programs = args.inputs.programs()?;
    let ineffective = take_ineffective(&mut programs);
    programs.iter().for_each(Program::print_notes);
    let mut stack = FilterStack::default();
    let install = |program| Installation {
        program,
        refusal: install_one(program, Engine::Checked, order, &mut stack)
            .err()
            .map(|refusal| refusal_text(program, &refusal)),
    };
    let installations: Vec<_> = programs.iter().map(install).collect();
    let is_installed = installations.iter().all(|one| one.refusal.is_none());
    let findings = match is_installed {
        true => stack.analyze().and_then(|mut analysis| analysis.findings()),
        false => Ok(Vec::new()),
    };
    write_folded(
        args.format.format(),
        match args.format.format() {
            AnswerFormat::Text => text(&installations, &findings, &ineffective),
            AnswerFormat::Json => json(&installations, &findings, &ineffective),
        },
        output,
    )?;
    match findings {
        _ if !is_installed => Ok(Answer::No),
        // Whether the kernel installs it is answered nevertheless.
        _ if args.deny_findings && !ineffective.is_empty() => Ok(Answer::No),
        Err(error) if args.deny_findings => Err(too_complex(error)),
        Ok(findings) if args.deny_findings && !findings.is_empty() => Ok(Answer::No),
        _ => Ok(Answer::Yes),
    }
}

/// Takes the notes about rules without effect out of the programs: here they are findings.
fn take_ineffective(programs: &mut [Program]) -> Vec<String> {
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

/// The name of the finding that a rule has no effect.
const INEFFECTIVE: &str = "rule-without-effect";

fn text(
    installations: &[Installation<'_>],
    findings: &Result<Vec<Finding>, beebox::Error>,
    ineffective: &[String],
) -> String {
    let mut text = String::new();
    for Installation { program, refusal } in installations {
        let (name, count) = (&program.name, program.insns.len());
        let _ = match refusal {
            None => writeln!(
                text,
                "{name}: {ACCEPTED}accepted{ACCEPTED:#}, {count} instructions"
            ),
            Some(why) => writeln!(text, "{name}: {REFUSED}refused{REFUSED:#}: {why}"),
        };
    }
    for finding in findings.as_deref().unwrap_or_default() {
        let _ = writeln!(text, "{}", finding_text(finding));
    }
    for message in ineffective {
        let _ = writeln!(text, "{INEFFECTIVE}: {message}");
    }
    text
}

fn json(
    installations: &[Installation<'_>],
    findings: &Result<Vec<Finding>, beebox::Error>,
    ineffective: &[String],
) -> String {
    let filters = installations.iter().map(|one| {
        serde_json::json!({
            "file": one.program.name,
            "insn_count": one.program.insns.len(),
            "accepted": one.refusal.is_none(),
            "refusal": one.refusal,
        })
    });
    let list = findings.as_deref().unwrap_or_default().iter();
    let rules = ineffective.iter();
    let rules = rules.map(
        |message| serde_json::json!({ "name": INEFFECTIVE, "message": message, "example": null }),
    );
    let answer = serde_json::json!({
        "filters": filters.collect::<Vec<_>>(),
        "findings": list.map(finding_json).chain(rules).collect::<Vec<_>>(),
        "not_analysed": findings.as_ref().err().map(ToString::to_string),
    });
    pretty(&answer)
}
