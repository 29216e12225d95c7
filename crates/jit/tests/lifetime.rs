//! Lifetime of native code with several threads: it is mapped while it is borrowed, and
//! unmapped afterwards. One test, because it inspects the whole process.

#![cfg(target_arch = "x86_64")]

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, RwLock};
use std::thread;

use beebox_jit::memory::Pool;
use beebox_jit::{Features, Native, Options};
use isa::ebpf::assemble;
use lower::{Lowered, MemoryProgram};
use spec::SplitMix;
use vm::{Machine, Outcome, Unchecked};

/// A program that iterates `rounds` times and returns that plus `value`.
fn compile(pool: &Pool, rounds: u32, value: u32) -> Native<MemoryProgram> {
    let source = format!(
        "r0 = {value} ll\nr3 = {rounds} ll\nagain: r0 += 1\nr3 += -1\nif r3 != 0 goto again\nexit"
    );
    let insns = assemble(&source).unwrap();
    // SAFETY: it accesses no memory, calls nothing, and ends.
    let program = unsafe { Unchecked::assume_safe(insns) };
    let program = Lowered::from_unchecked(program).unwrap();
    let options = Options {
        features: Features::detect(),
        ..Options::default()
    };
    Native::compile(&program, &options, pool).unwrap()
}

fn run(native: &Native<MemoryProgram>) -> u64 {
    match native.run(&mut Machine::new(), &mut [], &mut SplitMix::new(0)) {
        Outcome::Returned(value) => value,
        other => panic!("{other:?}"),
    }
}

/// True if an address is mapped executable.
fn is_code(address: u64) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let number = |digits| u64::from_str_radix(digits, 16).unwrap();
        (number(start)..number(end)).contains(&address) && rest.as_bytes()[2] == b'x'
    })
}

#[test]
fn code_is_mapped_while_it_is_used() {
    a_dropped_program_lives_on_in_its_run();
    programs_come_and_go_under_running_threads();
}

fn a_dropped_program_lives_on_in_its_run() {
    let pool = Pool::new();
    let ours = Arc::new(compile(&pool, 400_000_000, 5));
    let address = ours.address();
    let started = Barrier::new(2);
    thread::scope(|scope| {
        let theirs = Arc::clone(&ours);
        let started = &started;
        let running = scope.spawn(move || {
            started.wait();
            run(&theirs)
        });
        started.wait();
        drop(ours);
        drop(pool);
        assert!(is_code(address));
        assert_eq!(running.join().unwrap(), 400_000_005);
    });
    assert!(!is_code(address));
}

fn programs_come_and_go_under_running_threads() {
    const SHELF: usize = 16;
    let pool = Pool::new();
    let shelf: Vec<RwLock<(u32, Arc<Native<MemoryProgram>>)>> = (0..SHELF as u32)
        .map(|value| RwLock::new((value, Arc::new(compile(&pool, 3, value)))))
        .collect();
    let done = AtomicBool::new(false);
    let runs = AtomicU64::new(0);
    let mut addresses = Vec::new();
    thread::scope(|scope| {
        for seed in 0..4 {
            let (shelf, done, runs) = (&shelf, &done, &runs);
            scope.spawn(move || {
                let mut random = SplitMix::new(seed);
                while !done.load(Relaxed) {
                    let place = random.next_u64() as usize % SHELF;
                    let (value, native) = shelf[place].read().unwrap().clone();
                    // The thread that compiled it may drop it now.
                    assert_eq!(run(&native), u64::from(value) + 3);
                    runs.fetch_add(1, Relaxed);
                }
            });
        }
        let makers: Vec<_> = (4..6)
            .map(|seed| {
                let (shelf, pool) = (&shelf, pool.clone());
                scope.spawn(move || {
                    let mut random = SplitMix::new(seed);
                    let mut addresses = Vec::new();
                    for _ in 0..2000 {
                        let draw = random.next_u64();
                        let value = (draw >> 32) as u32;
                        let native = Arc::new(compile(&pool, 3, value));
                        addresses.push(native.address());
                        let old = {
                            let mut place = shelf[draw as usize % SHELF].write().unwrap();
                            std::mem::replace(&mut *place, (value, native))
                        };
                        drop(old);
                    }
                    addresses
                })
            })
            .collect();
        for maker in makers {
            addresses.extend(maker.join().unwrap());
        }
        done.store(true, Relaxed);
    });
    assert!(runs.into_inner() > 1000);
    // Freed memory is reused: so many programs share few pages.
    let mut pages: Vec<u64> = addresses.iter().map(|address| address / 4096).collect();
    pages.sort_unstable();
    pages.dedup();
    assert!(
        pages.len() <= 4,
        "{} programs on {} pages",
        addresses.len(),
        pages.len()
    );
    drop((shelf, pool));
    assert!(
        addresses
            .iter()
            .step_by(100)
            .all(|&address| !is_code(address))
    );
}
