//! `beebox seccomp check`.

use std::fmt::Write;

use report::seccomp::finding_text;
use seccomp::{Analysis, Filter, Stack};

use super::input::{Inputs, refusal_text};
use crate::answer::{Answer, Failure};
use crate::program_output::print;

/// Would the kernel install these filters, and if not, why?
///
/// Common mistakes in filters that it takes are shown by name; they do not
/// change the answer.
///
/// Exits with 0 when it would, 1 when it refuses one of them, 2 when a file
/// can't be read.
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
    let mut stack = Stack::default();
    let mut text = String::new();
    let mut answer = Answer::Yes;
    for program in &programs {
        let installed = Filter::new(&program.insns).and_then(|filter| stack.install(filter));
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
        Answer::Yes => Analysis::new(&stack).and_then(|mut analysis| analysis.findings(&stack)),
        Answer::No => Ok(Vec::new()),
    };
    for finding in findings.unwrap_or_default() {
        let _ = writeln!(text, "{}", finding_text(&finding));
    }
    print(&text)?;
    Ok(answer)
}
