//! The cost of deadline checks: `cargo test -p beebox-jit --release --test it
//! deadline_cost:: -- --nocapture`.

#![cfg(target_arch = "x86_64")]

use std::time::{Duration, Instant};

use beebox_jit::memory::Pool;
use beebox_jit::{Features, Native, Options};
use isa::ebpf::assemble;
use lower::{Lowered, MemoryProgram};
use spec::SplitMix;
use vm::{Deadline, Machine, Outcome, Unchecked};

const LEN: usize = 1 << 16;
/// Number of runs; the shortest time counts.
const RUNS: u32 = 300;

fn compile(pool: &Pool, text: &str, deadline: bool) -> Native<MemoryProgram> {
    // SAFETY: the programs below read the memory that they are handed, whose
    // length is a multiple of 64, and end.
    let trusted = unsafe { Unchecked::assume_safe(assemble(text).unwrap()) };
    let options = Options {
        features: Features::detect(),
        deadline,
        ..Options::default()
    };
    Native::compile(&Lowered::from_unchecked(trusted).unwrap(), &options, pool).unwrap()
}

fn timed(run: impl FnOnce() -> Outcome) -> (Outcome, f64) {
    let start = Instant::now();
    let outcome = run();
    (outcome, start.elapsed().as_nanos() as f64)
}

#[test]
fn deadline_checks_change_no_result() {
    let sum = "r0 = 0\nr2 += r1\n\
        again: r3 = *(u64 *)(r1 + 0)\nr0 += r3\nr1 += 8\nif r1 < r2 goto again\nexit";
    let copy = "r0 = 0\nr2 += r1\n\
        again: r3 = *(u64 *)(r1 + 0)\nr3 ^= r0\n*(u64 *)(r1 + 0) = r3\nr1 += 8\n\
        if r1 < r2 goto again\nr0 = r3\nexit";
    let checksum = "r0 = 0\nr2 += r1\n\
        again: r3 = *(u16 *)(r1 + 0)\nw0 += w3\nr1 += 2\nif r1 < r2 goto again\n\
        w3 = w0\nw3 >>= 16\nw0 &= 65535\nw0 += w3\nexit";
    let unrolled = format!(
        "r0 = 0\nr2 += r1\nagain: {}r1 += 64\nif r1 < r2 goto again\nexit",
        (0..8)
            .map(|word| format!("r3 = *(u64 *)(r1 + {})\nr0 += r3\n", 8 * word))
            .collect::<String>()
    );
    let calls = "r6 = r1\nr7 = r1\nr7 += r2\nr8 = 0\n\
        again: r1 = r6\ncall f\nr8 += r0\nr6 += 8\nif r6 < r7 goto again\nr0 = r8\nexit\n\
        f: r0 = *(u64 *)(r1 + 0)\nr0 ^= 1\nexit";
    let loops = [
        ("sum of words", sum, LEN / 8),
        ("change of words", copy, LEN / 8),
        ("checksum", checksum, LEN / 2),
        ("sum of eight words per iteration", &unrolled, LEN / 64),
        ("a call a round", calls, LEN / 8),
    ];
    let pool = Pool::new();
    let mut memory: Vec<u8> = (0..LEN).map(|at| (at * at / 7) as u8).collect();
    println!("ns per iteration: without checks, with checks and no deadline, with a deadline");
    for (name, text, rounds) in loops {
        let plain = compile(&pool, text, false);
        let checked = compile(&pool, text, true);
        let far = Deadline::at(Instant::now() + Duration::from_secs(3600));
        let machine = &mut Machine::new();
        let random = &mut SplitMix::new(0);
        let mut best = [f64::INFINITY; 3];
        for _ in 0..RUNS {
            let before = memory.clone();
            let runs = [0, 1, 2].map(|kind| {
                memory.copy_from_slice(&before);
                timed(|| match kind {
                    0 => plain.run(machine, &mut memory, random),
                    1 => checked.run(machine, &mut memory, random),
                    _ => checked.run_until(machine, &mut memory, random, far),
                })
            });
            assert_eq!([runs[1].0, runs[2].0], [runs[0].0; 2], "{name}");
            for (best, run) in best.iter_mut().zip(runs) {
                *best = best.min(run.1);
            }
        }
        let [plain, checked, until] = best.map(|ns| ns / rounds as f64);
        println!("{name:28} {plain:6.3} {checked:6.3} {until:6.3}");
    }
}
