//! Measures the time per packet of the three ways to run a program: the repeated test run, a
//! runner's loop, and a runner called for each packet.

use std::time::{Duration, Instant};

use beebox::{Error, Loader, Object, TestRun};

/// Nanoseconds per packet of `test_run` with `repeat`, `run_each` and `run`.
fn costs(path: &str, name: &str, packets: u32) -> Result<[f64; 3], Error> {
    let instance = Loader::default().load(&Object::open(path)?)?;
    let program = instance.program(name)?;
    let packet = [0; 64];
    let nanoseconds = |time: Duration| time.as_nanos() as f64;
    let test_run = || program.test_run(&TestRun::packet(&packet).repeat(packets));
    let repeated = nanoseconds(test_run()?.duration);

    let mut runner = program.runner();
    let (mut passed, start) = (0, Instant::now());
    let all = std::iter::repeat_n(&packet, packets as usize);
    runner.run_each(all, |result, _| {
        passed += u64::from(result.verdict.passes())
    })?;
    let each = nanoseconds(start.elapsed()) / f64::from(packets);

    let start = Instant::now();
    for _ in 0..packets {
        passed += u64::from(runner.run(&packet)?.verdict.passes());
    }
    std::hint::black_box(passed);
    Ok([
        repeated,
        each,
        nanoseconds(start.elapsed()) / f64::from(packets),
    ])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("usage: packet_cost OBJECT PROGRAM".into());
    };
    for _ in 0..5 {
        let [repeated, each, run] = costs(&path, &name, 1_000_000)?;
        println!(
            "repeat {repeated:.1} ns, run_each {each:.1} ns ({:.2}), run {run:.1} ns ({:.2})",
            each / repeated,
            run / repeated
        );
    }
    Ok(())
}
