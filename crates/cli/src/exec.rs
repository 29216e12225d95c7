//! `beebox exec`.

mod program;
mod trusted;

use std::path::{Path, PathBuf};
use std::time::Instant;

use beebox::internal::bytes::ByteSource;
use beebox::internal::raw::{
    Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory, RawAnswer, RawEnd, RegionError,
    RegionSource, Regions, SplitMix, parse_region, run_traced,
};
use beebox::internal::seccomp::parse_number;
use beebox::{Engine, Metadata, Packet};
use report::json::pretty;

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::engine;
use crate::input::source_failure;
use crate::limits::{LimitArgs, TIMED_OUT};
use crate::output_path::OutputPath;
use crate::stdout::{write_bytes, write_json, write_output};
use program::RawProgram;

/// Execute unverified eBPF instructions
///
/// Every memory access is checked, instructions and time are bounded, and a trap is reported with
/// the instruction, the address and the reason. The program finds the address of the first --mem
/// in r1 and its length in r2, those of the second in r3 and r4, and the address of the third in
/// r5; r10 is the end of its stack frame of 512 bytes; all other registers are 0.
///
/// Programs can't harm the machine, and the same input gives the same run. `beebox run` runs
/// programs of objects, with their maps.
#[derive(clap::Args)]
#[command(after_help = "\
A SOURCE of bytes is a file, or bytes in hexadecimal (\"01 02\", 0x0102), or zero:N
for N zero bytes; hex: and file: before it say which one is meant. NAME= names a
region in messages, ro: in front of all makes it read-only.

Helpers that can be called: get_prandom_u32 (--seed), ktime_get_ns and its kin (--time),
get_smp_processor_id.

Examples:
  beebox exec sum.asm --mem 010203          text in LLVM's form, memory as hex
  beebox exec prog.bin --mem packet.bin -o packet.out
  beebox exec prog.o --section xdp --mem zero:64 --dump-mem
  echo 'r0 = 1; exit' | beebox exec -
  beebox exec prog.asm --mem 00 --trace --budget 1000
  beebox exec prog.hex --mem ro:key=0x01020304 --mem out=zero:8 --format json

Exit codes: 0 the program returned, 1 it was stopped by a trap or by --timeout, 2 could not
answer.")]
pub(crate) struct Args {
    #[command(flatten)]
    program: RawProgram,

    /// Engine; native and interp need --trust
    #[arg(long, value_name = "NAME", value_parser = engine::parser(), default_value = "checked")]
    engine: Engine,

    /// Assume that the instructions are safe, which every engine but checked needs: an unsafe
    /// program corrupts this process
    #[arg(long)]
    trust: bool,

    /// Memory that the program can reach; may be given up to three times
    #[arg(long = "mem", value_name = "[ro:][NAME=]SOURCE", value_parser = parse_region)]
    memory: Vec<RegionSource>,

    /// Initial value of a register from r1 to r5, instead of that of --mem
    #[arg(long = "reg", value_name = "rN=VALUE", value_parser = parse_register)]
    registers: Vec<(usize, u64)>,

    /// The packet of legacy packet loads
    #[arg(long, value_name = "SOURCE", value_parser = ByteSource::parse)]
    packet: Option<ByteSource>,

    #[command(flatten)]
    limits: LimitArgs,

    /// Allow indirect jumps (gotox), which Linux 6.18 does not have
    #[arg(long)]
    gotox: bool,

    /// Seed of the random numbers of helpers, and of the addresses that programs see
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Fixed time of the clock of helpers, in nanoseconds [default: it runs]
    #[arg(long, value_name = "NS")]
    time: Option<u64>,

    /// Print every instruction and what it changed
    #[arg(long)]
    trace: bool,

    /// Print the memory after the run
    #[arg(long)]
    dump_mem: bool,

    /// Write the first --mem after the run
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,
}

impl Args {
    /// The packet of `--packet`.
    fn packet(&self) -> Result<Option<Vec<u8>>, Failure> {
        let packet = self.packet.as_ref().map(ByteSource::read_packet);
        packet.transpose().map_err(source_failure)
    }

    /// The files that are read whole or as a capture.
    fn inputs(&self) -> impl Iterator<Item = &Path> {
        let regions = self.memory.iter().map(RegionSource::source);
        let sources = regions.chain(&self.packet);
        let files = sources.filter_map(ByteSource::path);
        [self.program.file()].into_iter().chain(files)
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let output = OutputPath::optional(args.output.as_deref(), args.inputs())?;
    let program = args.program.read()?;
    let mut regions = Regions::read(&args.memory).map_err(of_regions)?;
    let ran = match args.engine {
        Engine::Checked => run_checked(&args, &program, &mut regions)?,
        engine => run_trusted(&args, engine, &program, &mut regions)?,
    };
    let answer = RawAnswer {
        program: &program,
        end: &ran,
        regions: args.dump_mem.then_some(&regions),
        timed_out: TIMED_OUT,
    };
    match args.format.format() {
        AnswerFormat::Text => write_output(answer.text().as_bytes(), None)?,
        AnswerFormat::Json => write_json(pretty(&answer.json()).as_bytes())?,
    }
    if let (Some(out), Some(first)) = (output, regions.iter().next()) {
        write_bytes(&first.bytes, Some(out))?;
    }
    Ok(match ran.outcome() {
        Ok(_) => Answer::Yes,
        Err(_) => Answer::No,
    })
}

/// The failure for regions that a run does not get.
fn of_regions(error: RegionError) -> Failure {
    match error {
        RegionError::Source(error) => source_failure(error),
        RegionError::ReadOnly | RegionError::Several => {
            Failure::new(error).hint("--engine checked takes several --mem, and ro: before one")
        }
        RegionError::TooMany | RegionError::NoRoom(_) => Failure::new(error),
    }
}

fn run_checked(
    args: &Args,
    program: &CheckedProgram,
    regions: &mut Regions,
) -> Result<RawEnd, Failure> {
    if args.trust {
        return Err(Failure::new(trusted::NEEDLESS_TRUST).hint(trusted::OTHER_ENGINES));
    }
    let packet = args.packet()?;
    let packet = packet
        .as_ref()
        .map(|bytes| Packet::whole(bytes, &Metadata::UNKNOWN));
    let limits = Limits {
        indirect_jumps: args.gotox,
        ..args.limits.limits()
    };
    let mut calls = Calls::basic(SplitMix::new(args.seed), clock(args.time));
    let mut memory = Memory::seeded(args.seed);
    let mut entry = Entry::default();
    let mapped = regions.map(&mut memory, &mut entry.arguments);
    mapped.map_err(of_regions)?;
    for &(register, value) in &args.registers {
        entry.arguments[register - 1] = value;
    }
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: packet.as_ref(),
    };
    let (finish, trace) = match args.trace {
        true => run_traced(program, cx, entry, &limits),
        false => (program.run(cx, entry, &limits), String::new()),
    };
    let finish = Box::new(finish);
    Ok(RawEnd::Checked { finish, trace })
}

fn run_trusted(
    args: &Args,
    engine: Engine,
    program: &CheckedProgram,
    regions: &mut Regions,
) -> Result<RawEnd, Failure> {
    trusted::check_trust(args.trust)?;
    let only_checked = [
        ("--trace", args.trace),
        ("--packet", args.packet.is_some()),
        ("--reg", !args.registers.is_empty()),
        ("--gotox", args.gotox),
        ("--budget", args.limits.budget.is_some()),
        ("--frames", args.limits.frames.is_some()),
    ];
    if let Some((option, _)) = only_checked.iter().find(|(_, given)| *given) {
        return Err(Failure::new(format_args!(
            "{option} is for --engine checked only"
        )));
    }
    let memory = regions.only_bytes().map_err(of_regions)?;
    let (random, clock) = (SplitMix::new(args.seed), clock(args.time));
    trusted::run(engine, program, memory, random, clock, args.limits.timeout).map(RawEnd::Trusted)
}

/// Clock of the time helpers: a fixed time, or the time since the start.
fn clock(time: Option<u64>) -> impl Fn() -> u64 + Clone + Send + 'static {
    let began = Instant::now();
    move || time.unwrap_or_else(|| began.elapsed().as_nanos() as u64)
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
