//! `beebox seccomp check`.

use std::fmt::Write;

use beebox::Engine;
use beebox::seccomp::FilterStack;
use report::seccomp::finding_text;

use super::input::{Inputs, install_one, refusal_text};
use crate::answer::{Answer, Failure};
use crate::program_output::print;

/// Check whether the kernel installs these filters, and why not
///
/// Common mistakes in filters that it installs are shown by name; they do not change
/// the answer.
///
/// Exit codes: 0 installed, 1 a filter is refused, 2 a file can't be read.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp check filter.bpf
  beebox seccomp check profile.json
  beebox seccomp check base.bpf extra.bpf    # installed one after the other")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let programs = args.inputs.programs()?;
    let mut stack = FilterStack::default();
    let mut text = String::new();
    let mut answer = Answer::Yes;
    for program in &programs {
        let installed = install_one(program, Engine::Classic, &mut stack);
        let count = program.insns.len();
        let _ = match installed {
            Ok(()) => writeln!(text, "{}: accepted, {count} instructions", program.name),
            Err(refusal) => {
                answer = Answer::No;
                let why = refusal_text(program, &refusal);
                writeln!(text, "{}: refused: {why}", program.name)
            }
        };
    }
    // What is too complex to follow has been answered nevertheless.
    let findings = match answer {
        Answer::Yes => stack.analyze().and_then(|mut analysis| analysis.findings()),
        Answer::No => Ok(Vec::new()),
    };
    for finding in findings.unwrap_or_default() {
        let _ = writeln!(text, "{}", finding_text(&finding));
    }
    print(&text)?;
    Ok(answer)
}
