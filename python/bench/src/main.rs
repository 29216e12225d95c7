//! Nanoseconds of a test run and of a packet of a batch by the Rust library, for
//! `python/bench/throughput`: the least of several rounds, as it measures them too.

use std::time::Instant;

use beebox::MapsJson;
use beebox::{Error, Loader, Object, TestRun};

/// Rounds, of which the fastest counts.
const ROUNDS: u32 = 60;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut word = || {
        words
            .next()
            .ok_or("usage: beebox-python-bench OBJECT RULES PROGRAM COUNT HEX")
    };
    let (path, rules) = (word()?, word()?);
    let (name, count, hex) = (word()?, word()?, word()?);
    let count: usize = count.parse()?;
    let digits = hex.as_bytes().chunks_exact(2);
    let digits = digits.map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16));
    let packet: Vec<u8> = digits.collect::<Result<_, _>>()?;
    let object = Object::open(path)?;
    let instance = Loader::default().load(&object)?;
    instance.fill_maps(&object, &MapsJson::open(&rules)?)?;
    let program = instance.program(&name)?;
    let packets = vec![packet.clone(); count];

    let single = fastest(count, || {
        let run = TestRun::packet(&packet);
        (0..count).try_for_each(|_| program.test_run(&run).map(|_| ()))
    })?;
    let mut retvals = Vec::with_capacity(count);
    let batch = fastest(count, || {
        retvals.clear();
        let mut runner = program.runner();
        runner.run_each(&packets, |result, _| retvals.push(result.retval))
    })?;
    println!("{single:.1} {batch:.1}");
    Ok(())
}

/// Nanoseconds of one of so many steps, in the fastest round.
fn fastest(steps: usize, mut round: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round()?;
        least = least.min(start.elapsed().as_nanos() as f64 / steps as f64);
    }
    Ok(least)
}
