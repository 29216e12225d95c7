//! `beebox mutate`: changes of a program that its tests do not notice.

use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use beebox::Kernel;
use beebox::internal::mutate::{MutationError, MutationPlan, MutationReport, MutationTest, mutate};
use beebox::internal::object::Object;
use beebox::internal::test_files::{TestFile, WantedTests, load_tested};
use report::json::pretty;

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::kernel_input::{FOR_VERIFYING, KernelArgs, note_assumed, note_rules};
use crate::loading::{LoadingArgs, change, load_failure, note_guess};
use crate::object_input::ObjectFile;
use crate::output_path::OutputArg;
use crate::stdout::write_folded;
use crate::test::find_wanted;

/// Change a program, one instruction at a time, and see whether its tests notice
///
/// Changes that the verifier refuses do not count. What no test notices is listed by source line: no test
/// executes it, or none asks for what it does.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox mutate firewall.bpf.o --test tests
  beebox mutate firewall.bpf.o --test tests --least 80
  beebox mutate firewall.bpf.o --test tests/firewall.expect --all -c 1000 -J 4

Exit codes: 0 every change is noticed, or as many percent as --least says, 1 some are not, 2
could not answer.")]
pub(crate) struct Args {
    /// An object (`.bpf.o`)
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A file of tests of `beebox test`, or a directory, of which the files are taken that name the object;
    /// may be given several times
    #[arg(long, value_name = "PATH", required = true)]
    test: Vec<PathBuf>,

    /// The tests whose name or file has this text in it; may be given several times
    #[arg(long = "match", value_name = "TEXT")]
    matching: Vec<String>,

    /// Change registers, offsets and jump targets, too
    #[arg(long)]
    all: bool,

    /// Most changes, chosen by --seed
    #[arg(short = 'c', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    /// Seed of the choice
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Answer no if less than so many percent are noticed [default: 100]
    #[arg(long, value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u8).range(..=100))]
    least: Option<u8>,

    /// Number of threads [default: the processors]
    #[arg(short = 'J', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArg,

    #[command(flatten)]
    loading: LoadingArgs,

    #[command(flatten)]
    kernel: KernelArgs,
}

pub(crate) fn run(args: &Args) -> Result<Answer, Failure> {
    let kernel = args.kernel.read()?;
    note_assumed(&kernel, FOR_VERIFYING, "verified");
    note_rules(&kernel);
    let loading = args.loading.read()?;
    let file = ObjectFile::read(&args.file)?;
    let mut object = file.open_by(&loading, &[])?;
    note_guess(&object, &crate::input::name(&args.file));
    let changed = change(&mut object, &loading);
    changed.map_err(|failure| failure.within(args.file.display()))?;
    let files = find(args)?;
    let inputs = files.iter().map(|file| file.path.clone());
    let inputs: Vec<PathBuf> = inputs.chain([args.file.clone()]).collect();
    let output = args.output.path(inputs.iter().map(PathBuf::as_path))?;
    choose(&mut object, &files, &args.file)?;
    let tests = MutationTest::of_files(files);
    let start = Instant::now();
    let report = try_all(args, &object, &kernel, &tests)?;
    let seconds = start.elapsed().as_secs_f64();
    let answer = match args.format.format() {
        AnswerFormat::Text => report.text(seconds),
        AnswerFormat::Json => pretty(&report.json(seconds)),
    };
    write_folded(args.format.format(), answer, output)?;
    let (noticed, all) = report.share();
    let least = usize::from(args.least.unwrap_or(100));
    Ok(match noticed * 100 >= all * least {
        true => Answer::Yes,
        false => Answer::No,
    })
}

/// The files of tests of the object.
fn find(args: &Args) -> Result<Vec<TestFile>, Failure> {
    let mut files = find_wanted(WantedTests {
        paths: &args.test,
        matching: &args.matching,
        object: Some(&args.file),
    })?;
    let whole = |path: &Path| path.canonicalize().ok();
    let object = whole(&args.file);
    let others: Vec<String> = files
        .iter()
        .map(|file| file.object.display().to_string())
        .collect();
    files.retain(|file| {
        file.object == args.file || object.is_some() && whole(&file.object) == object
    });
    match files.is_empty() {
        false => Ok(files),
        true => {
            let what = format_args!("no test is of {}", args.file.display());
            let failure = Failure::new(what);
            Err(failure.hint(format_args!("the tests name {}", others.join(", "))))
        }
    }
}

/// Has the programs loaded that tests run.
fn choose(object: &mut Object<'_>, files: &[TestFile], path: &Path) -> Result<(), Failure> {
    let mut wanted: Vec<String> = Vec::new();
    for file in files {
        for (line, program) in file.tests.iter().flat_map(|test| test.file.programs()) {
            if !object.programs().any(|(_, known)| known.name == *program) {
                let place = format_args!("{}:{line}", file.path.display()).to_string();
                let what = format_args!("{} has no program {program:?}", path.display());
                return Err(Failure::new(what).within(place));
            }
            wanted.push(program.to_owned());
        }
    }
    load_tested(object, wanted);
    Ok(())
}

fn try_all(
    args: &Args,
    object: &Object<'_>,
    kernel: &Kernel,
    tests: &[MutationTest],
) -> Result<MutationReport, Failure> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let plan = MutationPlan {
        all: args.all,
        limit: args.limit.map(|limit| limit as usize),
        seed: args.seed,
        jobs: args.jobs.map_or(processors, |jobs| jobs as usize),
    };
    let is_terminal = io::stderr().is_terminal();
    let shown = Mutex::new(());
    let report = mutate(object, kernel, tests, plan, &|done, all| {
        if is_terminal {
            let _shown = shown.lock();
            // A terminal that is gone is no reason to end.
            let _ = write!(io::stderr(), "\r{done} of {all} changes");
        }
    });
    if is_terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let name = args.file.display();
    report.map_err(|error| match error {
        MutationError::Load(error) => load_failure(error, &name.to_string()),
        MutationError::Test { name: test, what } => {
            let failure = Failure::new(format_args!("it does not pass: {what}")).within(test);
            failure.hint("tests that pass on the program as it is")
        }
        MutationError::NoTests => Failure::new("there is no test").within(&name),
    })
}
