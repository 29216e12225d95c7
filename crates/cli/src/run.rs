//! `beebox run`.

pub(crate) mod memory;
pub(crate) mod object;
mod output;
mod program;
mod trace;
pub(crate) mod trusted;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use beebox::internal::bytes::ByteSource;
use beebox::internal::raw::{
    Calls, CheckedContext, CheckedProgram, Entry, Finish, Limits, Memory, SplitMix, Trap,
};
use beebox::{Metadata, Packet};

use crate::answer::{Answer, Failure};
use crate::input::source_failure;
use crate::output_path::OutputPath;
use crate::seccomp::value::parse_number;
use memory::Regions;
use object::ObjectArgs;
use program::RawProgram;
use trusted::Engine;

/// Run a program of an object on packets, or unverified eBPF instructions
///
/// A program of an object (of the types that Linux test-runs, but tracing and struct_ops) is
/// linked, verified as Linux 6.18 does, and run on a packet, on a context or on each packet of
/// a capture. Its maps last over all packets.
///
/// With --ebpf any instructions run: every memory access is checked, instructions
/// and time are bounded, and a trap is reported with the instruction, the address and
/// the reason. The program finds the address of the first --mem in r1 and its length in
/// r2, those of the second in r3 and r4, and the address of the third in r5; r10 is
/// the end of its stack frame of 512 bytes; all other registers are 0.
///
/// Programs can't harm the machine, and the same input gives the same run.
#[derive(clap::Args)]
#[command(after_help = "\
A SOURCE of bytes is a file, or bytes in hexadecimal (\"01 02\", 0x0102), or zero:N
for N zero bytes; hex: and file: before it say which one is meant. NAME= names a
region in messages, ro: in front of all makes it read-only.

With --ebpf, helpers that can be called: get_prandom_u32 (--seed), ktime_get_ns and
its kin (--time), get_smp_processor_id.

Examples:
  beebox run firewall.bpf.o --pcap in.pcap -w out.pcap --maps rules.json --dump-maps
  beebox run firewall.bpf.o --prog firewall --packet packet.bin --format json
  beebox run sum.bpf.o --prog add --ctx 0100000002000000 --format json
  beebox run firewall.bpf.o --expect firewall.expect --format junit
  beebox run limit.bpf.o --pcap in.pcap --engine checked --clock real --cpu 3
  beebox run --ebpf sum.asm --mem 010203          text in LLVM's form, memory as hex
  beebox run --ebpf prog.bin --mem packet.bin -o packet.out
  beebox run --ebpf prog.o --section xdp --mem zero:64 --dump-mem
  echo 'r0 = 1; exit' | beebox run --ebpf -
  beebox run --ebpf prog.asm --mem 00 --trace --budget 1000
  beebox run --ebpf prog.hex --mem ro:key=0x01020304 --mem out=zero:8 --format json

Exit codes: 0 the program returned and every expectation is met, 1 it is refused, was stopped by a
trap, by --timeout or by --memory, or an expectation is not met, 2 could not answer.")]
pub(crate) struct Args {
    #[command(flatten)]
    program: RawProgram,

    /// Engine [default: native for programs of objects, checked with --ebpf]
    #[arg(long, value_enum)]
    engine: Option<Engine>,

    /// Assume that the instructions of --ebpf are safe, which every engine but checked needs:
    /// an unsafe program corrupts this process
    #[arg(long, requires = "ebpf")]
    trust: bool,

    /// Memory that the program can reach; may be given up to three times
    #[arg(long = "mem", requires = "ebpf", value_name = "[ro:][NAME=]SOURCE", value_parser = memory::parse_region)]
    memory: Vec<memory::Given>,

    /// Initial value of a register from r1 to r5, instead of that of --mem
    #[arg(long = "reg", requires = "ebpf", value_name = "rN=VALUE", value_parser = parse_register)]
    registers: Vec<(usize, u64)>,

    /// The packet: of an object's program, or with --ebpf of legacy packet loads
    #[arg(long, value_name = "SOURCE", value_parser = ByteSource::parse)]
    packet: Option<ByteSource>,

    /// Most instructions of the run, in the checked engine [default: 100000000]
    #[arg(long, value_name = "N")]
    budget: Option<u64>,

    /// Most seconds of all runs together; exit code 1 when they pass [default: 10 seconds of
    /// each run of native code of an object]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// Most stack frames at once, in the checked engine [default: 8]
    #[arg(long, value_name = "N", value_parser = frames)]
    frames: Option<usize>,

    /// Allow indirect jumps (gotox), which Linux 6.18 does not have
    #[arg(long, requires = "ebpf")]
    gotox: bool,

    /// Seed of the random numbers of helpers, of hashes, and of the addresses that programs see
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Fixed time of the clock of helpers, in nanoseconds [default: with --pcap the time of
    /// the packet, with --ebpf it runs, otherwise 0]
    #[arg(long, value_name = "NS")]
    time: Option<u64>,

    /// Print every instruction and what it changed
    #[arg(long, requires = "ebpf")]
    trace: bool,

    /// Print the memory after the run
    #[arg(long, requires = "ebpf")]
    dump_mem: bool,

    /// Write the packets of --pcap that go on, as the program left them; with --ebpf the first
    /// --mem after the run
    #[arg(
        short,
        long,
        value_name = "OUT",
        visible_short_alias = 'w',
        visible_alias = "write"
    )]
    output: Option<PathBuf>,

    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: RunFormat,

    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    #[command(flatten)]
    object: ObjectArgs,
}

/// The form of the answer of a run.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RunFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// The expectations of --expect as JUnit's XML
    Junit,
}

impl Args {
    /// The packet of `--packet`.
    fn packet(&self) -> Result<Option<Vec<u8>>, Failure> {
        let packet = self.packet.as_ref().map(ByteSource::read_packet);
        packet.transpose().map_err(source_failure)
    }

    fn format(&self) -> RunFormat {
        match self.json {
            true => RunFormat::Json,
            false => self.format,
        }
    }

    /// The files that are read whole or as a capture.
    fn inputs(&self) -> impl Iterator<Item = &Path> {
        let object = &self.object;
        let regions = self.memory.iter().map(memory::Given::source);
        let sources = regions.chain(&self.packet).chain(&object.ctx);
        let files = [&object.pcap, &object.maps, &object.expect, &object.network];
        [self.program.file()]
            .into_iter()
            .chain(sources.filter_map(ByteSource::path))
            .chain(files.into_iter().filter_map(|file| file.as_deref()))
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let (has_result, input, remedy) = match args.program.ebpf {
        true => (!args.memory.is_empty(), "--mem", "--mem SOURCE"),
        false => (args.object.pcap.is_some(), "--pcap", "--pcap IN"),
    };
    if args.output.is_some() && !has_result {
        let what = format_args!("--output does nothing without {input}");
        return Err(Failure::new(what).hint(remedy));
    }
    if !args.program.ebpf {
        return object::run(&args);
    }
    let output = OutputPath::optional(args.output.as_deref(), args.inputs())?;
    let program = args.program.read()?;
    let mut regions = Regions::read(&args.memory)?;
    let ran = match args.engine.unwrap_or(Engine::Checked) {
        Engine::Checked => run_checked(&args, &program, &mut regions)?,
        engine => run_trusted(&args, engine, &program, &mut regions)?,
    };
    let report = output::Report {
        program: &program,
        ran: &ran,
        regions: args.dump_mem.then_some(&regions),
    };
    report.print(args.format())?;
    if let Some(out) = output {
        regions.write_first(out)?;
    }
    Ok(match ran.outcome() {
        Ok(_) => Answer::Yes,
        Err(_) => Answer::No,
    })
}

/// Result of a run.
enum Ran {
    /// All that the checked interpreter tells, and the lines of the trace.
    Checked { finish: Box<Finish>, trace: String },
    /// `r0`, from an engine that tells nothing else; `None` if the time limit passed.
    Trusted(Option<u64>),
}

/// Why a run ended without a value.
enum Stop<'r> {
    Trap(&'r Trap),
    Deadline,
}

impl Ran {
    fn outcome(&self) -> Result<u64, Stop<'_>> {
        match self {
            Ran::Checked { finish, .. } => finish.outcome.as_ref().copied().map_err(Stop::Trap),
            Ran::Trusted(value) => value.ok_or(Stop::Deadline),
        }
    }
}

fn run_checked(
    args: &Args,
    program: &CheckedProgram,
    regions: &mut Regions,
) -> Result<Ran, Failure> {
    if args.trust {
        return Err(Failure::new(trusted::NEEDLESS_TRUST).hint(trusted::OTHER_ENGINES));
    }
    let packet = args.packet()?;
    let packet = packet
        .as_ref()
        .map(|bytes| Packet::whole(bytes, &Metadata::UNKNOWN));
    let limits = Limits {
        instructions: args.budget.unwrap_or(Limits::default().instructions),
        frames: args.frames.unwrap_or(Limits::default().frames),
        deadline: args.timeout.map(|timeout| Instant::now() + timeout),
        indirect_jumps: args.gotox,
        ..Limits::default()
    };
    let mut calls = Calls::basic(SplitMix::new(args.seed), clock(args.time));
    let mut memory = Memory::seeded(args.seed);
    let mut entry = Entry::default();
    regions.map(&mut memory, &mut entry.arguments)?;
    for &(register, value) in &args.registers {
        entry.arguments[register - 1] = value;
    }
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: packet.as_ref(),
    };
    let (finish, trace) = match args.trace {
        true => trace::run(program, cx, entry, &limits),
        false => (program.run(cx, entry, &limits), String::new()),
    };
    let finish = Box::new(finish);
    Ok(Ran::Checked { finish, trace })
}

fn run_trusted(
    args: &Args,
    engine: Engine,
    program: &CheckedProgram,
    regions: &mut Regions,
) -> Result<Ran, Failure> {
    trusted::check_trust(args.trust)?;
    let only_checked = [
        ("--trace", args.trace),
        ("--packet", args.packet.is_some()),
        ("--reg", !args.registers.is_empty()),
        ("--gotox", args.gotox),
        ("--budget", args.budget.is_some()),
        ("--frames", args.frames.is_some()),
    ];
    if let Some((option, _)) = only_checked.iter().find(|(_, given)| *given) {
        return Err(Failure::new(format_args!(
            "{option} is for --engine checked only"
        )));
    }
    let memory = regions.only_bytes()?;
    let (random, clock) = (SplitMix::new(args.seed), clock(args.time));
    trusted::run(engine, program, memory, random, clock, args.timeout).map(Ran::Trusted)
}

/// Clock of the time helpers: a fixed time, or the time since the start.
fn clock(time: Option<u64>) -> impl Fn() -> u64 + Clone + Send + 'static {
    let began = Instant::now();
    move || time.unwrap_or_else(|| began.elapsed().as_nanos() as u64)
}

fn frames(text: &str) -> Result<usize, String> {
    const MOST: usize = beebox::internal::raw::MOST_FRAMES;
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=MOST).contains(number));
    number.ok_or_else(|| format!("{text} is not in 1..={MOST}"))
}

/// `rN=VALUE`.
fn parse_register(text: &str) -> Result<(usize, u64), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not rN=VALUE (for instance r3=16)"))?;
    let number = name.trim().strip_prefix('r').and_then(|n| n.parse().ok());
    let number = number.filter(|number| (1..=5).contains(number));
    let number = number.ok_or_else(|| {
        format!("{name:?} is not one of r1 to r5, the registers that hold arguments")
    })?;
    Ok((number, parse_number(value.trim())?))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    // A deadline further away than this is none.
    const LONGEST: Duration = Duration::from_secs(1 << 32);
    duration
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| format!("{text:?} is no number of seconds"))
}
