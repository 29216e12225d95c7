//! Counts of every engine beside those of a trace of the checked engine: each instruction and both ways of
//! each conditional jump, of every example on packets of the sample capture.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ::kernel::maps::RunGuard;
use capture::Event;
use isa::ebpf::Insn;
use object::Object;
use spec::Kernel;

use super::super::capture::frame_time;
use super::super::{LoadOptions, LoadedObject, RunnableProgram, can_test_run, takes_packet};
use crate::Engine;
use crate::internal::captures::Input;

/// Executions of instructions, and of jumps with where they went on, from traces.
#[derive(Default)]
struct Trace {
    insns: HashMap<(u32, u32), u64>,
    edges: HashMap<(u32, u32, u32), u64>,
}

impl Trace {
    fn add(&mut self, executed: &[(u32, u32)]) {
        for insn in executed {
            *self.insns.entry(*insn).or_default() += 1;
        }
        for pair in executed.windows(2) {
            let ((program, from), (_, to)) = (pair[0], pair[1]);
            *self.edges.entry((program, from, to)).or_default() += 1;
        }
    }
}

/// Packets that each program runs on.
const PACKETS: usize = 60;

/// Calls a function with the packets of the sample capture, until it is false.
fn each_packet(mut run: impl FnMut(&[u8], u64) -> bool) {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap");
    let mut input = Input::open_path(&sample).unwrap();
    let mut packets = 0;
    while packets < PACKETS
        && let Some(event) = input.next_event().unwrap()
    {
        if let Event::Packet(record) = event {
            packets += 1;
            if !run(record.data(), frame_time(&record).unwrap()) {
                return;
            }
        }
    }
}

/// Compares the counts of a program's object with a trace; how many instructions were executed.
fn compare(loaded: &LoadedObject, trace: &Trace, place: &str) -> u64 {
    let mut executed = 0;
    for (number, prepared) in (0..).zip(&loaded.shared.programs) {
        let counts = prepared.counts.as_ref().unwrap().counts(&prepared.program);
        let insns = prepared.program.decode();
        for (slot, insn) in (0..).zip(&insns) {
            if matches!(insn, Insn::Imm64High) {
                continue;
            }
            let expected = trace.insns.get(&(number, slot)).copied().unwrap_or(0);
            let got = counts.insns[slot as usize];
            assert_eq!(
                got, expected,
                "{place}, program {number}, instruction {slot}"
            );
            executed += got;
        }
        for (slot, count) in counts.branches {
            let Insn::Jump { off, .. } = insns[slot] else {
                panic!("{place}: no jump at {slot}");
            };
            let slot = slot as u32;
            let edge = |to: u32| trace.edges.get(&(number, slot, to)).copied().unwrap_or(0);
            let target = (slot + 1).wrapping_add_signed(off.into());
            let place = format!("{place}, program {number}, jump {slot}");
            assert_eq!(count.jumped.unwrap_or(0), edge(target), "{place}");
            assert_eq!(count.fell.unwrap_or(0), edge(slot + 1), "{place}");
        }
    }
    executed
}

/// Compares the programs of an object; how many instructions they executed, `None` if it does not load.
fn check(path: &Path, kernel: &Kernel) -> Option<u64> {
    let file = std::fs::read(path).unwrap();
    let mut object = Object::open(&file).ok()?;
    let kinds = object.programs();
    let names: Vec<String> = kinds
        .filter(|(_, program)| (program.kind).is_some_and(takes_packet))
        .map(|(_, program)| program.name.to_string())
        .collect();
    object.set_autoload(|program| program.kind.is_some_and(can_test_run));
    let load = |engine, counts| {
        let options = LoadOptions {
            engine,
            counts,
            ..LoadOptions::default()
        };
        let mut loaded = LoadedObject::load(&object, kernel, &options).ok()?;
        loaded.open_perf_buffers(1 << 20).ok()?;
        Some(loaded)
    };
    let mut executed = 0;
    for name in names {
        let traced = load(Engine::Checked, false)?;
        let mut program = traced.program_of(&name)?;
        program.collect_records(true);
        let mut trace = Trace::default();
        let mut results = Vec::new();
        let run = |program: &mut RunnableProgram<'_>, frame: &[u8], time| {
            let result = program.run_captured(frame, time, &mut RunGuard::new());
            program.records();
            result.ok()
        };
        each_packet(|frame, time| {
            program.record(kernel, None);
            let result = run(&mut program, frame, time);
            trace.add(&program.attached.watchers.recording.take().unwrap().insns);
            results.push(result);
            result.is_some()
        });
        let mut coverages = Vec::new();
        for engine in [Engine::Checked, Engine::Interp, Engine::Native] {
            let counted = load(engine, true)?;
            let mut program = counted.program_of(&name)?;
            program.collect_records(true);
            let mut expected = results.iter();
            each_packet(|frame, time| {
                let result = run(&mut program, frame, time);
                assert_eq!(Some(&result), expected.next(), "{}: {name}", path.display());
                result.is_some()
            });
            let place = format!("{}: {name}, {engine:?}", path.display());
            executed += compare(&counted, &trace, &place);
            coverages.push(counted.coverage());
        }
        assert!(
            coverages.windows(2).all(|pair| pair[0] == pair[1]),
            "{name}"
        );
    }
    Some(executed)
}

#[test]
fn counts_are_those_of_a_trace_in_every_engine() {
    let kernel = kernel_data::linux_6_18();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        "examples/packets",
        "examples/why",
        "examples/traffic",
        "crates/cli/tests/data",
        "crates/beebox/tests/run",
    ];
    let (mut executed, mut objects) = (0, 0);
    for folder in folders {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = files
            .filter(|path| path.to_string_lossy().ends_with(".bpf.o"))
            // What it finds depends on the addresses of the engine.
            .filter(|path| !path.ends_with("search.bpf.o"))
            // Whether half of an address is zero depends on the machine.
            .filter(|path| cfg!(target_pointer_width = "64") || !path.ends_with("pointers.bpf.o"))
            // It runs ten million instructions on each packet.
            .filter(|path| !path.ends_with("spin.bpf.o"))
            .collect();
        files.sort();
        for path in files {
            let found = check(&path, &kernel);
            objects += u32::from(found.is_some_and(|executed| executed > 0));
            executed += found.unwrap_or(0);
        }
    }
    assert!(objects >= 15, "{objects} objects");
    assert!(executed > 500_000, "{executed} instructions");
}
