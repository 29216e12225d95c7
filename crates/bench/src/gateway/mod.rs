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

use ::gateway::{Compiled, RuleSet};

use crate::race::Race;
use crate::report::{Report, Target, Unit};
use crate::{Bench, Failure, Options, Progress};
use matchers::{Bitmaps, Linear};
use plane::{Ours, Replay, Theirs, failed};
use traffic::{FLOWS, Frame, ORDER};

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

/// Repetitions of the kernel's test run.
const REPEAT: u32 = 16 * ORDER as u32;

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
    let title = format!("{count} rules");
    let sizes = compiled.sizes();
    report.add_row(format!("{title}: compile"), BEEBOX, Unit::Seconds, seconds);
    report.add_row(
        format!("{title}: table"),
        BEEBOX,
        Unit::Megabytes,
        sizes.used as f64 / 1e6,
    );
    report.notes.push(format!(
        "{title}: classes of source, destination, protocol, source port, destination port: \
         {:?}; {} blocks; cache {}.",
        sizes.classes,
        sizes.blocks,
        if sizes.key_bits.is_some() {
            "on"
        } else {
            "off"
        },
    ));
    let flows = traffic::flows(&set, FLOWS, 11);
    let zipf = traffic::zipf(13);
    let name = |kind: &str| format!("{title}, {kind}");
    race(
        &name("Zipf"),
        &set,
        &compiled,
        &flows,
        &zipf,
        samples,
        report,
    )?;
    replay(&name("Zipf"), &compiled, &flows, &zipf, report)?;
    if count != 10_000 {
        return Ok(());
    }
    // As many flows as packets.
    let many = traffic::flows(&set, ORDER, 17);
    let uniform: Vec<u16> = (0..ORDER as u16).collect();
    race(
        &name("uniform"),
        &set,
        &compiled,
        &many,
        &uniform,
        samples,
        report,
    )?;
    let unmatched = traffic::unmatched(&set, FLOWS, 19);
    race(
        &name("no hit"),
        &set,
        &compiled,
        &unmatched,
        &zipf,
        samples,
        report,
    )?;
    let mut random = spec::SplitMix::new(23);
    for (what, rule) in [("first", 0), ("middle", count / 2), ("last", count - 1)] {
        let flow = [traffic::of_rule(&set, rule, &mut random)];
        let title = name(&format!("one flow of the {what} rule"));
        race(&title, &set, &compiled, &flow, &[0], samples, report)?;
    }
    let title = name("one flow without a rule");
    race(
        &title,
        &set,
        &compiled,
        &unmatched[..1],
        &[0],
        samples,
        report,
    )
}

/// All engines that judge frames in memory.
fn race(
    title: &str,
    set: &RuleSet,
    compiled: &Compiled,
    frames: &[Frame],
    order: &[u16],
    samples: u32,
    report: &mut Report,
) -> Result<(), Failure> {
    let table = compiled.table();
    let program = plane::program("gateway_xdp", table)?;
    let contents = Replay {
        table,
        frames: &[],
        order: &[],
    };
    let ours = Ours::load(&program, &contents)?;
    let mut runner = ours.runner();
    let mut packets: Vec<_> = frames.iter().map(plane::packet).collect();
    let mut bitmaps = Bitmaps::new(set, table);
    let linear = Linear::new(set);
    let mut race = Race::new(title, order);
    race.add(BEEBOX, |at: &u16| {
        runner.run(&mut packets[usize::from(*at)])
    });
    race.add(BITMAPS, |at: &u16| bitmaps.judge(&frames[usize::from(*at)]));
    for (engine, nanoseconds) in race.run(samples)? {
        report.add_row(title, engine, Unit::NsPerRun, nanoseconds);
    }
    // Rule by rule takes long: few packets, few times.
    let few = &order[..order.len().min(256)];
    let mut race = Race::new(title, few);
    race.add(LINEAR, |at: &u16| linear.judge(&frames[usize::from(*at)]));
    for (engine, nanoseconds) in race.run(samples.min(5))? {
        report.add_row(title, engine, Unit::NsPerRun, nanoseconds);
    }
    Ok(())
}

/// The same program in Beebox and in the kernel.
fn replay(
    title: &str,
    compiled: &Compiled,
    frames: &[Frame],
    order: &[u16],
    report: &mut Report,
) -> Result<(), Failure> {
    let contents = Replay {
        table: compiled.table(),
        frames,
        order,
    };
    let program = plane::program("replay", contents.table)?;
    let theirs = match Theirs::load(&program, &contents) {
        Ok(theirs) => theirs,
        Err(failure) => {
            report.notes.push(format!("{title}: no kernel: {failure}"));
            return Ok(());
        }
    };
    let ours = Ours::load(&program, &contents)?;
    let mut runner = ours.runner();
    let mut packet = plane::packet(&frames[0]);
    let (mut here, mut there) = (f64::MAX, f64::MAX);
    for _ in 0..8 {
        let mut last = 0;
        // One pass over the order at a time: the kernel does not count what interrupts its run.
        for _ in 0..REPEAT / ORDER as u32 {
            let start = Instant::now();
            for _ in 0..ORDER {
                last = runner.run(&mut packet);
            }
            here = here.min(start.elapsed().as_nanos() as f64 / ORDER as f64);
        }
        let (result, duration) = theirs.run(&frames[0], REPEAT)?;
        there = there.min(duration.as_nanos() as f64);
        if result != last {
            return Err(failed(format!("{title}: {last}, in the kernel {result}")));
        }
    }
    report.add_row(title, REPLAY, Unit::NsPerRun, here);
    report.add_row(title, KERNEL, Unit::NsPerRun, there);
    Ok(())
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
