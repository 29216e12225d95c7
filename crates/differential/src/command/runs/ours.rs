//! Runs in the engines here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use beebox::Engine;
use beebox::internal::program::{InitialContents, MapDef, MapEntry, Program};
use beebox::internal::raw::Limits;
use beebox::internal::run::{LoadError, LoadOptions, LoadedObject, ObjectMap, RunClock, RunError};
use beebox_differential::helpers::own_system;
use spec::maps::MapKind;

use super::Runs;
use super::compare::{Left, MapLeft, Returned};
use super::inputs::RunInput;
use crate::command::verifier::selftests::Target;

/// Setting of a program here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Setting {
    /// Verified, in an engine.
    Verified(Engine),
    /// In the checked engine without having been judged.
    Unverified,
}

/// Nanoseconds since the machine started.
fn uptime() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text
        .split(' ')
        .next()
        .and_then(|seconds| seconds.parse::<f64>().ok());
    (seconds.unwrap_or(0.0) * 1e9) as u64
}

/// Possible CPUs.
fn cpus() -> u32 {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit(['-', ',']).next();
    last.and_then(|last| last.parse::<u32>().ok())
        .map_or(1, |last| last + 1)
}

/// True for maps whose entries are objects of the host.
pub(super) fn is_left_out(kind: MapKind) -> bool {
    kind.is_map_of_maps()
        || matches!(
            kind,
            MapKind::ProgArray
                | MapKind::PerfEventArray
                | MapKind::CgroupArray
                | MapKind::Sockmap
                | MapKind::Sockhash
                | MapKind::Xskmap
                | MapKind::StackTrace
                | MapKind::StructOps
                | MapKind::Arena
        )
}

/// The program with program arrays that are empty: the programs that they hold are not loaded.
pub(super) fn without_programs_in_maps(program: &Program) -> Program {
    let maps = program.maps().iter().map(|def| match &def.contents {
        InitialContents::Entries(entries) => {
            let mut def = MapDef::clone(def);
            let is_map = |entry: &&(u32, MapEntry)| matches!(entry.1, MapEntry::Map(_));
            let kept = entries.iter().filter(is_map).cloned().collect();
            def.contents = InitialContents::Entries(kept);
            Arc::new(def)
        }
        _ => Arc::clone(def),
    });
    let maps: Vec<_> = maps.collect();
    let built = program.to_builder().maps(maps).build();
    built.unwrap_or_else(|_| program.clone())
}

/// Results of the runs in each engine; the reason why the program does not run.
pub(super) fn run_all(
    program: &Program,
    target: &Target,
    inputs: &[RunInput],
) -> Result<(Setting, Vec<(Setting, Runs)>), String> {
    let load = |engine, unverified| {
        let options = LoadOptions {
            engine,
            unverified,
            checks_deadline: true,
            cpus: cpus(),
            ..LoadOptions::default()
        };
        LoadedObject::from_program(program.clone(), &target.kernel, &options)
    };
    let name = program.name();
    let mut loaded = match load(Engine::Native, false) {
        Ok(loaded) => loaded,
        Err(LoadError::Unsupported { why, .. }) => {
            let unverified = load(Engine::Checked, true);
            let mut unverified = unverified.map_err(|error| without_name(&error, name))?;
            let runs = run(&mut unverified, name, inputs, 0);
            let runs = runs.map_err(|error| format!("{error} (unsupported: {why})"))?;
            return Ok((Setting::Unverified, vec![(Setting::Unverified, runs)]));
        }
        Err(error) => return Err(without_name(&error, name)),
    };
    let engine = loaded.program(name).map(|program| program.engine());
    let first = run(&mut loaded, name, inputs, 0)?;
    if engine != Some(Engine::Native) {
        let checked = Setting::Verified(Engine::Checked);
        return Ok((checked, vec![(checked, first)]));
    }
    let mut checked = load(Engine::Checked, false).map_err(|error| error.to_string())?;
    let second = run(&mut checked, name, inputs, 0)?;
    let mut threaded = load(Engine::Interp, false).map_err(|error| error.to_string())?;
    let threaded = run(&mut threaded, name, inputs, 0)?;
    let runs = vec![
        (Setting::Verified(Engine::Native), first),
        (Setting::Verified(Engine::Interp), threaded),
        (Setting::Verified(Engine::Checked), second),
    ];
    Ok((Setting::Verified(Engine::Native), runs))
}

/// Runs of native code at other addresses, with other random numbers.
const REPETITIONS: u64 = 6;

/// Results of the runs if the program runs at other addresses, with other random numbers, and in
/// the checked engine on a stack that has other bytes at first.
pub(super) fn run_elsewhere(program: &Program, target: &Target, inputs: &[RunInput]) -> Vec<Runs> {
    /// Bytes that are no small number and no address.
    const FILL: u8 = 0xa5;
    let run_on = |engine, seed, fill| {
        let options = LoadOptions {
            engine,
            seed,
            cpus: cpus(),
            checks_deadline: true,
            ..LoadOptions::default()
        };
        let loaded = LoadedObject::from_program(program.clone(), &target.kernel, &options);
        run(&mut loaded.ok()?, program.name(), inputs, fill).ok()
    };
    // Blocks of the size of a packet with the room in front of it move the next one.
    let mut held: Vec<Vec<u8>> = Vec::new();
    let natives = (0..REPETITIONS).map(|at| {
        held.extend(inputs.iter().map(|input| vec![0; 64 + input.data.len()]));
        run_on(Engine::Native, at + 1, 0)
    });
    let mut all: Vec<Runs> = natives.flatten().collect();
    all.extend(run_on(Engine::Checked, 0, FILL));
    all
}

fn without_name(error: &LoadError, name: &str) -> String {
    error.to_string().replace(name, "NAME")
}

/// Runs a program on all inputs, in the checked engine on a stack filled with a byte.
fn run(
    object: &mut LoadedObject,
    name: &str,
    inputs: &[RunInput],
    stack_fill: u8,
) -> Result<Runs, String> {
    let mut runs = Runs::new();
    for input in inputs {
        object.set_system(own_system());
        let mut program = object.program(name).ok_or("not loaded")?;
        // The kernel's clock, as far as programs look at it at all.
        let now = uptime();
        program.set_clock(RunClock::Fixed(now));
        program.set_limits(Limits {
            deadline: Some(Instant::now() + Duration::from_secs(10)),
            stack_fill,
            ..Limits::default()
        });
        let context = (!input.context.is_empty()).then_some(&input.context[..]);
        let result = match program.test_run_with_context(&input.data, context, 1) {
            Ok(run) => Ok(Returned {
                retval: run.retval,
                data: run.data_out,
                context: match program.kind() {
                    spec::programs::ProgramType::Syscall => run.ctx_out,
                    _ => Vec::new(),
                },
            }),
            Err(RunError::Size { errno, .. } | RunError::Context { errno, .. }) => Err(errno.0),
            Err(RunError::AttachType(_)) => Err(22),
            Err(error) => return Err(first_line(&error)),
        };
        if let Ok(Returned { .. }) = &result {
            // Timers for at once fire in the kernel before its maps are read.
            program.set_clock(RunClock::Fixed(now + 100_000));
            program.run_timers().map_err(|error| first_line(&error))?;
        }
        let maps = object.maps().map(left).collect();
        runs.push(Left { result, maps });
    }
    Ok(runs)
}

fn first_line(error: &RunError) -> String {
    error
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn left(map: &ObjectMap) -> MapLeft {
    let entries = match is_left_out(map.map.kind()) {
        true => Ok(Vec::new()),
        false => map.entries(),
    };
    MapLeft {
        name: map.def.name.clone(),
        entries: match entries {
            Ok(entries) => Ok(entries.into_iter().collect()),
            Err(errno) => Err(errno.0),
        },
    }
}
