//! The record of a run beside the instructions that the checked engine executed, and its verdict
//! beside that of native code, for every packet of the sample capture and every example.

use std::path::Path;

use ::kernel::maps::RunGuard;
use capture::Event;
use isa::ebpf::Insn;
use object::Object;
use spec::Kernel;
use trace::{Run, dwarf::Debug};

use super::super::capture::frame_time;
use super::super::{LoadOptions, LoadedObject, RunnableProgram, takes_packet};
use crate::internal::captures::Input;

/// Number of a program and slot of each instruction that a record has.
fn steps(run: &Run, program: &RunnableProgram<'_>) -> Vec<(u32, u32)> {
    let mut steps = Vec::new();
    for visit in &run.visits {
        let insns = program.shared.programs[visit.program as usize]
            .program
            .decode();
        let slots = visit.spans.iter().flat_map(|(first, last)| *first..=*last);
        let executed = slots.filter(|slot| !matches!(insns[*slot as usize], Insn::Imm64High));
        steps.extend(executed.map(|slot| (visit.program, slot)));
    }
    steps
}

fn check(path: &Path, kernel: &Kernel) -> usize {
    let file = std::fs::read(path).unwrap();
    let debug = Debug::read(&file);
    let mut object = Object::open(&file).unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap");
    let names: Vec<String> = object
        .programs()
        .filter(|(_, program)| {
            program
                .kind
                .is_some_and(|kind| takes_packet(kind) && super::super::can_test_run(kind))
        })
        .map(|(_, program)| program.name.to_string())
        .collect();
    object.set_autoload(|program| program.kind.is_some_and(super::super::can_test_run));
    let load = || {
        let mut loaded = LoadedObject::load(&object, kernel, &LoadOptions::default()).unwrap();
        loaded.open_perf_buffers(1 << 20).unwrap();
        loaded
    };
    let mut lines = 0;
    for name in names {
        let (native, recorded) = (load(), load());
        let mut native = native.program_of(&name).unwrap();
        let mut program = recorded.program_of(&name).unwrap();
        native.collect_records(true);
        program.collect_records(true);
        let mut input = Input::open_path(&sample).unwrap();
        let mut packet = 0;
        while let Some(event) = input.next_event().unwrap() {
            let Event::Packet(record) = event else {
                continue;
            };
            packet += 1;
            let place = format!("{}: {name} on packet {packet}", path.display());
            let time = frame_time(&record).unwrap();
            let expected = native.run_captured(record.data(), time, &mut RunGuard::new());
            let kept = native
                .captured()
                .unwrap()
                .kept_frame(usize::MAX)
                .into_owned();
            program.record(kernel, debug.as_ref());
            let verdict = program.run_captured(record.data(), time, &mut RunGuard::new());
            assert_eq!(verdict, expected, "{place}");
            let left = program
                .captured()
                .unwrap()
                .kept_frame(usize::MAX)
                .into_owned();
            assert_eq!(left, kept, "{place}");
            assert_eq!(program.records(), native.records(), "{place}");
            let recording = program.recording.take().unwrap();
            let run = recording.recorded.as_ref().unwrap();
            assert_eq!(steps(run, &program), recording.insns, "{place}");
            assert_eq!(run.instructions, recording.insns.len() as u64, "{place}");
            lines += run.visits.len();
        }
    }
    lines
}

#[test]
fn records_have_each_instruction_that_the_checked_engine_executed() {
    let kernel = kernel_data::linux_6_18();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut lines = 0;
    for folder in ["packets", "why"] {
        let mut objects: Vec<_> = std::fs::read_dir(examples.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "o"))
            .collect();
        objects.sort();
        assert!(!objects.is_empty());
        lines += objects
            .iter()
            .map(|path| check(path, &kernel))
            .sum::<usize>();
    }
    assert!(lines > 10_000, "{lines}");
}
