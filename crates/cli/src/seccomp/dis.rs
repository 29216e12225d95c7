//! `beebox seccomp dis`: disassembles filters.

use beebox::internal::seccomp::{listings_json, listings_text};
use report::json::pretty;

use super::input::{Inputs, print_notes};
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::output_path::OutputArg;
use crate::stdout::write_answer;

/// List filters with the names of actions, calls and architectures
///
/// The name of a call is that of the architecture which the filter tested before; where
/// it tested none, the names of several are listed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp dis filter.bpf
  beebox seccomp dis profile.json --cap docker
  beebox seccomp dis --pid 4711")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArg,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path(args.inputs.files())?;
    let order = args.inputs.byte_order()?;
    let programs = args.inputs.programs()?;
    print_notes(&programs);
    let listings = match args.format.format() {
        AnswerFormat::Text => listings_text(&programs, order),
        AnswerFormat::Json => pretty(&listings_json(&programs, order)),
    };
    write_answer(args.format.format(), listings, output)?;
    Ok(Answer::Yes)
}
