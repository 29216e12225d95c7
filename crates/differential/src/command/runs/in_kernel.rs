//! Runs in the running kernel.

use std::thread;

use beebox::internal::program::Program;
use kernel_client::load::{LoadRequest, load};
use spec::maps::MapKind;
use spec::programs::ProgramType;
use sys::Errno;
use sys::bpf::{Map, TestRun};
use sys::network::pin_to_cpu;

use super::Runs;
use super::compare::{Left, MapLeft, Returned};
use super::inputs::RunInput;

/// Most bytes that a test run returns.
const MOST_DATA: usize = 64 << 10;

/// Runs of the kernel elsewhere.
const REPETITIONS: u32 = 6;

/// Results of the runs in other threads, on the other CPU in turn: with another stack, other
/// memory and other random numbers.
pub(super) fn run_elsewhere(program: &Program, inputs: &[RunInput]) -> Vec<Runs> {
    let run_on = |cpu| {
        let run = move || {
            // Without that CPU it runs on this one.
            let _ = pin_to_cpu(cpu);
            run(program, inputs)
        };
        thread::scope(|scope| scope.spawn(run).join().ok().flatten())
    };
    (0..REPETITIONS)
        .filter_map(|at| run_on((at + 1) % 2))
        .collect()
}

/// Results of the runs; `None` if the kernel refuses the program or does not test-run it.
pub(super) fn run(program: &Program, inputs: &[RunInput]) -> Option<Runs> {
    let request = LoadRequest {
        log_level: 0,
        log_size: 0,
    };
    let loaded = load(program, request).ok()?;
    let tested = loaded.answer.result.ok()?;
    let defs = program.maps().iter().zip(&loaded.maps);
    let maps = defs.filter_map(|(def, map)| Some((&*def.name, def.kind()?, map.as_ref()?)));
    let maps: Vec<_> = maps.collect();
    let kind = program.kind();
    let has_data = !matches!(
        kind,
        ProgramType::Syscall
            | ProgramType::SkLookup
            | ProgramType::RawTracepoint
            | ProgramType::RawTracepointWritable
    );
    let runs = inputs.iter().map(|input| {
        let result = match kind {
            ProgramType::Syscall => {
                let mut context = input.context.clone();
                let retval = tested.run_syscall(&mut context);
                retval.map(|retval| Returned {
                    retval,
                    data: Vec::new(),
                    context,
                })
            }
            _ => {
                let mut data = vec![0; if has_data { MOST_DATA } else { 0 }];
                let request = TestRun {
                    context: &input.context,
                    // The other types take no number of runs.
                    repeat: u32::from(has_data),
                    ..TestRun::on(&input.data)
                };
                let returned = tested.test_run(&request, &mut data, &mut []);
                returned.map(|returned| {
                    data.truncate(returned.data_len);
                    Returned {
                        retval: returned.retval,
                        data,
                        context: Vec::new(),
                    }
                })
            }
        };
        Left {
            result: result.map_err(|Errno(errno)| errno),
            maps: maps
                .iter()
                .map(|(name, kind, map)| left(name, *kind, map))
                .collect(),
        }
    });
    let runs: Runs = runs.collect();
    let is_not_run = |left: &Left| left.result == Err(524);
    (!runs.iter().all(is_not_run)).then_some(runs)
}

fn left(name: &str, kind: MapKind, map: &Map) -> MapLeft {
    let mut entries = std::collections::BTreeMap::new();
    let mut last: Option<Vec<u8>> = None;
    let result = loop {
        if super::ours::is_left_out(kind) {
            break Ok(());
        }
        match map.next_key(last.as_deref()) {
            Ok(Some(key)) => {
                let mut value = vec![0; map.value_len()];
                if map.lookup(&key, &mut value).is_ok() {
                    entries.insert(key.clone(), value);
                }
                last = Some(key);
            }
            Ok(None) => break Ok(()),
            Err(Errno(errno)) => break Err(errno),
        }
    };
    MapLeft {
        name: name.to_owned(),
        entries: result.map(|()| entries),
    }
}
