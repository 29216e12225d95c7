//! Reads of stack memory that a program never wrote: reported by the checked engine when a run
//! makes one, of native code as possible; programs that write what they read stay silent.

use std::path::{Path, PathBuf};

use crate::support::{file, native_code};
use beebox::Engine;
use beebox::internal::object::Object;
use beebox::internal::run::{LoadOptions, LoadedObject, UnwrittenRead};
use verifier::Proof;

const OBJECT: &str = "tests/run/unwritten.bpf.o";

/// The programs of which each run without a context makes such a read.
const READING: [&str; 9] = [
    "direct", "half", "padding", "record", "probe", "text", "callee", "callback", "entered",
];

fn load(engine: Engine) -> LoadedObject {
    let bytes = std::fs::read(file(OBJECT)).expect("a committed object");
    let object = Object::open(&bytes).expect("an object");
    let options = LoadOptions {
        engine,
        ..LoadOptions::default()
    };
    let loaded = LoadedObject::load(&object, &kernel_data::linux_6_18(), &options);
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a program on a packet with a mark and a priority.
fn run(loaded: &mut LoadedObject, name: &str, mark: u32, priority: u32) {
    let mut context = vec![0; 192];
    context[8..12].copy_from_slice(&mark.to_le_bytes());
    context[32..36].copy_from_slice(&priority.to_le_bytes());
    let mut program = loaded.program(name).expect(name);
    let run = program.test_run_with_context(&[0; 64], Some(&context), 1);
    assert_eq!(run.expect(name).retval, 1, "{name}");
}

fn names(reads: &[UnwrittenRead]) -> Vec<&str> {
    reads.iter().map(|read| read.program.as_str()).collect()
}

#[oracle::test]
fn the_checked_engine_notices_each_way_of_reading() {
    for name in READING {
        let mut loaded = load(Engine::Checked);
        assert_eq!(loaded.unwritten_stack_reads(), []);
        run(&mut loaded, name, 0, 0);
        let reads = loaded.unwritten_stack_reads();
        assert_eq!(names(&reads), [name]);
        let (path, line, _) = reads[0].line.as_ref().expect("a line");
        assert!(
            path.ends_with("unwritten.bpf.c") && *line > 0,
            "{name}: {path}"
        );
        assert!(reads[0].is_certain, "{name}");
    }
    let mut loaded = load(Engine::Checked);
    run(&mut loaded, "direct", 0, 0);
    let text = loaded.unwritten_stack_reads()[0].to_string();
    let expected = "direct: not comparable with Linux: instruction 0 (./unwritten.bpf.c:58) reads \
                    stack memory that the program never wrote";
    assert_eq!(text, expected);
}

#[oracle::test]
fn only_reads_that_happen_are_noticed() {
    // What is written at a variable offset, or on some paths.
    for (name, mark, priority, is_read) in [
        ("indexed", 3, 3, false),
        ("indexed", 3, 4, true),
        ("pruned", 0, 0, false),
        ("pruned", 4, 1, false),
        ("pruned", 0, 1, true),
        ("written", 0, 0, false),
        ("written", 1, 1, false),
    ] {
        let mut loaded = load(Engine::Checked);
        run(&mut loaded, name, mark, priority);
        let reads = loaded.unwritten_stack_reads();
        assert_eq!(
            !reads.is_empty(),
            is_read,
            "{name} {mark} {priority}: {reads:?}"
        );
    }
}

#[oracle::test]
fn a_program_that_a_tail_call_enters_is_named() {
    let mut loaded = load(Engine::Checked);
    loaded
        .set_tail_call("programs", 0, Some("entered"))
        .expect("it takes it");
    run(&mut loaded, "enters", 0, 0);
    assert_eq!(names(&loaded.unwritten_stack_reads()), ["entered"]);
}

#[oracle::test]
fn native_code_may_read_what_its_proof_names() {
    if !native_code("reads of native code by its proof") {
        return;
    }
    let loaded = load(Engine::Native);
    let reads = loaded.unwritten_stack_reads();
    let mut found = names(&reads);
    found.sort_unstable();
    let mut expected = [&READING[..], &["indexed", "pruned"]].concat();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(reads.iter().all(|read| !read.is_certain));
    assert!(
        reads[0]
            .to_string()
            .contains("may not be comparable with Linux")
    );
}

#[oracle::test]
fn programs_without_verification_are_watched() {
    let bytes = std::fs::read(file(OBJECT)).expect("a committed object");
    let object = Object::open(&bytes).expect("an object");
    let options = LoadOptions {
        unverified: true,
        ..LoadOptions::default()
    };
    let loaded = LoadedObject::load(&object, &kernel_data::linux_6_18(), &options);
    let mut loaded = loaded.expect("it loads");
    run(&mut loaded, "written", 1, 0);
    assert_eq!(loaded.unwritten_stack_reads(), []);
    run(&mut loaded, "half", 0, 0);
    assert_eq!(names(&loaded.unwritten_stack_reads()), ["half"]);
}

/// Objects below a directory.
fn objects(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            objects(&path, found);
        } else if path.to_string_lossy().ends_with(".bpf.o") {
            found.push(path);
        }
    }
}

#[oracle::test]
fn the_objects_of_the_tree_read_what_they_wrote() {
    let mut paths = Vec::new();
    for directory in ["../../examples", "tests", "../cli/tests/data"] {
        objects(&file(directory), &mut paths);
    }
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("the built-in registry");
    let (mut programs, mut reading) = (0, Vec::new());
    // `values.bpf.o`, also without debug information, has variables that it never writes, and a program of
    // `poison.bpf.o` passes a slot of which it writes a half, on purpose.
    let is_written = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !path.ends_with(OBJECT) && !["values", "poison"].iter().any(|it| name.starts_with(it))
    };
    for path in paths.iter().filter(is_written) {
        let bytes = std::fs::read(path).expect("an object");
        let Ok(object) = Object::open(&bytes) else {
            continue;
        };
        let Ok(linked) = object.link(&kernel) else {
            continue;
        };
        for linked in &linked.programs {
            let Ok(proof) = Proof::of(&linked.program, &kernel, registry) else {
                continue;
            };
            programs += 1;
            if !proof.facts().unwritten_reads.is_empty() {
                let reads = &proof.facts().unwritten_reads;
                reading.push(format!(
                    "{}: {} {reads:?}",
                    path.display(),
                    linked.program.name()
                ));
            }
        }
    }
    assert!(programs > 100, "{programs}");
    assert_eq!(reading, Vec::<String>::new(), "of {programs}");
}
