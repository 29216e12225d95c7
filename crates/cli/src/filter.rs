//! `beebox filter`.

mod inputs;
mod output;
mod profile;
mod programs;
mod stopwatch;
mod summary;
mod why;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use beebox::captures::{self, Options, Stop, Tally};
use beebox::{Engine, FilterError, JumpLimitExceeded, Semantics};

use crate::answer::{Answer, Failure};
use crate::answer_format::AnswerFormat;
use inputs::NamedInput;
use profile::Profile;
use programs::Chosen;
use stopwatch::Stopwatch;
use summary::Summary;

/// Filter packet captures
///
/// Reads pcap and pcapng captures (also .gz and .zst), and keeps the packets
/// that match. EXPR is a capture filter as tcpdump takes it, compiled by the
/// system's libpcap for the link type of each interface; '' matches everything.
/// With -r all other words are the expression, as in tcpdump. With -F a compiled
/// filter is used instead, in any form that `beebox dis` reads.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox filter 'tcp port 22' day.pcap -w ssh.pcap
  beebox filter -r day.pcap -w ssh.pcap tcp port 22
  beebox filter -F port-22.ddd day.pcap.gz --count
  tcpdump -i eth0 -w - | beebox filter icmp - -w - | wireshark -k -i -
  beebox filter 'port 53' day.pcapng --why 7    why packet 7 matches, or not

Exit codes: 0 something matched, 1 nothing did, 2 could not answer.")]
pub(crate) struct Args {
    /// The expression (unless -F is given), then captures; `-` is standard input
    #[arg(value_name = "[EXPR] IN", required_unless_present = "read")]
    words: Vec<OsString>,

    /// Read the capture FILE; all other words are the expression
    #[arg(short, long, value_name = "FILE")]
    read: Vec<OsString>,

    /// Use the compiled filter in FILE
    #[arg(short = 'F', long, value_name = "FILE")]
    filter: Option<PathBuf>,

    /// Write the packets that match to OUT, compressed if its name ends in .gz or
    /// .zst; `-` is standard output
    #[arg(
        short,
        long,
        value_name = "OUT",
        visible_short_alias = 'w',
        visible_alias = "write"
    )]
    output: Option<PathBuf>,

    /// Print how many packets match, and nothing else
    #[arg(long)]
    count: bool,

    /// Stop after N packets that match
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// How the filter runs: as libpcap runs it on a capture, or as Linux runs it on a
    /// socket (one length, ancillary data)
    #[arg(long, value_name = "NAME", default_value = "capture", alias = "rules")]
    semantics: SemanticsName,

    /// What runs the filter: classic, interp or jit (native code; where there is
    /// none for the processor, interp)
    #[arg(long, value_name = "NAME", default_value = Engine::default().name())]
    engine: Engine,

    /// Threads to use [default: one for each core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Keep at most N bytes of each packet in OUT (the filter sees all)
    #[arg(short, long, value_name = "N", requires = "output", value_parser = clap::value_parser!(u32).range(1..))]
    snaplen: Option<u32>,

    /// Tell Linux's profiler about native code [without a FORM: map]
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "map")]
    perf: Option<profile::Form>,

    /// Show the path that packet N takes through the filter, and nothing else
    #[arg(long, value_name = "N", conflicts_with_all = ["output", "count", "limit"], value_parser = clap::value_parser!(u64).range(1..))]
    why: Option<u64>,

    /// Format of the summary: text on standard error, or JSON on standard output
    #[arg(long, value_enum, default_value = "text")]
    format: AnswerFormat,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// The semantics by name.
#[derive(Clone, Copy, clap::ValueEnum)]
enum SemanticsName {
    Capture,
    #[value(alias = "socket")]
    Kernel,
}

impl SemanticsName {
    fn semantics(self) -> Semantics {
        match self {
            SemanticsName::Capture => Semantics::Capture,
            SemanticsName::Kernel => Semantics::Kernel,
        }
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let mut args = args;
    if args.json {
        args.format = AnswerFormat::Json;
    }
    let (expression, paths) = inputs::tell_apart(&args.words, &args.read, args.filter.is_some())?;
    if args.format == AnswerFormat::Json && output::is_standard(args.output.as_deref()) {
        return Err(
            Failure::new("the packets and the summary can't both go to standard output")
                .hint("name a file with -o, or leave --format out"),
        );
    }
    let programs = Chosen::new(
        args.filter.as_deref(),
        &expression,
        args.semantics.semantics(),
        args.engine,
        args.perf.map(Profile::open).transpose()?,
    )?;
    if let Some(warning) = programs.warning() {
        eprintln!("beebox: warning: {warning}");
    }
    if let Some(number) = args.why {
        return why::explain(&paths, &programs, number, args.format == AnswerFormat::Json);
    }
    let opened = inputs::open_all(&paths);
    let mut inputs = opened.map_err(|failure| match inputs::misplaced_expression(&args.words) {
        Some(meant) => failure.hint(meant),
        None => failure,
    })?;
    for input in &mut inputs {
        programs.check_first_interface(input)?;
    }
    filter_all(inputs, &programs, &args)
}

/// Filters one capture after the other, as far as there is no fault.
fn filter_all(inputs: Vec<NamedInput>, programs: &Chosen, args: &Args) -> Result<Answer, Failure> {
    let start = Instant::now();
    let outside = Stopwatch::default();
    let mut options = Options {
        jobs: threads(args, programs),
        limit: args.limit,
        snaplen: args.snaplen,
    };
    let mut target = match &args.output {
        Some(path) => Some(output::Target::create(path, &inputs, &outside)?),
        None => None,
    };
    let mut output = target.as_mut().map(output::Target::output);
    if let Some(output) = &mut output {
        let started = output.start_file(&options);
        started.map_err(|error| output::failure(args.output.as_deref(), &error))?;
    }
    let mut progress = summary::Progress::new(&inputs);
    let mut total = Tally::default();
    let mut jobs = 1;
    let mut fault = None;
    let waited = Stopwatch::default();
    for NamedInput {
        name,
        input,
        waiting,
        ..
    } in inputs
    {
        let done = progress.done();
        jobs = jobs.max(input.threads(options.jobs));
        let (tally, result) =
            captures::filter_capture(input, programs, &options, output.as_mut(), &mut |offset| {
                progress.show(done + offset)
            });
        waited.add(waiting.elapsed());
        total.packets += tally.packets;
        total.bytes += tally.bytes;
        total.matched += tally.matched;
        total.matched_bytes += tally.matched_bytes;
        if let Err(stop) = result {
            fault = Some(stopped(stop, &name, programs, args));
            break;
        }
        options.limit = args.limit.map(|limit| limit - total.matched);
        if options.limit == Some(0) {
            break;
        }
    }
    progress.clear();
    if let Some(warning) = programs.link_type_warning() {
        eprintln!("beebox: warning: {warning}");
    }
    let written = target.map_or(Ok(()), output::Target::finish);
    let written = written.map_err(|error| output::failure(args.output.as_deref(), &error));
    let summary = Summary {
        tally: total,
        elapsed: start.elapsed(),
        outside: outside.elapsed() + waited.elapsed(),
        engine: args.engine,
        jobs,
    };
    summary.print(args.count, args.format, fault.as_ref())?;
    match (fault, written) {
        (Some(failure), _) | (None, Err(failure)) => Err(failure),
        (None, Ok(())) if total.matched == 0 => Ok(Answer::No),
        (None, Ok(())) => Ok(Answer::Yes),
    }
}

/// How many threads to use. A filter that draws random numbers gets one, so that
/// the answer does not depend on how the packets are spread.
fn threads(args: &Args, programs: &Chosen) -> usize {
    let wanted = match args.jobs {
        Some(jobs) => usize::from(jobs),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    if programs.draws_random_numbers() {
        1
    } else {
        wanted
    }
}

/// What to say about a capture that was not read to its end.
fn stopped(stop: Stop<FilterError>, name: &str, programs: &Chosen, args: &Args) -> Failure {
    match stop {
        Stop::Capture(error) => inputs::unreadable(name, &error),
        Stop::Program { packet, refusal } => {
            programs.refused(&refusal, &format!("{name}: packet {packet}"))
        }
        Stop::JumpLimit { packet } => {
            Failure::new(format_args!("{name}: packet {packet}: {JumpLimitExceeded}"))
        }
        Stop::Output(error) => output::failure(args.output.as_deref(), &error),
    }
}
