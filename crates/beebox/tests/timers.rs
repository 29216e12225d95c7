//! Timers: operations on them as native code, in the checked engine and in the running kernel;
//! their order and their times over packets.

use std::thread;
use std::time::{Duration, Instant};

use crate::support::{ENGINES, file};
use beebox::Engine;
use beebox::internal::object::Object;
use beebox::internal::raw::System;
use beebox::internal::run::{LoadOptions, LoadedObject, RunClock, RunError, SplitMix};
use kernel_client::load::{LoadRequest, load};
use spec::Random;
use sys::bpf::{LoadedProgram, Map, TestRun};

const OBJECT: &str = "tests/run/timers.bpf.o";

/// Ethernet and IPv4 headers.
const HEADERS: usize = 34;

/// An hour in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

fn packet(behind: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; HEADERS];
    packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    packet.extend(behind);
    packet
}

fn loaded(name: &str, engine: Engine) -> LoadedObject {
    let bytes = std::fs::read(file(OBJECT)).expect("a committed object");
    let mut object = Object::open(&bytes).expect("an object");
    object.set_autoload(|program| program.name == name);
    let options = LoadOptions {
        engine,
        ..LoadOptions::default()
    };
    let loaded = LoadedObject::load(&object, &kernel_data::linux_6_18_minimal(), &options);
    let mut loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
    let program = loaded.program(name).expect("it is loaded");
    assert_eq!(program.engine(), engine, "{:?}", program.fallback_reason());
    loaded
}

/// The program in the kernel, with its maps; `None` where none can be asked.
fn in_kernel(name: &str) -> Option<(LoadedProgram, Vec<Map>)> {
    let bytes = std::fs::read(file(OBJECT)).expect("a committed object");
    let mut object = Object::open(&bytes).expect("an object");
    object.set_autoload(|program| program.name == name);
    let linked = object
        .link(&kernel_data::linux_6_18_minimal())
        .expect("it links");
    let request = LoadRequest {
        log_level: 0,
        log_size: 0,
    };
    let loaded = load(&linked.programs[0].program, request).map_err(|fault| format!("{fault:?}"));
    let loaded = oracle::found("timers of the kernel", loaded)?;
    match loaded.answer.result {
        Ok(program) => Some((program, loaded.maps.into_iter().flatten().collect())),
        Err(errno) => {
            oracle::skip("timers of the kernel", errno);
            None
        }
    }
}

/// A random operation: operation, map, key and callback, time and flags.
fn command(random: &mut SplitMix) -> ([u32; 4], [u64; 2]) {
    let mut below = |most: u32| random.next_u32() % most;
    // Deletions and cancellations are rarer, so that timers live long enough.
    let operation = match below(16) {
        0..4 => 0,
        4..7 => 1,
        7..12 => 2,
        12 => 3,
        13 => 4,
        14 => 5,
        _ => 3,
    };
    let (map, key, callback) = (below(3), below(4), below(3));
    let pick = |choices: &[u64], number: u32| choices[number as usize % choices.len()];
    let number = below(1 << 20);
    let [time, flags] = match operation {
        // CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME, and wrong clocks.
        0 => [0, pick(&[0, 1, 7, 1, 2, 3, 11, 16, 17, 1 << 32], number)],
        2 => match below(3) {
            0 => [
                pick(&[0, 1, 1000], number),
                pick(&[0, 2, 0, 4, 8], below(5)),
            ],
            1 => [pick(&[HOUR, 1 << 62, u64::MAX, 1 << 63], number), 0],
            _ => [
                // Not a time before the clock's start: Linux waits for another timer before
                // it fires.
                pick(&[1, 0, 1000, 1 << 62, i64::MAX as u64], number),
                pick(&[1, 3, 1, 5], below(4)),
            ],
        },
        // BPF_ANY, BPF_NOEXIST, BPF_EXIST and wrong flags.
        4 => [number.into(), pick(&[0, 0, 1, 2, 3, 4], below(6))],
        _ => [0, 0],
    };
    ([operation, map, key, callback], [time, flags])
}

/// All entries of a map of the kernel, sorted.
fn entries(map: &Map) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    let mut last: Option<Vec<u8>> = None;
    while let Some(key) = map.next_key(last.as_deref()).expect("a map with keys") {
        let mut value = vec![0; map.value_len()];
        map.lookup(&key, &mut value).expect("an entry");
        entries.push((key.clone(), value));
        last = Some(key);
    }
    entries.sort();
    entries
}

#[oracle::test]
fn operations_on_timers_do_what_they_do_in_the_kernel() {
    let Some((theirs, maps)) = in_kernel("operate") else {
        return;
    };
    let mut engines = ENGINES.map(|engine| loaded("operate", engine));
    let mut random = SplitMix::new(16);
    let mut now = 1_000_000_000_000;
    let mut results = std::collections::BTreeMap::<u32, u32>::new();
    for round in 0..2000 {
        let (numbers, times) = command(&mut random);
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(times.iter().flat_map(|word| word.to_le_bytes()));
        let packet = packet(&bytes);
        let about = format!("round {round}: {numbers:?} {times:x?}");
        let request = TestRun {
            repeat: 1,
            ..TestRun::on(&packet)
        };
        let run = || {
            theirs
                .test_run(&request, &mut [0; 256], &mut [])
                .expect(&about)
        };
        let mut answer = run();
        // Memory for a timer may be short for a moment (ENOMEM).
        while answer.retval == -12i32 as u32 {
            thread::sleep(Duration::from_millis(1));
            answer = run();
        }
        *results.entry(answer.retval).or_default() += 1;
        now += 1_000_000;
        for ours in &mut engines {
            // A clock of days, as the kernel's.
            ours.set_system(System {
                tai_offset: 1_700_000_000_000_000_000,
                ..System::default()
            });
            let mut program = ours.program("operate").expect("it is loaded");
            program.set_clock(RunClock::Fixed(now - 500_000));
            let run = program.test_run(&packet).expect(&about);
            program.set_clock(RunClock::Fixed(now));
            program.run_timers().expect(&about);
            assert_eq!(run.retval, answer.retval, "{about}");
            for (ours, theirs) in ours.maps().zip(&maps) {
                let name = &ours.def.name;
                let mut own = ours.entries().expect(name);
                own.sort();
                // The kernel's timers fire when it comes to them.
                let began = Instant::now();
                while entries(theirs) != own && began.elapsed() < Duration::from_secs(5) {
                    thread::sleep(Duration::from_millis(1));
                }
                assert_eq!(own, entries(theirs), "{about}: {name}");
            }
        }
    }
    // Each of 0, 1, EBUSY, EINVAL, ENOENT and EEXIST came.
    for errno in [
        0,
        -1i32 as u32 & 1,
        -16i32 as u32,
        -22i32 as u32,
        -2i32 as u32,
        -17i32 as u32,
    ] {
        assert!(results.contains_key(&errno), "{results:?}");
    }
}

/// Calls of the timer in the first element of the array, and the time of the last.
fn calls(object: &LoadedObject) -> (u64, u64) {
    let array = object.map("array").expect("it is used");
    let mut value = [0; 40];
    array.lookup(&[0; 4], &mut value, 0).expect("an element");
    let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().expect("8 bytes"));
    (word(0), word(32))
}

#[oracle::test]
fn callbacks_run_between_runs_at_their_times() {
    for engine in ENGINES {
        let mut object = loaded("trace", engine);
        let mut behind = vec![0; 6];
        behind.extend(2000u64.to_le_bytes());
        let packet = packet(&behind);
        let mut program = object.program("trace").expect("it is loaded");
        program.set_clock(RunClock::Fixed(100));
        let run = program.test_run(&packet).expect("it runs");
        assert_eq!(run.printk.texts, ["start 100"]);
        // Nothing is due, then the first time, then three more, each at its own.
        for (time, expected) in [(2099, (0, 0)), (2100, (1, 2100)), (9999, (4, 5100))] {
            let mut program = object.program("trace").expect("it is loaded");
            program.set_clock(RunClock::Fixed(time));
            program.run_timers().expect("they end");
            assert_eq!(calls(&object), expected, "{engine:?} at {time}");
        }
    }
}

#[oracle::test]
fn timers_that_never_end_are_an_error() {
    for engine in ENGINES {
        let mut object = loaded("forever", engine);
        let mut program = object.program("forever").expect("it is loaded");
        program.set_clock(RunClock::Fixed(100));
        let error = program
            .test_run(&packet(&[0; 14]))
            .expect_err("it does not end");
        assert_eq!(error, RunError::Timers(1 << 20), "{engine:?}");
    }
}
