//! An object with an arena in the checked engine and in the running kernel: results, the pages
//! that programs leave, and how the host reads and writes them.

use crate::support::file;
use beebox::Engine;
use beebox::internal::object::Object;
use beebox::internal::run::{LoadOptions, LoadedObject, Stream};
use kernel_client::arena::{pages, read_pages};
use kernel_client::object::ObjectInKernel;
use spec::SplitMix;

const OBJECT: &str = "tests/run/arena.bpf.o";
const WHAT: &str = "test runs of the kernel";

fn load() -> (LoadedObject, Option<ObjectInKernel>) {
    let bytes = std::fs::read(file(OBJECT)).expect("a committed object");
    let object = Object::open(&bytes).expect("an object");
    // Calls have the BTF ids of the kernel that the program is for.
    let running = kernel_client::running_kernel().map_err(|error| error.to_string());
    let theirs = running.and_then(|running| {
        let linked = object.link(&running).map_err(|error| error.to_string())?;
        ObjectInKernel::load(linked.programs.iter().map(|linked| &linked.program))
    });
    let theirs = oracle::found(WHAT, theirs);
    let kernel = kernel_data::linux_6_18_minimal();
    let loaded = LoadedObject::load(&object, &kernel, &LoadOptions::default());
    (loaded.unwrap_or_else(|error| panic!("{error}")), theirs)
}

fn run(loaded: &mut LoadedObject, name: &str, value: u64) -> u32 {
    let mut program = loaded.program(name).expect(name);
    assert_eq!(program.engine(), Engine::Checked, "{name}");
    let run = program.test_run_with_context(&[], Some(&value.to_le_bytes()), 1);
    run.unwrap_or_else(|error| panic!("{name}: {error}")).retval
}

#[oracle::test]
fn results_and_pages_are_those_of_the_kernel() {
    let (mut loaded, theirs) = load();
    let mut random = SplitMix::new(3);
    for round in 0..600 {
        let (name, value) = match random.next_u64() % 60 {
            0..6 => ("sum", 0),
            6 if round > 100 => ("drop", random.next_u64() % 4),
            _ => ("push", random.next_u64() % 1000),
        };
        let ours = run(&mut loaded, name, value);
        if let Some(theirs) = &theirs {
            let program = theirs.program(name).expect(name);
            let kernels = program.run_syscall(&mut value.to_le_bytes());
            assert_eq!(kernels, Ok(ours), "run {round}: {name} of {value}");
        }
    }
    let arena = loaded.arena("arena").expect("the arena");
    let ours = arena
        .pages()
        .filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0));
    let ours: Vec<_> = ours
        .map(|(address, bytes)| (address - arena.start(), bytes))
        .collect();
    assert!(ours.len() >= 2, "{} pages", ours.len());
    if let Some(theirs) = &theirs {
        let params = loaded.map("arena").expect("the arena").params();
        assert_eq!(read_pages(params).count(), 64);
        let map = theirs.map("arena").expect("the arena");
        assert_eq!(pages(map, params), Ok(ours));
    }
}

#[oracle::test]
fn the_host_reads_and_writes_variables_and_pages() {
    let (mut loaded, _) = load();
    assert_eq!(loaded.global::<u64>("count"), Ok(5));
    assert_eq!(
        loaded.global::<[u64; 16]>("buckets").unwrap()[..4],
        [1, 2, 3, 0]
    );
    assert_eq!(run(&mut loaded, "push", 18), 6);
    loaded.set_global("count", &70u64).unwrap();
    assert_eq!(run(&mut loaded, "push", 2), 71);
    assert_eq!(loaded.global::<[u64; 16]>("buckets").unwrap()[2], 5);
    // The list begins with a node of two numbers: the next node, and 2.
    let head: u64 = loaded.global("head").unwrap();
    let arena = loaded.arena("arena").unwrap();
    let mut node = [0; 16];
    arena.read_as_user(head, &mut node).unwrap();
    assert_eq!(u64::from_le_bytes(node[..8].try_into().unwrap()), head - 16);
    assert_eq!(node[8], 2);
    arena.write_as_user(head + 8, &[9]).unwrap();
    assert_eq!(run(&mut loaded, "sum", 0), 9 * 31 + 18);
    assert!(loaded.arena("nothing").is_none());
}

#[oracle::test]
fn reports_of_faults_are_in_the_standard_error() {
    let (mut loaded, _) = load();
    loaded.set_global("head", &0x7f00_3c02_f008u64).unwrap();
    run(&mut loaded, "sum", 0);
    let text = loaded.take_stream("sum", Stream::Error).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "ERROR: Arena READ access at unmapped address 0x7f003c02f010",
            "ERROR: Arena READ access at unmapped address 0x7f003c02f008",
        ]
    );
}
