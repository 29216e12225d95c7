//! `beebox run FILE.o`: a program of an object on a packet or a capture.

mod changes;
mod check;
mod expect;
mod maps;
mod output;
mod progress;
mod records;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use beebox::captures::{CaptureError, Fault, Format, Input, Problem};
use beebox::object::{Contents, InitialEntry, Object};
use beebox::raw::Limits;
use beebox::run::{
    CaptureStop, LoadOptions, LoadedObject, NotLoaded, RunClock, RunEngine, RunError,
    RunnableProgram, Written,
};
use spec::programs::ProgramType;

use super::{Args, RunFormat, trusted};
use crate::answer::{Answer, Failure};
use crate::kernel_input::KernelArgs;
use crate::object_input::ObjectFile;
use crate::program_output::write_output;
use crate::verify::globals;
use changes::{Changes, not_loaded};
use expect::{ExpectFile, Statement};
use output::{Ran, Report, Summary};
use progress::Progress;
use records::RecordTypes;

/// The options of programs of objects.
#[derive(clap::Args)]
#[command(next_help_heading = "Programs of objects")]
pub(crate) struct ObjectArgs {
    /// The program [default: the only one that runs on packets]
    #[arg(long, value_name = "NAME", conflicts_with = "ebpf")]
    prog: Option<String>,

    /// Run on each packet of a capture, at the time of its capture
    #[arg(long, value_name = "IN", conflicts_with_all = ["ebpf", "packet"])]
    pcap: Option<PathBuf>,

    /// Write the packets that go on, as the program left them
    #[arg(short, long, value_name = "OUT", requires = "pcap")]
    write: Option<PathBuf>,

    /// Run so many times on the packet, each time as the run before left it
    #[arg(long, value_name = "N", requires = "packet", conflicts_with = "ebpf")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,

    /// Run a program that the verifier refuses or cannot judge
    #[arg(long, conflicts_with = "ebpf")]
    unverified: bool,

    /// Fill maps from a file, as --dump-maps prints them with --format json
    #[arg(long, value_name = "FILE.json", conflicts_with = "ebpf")]
    maps: Option<PathBuf>,

    /// Hold the run, or the runs that the file lists, to a file of expectations
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ebpf", "write", "dump_maps"])]
    expect: Option<PathBuf>,

    /// The type of a ring buffer's records [default: that of their size to which a variable
    /// of the object points]
    #[arg(long, value_name = "MAP=TYPE", conflicts_with = "ebpf")]
    records: Vec<String>,

    /// Print the maps after the run
    #[arg(long, conflicts_with = "ebpf")]
    dump_maps: bool,

    #[command(flatten)]
    changes: Changes,

    /// Set a global variable before loading, as `limit = 10`; @FILE holds one on each line
    #[arg(long, value_name = "GLOBAL", conflicts_with = "ebpf")]
    set: Vec<String>,

    /// Clock of the time helpers: the time of the packet in its capture, the one of --time,
    /// or one that runs from 0 [default: capture, and fixed with --time]
    #[arg(long, value_enum, conflicts_with = "ebpf")]
    clock: Option<ClockKind>,

    /// The CPU that the program runs on; per-CPU maps have values of this and those below
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "ebpf")]
    #[arg(value_parser = clap::value_parser!(u32).range(..i64::from(MOST_CPUS)))]
    cpu: u32,

    /// Index of the interface that packets come from [default: 1, the loopback device]
    #[arg(long, value_name = "N", conflicts_with = "ebpf")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    ifindex: Option<u32>,

    #[command(flatten)]
    kernel: KernelArgs,
}

/// Most CPUs of Linux on x86-64 (`NR_CPUS`).
const MOST_CPUS: u32 = 8192;

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

pub(super) fn run(args: &Args) -> Result<Answer, Failure> {
    let own = &args.object;
    if own.write.is_some() && own.pcap.is_none() {
        return Err(Failure::new("-w writes packets of a capture").hint("--pcap IN"));
    }
    if args.format() == RunFormat::Junit && own.expect.is_none() {
        return Err(Failure::new("--format junit shows expectations").hint("--expect FILE"));
    }
    let clock = clock(own.clock, args.time)?;
    let engine = match args.engine.unwrap_or(trusted::Engine::Native) {
        trusted::Engine::Checked => RunEngine::Checked,
        trusted::Engine::Native | trusted::Engine::Jit => RunEngine::Native,
        trusted::Engine::Interp => {
            let failure = Failure::new("engine interp does not run programs of objects");
            return Err(failure.hint("--engine native or checked"));
        }
    };
    let file = ObjectFile::read(args.program.file())?;
    let name = file.path().display().to_string();
    if !file.is_object() {
        return Err(Failure::new(format_args!("{name}: no object"))
            .hint("--ebpf, if FILE holds eBPF instructions"));
    }
    let kernel = own.kernel.read()?;
    let mut object = file.open()?;
    let changed = own.changes.apply(&mut object);
    changed.map_err(|failure| failure.within(&name))?;
    let mut expected = own.expect.as_deref().map(ExpectFile::read).transpose()?;
    let has_input = args.packet.is_some() || own.pcap.is_some();
    let listed = expected.as_ref().map_or(0, |file| file.programs().count());
    let chosen = match (listed, &expected) {
        (0, _) => Some(choose(&object, own.prog.as_deref()).map_err(|error| error.within(&name))?),
        (_, Some(file)) if has_input || own.prog.is_some() => {
            let failure = Failure::new(format_args!("{} lists its own runs", file.name));
            return Err(failure.hint("--packet, --pcap and --prog with a file without run lines"));
        }
        _ => None,
    };
    if let (Some(chosen), false) = (&chosen, has_input) {
        return Err(
            Failure::new(format_args!("no packet is given for program {chosen}"))
                .hint("--packet HEX|FILE or --pcap IN"),
        );
    }
    if let (Some(program), Some(file)) = (&chosen, &mut expected) {
        insert_run(file, program, args);
    }
    let mut loading: Vec<String> = chosen.iter().cloned().collect();
    if let Some(file) = &expected {
        for (line, program) in file.programs() {
            if !object.programs().any(|(_, known)| known.name == *program) {
                let place = format_args!("{}:{line}", file.name);
                let failure = Failure::new(format_args!("{name} has no program {program:?}"));
                let failure = failure.hint(format_args!("run with one of {}", names(&object)));
                return Err(failure.within(place));
            }
            loading.push(program.to_owned());
        }
    }
    loading.extend(programs_in_arrays(&object, &loading));
    object.set_autoload(|program| loading.iter().any(|name| program.name == **name));
    globals::apply(&mut object, &globals::read(&own.set)?)
        .map_err(|failure| failure.within(&name))?;
    let options = LoadOptions {
        unverified: own.unverified,
        engine,
        checks_deadline: args.timeout.is_some(),
        cpu: own.cpu,
        seed: args.seed,
        ..LoadOptions::default()
    };
    let mut loaded = match LoadedObject::load(&object, &kernel, &options) {
        Ok(loaded) => loaded,
        Err(NotLoaded::Refused { program, refusal }) => {
            diagnostic!(
                "beebox: {name}: program {program} is refused: {}",
                refusal.message
            );
            diagnostic!("  try: beebox verify {name} --prog {program} --explain");
            return Ok(Answer::No);
        }
        Err(error) => return Err(not_loaded(error, &object, &kernel, &name)),
    };
    if let Some(path) = &own.maps {
        maps::fill(&loaded, object.btf(), path)?;
    }
    let set_up = |program: &mut RunnableProgram<'_>| {
        program.set_limits(Limits {
            instructions: args.budget,
            deadline: args.timeout.map(|timeout| Instant::now() + timeout),
            ..Limits::default()
        });
        program.set_clock(clock);
        if let Some(ifindex) = own.ifindex {
            program.set_ifindex(ifindex);
        }
    };
    if let Some(file) = &expected {
        let report = check::check(file, &object, &mut loaded, own.cpu, &set_up)?;
        let text = match args.format() {
            RunFormat::Text => report.text(),
            RunFormat::Json => format!("{:#}\n", report.record()),
            RunFormat::Junit => report.junit(),
        };
        write_output(text.as_bytes(), None)?;
        return Ok(match report.is_met() {
            true => Answer::Yes,
            false => Answer::No,
        });
    }
    let chosen = chosen.unwrap_or_default();
    let types = RecordTypes::of(&object, &loaded, &own.records)?;
    let mut program = loaded
        .program(&chosen)
        .ok_or_else(|| Failure::new(format_args!("{name}: {chosen} is not loaded")))?;
    set_up(&mut program);
    program.take_records();
    let ran = match &own.pcap {
        None => on_packet(args, &mut program)?,
        Some(path) => on_capture(path, own.write.as_deref(), &mut program)?,
    };
    let (kind, engine) = (program.kind(), program.engine());
    let not_native = program.not_native().map(str::to_owned);
    let maps = own.dump_maps.then(|| maps::dump(&loaded, object.btf()));
    let report = Report {
        prog: chosen,
        kind,
        engine,
        not_native,
        types,
        ran,
        maps: maps.transpose()?,
    };
    report.print(args.format())
}

/// Adds the run of the command line to a file that lists none.
fn insert_run(file: &mut ExpectFile, program: &str, args: &Args) {
    let program = program.to_owned();
    let (statement, option) = match (&args.packet, &args.object.pcap) {
        (Some(packet), _) => {
            let (packet, repeat) = (packet.clone(), args.object.repeat.unwrap_or(1));
            let run = Statement::Run {
                program,
                packet,
                repeat,
            };
            (run, "--packet")
        }
        (None, path) => {
            let path = path.clone().unwrap_or_default();
            (Statement::Capture { program, path }, "--pcap")
        }
    };
    file.insert_run(statement, option.to_owned());
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

/// The program of a name, or the only one that runs on packets.
fn choose(object: &Object<'_>, name: Option<&str>) -> Result<String, Failure> {
    let runs = |kind: Option<ProgramType>| kind.is_some_and(|kind| ON_PACKETS.contains(&kind));
    let all = object.programs().map(|(_, program)| program);
    let found: Vec<String> = match name {
        Some(name) => all
            .filter(|program| program.name == *name)
            .map(|program| program.name.to_string())
            .collect(),
        None => all
            .filter(|program| runs(program.kind))
            .map(|program| program.name.to_string())
            .collect(),
    };
    match (&found[..], name) {
        ([one], _) => Ok(one.clone()),
        (_, Some(name)) => Err(Failure::new(format_args!("no program is called {name:?}"))
            .hint(format_args!("--prog with one of {}", names(object)))),
        ([], None) => Err(Failure::new(
            "no program of a type that runs on packets (xdp, tc, socket, cgroup_skb)",
        )),
        (several, None) => Err(Failure::new("several programs run on packets")
            .hint(format_args!("--prog with one of {}", several.join(", ")))),
    }
}

/// Programs that program arrays hold from the start, of the types of those that run.
fn programs_in_arrays(object: &Object<'_>, running: &[String]) -> Vec<String> {
    let kinds: Vec<_> = object
        .programs()
        .filter(|(_, program)| running.iter().any(|name| program.name == **name))
        .map(|(_, program)| program.kind)
        .collect();
    let mut held = Vec::new();
    for (_, map) in object.maps().iter() {
        if let Contents::Entries(entries) = map.contents() {
            held.extend(entries.values());
        }
    }
    let is_held = |id| held.contains(&&InitialEntry::Program(id));
    object
        .programs()
        .filter(|(id, program)| is_held(*id) && kinds.contains(&program.kind))
        .map(|(_, program)| program.name.to_string())
        .collect()
}

/// The types that run on packets.
const ON_PACKETS: &[ProgramType] = &[
    ProgramType::Xdp,
    ProgramType::SchedCls,
    ProgramType::SchedAct,
    ProgramType::SocketFilter,
    ProgramType::CgroupSkb,
];

fn names(object: &Object<'_>) -> String {
    let names = object
        .programs()
        .map(|(_, program)| program.name.to_string());
    names.collect::<Vec<_>>().join(", ")
}

fn on_packet(args: &Args, program: &mut RunnableProgram<'_>) -> Result<Ran, Failure> {
    let source = args.packet.as_ref();
    let packet = source
        .map(|source| source.read())
        .transpose()?
        .unwrap_or_default();
    let run = program.test_run_repeated(&packet, args.object.repeat.unwrap_or(1));
    match run {
        Ok(run) => Ok(Ran::Packet { packet, run }),
        Err(RunError::Trap(place)) => Ok(Ran::Trap {
            packet: None,
            error: RunError::Trap(place),
        }),
        Err(error) => Err(Failure::new(error)),
    }
}

fn on_capture(
    path: &Path,
    out: Option<&Path>,
    program: &mut RunnableProgram<'_>,
) -> Result<Ran, Failure> {
    let name = path.display();
    let mut input = Input::open_path(path).map_err(|error| unreadable(path, error))?;
    let mut file = match out {
        None => None,
        Some(out) => Some((
            output_format(&mut input, path, out)?,
            OutputFile::create(path, out)?,
        )),
    };
    let written = file.as_mut().map(|(format, file)| Written {
        format: *format,
        file: &mut file.writer,
    });
    let mut summary = Summary::default();
    let mut progress = Progress::start();
    let stopped = program.run_capture(input, written, &mut |run, _| {
        summary.add(run);
        progress.show(run.packet);
    });
    drop(progress);
    if let (Some((_, file)), Some(out), Ok(())) = (file, out, &stopped) {
        file.finish()?;
        summary.written_to = Some(out.display().to_string());
    }
    match stopped {
        Ok(()) => Ok(Ran::Capture(summary)),
        Err(CaptureStop::Run {
            packet,
            error: RunError::Trap(place),
        }) => Ok(Ran::Trap {
            packet: Some(packet),
            error: RunError::Trap(place),
        }),
        Err(CaptureStop::Capture(error)) => Err(unreadable(path, error)),
        Err(stop) => Err(Failure::new(stop).within(name)),
    }
}

/// The format of a name that ends in `.pcap` or `.pcapng`, else that of the input.
pub(crate) fn output_format(input: &mut Input, path: &Path, out: &Path) -> Result<Format, Failure> {
    let suffix = out.extension().and_then(|suffix| suffix.to_str());
    match (suffix, input.format()) {
        (Some("pcapng"), _) => Ok(Format::Pcapng),
        (Some("pcap"), Format::Pcapng) => {
            let first = input.first_interface();
            let first = first.map_err(|error| unreadable(path, error))?;
            Format::pcap_of(first.as_slice()).map_err(Failure::new)
        }
        (_, format) => Ok(format),
    }
}

/// The file that packets are written to. It gets its name when it is complete: until then
/// it has another, and an unfinished one is removed.
pub(crate) struct OutputFile {
    path: PathBuf,
    /// Its name until it is complete; `None` for what is no regular file.
    unfinished: Option<PathBuf>,
    pub(crate) writer: BufWriter<File>,
}

impl OutputFile {
    /// Creates the output, which must not be the input.
    pub(crate) fn create(path: &Path, out: &Path) -> Result<OutputFile, Failure> {
        if out == Path::new("-") {
            let failure = Failure::new("-w -: standard output holds the results");
            return Err(failure.hint("the name of a file"));
        }
        let id = |path: &Path| {
            let data = fs::metadata(path).ok()?;
            Some((data.dev(), data.ino()))
        };
        if id(out).is_some_and(|of_out| id(path) == Some(of_out)) {
            let name = out.display();
            return Err(Failure::new(format_args!(
                "{name}: output is also the input"
            )));
        }
        let is_special = fs::metadata(out).is_ok_and(|data| !data.is_file());
        let unfinished = out.file_name().filter(|_| !is_special).map(|name| {
            let mut name = name.to_owned();
            name.push(format!(".{}.part", std::process::id()));
            out.with_file_name(name)
        });
        let file = File::create(unfinished.as_deref().unwrap_or(out));
        let file = file.map_err(|error| Failure::of_file(out, &error))?;
        Ok(OutputFile {
            path: out.to_owned(),
            unfinished,
            writer: BufWriter::new(file),
        })
    }

    /// Gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.writer.flush();
        let finished = flushed.and_then(|()| match &self.unfinished {
            Some(unfinished) => fs::rename(unfinished, &self.path),
            None => Ok(()),
        });
        finished.map_err(|error| Failure::of_file(&self.path, &error))?;
        self.unfinished = None;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // It may be gone already; there is nothing else to do about it.
            let _ = fs::remove_file(unfinished);
        }
    }
}

pub(crate) fn unreadable(path: &Path, error: CaptureError) -> Failure {
    let name = path.display();
    match &error {
        CaptureError::Io { source, .. } => Failure::of_file(path, source),
        CaptureError::Fault(Fault {
            problem: Problem::UnknownFormat { .. },
            ..
        }) => Failure::new(format_args!("{name}: {error}"))
            .hint("captures are pcap or pcapng files; --packet takes the bytes of one packet"),
        CaptureError::Fault(_) => Failure::new(format_args!("{name}: {error}")),
    }
}
