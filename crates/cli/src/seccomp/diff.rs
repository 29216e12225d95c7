//! `beebox seccomp diff`: calls for which two stacks of filters differ.

use report::json::pretty;
use std::path::PathBuf;

use report::seccomp::{differences_json, differences_text};

use super::input::{ProfileOptions, Source};
use super::too_complex;
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::output_path::OutputArg;
use crate::stdout::write_folded;

/// Show where two filters, or two stacks of them, differ, with a call for each difference
///
/// All system calls and arguments are compared; what is not shown is equal. Each
/// example was run on both.
///
/// Exit codes: 0 equal, 1 different, 2 not decided.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox seccomp diff old.bpf new.bpf
  beebox seccomp diff old.json new.json --format json
  beebox seccomp diff --pid 4711 profile.json             a process and a profile
  beebox seccomp diff a.bpf b.bpf --against c.bpf d.bpf   two stacks of filters
  beebox seccomp diff --pid 4711 --against-pid 4712       two processes")]
pub(crate) struct Args {
    /// The two filters (or profiles); with --against, the filters of the first stack in
    /// the order of their installation
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take the first stack from a running process, in front of FILEs (as root)
    #[arg(long, value_name = "N")]
    pid: Option<i32>,
    /// The filters of the second stack
    #[arg(long, value_name = "FILE", num_args = 1..)]
    against: Vec<PathBuf>,
    /// Take the second stack from a running process, in front of those of --against
    #[arg(long, value_name = "N")]
    against_pid: Option<i32>,
    #[command(flatten)]
    profiles: ProfileOptions,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArg,
}

impl Args {
    /// The two stacks to compare.
    fn sources(&self) -> Result<[Source<'_>; 2], Failure> {
        let source = |pid, files| Source { pid, files };
        let has_second = self.against_pid.is_some() || !self.against.is_empty();
        match (has_second, self.pid, &self.files[..]) {
            (true, None, []) => {}
            (true, pid, files) => {
                return Ok([source(pid, files), source(self.against_pid, &self.against)]);
            }
            (false, None, [_, _]) => {
                let (first, second) = self.files.split_at(1);
                return Ok([source(None, first), source(None, second)]);
            }
            (false, Some(pid), [_]) => {
                return Ok([source(Some(pid), &[]), source(None, &self.files)]);
            }
            (false, ..) => {}
        }
        Err(
            Failure::new("two filters, or a process and a filter, are compared")
                .hint("name the stack to compare with after --against, if it has several filters"),
        )
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let files = args.files.iter().chain(&args.against);
    let output = args.output.path(files.map(PathBuf::as_path))?;
    let [first, second] = args.sources()?;
    let names = [first.name(), second.name()];
    let (first, second) = (first.stack(&args.profiles)?, second.stack(&args.profiles)?);
    args.profiles.check_use()?;
    let differences = first.diff(&second).map_err(too_complex)?;
    let text = match args.format.format() {
        AnswerFormat::Text => differences_text(&differences, [&names[0], &names[1]]),
        AnswerFormat::Json => {
            let differences = differences_json(&differences);
            pretty(&serde_json::json!({ "differences": differences }))
        }
    };
    write_folded(args.format.format(), &text, output)?;
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
            "the filters are too complex to decide the differences above",
        ))
    }
}
