//! The `beebox-bench` command: one benchmark, measured and printed.
//!
//! This file parses options; the library measures. The command measures in new processes of
//! its own executable, and some benchmarks measure the `beebox` command as a whole;
//! [`command_to_measure`] finds it.
#![deny(unsafe_code)]

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use beebox_bench::{BENCHES, Bench, Form, Options, render};
use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser};

/// Measure Beebox beside its peers on this machine
#[derive(Parser)]
#[command(
    name = "beebox-bench",
    version,
    after_help = "\
Examples:
  cargo beebox-bench engines
  cargo beebox-bench classic --format json
  cargo beebox-bench engines --quick --only W3a

Exit codes: 0 measured, 2 could not measure."
)]
struct Args {
    /// Benchmark to run
    #[arg(value_name = "BENCHMARK", value_parser = names())]
    name: String,

    /// Take fewer samples, and skip what takes minutes
    #[arg(long)]
    quick: bool,

    /// Measure one workload only, such as W3a
    #[arg(long, value_name = "WORKLOAD")]
    only: Option<String>,

    /// Write the native code of the workloads into this directory, for a disassembler
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,

    /// The `beebox` command that is measured as a whole [default: the one beside this
    /// executable, which is built first if cargo started it]
    #[arg(long, value_name = "FILE")]
    beebox: Option<PathBuf>,

    /// Format of the report
    #[arg(long, value_enum, default_value = "text")]
    format: ReportFormat,

    /// Do a part of the work, for the process that measures
    #[arg(long, hide = true, num_args = 1..)]
    part: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ReportFormat {
    Text,
    Json,
    Markdown,
}

fn names() -> PossibleValuesParser {
    BENCHES
        .iter()
        .map(|bench| PossibleValue::new(bench.name).help(bench.about))
        .collect::<Vec<_>>()
        .into()
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("beebox-bench: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> Result<(), String> {
    let bench = Bench::find(&args.name).ok_or("no such benchmark")?;
    let executable = env::current_exe().map_err(text)?;
    let beebox = match args.beebox {
        None if args.part.is_empty() && !args.quick => command_to_measure(&executable)?,
        given => given,
    };
    let options = Options {
        quick: args.quick,
        only: args.only,
        keep: args.keep,
        bench: executable,
        beebox,
    };
    let printed = if !args.part.is_empty() {
        let words: Vec<&str> = args.part.iter().map(String::as_str).collect();
        bench.part(&options, &words).map_err(text)?
    } else {
        let line = StatusLine::new();
        let report = bench.run(&options, &mut |what| line.show(what));
        line.clear();
        let form = match args.format {
            ReportFormat::Text => Form::Text,
            ReportFormat::Json => Form::Json,
            ReportFormat::Markdown => Form::Markdown,
        };
        render(&report.map_err(text)?, form)
    };
    match io::stdout().write_all(printed.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("standard output: {error}"))
        }
        _ => Ok(()),
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// The `beebox` command to measure: the one that `BEEBOX_COMMAND` names, or the one beside
/// this executable, of the same build profile. Started by cargo, this brings the latter up to
/// date first. `None` if there is none.
fn command_to_measure(executable: &Path) -> Result<Option<PathBuf>, String> {
    if let Some(named) = env::var_os("BEEBOX_COMMAND") {
        let named = PathBuf::from(named);
        return match named.is_file() {
            true => Ok(Some(named)),
            false => Err(format!("BEEBOX_COMMAND: no file {}", named.display())),
        };
    }
    let beebox = executable.with_file_name("beebox");
    let Some(directory) = executable.parent() else {
        return Ok(None);
    };
    let profile = match directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => return Ok(None),
    };
    if let (Some(cargo), Some(target)) = (env::var_os("CARGO"), directory.parent()) {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/Cargo.toml");
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--profile", profile]);
        build.args(["--manifest-path", manifest, "--target-dir"]);
        let status = build.arg(target).status().map_err(text)?;
        if !status.success() {
            return Err(format!("building the beebox command: {status}"));
        }
    }
    Ok(beebox.is_file().then_some(beebox))
}

/// One line on a terminal that says what is measured; nothing elsewhere.
struct StatusLine {
    terminal: bool,
}

impl StatusLine {
    fn new() -> StatusLine {
        StatusLine {
            terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&self, what: &str) {
        if self.terminal {
            eprint!("\r\x1b[K{what}");
        }
    }

    fn clear(&self) {
        self.show("");
    }
}
