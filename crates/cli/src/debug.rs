//! `beebox debug`: a program of an object under a debugger.

use std::io::{self, BufReader, IsTerminal, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox::internal::captures::Input;
use beebox::internal::object::Object;
use beebox::internal::raw::Limits;
use beebox::internal::run::debug::{
    DebugError, DebugInput, DebugSetup, interact, refuse_launch, serve,
};
use beebox::internal::run::{
    Debug, LoadError, LoadOptions, LoadedObject, RunCaptureError, RunClock, RunnableProgram,
    leave_out_struct_ops, load_only,
};

use crate::answer::{Answer, Failure, note};
use crate::input::read_source;
use crate::kernel_input::{FOR_VERIFYING, KernelArgs, note_assumed, note_rules};
use crate::limits::frames;
use crate::object_input::ObjectFile;
use crate::run::choice::choose;
use crate::run::inputs::RunInputs;
use crate::run::maps_file::{MapsFile, contents};
use crate::run::refused::Loading;
use crate::run::{RunFormat, change_as_told, fill, opened};
use crate::stdout::written;

/// Debug a program of an object, forward and back
///
/// The program is loaded and run as by `beebox run`, in the checked engine, and stops where it is told:
/// at lines, functions, helpers, accesses of maps, verdicts, conditions and writes. It goes back as well
/// as on. Without --dap and --listen commands come from the terminal; `help` lists them.
#[derive(clap::Args)]
#[command(after_help = "\
A SOURCE of bytes is a file, or bytes in hexadecimal (\"01 02\", 0x0102), or zero:N
for N zero bytes; hex: and file: before it say which one is meant. That of a packet may
be words, as 'proto tcp from 192.0.2.1 port 4000 to 198.51.100.7 port 443 flags syn'.

Examples:
  beebox debug edge.bpf.o --pcap in.pcap --from 17
  beebox debug edge.bpf.o --pcap in.pcap --execute 'b XDP_DROP' --execute c --execute 'who port'
  beebox debug edge.bpf.o --pcap in.pcap --dap
  beebox debug edge.bpf.o --pcap in.pcap --listen 127.0.0.1:4711

Exit codes: 0 the session ended, 2 it could not begin or go on.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: RunInputs,

    /// Begin with packet N of the capture [default: 1]: the program runs on those before it, too
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    from: Option<u64>,

    /// Speak the Debug Adapter Protocol on standard input and output, for editors
    #[arg(long, conflicts_with_all = ["execute", "listen"])]
    dap: bool,

    /// Speak the Debug Adapter Protocol with one editor that connects to this address, as 127.0.0.1:4711
    #[arg(long, value_name = "ADDRESS", conflicts_with = "execute")]
    listen: Option<String>,

    /// A command of the debugger, before those of the terminal; may be given several times
    #[arg(long, value_name = "COMMAND")]
    execute: Vec<String>,

    /// Most instructions of the run on a packet [default: 100000000]
    #[arg(long, value_name = "N")]
    budget: Option<u64>,

    /// Most stack frames at once [default: 8]
    #[arg(long, value_name = "N", value_parser = frames)]
    frames: Option<usize>,

    #[command(flatten)]
    kernel: KernelArgs,
}

/// Where a session is held.
enum Held {
    Terminal,
    Standard,
    Socket(TcpListener),
}

pub(crate) fn run(args: &Args) -> Result<Answer, Failure> {
    let held = match &args.listen {
        None if args.dap => Held::Standard,
        None => Held::Terminal,
        Some(address) => Held::Socket(TcpListener::bind(address).map_err(|error| {
            Failure::new(format_args!("--listen {address}: {error}"))
                .hint("an address of this machine and a free port, as 127.0.0.1:4711")
        })?),
    };
    match session(args, &held) {
        Err(failure) if args.dap => {
            refuse_launch(failure.what(), io::stdin(), io::stdout());
            Err(failure)
        }
        done => done,
    }
}

/// Loads the object and holds a session.
fn session(args: &Args, held: &Held) -> Result<Answer, Failure> {
    let file = ObjectFile::read(&args.inputs.file)?;
    let name = crate::input::name(file.path());
    if !file.is_object() {
        let failure = Failure::new(format_args!("{name}: this file is not a BPF object"));
        return Err(failure.hint("an object (*.bpf.o) as FILE, --pcap for a capture"));
    }
    let kernel = args.kernel.read()?;
    note_assumed(&kernel, FOR_VERIFYING, "verified");
    let kernel = match args.inputs.cpus {
        Some(cpus) if cpus <= args.inputs.cpu => {
            let failure = Failure::new(format_args!("--cpus {cpus} is too few for --cpu"));
            return Err(failure.hint(format_args!("--cpus {} or more", args.inputs.cpu + 1)));
        }
        Some(cpus) => kernel.with_cpus(cpus, beebox::internal::kernel::Source::Given),
        None => kernel,
    };
    note_rules(&kernel);
    let loading = args.inputs.loading.read()?;
    let mut object = opened(&file, &loading)?;
    change_as_told(&mut object, &loading, &args.inputs.changes, &name)?;
    let system = args.inputs.network()?;
    let filling = args.inputs.filling()?;
    let program = choose(&object, &args.inputs.given()).map_err(|failure| failure.within(&name))?;
    choose_programs(&mut object, &program, filling.as_ref());
    let options = LoadOptions {
        unverified: args.inputs.unverified,
        timeout: Some(LoadOptions::DEFAULT_TIMEOUT),
        memory: args.inputs.map_memory,
        cpu: args.inputs.cpu,
        seed: args.inputs.seed,
        explains: false,
        watches_stack: true,
        ..LoadOptions::default()
    };
    let load = || {
        let mut loaded = LoadedObject::load(&object, &kernel, &options)
            .map_err(|error| Failure::new(error).within(&name))?;
        if let Some(system) = &system {
            loaded.set_system(system.clone());
        }
        let records = (&[][..], &args.inputs.user_records[..]);
        fill(&mut loaded, &object, filling.as_ref(), records, &name)?;
        Ok::<_, Failure>(loaded)
    };
    // What is refused is said as by `run`, before a session begins.
    match LoadedObject::load(&object, &kernel, &options) {
        Ok(_) => drop(load()?),
        Err(error @ LoadError::Refused { .. }) => {
            let hint = format!("beebox verify {name} --prog {program} --explain; or --unverified");
            return Err(Failure::new(error).within(&name).hint(hint));
        }
        Err(error) => {
            let loading = Loading {
                name: &name,
                object: &object,
                changes: &args.inputs.changes,
                kernel: &kernel,
                format: RunFormat::Text,
            };
            return Err(loading.failure(error));
        }
    }
    let clock = match args.inputs.time {
        Some(time) => RunClock::Fixed(time),
        None => RunClock::Capture,
    };
    let limits = Limits {
        instructions: args.budget.unwrap_or(Limits::default().instructions),
        frames: args.frames.unwrap_or(Limits::default().frames),
        ..Limits::default()
    };
    let set_up = |program: &mut RunnableProgram<'_>| {
        program.set_limits(limits);
        program.set_clock(clock);
        program.collect_records(true);
        if let Some(ifindex) = args.inputs.ifindex {
            program.set_ifindex(ifindex);
        }
    };
    let capture = args.inputs.pcap.as_deref().map(Capture::open).transpose()?;
    let again = || capture.as_ref().expect("a capture is given").again();
    let input = match capture {
        Some(_) => DebugInput::Capture(&again),
        None => DebugInput::TestRun {
            packet: args.inputs.packet()?.unwrap_or_default(),
            context: args.inputs.ctx.as_ref().map(read_source).transpose()?,
        },
    };
    let debug = Debug::read(file.bytes());
    if debug.is_none() {
        note(format_args!(
            "{name}: without debug information of clang -g local variables have no names"
        ));
    }
    let setup = DebugSetup {
        load: &|| load().map_err(|failure| failure.what().to_owned()),
        set_up: &set_up,
        program: &program,
        input,
        first_packet: args.from.unwrap_or(1),
        kernel: &kernel,
        debug: debug.as_ref(),
        folder: args.inputs.file.parent().unwrap_or(Path::new("")),
    };
    let done = match held {
        Held::Terminal => {
            let has_prompt = io::stdin().is_terminal();
            let input = BufReader::new(io::stdin());
            interact(
                &setup,
                args.execute.clone(),
                input,
                io::stdout(),
                has_prompt,
            )
        }
        Held::Standard => serve(&setup, io::stdin(), io::stdout()),
        Held::Socket(listener) => {
            let address = listener.local_addr().map_err(socket_failure)?;
            note(format_args!("an editor may connect to {address}"));
            let (socket, _) = listener.accept().map_err(socket_failure)?;
            let reader = socket.try_clone().map_err(socket_failure)?;
            serve(&setup, reader, socket)
        }
    };
    match done {
        Ok(()) => Ok(Answer::Yes),
        Err(DebugError::Output(error)) => written(Err(error)).map(|()| Answer::Yes),
        Err(error @ DebugError::Fewer(_)) => {
            Err(Failure::new(error).hint("--from N with a packet of the capture"))
        }
        Err(error) => Err(Failure::new(error)),
    }
}

fn socket_failure(error: io::Error) -> Failure {
    Failure::new(format_args!("--listen: {error}"))
}

/// Has the program loaded, and those that it may go on with.
fn choose_programs(object: &mut Object<'_>, program: &str, filling: Option<&MapsFile>) {
    load_only(object, vec![program.to_owned()], contents(filling));
    leave_out_struct_ops(object);
}

/// A capture that is read again and again.
enum Capture {
    File(PathBuf),
    /// Standard input, which can be read once.
    Bytes(Arc<[u8]>),
}

impl Capture {
    fn open(path: &Path) -> Result<Capture, Failure> {
        if path != Path::new("-") {
            // Says what is wrong with it.
            crate::capture_file::open(path, true)?;
            return Ok(Capture::File(path.to_owned()));
        }
        let mut bytes = Vec::new();
        let most = beebox::internal::MOST_BYTES;
        let read = io::stdin().take(most).read_to_end(&mut bytes);
        read.map_err(|error| Failure::new(format_args!("standard input: {error}")))?;
        Ok(Capture::Bytes(bytes.into()))
    }

    fn again(&self) -> Result<Input, RunCaptureError> {
        let input = match self {
            Capture::File(path) => Input::try_open_path(path),
            Capture::Bytes(bytes) => Input::try_stream(io::Cursor::new(bytes.clone())),
        };
        input.map_err(RunCaptureError::Capture)
    }
}
