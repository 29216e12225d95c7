//! `beebox test`: runs the named tests of expectation files.

pub(crate) mod files;
mod report;
mod run;
mod watch;

pub(crate) use run::autoload;

use std::path::PathBuf;

use beebox::Engine;

use crate::answer::{Answer, Failure};
use crate::coverage::CoverageOutput;
use crate::engine;
use crate::kernel_input::{FOR_VERIFYING, KernelArgs, note_assumed, note_rules};
use crate::loading::LoadingArgs;
use crate::output_path::OutputArg;

/// Run the tests of expectation files
///
/// A test begins with `test NAME` in an expectation file and ends at the next one; `object FILE` above the
/// tests names the object. Each test has its own maps, filled by the statements above the first test. Of a
/// directory, every *.expect file that names an object is run, subdirectories included. A failing test
/// prints the run that differs line by line.
#[derive(clap::Args)]
#[command(after_help = "\
A file of tests:
  object ../build/firewall.bpf.o
  set open_ports 443 = 0

  test ssh is closed
  run firewall proto tcp from 192.0.2.1 port 4000 to 198.51.100.7 port 22 flags syn
  verdict XDP_DROP
  instructions <= 120

Examples:
  beebox test tests
  beebox test tests/firewall.expect --match ssh
  beebox test tests --format junit -o report.xml
  beebox test tests --coverage lcov=tests.info
  beebox test tests --watch

Exit codes: 0 every test passed, 1 one failed or its object is refused, 2 could not answer.")]
pub(crate) struct Args {
    /// Files of tests, and directories of such
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// Run the tests whose name or file has this text in it; may be given several times
    #[arg(long = "match", value_name = "TEXT")]
    matching: Vec<String>,

    /// The object of files that name none
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,

    /// List the tests in place of running them
    #[arg(long)]
    list: bool,

    /// Run again whenever a file of tests or an object changes
    #[arg(long, conflicts_with_all = ["list", "coverage"])]
    watch: bool,

    /// Tell the last run of tests that pass, too, line by line
    #[arg(long, conflicts_with = "no_why")]
    why: bool,

    /// Leave out how the run of a failing test went
    #[arg(long)]
    no_why: bool,

    /// Number of threads, which run a test each [default: the processors]
    #[arg(short = 'J', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,

    /// Engine [default: native; interp where there is no native code]
    #[arg(long, value_name = "NAME", value_parser = engine::parser())]
    engine: Option<Engine>,

    /// Write which source lines, branches and functions the tests executed: lcov=FILE (a tracefile),
    /// cobertura=FILE (XML) or html=DIR; may be given several times
    #[arg(long, value_name = "FORM=PATH", value_parser = CoverageOutput::parse)]
    coverage: Vec<CoverageOutput>,

    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: TestFormat,

    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    loading: LoadingArgs,

    #[command(flatten)]
    kernel: KernelArgs,
}

/// The form of the answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TestFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// JUnit's XML, with a test case for each test
    Junit,
}

impl Args {
    fn format(&self) -> TestFormat {
        match self.json {
            true => TestFormat::Json,
            false => self.format,
        }
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let kernel = args.kernel.read()?;
    note_assumed(&kernel, FOR_VERIFYING, "verified");
    note_rules(&kernel);
    let loading = args.loading.read()?;
    match args.watch {
        true => watch::run(&args, &kernel, &loading),
        false => once(&args, &kernel, &loading, &files::find(&args)?),
    }
}

/// Runs all tests of some files.
fn once(
    args: &Args,
    kernel: &beebox::Kernel,
    loading: &beebox::internal::loading::ObjectLoading,
    files: &[files::TestFile],
) -> Result<Answer, Failure> {
    let inputs = files.iter().flat_map(|file| [&file.path, &file.object]);
    let output = args.output.path(inputs.map(PathBuf::as_path))?;
    if args.list {
        return report::list(args, files, output);
    }
    let outcomes = run::all(args, kernel, loading, files)?;
    report::print(args, &outcomes, output)
}
