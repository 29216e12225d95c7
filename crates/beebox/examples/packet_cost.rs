//! Measures the time per packet of the three ways to run a program: the repeated test run, a
//! runner's loop, and a runner called for each packet, and of a copy of the packet, which a runner
//! makes. They take turns; the ratios are those of the least times of the rounds, which other load
//! of the machine does not change.

use std::hint::black_box;
use std::time::{Duration, Instant};

use beebox::{Error, Loader, Object, Program, TestRun};

/// Packets of one measurement: less than a processor is given to another process.
const PACKETS: u32 = 10_000;

/// Rounds of measurements.
const ROUNDS: usize = 300;

/// Nanoseconds per packet of `test_run` with `repeat`, `run_each` and `run`, and of a copy.
fn costs(program: &Program, packet: &[u8]) -> Result<[f64; 4], Error> {
    let nanoseconds = |time: Duration| time.as_nanos() as f64 / f64::from(PACKETS);
    let start = Instant::now();
    program.test_run(&TestRun::packet(packet).repeat(PACKETS))?;
    let repeated = nanoseconds(start.elapsed());

    let mut runner = program.runner();
    let (mut passed, start) = (0, Instant::now());
    let all = std::iter::repeat_n(packet, PACKETS as usize);
    runner.run_each(all, |result, _| {
        passed += u64::from(result.verdict.passes())
    })?;
    let each = nanoseconds(start.elapsed());

    let start = Instant::now();
    for _ in 0..PACKETS {
        passed += u64::from(runner.run(packet)?.verdict.passes());
    }
    let run = nanoseconds(start.elapsed());
    black_box(passed);

    let (mut buffer, start) = (packet.to_vec(), Instant::now());
    for _ in 0..PACKETS {
        black_box(&mut buffer).copy_from_slice(black_box(packet));
    }
    Ok([repeated, each, run, nanoseconds(start.elapsed())])
}

/// The least and the median of some numbers.
fn least_and_median(numbers: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    [numbers[0], numbers[numbers.len() / 2]]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, name, len) = match &arguments[..] {
        [path, name] => (path, name, 64),
        [path, name, len] => (path, name, len.parse()?),
        _ => return Err("usage: packet_cost OBJECT PROGRAM [BYTES]".into()),
    };
    let instance = Loader::default().load(&Object::open(path)?)?;
    let (program, packet) = (instance.program(name)?, vec![0; len]);
    costs(&program, &packet)?;
    let rounds = (0..ROUNDS).map(|_| costs(&program, &packet));
    let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
    println!("{ROUNDS} rounds of {PACKETS} packets of {len} bytes: least, median");
    for (at, way) in ["repeat", "run_each", "run", "copy"]
        .into_iter()
        .enumerate()
    {
        let [least, median] = least_and_median(rounds.iter().map(|round| round[at]));
        let ratio = least / least_and_median(rounds.iter().map(|round| round[0]))[0];
        println!("{way:8} {least:6.1} {median:6.1} ns, {ratio:.2} of repeat");
    }
    Ok(())
}
