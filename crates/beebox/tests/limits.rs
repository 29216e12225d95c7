//! Limits of runs: the entries that LRU maps keep, the memory that maps take, the time of a run.

use std::time::{Duration, Instant};

use crate::support::{ENGINES, file, native_code};
use beebox::internal::object::Object;
use beebox::internal::run::{LoadError, LoadOptions, LoadedObject, RunError, TestRunOutput};
use spec::kernel::Source;

fn load(name: &str, cpus: u32, options: &LoadOptions) -> Result<LoadedObject, LoadError> {
    let bytes = std::fs::read(file("tests/run/limits.bpf.o")).expect("a committed object");
    let mut object = Object::open(&bytes).expect("an object");
    object.set_autoload(|program| program.name == name);
    let kernel = kernel_data::linux_6_18().with_cpus(cpus, Source::Given);
    LoadedObject::load(&object, &kernel, options)
}

/// Runs a program on a packet from an interface.
fn run(loaded: &mut LoadedObject, name: &str, ifindex: u32) -> Result<TestRunOutput, RunError> {
    let mut program = loaded.program(name).expect("it is loaded");
    program.set_ifindex(ifindex);
    program.test_run(&[0; 64])
}

#[oracle::test]
fn lru_maps_evict_by_the_cpus_of_the_kernel() {
    for engine in ENGINES {
        let options = LoadOptions {
            engine,
            ..LoadOptions::default()
        };
        let kept = |cpus| {
            let mut loaded = load("evict", cpus, &options).expect("it loads");
            run(&mut loaded, "evict", 1).expect("it runs").retval
        };
        // The kernel's answers on machines with so many CPUs.
        assert_eq!([1, 2, 4, 8].map(kept), [131, 195, 227, 243], "{engine:?}");
    }
}

#[oracle::test]
fn a_run_ends_whose_maps_need_more_memory_than_they_may_take() {
    // The table of so large a map takes 128 MB as soon as entries are all over it.
    const LIMIT: u64 = (128 + 32) << 20;
    for engine in ENGINES {
        let options = LoadOptions {
            engine,
            memory: LIMIT,
            ..LoadOptions::default()
        };
        let mut loaded = load("grow", 2, &options).expect("it loads");
        assert!(run(&mut loaded, "grow", 4_000).is_ok(), "{engine:?}");
        let stopped = run(&mut loaded, "grow", 16_000).expect_err("it needs 64 MB more");
        assert_eq!(stopped, RunError::Memory(LIMIT), "{engine:?}");
        assert!(stopped.to_string().contains("167772160 bytes"), "{stopped}");
        let entries = loaded.maps().find(|map| map.def.name == "growing");
        let entries = entries.expect("its map").entries().expect("they are read");
        // An entry takes its value, its key and a few bytes; elements to replace others count too.
        assert!((7_200..8_192).contains(&entries.len()), "{}", entries.len());
    }
}

#[oracle::test]
fn the_limit_of_memory_is_named_if_time_ends_the_run_behind_it() {
    const LIMIT: u64 = (128 + 32) << 20;
    let options = LoadOptions {
        memory: LIMIT,
        timeout: Some(Duration::from_secs(1)),
        ..LoadOptions::default()
    };
    let mut loaded = load("grow", 2, &options).expect("it loads");
    let stopped = run(&mut loaded, "grow", 1 << 23);
    assert_eq!(stopped, Err(RunError::Memory(LIMIT)));
}

#[oracle::test]
fn arrays_count_from_the_start_and_variables_do_not() {
    let options = LoadOptions::default();
    let refused = load("array", 2, &options).expect_err("it has 4 GB");
    let limit = LoadOptions::DEFAULT_MEMORY;
    let map = "wide".to_owned();
    assert_eq!(refused, LoadError::Memory { map, limit });
    let start = Instant::now();
    let mut loaded = load("variables", 2, &options).expect("it loads");
    assert_eq!(run(&mut loaded, "variables", 3).expect("it runs").retval, 2);
    // Writing all of them would take longer, and memory that a machine may lack.
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
}

#[oracle::test]
fn runs_of_native_code_have_a_limit_of_time() {
    if !native_code("the limit of time of native code") {
        return;
    }
    let options = LoadOptions {
        timeout: Some(Duration::from_millis(50)),
        ..LoadOptions::default()
    };
    let mut loaded = load("endless", 2, &options).expect("it loads");
    let stopped = run(&mut loaded, "endless", 1).expect_err("it takes days");
    assert_eq!(stopped, RunError::TooLong(Duration::from_millis(50)));
    assert!(stopped.to_string().contains("50ms"), "{stopped}");
    assert_eq!(
        LoadOptions::default().timeout,
        Some(Duration::from_secs(10))
    );
}
