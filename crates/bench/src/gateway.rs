//! `bench gateway`: the access-control gateway on generated rules and traffic, as native code
//! of Beebox, in the kernel, and beside native code of the same algorithm.
//!
//! Packets are frames in memory, which the program of XDP gets one after the other. To compare
//! with the kernel both run `replay`, which copies the next frame over the packet.

mod first_set;
mod matchers;
mod plane;
mod rules;
mod traffic;

use std::time::Instant;

use ::gateway::Compiled;

use crate::race::{Race, timed};
use crate::report::{Report, Target, Unit};
use crate::{Bench, Failure, Options, Progress};
use matchers::{Bitmaps, Linear};
use plane::{KernelProgram, Ours, failed};
use traffic::{ORDER, Traffic};

/// The benchmark.
pub(crate) const BENCH: Bench = Bench {
    name: "gateway",
    about: "the access-control gateway beside the kernel and native code",
    workloads: || SETS.iter().map(|set| set.0).chain([FIRST_SET]).collect(),
    sample,
    rest,
    part: |_| None,
};

/// Sets of rules by key.
const SETS: [(&str, usize); 5] = [
    ("16", 16),
    ("256", 256),
    ("4096", 4096),
    ("10000", 10_000),
    ("65536", 65_536),
];

/// Key of the search for the first set bit.
const FIRST_SET: &str = "ffs";

const BEEBOX: &str = "beebox";
const REPLAY: &str = "beebox, replay";
const KERNEL: &str = "kernel, replay";
const BITMAPS: &str = "native bitmaps";
const LINEAR: &str = "native, rule by rule";

/// Packets that native code matches rule by rule, and its samples: each takes long.
const LINEAR_PACKETS: usize = 256;
const LINEAR_SAMPLES: u32 = 5;

fn sample(options: &Options) -> Result<Report, Failure> {
    let samples = if options.quick { 10 } else { 40 };
    let mut report = Report {
        baselines: [KERNEL].map(String::from).to_vec(),
        columns: [KERNEL, REPLAY, BEEBOX, BITMAPS, LINEAR]
            .map(String::from)
            .to_vec(),
        ..Report::default()
    };
    for (key, count) in SETS {
        let is_chosen = options.only.as_ref().is_none_or(|only| only == key);
        if is_chosen && (count <= 10_000 || !options.quick) {
            measure(count, samples, &mut report)?;
        }
    }
    add_figures(&mut report);
    if options.only.as_ref().is_none_or(|only| only == FIRST_SET) {
        let runs = if options.quick { 1_000_000 } else { 10_000_000 };
        first_set::measure(runs, &mut report)?;
    }
    Ok(report)
}

fn measure(count: usize, samples: u32, report: &mut Report) -> Result<(), Failure> {
    let set = rules::generate(count, 7);
    let start = Instant::now();
    let compiled = Compiled::new(&set).map_err(failed)?;
    let seconds = start.elapsed().as_secs_f64();
    describe(count, &compiled, seconds, report);
    let table = compiled.table();
    let ours = Ours::load(&plane::program("gateway_xdp", table)?, table)?;
    let program = plane::program("replay", table)?;
    let replay = Ours::load(&program, table)?;
    let theirs = KernelProgram::load(&program, table);
    if let Err(failure) = &theirs {
        report
            .notes
            .push(format!("{count} rules: no kernel: {failure}"));
    }
    let linear = Linear::new(&set);
    for traffic in traffic::all(&set, table)? {
        let title = format!("{count} rules, {}", traffic.name);
        let mut runner = ours.runner();
        let mut packets: Vec<_> = traffic.frames.iter().map(plane::packet).collect();
        let mut bitmaps = Bitmaps::new(&set, table);
        let frames = &traffic.frames;
        let mut race = Race::new(&*title, &traffic.order);
        race.add(BEEBOX, |at: &u16| {
            runner.run(&mut packets[usize::from(*at)])
        });
        race.add(BITMAPS, |at: &u16| bitmaps.judge(&frames[usize::from(*at)]));
        let mut times = race.run(samples)?;
        let few = &traffic.order[..traffic.order.len().min(LINEAR_PACKETS)];
        let mut race = Race::new(&*title, few);
        race.add(LINEAR, |at: &u16| linear.judge(&frames[usize::from(*at)]));
        times.extend(race.run(samples.min(LINEAR_SAMPLES))?);
        if let Ok(theirs) = &theirs {
            replay.put(&traffic)?;
            theirs.put(&traffic)?;
            times.extend(race_with_kernel(
                &title, &replay, theirs, &traffic, samples,
            )?);
        }
        for (engine, nanoseconds) in times {
            report.add_row(&title, engine, Unit::NsPerRun, nanoseconds);
        }
    }
    Ok(())
}

/// Size and classes of a compiled set.
fn describe(count: usize, compiled: &Compiled, seconds: f64, report: &mut Report) {
    let sizes = compiled.sizes();
    let title = format!("{count} rules");
    report.add_row(format!("{title}: compile"), BEEBOX, Unit::Seconds, seconds);
    let megabytes = sizes.used as f64 / 1e6;
    report.add_row(
        format!("{title}: table"),
        BEEBOX,
        Unit::Megabytes,
        megabytes,
    );
    let [source, destination, protocol, source_port, destination_port] = sizes.classes;
    let cache = match sizes.key_bits {
        Some(bits) => format!("the cache has keys of {bits} bits"),
        None => "there is no cache".to_owned(),
    };
    report.notes.push(format!(
        "{title}: {} classes: {source} of the source address, {destination} of the destination \
         address, {protocol} of the protocol, {source_port} of the source port, \
         {destination_port} of the destination port; {} blocks; {cache}.",
        sizes.classes.iter().sum::<u32>(),
        sizes.blocks,
    ));
}

/// The same program in Beebox and in the kernel, a pass over the order at a time, each behind
/// another one of the same engine that warms the caches: nanoseconds of a run in the fastest pass.
fn race_with_kernel(
    title: &str,
    ours: &Ours,
    theirs: &KernelProgram,
    traffic: &Traffic,
    samples: u32,
) -> Result<[(&'static str, f64); 2], Failure> {
    let mut runner = ours.runner();
    let mut packet = plane::packet(&traffic.frames[0]);
    let mut here = || {
        let mut last = 0;
        let time = timed(|| {
            for _ in 0..ORDER {
                last = runner.run(&mut packet);
            }
        });
        (last, time.as_nanos() as f64 / ORDER as f64)
    };
    let there = || {
        let (last, time) = theirs.run(&traffic.frames[0], ORDER as u32)?;
        Ok::<_, Failure>((last, time.as_nanos() as f64))
    };
    let mut fastest = [f64::MAX; 2];
    for _ in 0..samples {
        here();
        let (result, own) = here();
        there()?;
        let (other, kernel) = there()?;
        if result != other {
            return Err(failed(format!("{title}: {result}, in the kernel {other}")));
        }
        for (fastest, now) in fastest.iter_mut().zip([own, kernel]) {
            *fastest = fastest.min(now);
        }
    }
    Ok([(REPLAY, fastest[0]), (KERNEL, fastest[1])])
}

fn add_figures(report: &mut Report) {
    let ns =
        |report: &Report, workload: &str, engine| report.value(workload, engine, Unit::NsPerRun);
    let target = "10000 rules, Zipf";
    if let Some(own) = ns(report, target, BEEBOX) {
        let meaning = "million packets a second on one core, 10,000 rules, Zipf over 4,096 flows";
        report.add_figure(
            "mpps_10000",
            meaning,
            1e3 / own,
            Some(Target::AtLeast(10.0)),
        );
        if let Some(native) = ns(report, target, BITMAPS) {
            let meaning = "time over that of the same algorithm in native code, 10,000 rules";
            let most = Some(Target::AtMost(1.3));
            report.add_figure("vs_native_bitmap", meaning, own / native, most);
        }
    }
    if let (Some(own), Some(kernel)) = (ns(report, target, REPLAY), ns(report, target, KERNEL)) {
        let meaning = "packets a second over the kernel's on the same object, 10,000 rules";
        report.add_figure(
            "vs_kernel",
            meaning,
            kernel / own,
            Some(Target::AtLeast(1.0)),
        );
    }
    let grown = ns(report, "65536 rules, Zipf", BEEBOX);
    if let (Some(small), Some(large)) = (ns(report, "4096 rules, Zipf", BEEBOX), grown) {
        let meaning = "time at 65,536 rules over that at 4,096";
        let most = Some(Target::AtMost(3.0));
        report.add_figure("growth_4096_65536", meaning, large / small, most);
    }
    if let Some(seconds) = report.value("65536 rules: compile", BEEBOX, Unit::Seconds) {
        let meaning = "seconds to compile 65,536 rules without analyses";
        let most = Some(Target::AtMost(2.0));
        report.add_figure("compile_65536_s", meaning, seconds, most);
    }
}

fn rest(_: &Options, _: &mut Progress<'_>, _: &mut Report) -> Result<(), Failure> {
    Ok(())
}
