//! `beebox ask`: another kernel's answers beside ours, from that kernel booted under QEMU.

use std::path::PathBuf;
use std::time::Duration;

use beebox::Kernel;
use beebox::internal::ask::{self, AskError, AskOptions, Asked};
use beebox::internal::program::{LoadFlags, Program};
use beebox::internal::verify::results::{Job, Logs, Row};
use beebox::verify::Options;
use report::veristat::Filters;

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::kernel_input::KernelArgs;
use crate::loading::LoadingArgs;
use crate::log_level::LogLevelArg;
use crate::output_path::OutputArg;
use crate::stdout::{json, width_of, write_answer};
use crate::verify::run::verify_and_keep;

/// Ask another kernel about BPF programs, and compare
///
/// Boots a kernel under QEMU, without KVM and without root, hands it the programs of the objects, and
/// prints its verdicts and counts beside those of Beebox, with --log the logs and where they begin to
/// differ. Programs are linked for that kernel, and each is loaded alone. One boot answers for all.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 the answers are the same, 1 one differs, 2 the kernel could not be asked or a file
not be read.

Examples:
  beebox ask prog.bpf.o --kernel 6.1              a kernel that tools/kernels/vm keeps
  beebox ask prog.bpf.o --kernel bzImage          an image
  beebox ask prog.bpf.o --kernel DIR --prog handle -l 1")]
pub(crate) struct Args {
    /// Objects, text cases, or with --type instructions
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Only programs of this name
    #[arg(long, value_name = "NAME")]
    prog: Vec<String>,

    /// The image to boot, as /boot/vmlinuz, in place of the one of --kernel
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,

    #[command(flatten)]
    log: LogLevelArg,

    /// Stop the machine after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    output: OutputArg,

    /// Load flags (BPF_F_*) of every program, as a number
    #[arg(long, value_name = "BITS", value_parser = crate::verify::number)]
    flags: Option<u32>,

    #[command(flatten)]
    loading: LoadingArgs,

    #[command(flatten)]
    kernel: KernelArgs,
}

pub(crate) fn run(args: &Args) -> Result<Answer, Failure> {
    let inputs = args.files.iter().chain(&args.image).map(PathBuf::as_path);
    let output = args.output.path(inputs.chain(args.kernel.files()))?;
    let (kernel, image) = args.kernel.read_bootable(args.image.as_deref())?;
    let options = AskOptions {
        // Kernels before 6.4 refuse the other bits, which change how a log is kept.
        log_level: args.log.log & 7,
        limit: Duration::from_secs(args.timeout),
        ..AskOptions::default()
    };
    let kernel = options.in_machine(kernel);
    let (rows, mut failures) = rows(args, &kernel)?;
    let asked: Vec<(&Row, Option<&Program>)> =
        rows.iter().map(|row| (row, row.program())).collect();
    let programs: Vec<&Program> = asked.iter().filter_map(|(_, program)| *program).collect();
    if programs.is_empty() {
        return Err(match (failures.pop(), rows.first()) {
            (Some(last), _) => {
                failures.iter().for_each(|failure| _ = failure.report());
                last
            }
            (None, None) => Failure::new("no program is selected"),
            (None, Some(row)) => Failure::new(&row.reason)
                .within(format_args!("{}/{}", row.file_name, row.prog_name)),
        });
    }
    let answers = ask::ask(&image, &programs, &options);
    let answers = answers.map_err(|error| failure(&error).within(image.display()))?;
    let mut answers = answers.into_iter();
    let asked = asked.into_iter().map(|(row, program)| Asked {
        row,
        theirs: program.and_then(|_| answers.next()),
    });
    let asked: Vec<Asked<'_>> = asked.collect();
    let version = kernel.version().map(|version| version.to_string());
    let version = version.unwrap_or_default();
    match args.format.format() {
        AnswerFormat::Text => {
            let width = width_of(output);
            let text = ask::text(&asked, &version, args.log.log > 0, width);
            write_answer(AnswerFormat::Text, text, output)?;
        }
        AnswerFormat::Json => {
            let records = ask::records(&asked, &version, args.log.log > 0);
            let lines: Vec<u8> = records.iter().flat_map(json).collect();
            write_answer(AnswerFormat::Json, lines, output)?;
        }
    }
    let unanswered = asked.iter().filter(|asked| asked.is_unanswered());
    failures.extend(unanswered.take(1).map(|asked| {
        Failure::new("the machine ended before the kernel answered")
            .within(format_args!(
                "{}/{}",
                asked.row.file_name, asked.row.prog_name
            ))
            .hint("--timeout SECONDS for more time")
    }));
    let last = failures.pop();
    failures.iter().for_each(|failure| _ = failure.report());
    match last {
        Some(last) => Err(last),
        None if asked.iter().any(|asked| !asked.differences().is_empty()) => Ok(Answer::No),
        None => Ok(Answer::Yes),
    }
}

/// Our answers, with the programs, and the failures of files.
fn rows(args: &Args, kernel: &Kernel) -> Result<(Vec<Row>, Vec<Failure>), Failure> {
    // The kernel's logs have statistics.
    const STATISTICS: u32 = 4;
    let log_level = match args.log.log {
        0 => 0,
        level => level | STATISTICS,
    };
    let filters = Filters::default();
    let job = Job {
        programs: &args.prog,
        filters: &filters,
        flags: LoadFlags(args.flags.unwrap_or(0)),
        test_tags: false,
        options: Options {
            log_level,
            ..Options::default()
        },
        explains: false,
        loading: args.loading.read()?,
        target: None,
        logs: Logs::new(log_level, None, None),
        threads: 1,
    };
    let mut results = verify_and_keep(&args.files, &job, kernel)?;
    let failures = std::mem::take(&mut results.failures);
    for name in &args.prog {
        if !results.rows.iter().any(|row| row.prog_name == *name) {
            let listed = results.left_out.join(", ");
            return Err(Failure::new(format_args!("no program is called {name:?}"))
                .hint(format_args!("one of {listed}")));
        }
    }
    Ok((results.rows, failures))
}

fn failure(error: &AskError) -> Failure {
    let failure = Failure::new(error);
    match error {
        AskError::NoQemu => {
            failure.hint("apt install qemu-system-x86, or the package of your system")
        }
        AskError::NoLoader => {
            failure.hint("the executables of a release, or a build for x86-64 Linux")
        }
        AskError::NoAnswer { is_late: true, .. } => failure.hint("--timeout SECONDS for more time"),
        AskError::NoAnswer { .. } => failure
            .hint("a kernel with CONFIG_BPF_SYSCALL, CONFIG_BLK_DEV_INITRD and a serial console"),
        AskError::System(_) | AskError::Qemu(_) => failure,
    }
}
