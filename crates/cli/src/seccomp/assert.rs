//! `beebox seccomp assert`: checks expectations about calls.

use report::json::pretty;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use beebox::internal::seccomp::{Expectation, Miss, read_expectations};
use report::seccomp::{action_text, call_json, call_text};

use super::input::{ProfileOptions, Source, read_bytes};
use super::too_complex;
use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::output_path::OutputArg;
use crate::stdout::write_folded;

/// Prove that a filter does what a list expects
///
/// Each line of the list names a call and its action; arguments that it leaves open are
/// proved for every value.
///
/// Exit codes: 0 all lines hold, 1 a line is missed, 2 not decided.
#[derive(clap::Args)]
#[command(after_help = "\
The list, one expectation a line:
  x86_64 openat -> ALLOW                        # whatever the arguments
  x86_64 socket(arg0 = AF_NETLINK) -> ERRNO(EPERM)  # and any other argument
  x86_64, i386 clone(arg0 & CLONE_NEWUSER|CLONE_NEWNS != 0) -> ERRNO
  x86_64 personality(arg0 > 8) -> not ALLOW
  x86_64 unnamed -> ERRNO(ENOSYS)               # numbers without a name
  any * -> not TRACE                            # any architecture, any number
  other * -> KILL                               # architectures without a name here

Examples:
  beebox seccomp assert profile.json expectations.txt
  beebox seccomp assert base.bpf extra.bpf expectations.txt
  beebox seccomp assert --pid 4711 expectations.txt")]
pub(crate) struct Args {
    /// Filters (or profiles) in the order of their installation, then the list
    #[arg(value_name = "FILE... EXPECTATIONS", required = true)]
    files: Vec<PathBuf>,
    /// Take the filters of a running process, in front of those of files (as root)
    #[arg(long, value_name = "N")]
    pid: Option<i32>,
    #[command(flatten)]
    profiles: ProfileOptions,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    output: OutputArg,
}

impl Args {
    /// The filters and the list.
    fn split(&self) -> Result<(Source<'_>, &Path), Failure> {
        let missing = || {
            Failure::new("assert needs a filter and a list of expectations")
                .hint("beebox seccomp assert FILE... EXPECTATIONS, or --pid N EXPECTATIONS")
        };
        let (list, files) = self.files.split_last().ok_or_else(missing)?;
        if files.is_empty() && self.pid.is_none() {
            return Err(missing());
        }
        let source = Source {
            pid: self.pid,
            files,
        };
        Ok((source, list))
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = args.output.path(args.files.iter().map(PathBuf::as_path))?;
    let (source, expectations) = args.split()?;
    let (name, bytes) = read_bytes(expectations)?;
    let list =
        String::from_utf8(bytes).map_err(|_| Failure::new(format!("{name}: not text (UTF-8)")))?;
    let list =
        read_expectations(&list).map_err(|error| Failure::new(format!("{name}: {error}")))?;
    if list.is_empty() {
        return Err(Failure::new(format!("{name}: no expectations")));
    }
    let stack = source.stack(&args.profiles)?;
    args.profiles.check_use()?;
    let mut analysis = stack.analyze().map_err(too_complex)?;
    let mut misses = Vec::new();
    for expectation in &list {
        if let Some(miss) = analysis.check(expectation).map_err(too_complex)? {
            misses.push((expectation, miss));
        }
    }
    write_folded(
        args.format.format(),
        match args.format.format() {
            AnswerFormat::Text => text(&name, list.len(), &misses),
            AnswerFormat::Json => json(&name, list.len(), &misses),
        },
        output,
    )?;
    if misses.iter().any(|(_, miss)| miss.example.is_some()) {
        Ok(Answer::No)
    } else if misses.is_empty() {
        Ok(Answer::Yes)
    } else {
        Err(Failure::new(
            "the filter is too complex to decide the lines above",
        ))
    }
}

fn text(name: &str, count: usize, misses: &[(&Expectation, Miss)]) -> String {
    let mut text = String::new();
    for (expectation, miss) in misses {
        let _ = writeln!(
            text,
            "{name}:{}: missed: {}",
            expectation.line, expectation.text
        );
        let _ = match &miss.example {
            Some(data) => {
                writeln!(
                    text,
                    "  {} gives {}",
                    call_text(data),
                    action_text(miss.found)
                )
            }
            None => writeln!(text, "  undecided: perhaps {}", action_text(miss.found)),
        };
    }
    let held = count - misses.len();
    let _ = writeln!(text, "{held} of {count} expectations hold");
    text
}

fn json(name: &str, count: usize, misses: &[(&Expectation, Miss)]) -> String {
    let misses = misses.iter().map(|(expectation, miss)| {
        serde_json::json!({
            "line": expectation.line,
            "expectation": expectation.text,
            "found": miss.found.to_string(),
            "example": miss.example.as_ref().map(call_json),
        })
    });
    let answer = serde_json::json!({
        "file": name,
        "expectations": count,
        "misses": misses.collect::<Vec<_>>(),
    });
    pretty(&answer)
}
