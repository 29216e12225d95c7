//! The record of a run beside the instructions that the checked engine executed, and its verdict
//! beside that of native code, for every packet of the sample capture and every example.

use std::path::Path;

use ::kernel::maps::RunGuard;
use btf::{Kind, Shape};
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
            let recording = program.attached.watchers.recording.take().unwrap();
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

/// The value that a program of the kernel's selftests declares to return.
fn declared_result(object: &Object<'_>, name: &str) -> Option<u32> {
    let types = object.btf()?;
    let function = types.find(Kind::Func, name)?;
    let mut tags = types.of_kind(Kind::DeclTag).filter(|ty| match ty.shape() {
        Shape::DeclTag(tag) => tag.target == function.id() && tag.component == -1,
        _ => false,
    });
    tags.find_map(|tag| {
        let text = tag.name().to_string_lossy().into_owned();
        let (_, value) = text.split_once("test_retval=")?;
        value.parse::<i64>().ok().map(|value| value as u32)
    })
}

/// Runs a program with a record and without: what it returned, if Linux loads it. Results are equal,
/// and the record has each instruction.
fn recorded_result(
    object: &mut Object<'_>,
    (name, debug): (&str, Option<&Debug>),
    kernel: &Kernel,
) -> Option<u32> {
    object.set_autoload(|program| program.name == *name);
    let load = || LoadedObject::load(object, kernel, &LoadOptions::default()).ok();
    let (plain, recorded) = (load()?, load()?);
    let (mut plain, mut program) = (plain.program_of(name)?, recorded.program_of(name)?);
    let packet = if takes_packet(program.kind()) {
        &[0; 64][..]
    } else {
        &[]
    };
    program.record(kernel, debug);
    let result = program.test_run(packet).ok()?;
    assert_eq!(result.retval, plain.test_run(packet).ok()?.retval, "{name}");
    let recording = program.attached.watchers.recording.take().unwrap();
    let run = recording.recorded.as_ref().unwrap();
    // Those of timers are not among the instructions of the program.
    assert!(run.instructions <= recording.insns.len() as u64, "{name}");
    if run.left_out == 0 {
        assert_eq!(steps(run, &program), recording.insns, "{name}");
    }
    Some(result.retval)
}

#[test]
#[ignore = "asks the built selftests of the kernel"]
fn records_of_selftests_have_each_instruction_and_the_declared_result() {
    let what = "records of runs beside the kernel's selftests";
    let Some(objects) = oracle::found(what, oracle::selftest_set("7.2/obj-v3")) else {
        return;
    };
    let kernel = kernel_data::linux_6_18();
    let entries = std::fs::read_dir(objects).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "o"));
    paths.sort();
    let (mut equal, mut others) = (0, Vec::new());
    for path in paths {
        let file = std::fs::read(&path).unwrap();
        let Ok(mut object) = Object::open(&file) else {
            continue;
        };
        let programs = object.programs();
        let runs = programs.filter(|(_, it)| it.kind.is_some_and(super::super::can_test_run));
        let names = runs.map(|(_, program)| program.name.to_string());
        let declared = names.filter_map(|name| Some((declared_result(&object, &name)?, name)));
        let declared: Vec<(u32, String)> = declared.collect();
        if declared.is_empty() {
            continue;
        }
        let debug = Debug::read(&file);
        for (expected, name) in declared {
            let Some(result) = recorded_result(&mut object, (&name, debug.as_ref()), &kernel)
            else {
                continue;
            };
            match result == expected {
                true => equal += 1,
                false => others.push(format!("{}: {name}", path.display())),
            }
        }
    }
    assert!(equal >= 300, "{equal} programs");
    // Tests prepare some programs from user space, which nothing does here.
    assert!(20 * others.len() < equal, "{others:#?}");
}

#[test]
fn functions_of_timers_are_recorded_beside_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/data/tour.bpf.o");
    let file = std::fs::read(path).unwrap();
    let (debug, kernel) = (Debug::read(&file), kernel_data::linux_6_18());
    let object = Object::open(&file).unwrap();
    let loaded = LoadedObject::load(&object, &kernel, &LoadOptions::default()).unwrap();
    let mut program = loaded.program_of("tour").unwrap();
    program.record(&kernel, debug.as_ref());
    program.count_executed(true);
    let retval = program.test_run(&[0; 64]).unwrap().retval;
    assert_eq!(retval, 2);
    let mut recording = program.attached.watchers.recording.take().unwrap();
    let run = recording.recorded.take().unwrap();
    assert_eq!(steps(&run, &program), recording.insns);
    assert_eq!(Some(run.instructions), program.executed());
    // The timer fires behind the program.
    let names: Vec<String> = run
        .visits
        .iter()
        .map(|visit| {
            let of = &program.shared.programs[visit.program as usize].program;
            of.subprog_at(visit.function).unwrap().name.clone()
        })
        .collect();
    assert_eq!(names.last().unwrap(), "tick");
    assert_eq!(names[run.last.unwrap()], "last");
    assert!(run.instructions < recording.insns.len() as u64);
}
