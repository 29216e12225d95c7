//! `beebox filter`: filters captures.

mod inputs;
mod link_types;
mod output;
mod profile;
mod programs;
mod run;
mod stopwatch;
mod summary;
mod tcpdump;
mod why;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use beebox::{Engine, Semantics};
use sys::interruptible::Interruption;

use crate::answer::{Answer, Failure};
use crate::answer_format::AnswerFormat;
use crate::engine;
use crate::output_path::PacketOutputArg;
use profile::ProfilerOutput;
use programs::{Chosen, Settings};

/// Filter packet captures
///
/// Reads pcap and pcapng captures (also .gz, .zst, .xz, .lz4 and .bz2), and keeps
/// the packets that match. EXPR is a capture filter as tcpdump takes it, compiled by
/// the system's libpcap for the link type of each interface; '' matches everything.
/// With -r all other words are the expression, as in tcpdump. With -F the filter is
/// read from a file.
///
/// OUT of -w is compressed if its name ends in .gz or .zst, and pcapng unless all captures are pcap
/// with one link type. It has its name when it is complete, also where SIGINT or SIGTERM ends the
/// reading of a pipe; `-` is standard output, for packets as they come.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox filter 'tcp port 22' day.pcap -w ssh.pcap
  beebox filter -r day.pcap -w ssh.pcap tcp port 22
  beebox filter -F port-22.ddd day.pcap.gz --count
  tcpdump -i eth0 -w - | beebox filter icmp - -w - | wireshark -k -i -
  beebox filter -d tcp port 22                  the compiled filter, as of tcpdump -d
  beebox filter 'port 53' day.pcapng --why 7    why packet 7 matches, or not
  beebox filter '' eth0.pcap eth1.pcap --merge -w both.pcapng
  beebox filter 'port 53' *.pcap --per-file --count

Exit codes: 0 something matched, 1 nothing did, 2 could not answer.")]
pub(crate) struct Args {
    /// The expression (unless -F is given), then captures; `-` is standard input
    #[arg(value_name = "[EXPR] IN", required_unless_present_any = ["read", "list_linktypes", "dump", tcpdump::REFUSED])]
    words: Vec<OsString>,

    /// Read the capture FILE; all other words are the expression
    #[arg(short, long, value_name = "FILE")]
    read: Vec<OsString>,

    /// Use the filter in FILE: a compiled one in any form that `beebox dis` reads, or an
    /// expression, where # starts a comment
    #[arg(short = 'F', long = "filter-file", value_name = "FILE")]
    filter: Option<PathBuf>,

    /// Leave out libpcap's optimizer, which takes minutes for thousands of ports
    #[arg(short = 'O', long)]
    no_optimize: bool,

    #[command(flatten)]
    output: PacketOutputArg,

    /// The format of OUT [default: by its name, else pcap if all captures are pcap with
    /// one link type, else pcapng]
    #[arg(
        long = "capture-format",
        value_enum,
        value_name = "FORMAT",
        requires = "output"
    )]
    output_format: Option<output::FormatArg>,

    /// Order the packets of several captures by time
    #[arg(long)]
    merge: bool,

    /// Print how many packets match, and nothing else
    #[arg(long)]
    count: bool,

    /// Print the counts of each capture
    #[arg(long)]
    per_file: bool,

    /// Stop after N packets that match
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Semantics of the filter: libpcap's on a capture, or Linux's on a socket (one length,
    /// ancillary data)
    #[arg(long, value_name = "NAME", default_value = "capture")]
    semantics: SemanticsName,

    /// Engine [default: native; interp where there is no native code]
    #[arg(long, value_name = "NAME", value_parser = engine::parser(), default_value = Engine::default().name(), hide_default_value = true)]
    engine: Engine,

    /// Threads to use [default: one for each core]
    #[arg(short = 'J', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Keep at most N bytes of each packet in OUT, all with 0 (the filter sees all, so without OUT
    /// this changes nothing)
    #[arg(short, long, value_name = "N")]
    snaplen: Option<u32>,

    /// Tell Linux's profiler about native code [without a FORM: map]
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "map")]
    perf: Option<profile::Form>,

    /// Show the path that packet N takes through the filter, and nothing else
    #[arg(long, value_name = "N", conflicts_with_all = ["output", "count", "limit", "merge", "per_file"], value_parser = clap::value_parser!(u64).range(1..))]
    why: Option<u64>,

    /// List the link types that expressions can be compiled for, and nothing else
    #[arg(short = 'L', long, conflicts_with_all = ["words", "read", "filter", "output"])]
    list_linktypes: bool,

    /// Format of the summary: text on standard error, or JSON on standard output
    #[arg(long, value_enum, default_value = "text")]
    format: AnswerFormat,

    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    #[command(flatten)]
    tcpdump: tcpdump::TcpdumpArgs,
}

/// The semantics by name.
#[derive(Clone, Copy, clap::ValueEnum)]
enum SemanticsName {
    Capture,
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

impl Args {
    /// The filter: that of -F, or of an expression.
    fn programs(&self, expression: &str) -> Result<Chosen, Failure> {
        let settings = Settings {
            semantics: self.semantics.semantics(),
            engine: self.engine,
            optimizes: !self.no_optimize,
            profile: self.perf.map(ProfilerOutput::open).transpose()?,
        };
        Chosen::new(self.filter.as_deref(), expression, settings)
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let mut args = args;
    if args.json {
        args.format = AnswerFormat::Json;
    }
    args.tcpdump.check()?;
    if args.list_linktypes {
        return link_types::list(args.format);
    }
    if let Some(form) = args.tcpdump.dump() {
        return tcpdump::write_filter(&args, form);
    }
    if args.read.is_empty()
        && args.filter.is_none()
        && let Some(failure) = inputs::no_capture(&args.words)
    {
        return Err(failure);
    }
    let (expression, paths) = inputs::tell_apart(&args.words, &args.read, args.filter.is_some())?;
    let has_summary = args.format == AnswerFormat::Json || args.count;
    if has_summary && output::is_standard(args.output.given()) {
        return Err(
            Failure::new("the packets and the summary can't both go to standard output")
                .hint("name a file with -o, or leave --format and --count out"),
        );
    }
    let programs = args.programs(&expression)?;
    if let Some(warning) = programs.warning() {
        diagnostic!("beebox: warning: {warning}");
    }
    if let Some(number) = args.why {
        return why::explain(&paths, &programs, number, args.format == AnswerFormat::Json);
    }
    let interruption = Interruption::default();
    let opened = inputs::open_all(&paths, &interruption);
    let mut inputs = opened.map_err(|failure| match inputs::misplaced_expression(&args.words) {
        Some(meant) => failure.hint(meant),
        None => failure,
    })?;
    for input in &mut inputs {
        programs.check_first_interface(input)?;
    }
    let files = paths.iter().map(Path::new).chain(args.filter.as_deref());
    let output = args.output.path(files)?;
    run::filter_all(inputs, &programs, &args, output, &interruption)
}
