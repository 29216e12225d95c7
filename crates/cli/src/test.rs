//! `beebox test`: runs the named tests of expectation files.

mod host;
mod watch;

use std::path::PathBuf;

use beebox::internal::loading::ObjectLoading;
use beebox::internal::run::LoadOptions;
use beebox::internal::test_files::{
    NetworkFault, TestFile, TestFilesError, TestPlan, WantedTests, list_json, list_text,
};
use beebox::{Engine, Kernel};
use report::json::pretty;

use crate::answer::{Answer, Failure};
use crate::answer_format::AnswerFormat;
use crate::coverage::CoverageOutput;
use crate::engine;
use crate::kernel_input::{FOR_VERIFYING, KernelArgs, note_assumed, note_rules};
use crate::loading::LoadingArgs;
use crate::output_path::{OutputArg, OutputPath};
use crate::run::{expect, network_failure};
use crate::stdout::{plain, write_answer, write_folded, write_output};

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
        false => once(&args, &kernel, &loading, &find(&args)?),
    }
}

/// Runs all tests of some files.
fn once(
    args: &Args,
    kernel: &Kernel,
    loading: &ObjectLoading,
    files: &[TestFile],
) -> Result<Answer, Failure> {
    let inputs = files.iter().flat_map(|file| [&file.path, &file.object]);
    let output = args.output.path(inputs.map(PathBuf::as_path))?;
    if args.list {
        return list(args, files, output);
    }
    let plan = TestPlan {
        kernel,
        loading,
        engine: args.engine.unwrap_or(LoadOptions::default().engine),
        jobs: args.jobs.map(|jobs| jobs as usize),
        counts: !args.coverage.is_empty(),
        tells_passed: args.why,
        tells_failed: !args.no_why,
    };
    let results = plan.run(files, &host::Objects)?;
    if !args.coverage.is_empty() {
        crate::coverage::write(&results.coverage, &args.coverage)?;
        crate::coverage::note(&results.coverage);
    }
    match args.format() {
        TestFormat::Text => write_folded(AnswerFormat::Text, results.text(), output)?,
        TestFormat::Json => {
            write_answer(AnswerFormat::Json, pretty(&results.json(&plain)), output)?;
        }
        TestFormat::Junit => write_output(results.junit(&plain).as_bytes(), output)?,
    }
    Ok(match results.failed() {
        0 => Answer::Yes,
        _ => Answer::No,
    })
}

/// Prints the names of the tests.
fn list(
    args: &Args,
    files: &[TestFile],
    output: Option<OutputPath<'_>>,
) -> Result<Answer, Failure> {
    match args.format() {
        TestFormat::Text => write_answer(AnswerFormat::Text, list_text(files), output)?,
        TestFormat::Json => write_answer(AnswerFormat::Json, pretty(&list_json(files)), output)?,
        TestFormat::Junit => {
            let failure = Failure::new("--format junit has results, and --list runs nothing");
            return Err(failure.hint("--format json"));
        }
    }
    Ok(Answer::Yes)
}

/// Reads the files that the arguments name.
fn find(args: &Args) -> Result<Vec<TestFile>, Failure> {
    find_wanted(WantedTests {
        paths: &args.paths,
        matching: &args.matching,
        object: args.object.as_deref(),
    })
}

/// Reads files of tests.
pub(crate) fn find_wanted(wanted: WantedTests<'_>) -> Result<Vec<TestFile>, Failure> {
    let failure = |error: TestFilesError| match error {
        TestFilesError::File(path, error) => Failure::of_file(&path, &error),
        TestFilesError::Expect(error) => expect::failure(*error),
        TestFilesError::NoTests(_) => Failure::new(&error).hint(match wanted.object {
            // `beebox mutate` has the object.
            Some(_) => "files *.expect with `test NAME`",
            None => "files *.expect with `object FILE` and `test NAME`, or --object FILE",
        }),
        TestFilesError::NotChosen(_) => Failure::new(format_args!("--match {error}"))
            .hint("`beebox test PATH --list` names the tests"),
        TestFilesError::NoObject(_) => {
            Failure::new(&error).hint("object FILE in front of the tests, or --object FILE")
        }
        TestFilesError::Network {
            file,
            network,
            fault,
        } => match fault {
            NetworkFault::File(error) => Failure::of_file(&network, &error),
            NetworkFault::Form(error) => network_failure(&network, &error),
        }
        .within(file.display()),
    };
    wanted.find().map_err(failure)
}
