//! `beebox run`: a program of an object on a packet, a context or a capture.

mod against;
mod capture;
pub(crate) mod changes;
pub(crate) mod choice;
pub(crate) mod expect;
mod html;
pub(crate) mod inputs;
pub(crate) mod maps_file;
mod output;
mod profile;
mod progress;
pub(crate) mod refused;
mod selection;
mod unused;
mod unwritten;
mod user_records;
mod verdicts;
mod why;
mod why_command;

use std::path::{Path, PathBuf};

use beebox::expect::ExpectFile;
use beebox::internal::bytes::ByteSource;
use beebox::internal::expect::ExpectCheck;
use beebox::internal::loading::ObjectLoading;
use beebox::internal::maps_json::{FieldFormat, MapsDump, RecordTypes};
use beebox::internal::object::Object;
use beebox::internal::program::ProgramType;
use beebox::internal::raw;
use beebox::internal::run::{
    Debug, LoadOptions, LoadedObject, PERF_BUFFER_BYTES, RunAnswer, RunClock, RunEnd, RunOutputs,
    RunnableProgram, Stream, WhyOptions, fallback_reason, leave_out_struct_ops, load_only,
};

use beebox::Engine;
use beebox::internal::network::{self, NetworkFileError};
use beebox::network::System;

use crate::answer::{Answer, Failure};
use crate::coverage::CoverageOutput;
use crate::engine;
use crate::input::{read_file, read_source};
use crate::kernel_input::{FOR_VERIFYING, KernelArgs, note_assumed, note_rules};
use crate::limits::{LimitArgs, TIMED_OUT};
use crate::loading::{change, note_guess};
use crate::object_input::ObjectFile;
use crate::stdout::written;
use changes::Changes;
use choice::{choose, names};
use expect::insert_run;
use inputs::RunInputs;
use maps_file::{MapsFile, contents, note_left_out};
use output::limit_text;
use profile::ProfileOutput;
use selection::SelectionArgs;

/// Run a program of an object on packets
///
/// The program (of the types that Linux test-runs, but tracing and struct_ops) is linked, verified
/// as Linux 6.18 does, and run on a packet, on a context or on each packet of a capture. Its maps
/// last over all packets.
///
/// Programs can't harm the machine, and the same input gives the same run. `beebox exec` executes
/// instructions without an object.
#[derive(clap::Args)]
#[command(after_help = "\
A SOURCE of bytes is a file, or bytes in hexadecimal (\"01 02\", 0x0102), or zero:N
for N zero bytes; hex: and file: before it say which one is meant. That of a packet may
be words, as 'proto tcp from 192.0.2.1 port 4000 to 198.51.100.7 port 443 flags syn'.

Examples:
  beebox run firewall.bpf.o --pcap in.pcap -w out.pcap --maps rules.json --dump-maps
  beebox run firewall.bpf.o --prog firewall --packet packet.bin --format json
  beebox run sum.bpf.o --prog add --ctx 0100000002000000 --format json
  beebox run firewall.bpf.o --expect firewall.expect --format junit
  beebox run firewall.bpf.o --pcap in.pcap --why 17
  beebox run firewall.bpf.o --pcap in.pcap --verdicts --only 'udp port 53' --format csv
  beebox run firewall.bpf.o --pcap in.pcap --html run.html
  beebox run new.bpf.o --against old.bpf.o --pcap in.pcap
  beebox run limit.bpf.o --pcap in.pcap --engine checked --clock real --cpu 3

Exit codes: 0 the program returned and every expectation is met, 1 it is refused, was stopped by a
trap, by --timeout or by --memory, or an expectation is not met, 2 could not answer.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: RunInputs,

    /// Engine [default: native; interp where there is no native code]
    #[arg(long, value_name = "NAME", value_parser = engine::parser())]
    engine: Option<Engine>,

    /// Say why packet N of the capture, or the packet of --packet, got its verdict: the lines that its
    /// run took with the values that decided, calls, map entries, writes and variables
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = false)]
    #[arg(conflicts_with_all = ["expect", "output", "jobs", "dump_maps", "repeat"])]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    why: Option<Option<u64>>,

    /// Print a row for each packet: number, time, lengths, verdict, redirect, and with --engine
    /// checked instructions; with --format csv or json as data
    #[arg(long, conflicts_with_all = ["expect", "jobs", "why"])]
    verdicts: bool,

    /// Write which source lines, branches and functions the runs executed: lcov=FILE (a tracefile),
    /// cobertura=FILE (XML) or html=DIR; may be given several times
    #[arg(long, value_name = "FORM=PATH", value_parser = CoverageOutput::parse)]
    #[arg(conflicts_with_all = ["why", "against"])]
    coverage: Vec<CoverageOutput>,

    /// Print what the runs cost by source line and function: instructions, and calls of helpers; `time`
    /// prints the time of lines and helpers too; or write it as folded=FILE (stacks), pprof=FILE or
    /// speedscope=FILE; may be given several times. The runs are in the checked engine
    #[arg(long, value_name = "FORM=PATH", num_args = 0..=1, default_missing_value = "table")]
    #[arg(value_parser = ProfileOutput::parse)]
    #[arg(conflicts_with_all = ["jobs", "why", "against", "coverage", "expect", "verdicts"])]
    profile: Vec<ProfileOutput>,

    /// Write a page to look at, which needs nothing else: packets with their verdicts, source with
    /// coverage and cost, and the paths of the first packets step by step, forward and back
    #[arg(long, value_name = "PAGE")]
    #[arg(conflicts_with_all = ["expect", "jobs", "why", "against", "profile", "repeat"])]
    html: Option<PathBuf>,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Compare with an older object: print the packets of the capture whose verdict, bytes, records
    /// or maps differ, by the line where the paths part; exit code 1 if any does. With --kernel
    /// OLD,NEW each runs for its own kernel
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["expect", "jobs", "why", "verdicts", "output", "dump_maps", "only", "limit"])]
    against: Option<PathBuf>,

    /// Run so many times, each time on what the run before left
    #[arg(long, value_name = "N", conflicts_with = "pcap")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,

    #[command(flatten)]
    limits: LimitArgs,

    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: RunFormat,

    /// Same as --format json
    #[arg(short, long, conflicts_with = "format")]
    json: bool,

    /// Have indirect jumps and calls of native code go through a retpoline, which keeps
    /// processors from predicting them
    #[arg(long, conflicts_with = "unverified")]
    retpoline: bool,

    /// Check the run, or the runs that the file lists, against a file of expectations
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "dump_maps"])]
    expect: Option<PathBuf>,

    /// The type of the records of a ring buffer or perf buffer [default: that of their size to which a variable
    /// of the object points]
    #[arg(long, value_name = "MAP=TYPE")]
    records: Vec<String>,

    /// Print and read a field as FORM: ipv4, ipv6, mac, port, hex, u8, u16, u32 or u64; PLACE is
    /// MAP.key, MAP.value (of ring buffers and perf buffers their records) or a variable, and the
    /// names of members, as flows.key.peer [default: by types and names]
    #[arg(long, value_name = "PLACE=FORM")]
    show: Vec<FieldFormat>,

    /// Print the maps after the run
    #[arg(long)]
    dump_maps: bool,

    /// Clock of the time helpers: the time of the packet in its capture, the one of --time,
    /// or one that runs from 0 [default: capture, and fixed with --time]
    #[arg(long, value_enum)]
    clock: Option<ClockKind>,

    /// Run on the packets of a capture in so many threads; each is a CPU, from 0 on, with
    /// values of its own in per-CPU maps
    #[arg(
        short = 'J',
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "pcap"
    )]
    #[arg(conflicts_with_all = ["output", "expect", "cpu"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_JOBS)))]
    jobs: u32,

    /// Let the threads of --jobs share maps that are not per CPU: programs see the writes for
    /// other packets in any order, and the run does not repeat bit for bit
    #[arg(long, requires = "jobs")]
    share_maps: bool,

    #[command(flatten)]
    kernel: KernelArgs,
}

/// The form of the answer of a run.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RunFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// The rows of --verdicts as comma-separated values
    Csv,
    /// The path of --why as a page to look at
    Html,
    /// The expectations of --expect as JUnit's XML
    Junit,
}

impl Args {
    fn format(&self) -> RunFormat {
        match self.json {
            true => RunFormat::Json,
            false => self.format,
        }
    }

    /// What maps are filled with beside the file of their contents.
    fn filling(&self) -> (&[FieldFormat], &[String]) {
        (&self.show, &self.inputs.user_records)
    }

    /// The files that are read whole or as a capture.
    fn inputs(&self) -> impl Iterator<Item = &Path> {
        let sources = self.inputs.packet.iter().chain(&self.inputs.ctx);
        let files = [
            &self.inputs.pcap,
            &self.inputs.maps,
            &self.expect,
            &self.inputs.network,
            &self.against,
        ];
        [self.inputs.file.as_path()]
            .into_iter()
            .chain(sources.filter_map(ByteSource::path))
            .chain(files.into_iter().filter_map(|file| file.as_deref()))
    }
}

/// Most threads of a run.
const MOST_JOBS: u32 = 256;

/// The clock of the time helpers.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ClockKind {
    /// The time of the packet in its capture
    Capture,
    /// The time of --time
    Fixed,
    /// Nanoseconds since the start
    Real,
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let args = &args;
    unused::check(args)?;
    if args.format() == RunFormat::Junit && args.expect.is_none() {
        return Err(Failure::new("--format junit shows expectations").hint("--expect FILE"));
    }
    if args.format() == RunFormat::Csv && !args.verdicts {
        return Err(Failure::new("--format csv shows verdicts").hint("--verdicts"));
    }
    if args.format() == RunFormat::Html && args.why.is_none() {
        let failure = Failure::new("--format html shows --why");
        return Err(failure.hint("--why N, or --html PAGE for all packets"));
    }
    profile::check(&args.profile, args.format())?;
    args.selection.check()?;
    let page = html::page_path(args)?;
    let only = args.selection.only()?;
    let clock = clock(args.clock, args.inputs.time)?;
    let engine = args.engine.unwrap_or(LoadOptions::default().engine);
    let file = ObjectFile::read(&args.inputs.file)?;
    let name = crate::input::name(file.path());
    if !file.is_object() {
        let failure = Failure::new(format_args!("{name}: this file is not a BPF object"));
        let remedy = match raw::read_program(file.bytes(), None) {
            Ok(program) if !program.insns().is_empty() => {
                format!(
                    "beebox exec {}, which executes instructions",
                    args.inputs.file.display()
                )
            }
            _ => "an object (*.bpf.o) as FILE, --pcap for a capture".to_owned(),
        };
        return Err(failure.hint(remedy));
    }
    let mut several = match &args.against {
        Some(_) => args.kernel.read_several()?,
        None => Vec::new(),
    };
    let kernel = match several.pop() {
        Some((_, kernel)) if several.len() == 1 => kernel,
        Some(_) => {
            let failure = Failure::new("--against compares two kernels at most");
            return Err(failure.hint("--kernel OLD,NEW, that of OLD first"));
        }
        None => args.kernel.read()?,
    };
    let old_kernel = several.pop().map(|(_, kernel)| match args.inputs.cpus {
        Some(cpus) => kernel.with_cpus(cpus, beebox::internal::kernel::Source::Given),
        None => kernel,
    });
    note_assumed(&kernel, FOR_VERIFYING, "verified");
    let kernel = match args.inputs.cpus {
        Some(cpus) if cpus < args.jobs.max(args.inputs.cpu + 1) => {
            let failure =
                Failure::new(format_args!("--cpus {cpus} is too few for --cpu or --jobs"));
            let least = args.jobs.max(args.inputs.cpu + 1);
            return Err(failure.hint(format_args!("--cpus {least} or more")));
        }
        Some(cpus) => kernel.with_cpus(cpus, beebox::internal::kernel::Source::Given),
        None => kernel,
    };
    note_rules(&kernel);
    let loading = args.inputs.loading.read()?;
    let mut object = opened(&file, &loading)?;
    if loading.kind.is_some() && object.programs().all(|(_, program)| program.kind.is_some()) {
        let what = "--type is for programs whose section names imply no type, and all do";
        let failure = Failure::new(what).within(&name);
        return Err(failure.hint("no --type, or --type PROGRAM=TYPE"));
    }
    change_as_told(&mut object, &loading, &args.inputs.changes, &name)?;
    let mut expected = args.expect.as_deref().map(expect::read).transpose()?;
    let system = args.inputs.network()?;
    if let Some(path) = expected.as_ref().and_then(ExpectFile::network) {
        let what = "the statement network is for `beebox test`";
        let failure = Failure::new(what).within(args.expect.as_deref().unwrap_or(path).display());
        return Err(failure.hint(format_args!("--network {}", path.display())));
    }
    let filling = args.inputs.filling()?;
    let has_input = args.inputs.packet.is_some()
        || args.inputs.pcap.is_some()
        || args.inputs.ctx.is_some()
        || args.repeat.is_some();
    let listed = expected.as_ref().map_or(0, |file| file.programs().count());
    let chosen = match (listed, &expected) {
        (0, _) => Some(choose(&object, &args.inputs.given()).map_err(|error| error.within(&name))?),
        (_, Some(file)) if has_input || args.inputs.prog.is_some() => {
            let failure = Failure::new(format_args!("{} lists its own runs", file.name()));
            return Err(failure.hint(
                "--packet, --ctx, --pcap, --repeat and --prog with a file without run lines",
            ));
        }
        _ => None,
    };
    if let (Some(program), Some(file)) = (&chosen, &mut expected) {
        insert_run(file, program, args);
    }
    let mut wanted: Vec<String> = chosen.iter().cloned().collect();
    if let Some(file) = &expected {
        for (line, program) in file.programs() {
            if !object.programs().any(|(_, known)| known.name == *program) {
                let place = format_args!("{}:{line}", file.name());
                let failure = Failure::new(format_args!("{name} has no program {program:?}"));
                let failure = failure.hint(format_args!("run with one of {}", names(&object)));
                return Err(failure.within(place));
            }
            wanted.push(program.to_owned());
        }
    }
    let runs = wanted.clone();
    let wanted = load_only(&mut object, wanted, contents(filling.as_ref()));
    let is_of_ops = |name: &String| {
        let kind = object.program(name).and_then(|program| program.kind);
        kind == Some(ProgramType::StructOps)
    };
    // Loading says that those are not test-run.
    if !runs.iter().any(is_of_ops) {
        leave_out_struct_ops(&mut object);
    }
    let options = LoadOptions {
        unverified: args.inputs.unverified,
        explains: false,
        engine,
        checks_deadline: args.limits.timeout.is_some(),
        timeout: match args.limits.timeout {
            Some(_) => None,
            None => Some(LoadOptions::DEFAULT_TIMEOUT),
        },
        retpoline: args.retpoline,
        counts: !args.coverage.is_empty() || page.is_some(),
        watches_stack: args.why.is_some(),
        shares_counts: args.jobs > 1,
        models: expected.is_some(),
        journals: false,
        entry_slots: false,
        memory: args.inputs.map_memory,
        cpu: args.inputs.cpu,
        cpus: args.jobs,
        seed: args.inputs.seed,
    };
    let set_up = |program: &mut RunnableProgram<'_>| {
        program.set_limits(args.limits.limits());
        program.set_clock(clock);
        if let Some(ifindex) = args.inputs.ifindex {
            program.set_ifindex(ifindex);
        }
    };
    if let (Some(old), Some(pcap), Some(program)) = (&args.against, &args.inputs.pcap, &chosen) {
        let old_file = ObjectFile::read(old)?;
        let old_name = crate::input::name(old_file.path());
        let mut old_object = opened(&old_file, &loading)?;
        change_as_told(&mut old_object, &loading, &args.inputs.changes, &old_name)?;
        if !old_object
            .programs()
            .any(|(_, known)| known.name == **program)
        {
            let failure = Failure::new(format_args!("{old_name} has no program {program:?}"));
            return Err(failure.hint(format_args!(
                "--prog with a program of both; it has {}",
                names(&old_object)
            )));
        }
        load_only(
            &mut old_object,
            vec![program.clone()],
            contents(filling.as_ref()),
        );
        leave_out_struct_ops(&mut old_object);
        let old_kernel = old_kernel.as_ref().unwrap_or(&kernel);
        let load = |object: &Object<'_>, name: &str, kernel| {
            let loaded = LoadedObject::load(object, kernel, &options);
            let mut loaded = loaded.map_err(|error| {
                let hint = format!("beebox verify {name} --prog {program} --explain");
                Failure::new(error).within(name).hint(hint)
            })?;
            if let Some(system) = &system {
                loaded.set_system(system.clone());
            }
            fill(&mut loaded, object, filling.as_ref(), args.filling(), name)?;
            Ok(loaded)
        };
        let against = against::Against {
            load: &|| {
                let old = load(&old_object, &old_name, old_kernel)?;
                Ok([old, load(&object, &name, &kernel)?])
            },
            program,
            old_file: old,
            file: &args.inputs.file,
            pcap,
            kernels: [old_kernel, &kernel],
            why: &|packet| why_command::command(args, program, packet),
            set_up: &|program| {
                set_up(program);
                program.collect_records(true);
            },
        };
        return against.answer(args.format());
    }
    let system_again = system.clone();
    let again = || {
        let loaded = LoadedObject::load(&object, &kernel, &options);
        let mut loaded = loaded.map_err(|error| Failure::new(error).within(&name))?;
        if let Some(system) = &system_again {
            loaded.set_system(system.clone());
        }
        fill(
            &mut loaded,
            &object,
            filling.as_ref(),
            args.filling(),
            &name,
        )?;
        Ok(loaded)
    };
    let mut loaded = match LoadedObject::load(&object, &kernel, &options) {
        Ok(loaded) => loaded,
        Err(error) => {
            let loading = refused::Loading {
                name: &name,
                object: &object,
                changes: &args.inputs.changes,
                kernel: &kernel,
                format: args.format(),
            };
            return loading.answer(error);
        }
    };
    let fallback_reason = fallback_reason(&mut loaded, &runs);
    let without_checks = match args.engine {
        Some(Engine::Native) => Some("native code"),
        Some(Engine::Interp) => Some("the threaded interpreter"),
        Some(Engine::Checked) | None => None,
    };
    if let (Some(engine), Some((program, what))) = (without_checks, &fallback_reason) {
        let what = format_args!("{name}: program {program}: {engine} does not support yet: {what}");
        return Err(Failure::new(what).hint("--engine checked"));
    }
    if !args.coverage.is_empty() && loaded.lacks_lines() {
        let what = "the object has no source lines, which coverage is about";
        return Err(Failure::new(what).within(&name).hint("clang -g"));
    }
    if let Some(system) = system {
        loaded.set_system(system);
    }
    let filled = fill(
        &mut loaded,
        &object,
        filling.as_ref(),
        args.filling(),
        &name,
    );
    if let Err(failure) = filled {
        return refused::not_filled(failure, &loaded, &name, args.format());
    }
    if let Some(file) = &expected {
        let types = record_types(&object, &loaded, args)?;
        let check = ExpectCheck {
            file,
            object: &object,
            loaded: &loaded,
            types: &types,
            cpu: args.inputs.cpu,
            set_up: &set_up,
        };
        return match check.run() {
            Ok(report) => {
                note_left_out(file.name(), &report.zeroed);
                unwritten::note(&report.unwritten);
                write_coverage(args, &loaded)?;
                expect::print(report, args)
            }
            Err(error) => {
                let name = file.name();
                refused::not_filled(expect::failure(error), &loaded, name, args.format())
            }
        };
    }
    let chosen = chosen.unwrap_or_default();
    let types = record_types(&object, &loaded, args)?;
    let debug = page.and_then(|_| Debug::read(file.bytes()));
    let mut program = loaded
        .program(&chosen)
        .ok_or_else(|| Failure::new(format_args!("{name}: {chosen} is not loaded")))?;
    let set_up = |program: &mut RunnableProgram<'_>| {
        set_up(program);
        program.collect_records(true);
    };
    set_up(&mut program);
    let (kind, engine) = (program.kind(), program.engine());
    if args.why.is_some() {
        let debug = Debug::read(file.bytes());
        let known = (&kernel, debug.as_ref());
        return why::answer(args, &mut program, known, &types, &again, &set_up);
    }
    if !args.profile.is_empty() {
        program.start_profile(profile::has_times(&args.profile));
    }
    if page.is_some() {
        program.start_page(WhyOptions {
            kernel: &kernel,
            debug: debug.as_ref(),
            types: &types,
            tail_from: None,
            folds: false,
        });
    }
    let mut profile = None;
    let mut failure = None;
    let mut outputs = RunOutputs::default();
    let ran = match &args.inputs.pcap {
        None => {
            let ran = on_packet(args, &mut program, &mut outputs)?;
            profile = program.take_profile();
            html::write(args, page, (&chosen, &mut program), &ran)?;
            ran
        }
        Some(path) if args.jobs == 1 => {
            let selection::Outputs {
                passing,
                by_verdict,
            } = args.selection.outputs(kind, args.inputs())?;
            let options = capture::Options {
                path,
                out: passing,
                by_verdict,
                only,
                most: args.selection.limit,
                comments: args.selection.comments,
            };
            let mut rows = args
                .verdicts
                .then(|| verdicts::start(args.format(), engine));
            let ran;
            (ran, failure) = capture::run(options, &mut program, &mut outputs, rows.as_mut())?;
            profile = program.take_profile();
            html::write(args, page, (&chosen, &mut program), &ran)?;
            if let Some(rows) = rows {
                written(rows.finish())?;
                write_coverage(args, &loaded)?;
                if args.format() != RunFormat::Text {
                    return failure.map_or_else(|| Ok(verdicts::ended(&ran)), Err);
                }
            }
            ran
        }
        Some(path) => {
            let threads = capture::Threads {
                jobs: args.jobs,
                share_maps: args.share_maps,
            };
            capture::run_parallel(path, &mut loaded, &chosen, threads, &set_up, &mut outputs)?
        }
    };
    if let Some(profile) = profile {
        let answer = profile::write(args, &profile, &ran)?;
        return failure.map_or(Ok(answer), Err);
    }
    let maps = args.dump_maps.then(|| MapsDump::new(&loaded, object.btf()));
    let streams = Stream::ALL.map(|stream| {
        let taken = (wanted.iter()).filter_map(|name| loaded.take_stream(name, stream));
        String::from_utf8_lossy(&taken.collect::<Vec<_>>().concat()).into_owned()
    });
    let unwritten = loaded.unwritten_stack_reads();
    unwritten::note(&unwritten);
    if !args.verdicts {
        write_coverage(args, &loaded)?;
    }
    let answer = RunAnswer {
        prog: chosen,
        kind,
        engine,
        fallback_reason: fallback_reason.map(|(_, what)| what),
        types,
        end: ran,
        unwritten,
        outputs,
        streams,
        maps: maps.transpose().map_err(Failure::new)?,
        limit_text,
        timed_out: TIMED_OUT,
    };
    let answer = output::print(&answer, args.format())?;
    failure.map_or(Ok(answer), Err)
}

/// Writes what the runs executed.
fn write_coverage(args: &Args, loaded: &LoadedObject) -> Result<(), Failure> {
    if args.coverage.is_empty() {
        return Ok(());
    }
    let mut coverage = loaded.coverage();
    let beside = args.inputs.file.parent();
    coverage.find_sources(beside.unwrap_or(Path::new("")));
    crate::coverage::write(&coverage, &args.coverage)?;
    crate::coverage::note(&coverage);
    Ok(())
}

/// Opens an object by the conventions of a loader.
pub(crate) fn opened<'f>(
    file: &'f ObjectFile,
    loading: &ObjectLoading,
) -> Result<Object<'f>, Failure> {
    let object = file.open_by(loading, &[])?;
    note_guess(&object, &crate::input::name(file.path()));
    Ok(object)
}

/// Changes an object as the command line says.
pub(crate) fn change_as_told(
    object: &mut Object<'_>,
    loading: &ObjectLoading,
    changes: &Changes,
    name: &str,
) -> Result<(), Failure> {
    change(object, loading).map_err(|failure| failure.within(name))?;
    let changed = changes.apply(object);
    changed.map_err(|failure| failure.within(name))
}

/// Fills maps and user ring buffers, and opens perf buffers.
pub(crate) fn fill(
    loaded: &mut LoadedObject,
    object: &Object<'_>,
    maps: Option<&MapsFile>,
    (show, user_records): (&[FieldFormat], &[String]),
    name: &str,
) -> Result<(), Failure> {
    let set = loaded.set_formats(object, show);
    set.map_err(|fault| Failure::new(fault).within("--show"))?;
    if let Some(file) = maps {
        file.fill(loaded, object, show)?;
    }
    user_records::put(loaded, user_records)?;
    let opened = loaded.open_perf_buffers(PERF_BUFFER_BYTES);
    opened.map_err(|errno| Failure::new(format_args!("{name}: perf buffers: {errno}")))
}

/// The types of records, those of --records among them.
fn record_types<'a>(
    object: &'a Object<'_>,
    loaded: &LoadedObject,
    args: &Args,
) -> Result<RecordTypes<'a>, Failure> {
    let mut types = RecordTypes::new(object);
    for given in &args.records {
        let place = format_args!("--records {given}");
        let (map, name) = given
            .split_once('=')
            .ok_or_else(|| Failure::new("it is no MAP=TYPE").within(place))?;
        let set = types.set(loaded, map.trim(), name.trim());
        set.map_err(|error| Failure::new(error).within(place))?;
    }
    let set = types.set_formats(loaded, object, &args.show);
    set.map_err(|fault| Failure::new(fault).within("--show"))?;
    Ok(types)
}

/// Reads the file of `--network`.
pub(crate) fn read_network(path: &Path) -> Result<System, Failure> {
    let bytes = read_file(path)?;
    let text = String::from_utf8_lossy(&bytes);
    network::read(&text).map_err(|error| network_failure(path, &error))
}

/// The failure for a file that is no network.
pub(crate) fn network_failure(path: &Path, error: &NetworkFileError) -> Failure {
    let failure = Failure::new(format_args!("{}: {error}", path.display()));
    match error.place.is_empty() {
        true => failure.hint(r#"{"link": [...], "route": [...]}, as ip -json prints it"#),
        false => failure,
    }
}

fn clock(kind: Option<ClockKind>, time: Option<u64>) -> Result<RunClock, Failure> {
    match (kind, time) {
        (None | Some(ClockKind::Capture), None) => Ok(RunClock::Capture),
        (Some(ClockKind::Fixed), None) => Err(Failure::new("--clock fixed needs --time NS")),
        (None | Some(ClockKind::Fixed), Some(time)) => Ok(RunClock::Fixed(time)),
        (Some(ClockKind::Real), None) => Ok(RunClock::Real),
        (Some(_), Some(_)) => Err(Failure::new("--time is the time of --clock fixed")),
    }
}

fn on_packet(
    args: &Args,
    program: &mut RunnableProgram<'_>,
    outputs: &mut RunOutputs,
) -> Result<RunEnd, Failure> {
    let packet = args.inputs.packet()?.unwrap_or_default();
    let context = args.inputs.ctx.as_ref().map(read_source).transpose()?;
    let repeat = args.repeat.unwrap_or(1);
    let result = match args.html {
        Some(_) => program.test_run_on_page(&packet, context.as_deref()),
        None => program.test_run_with_context(&packet, context.as_deref(), repeat),
    };
    match result {
        Ok(run) => {
            outputs.add_of(0, &run.printk, &run.records);
            Ok(RunEnd::Packet {
                packet,
                context: context.unwrap_or_default(),
                run,
                is_cold: repeat == 1,
            })
        }
        Err(error) if error.is_stop() => Ok(RunEnd::Stopped {
            packet: None,
            error,
        }),
        Err(error) => Err(Failure::new(error)),
    }
}
