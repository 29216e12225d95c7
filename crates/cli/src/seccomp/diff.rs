//! `beebox seccomp diff`.

use std::path::PathBuf;

use beebox::Engine;
use report::seccomp::{differences_json, differences_text};

use super::input::{ProfileOptions, install, read};
use super::too_complex;
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::program_output::print;

/// Show where two filters differ, with a call for each difference
///
/// All system calls and arguments are compared; what is not shown is equal. Each
/// example was run on both.
///
/// Exit codes: 0 equal, 1 different, 2 not decided.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp diff old.bpf new.bpf
  beebox seccomp diff profile.json compiled.bpf
  beebox seccomp diff old.json new.json --format json")]
pub(crate) struct Args {
    /// The first filter (or profile)
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The second
    #[arg(value_name = "B")]
    second: PathBuf,
    #[command(flatten)]
    profiles: ProfileOptions,
    #[command(flatten)]
    format: FormatArgs,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let (first, second) = (
        read(&args.first, &args.profiles)?,
        read(&args.second, &args.profiles)?,
    );
    let names = [first.name.clone(), second.name.clone()];
    let first = install(&[first], Engine::Classic)?;
    let second = install(&[second], Engine::Classic)?;
    let differences = first.diff(&second).map_err(too_complex)?;
    let text = match args.format.format() {
        AnswerFormat::Text => differences_text(&differences, [&names[0], &names[1]]),
        AnswerFormat::Json => format!("{:#}\n", differences_json(&differences)),
    };
    print(&text)?;
    let contrasts = || {
        differences
            .iter()
            .flat_map(|difference| &difference.contrasts)
    };
    if contrasts().any(|contrast| contrast.example.is_some()) {
        Ok(Answer::No)
    } else if differences.is_empty() {
        Ok(Answer::Yes)
    } else {
        Err(Failure::new(
            "not decided whether the filters differ where shown",
        ))
    }
}
