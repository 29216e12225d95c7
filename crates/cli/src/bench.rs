//! `beebox bench`: a door to the benchmarks of `crates/bench`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use bench::{BENCHES, Bench, Form, Options};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;

use crate::answer::{Answer, Failure};

/// Measure Beebox beside its peers
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure
    #[arg(value_parser = names())]
    name: String,

    /// Measure less often, and leave out what takes long
    #[arg(long)]
    quick: bool,

    /// Measure one workload only, such as W3a
    #[arg(long, value_name = "WORKLOAD")]
    only: Option<String>,

    /// Leave native code of the workloads in this directory, for a disassembler
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,

    /// How to print what was found
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Do a part of the work, for the process that does the whole
    #[arg(long, hide = true, num_args = 1..)]
    part: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
}

fn names() -> PossibleValuesParser {
    BENCHES
        .iter()
        .map(|bench| clap::builder::PossibleValue::new(bench.name).help(bench.about))
        .collect::<Vec<_>>()
        .into()
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let bench = Bench::find(&args.name)
        .ok_or_else(|| Failure::new(format!("there is no benchmark {:?}", args.name)))?;
    let options = Options {
        quick: args.quick,
        only: args.only,
        keep: args.keep,
        beebox: std::env::current_exe().map_err(Failure::new)?,
    };
    let printed = if !args.part.is_empty() {
        let words: Vec<&str> = args.part.iter().map(String::as_str).collect();
        bench.part(&options, &words).map_err(Failure::new)?
    } else {
        let mut line = StatusLine::new();
        let report = bench.run(&options, &mut |what| line.show(what));
        line.clear();
        let form = match args.format {
            Format::Text => Form::Text,
            Format::Json => Form::Json,
            Format::Markdown => Form::Markdown,
        };
        bench::render(&report.map_err(Failure::new)?, form)
    };
    match io::stdout().write_all(printed.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(error)),
        _ => Ok(Answer::Yes),
    }
}

/// One line on a terminal that says what is going on; nothing elsewhere.
struct StatusLine {
    terminal: bool,
}

impl StatusLine {
    fn new() -> StatusLine {
        StatusLine {
            terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, what: &str) {
        if self.terminal {
            eprint!("\r\x1b[K{what}");
        }
    }

    fn clear(&mut self) {
        self.show("");
    }
}
