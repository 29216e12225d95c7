//! `bench verify`: verification beside the running kernel's.
//!
//! The kernel's figure is the one that it states itself (log level 4), through
//! veristat of the kernel's tree: it ends after rewriting and, for programs with
//! subprograms, includes compiling them. Ours is the whole of `verifier::verify`.
//! Both are the least of several rounds; logs, BTF loading and map creation are in
//! neither.

mod families;
mod parallel;
mod programs;
mod target;
mod veristat;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use program::Program;
use verifier::{Options as VerifyOptions, Verdict};

use crate::report::{Report, Target as Goal, Unit};
use crate::{Bench, Failure, Options, Progress, fresh};
use families::{FAMILIES, Family};
use programs::Named;
use target::Target;
use veristat::Answers;

/// The benchmark.
pub(crate) const BENCH: Bench = Bench {
    name: "verify",
    about: "verification of the kernel's selftests and of growing programs beside the kernel's",
    workloads: Vec::new,
    sample: |_| Ok(Report::default()),
    rest,
    part,
};

// The verifiers, as tables name them.
const BEEBOX: &str = "beebox";
const KERNEL: &str = "kernel";
const NO_SKIP: &str = "beebox, no precision-skip";

/// The part that verifies everything once, for its peak memory.
const MEMORY: &str = "memory";

/// Kernel time in microseconds from which a program counts for a figure.
const SLOW: f64 = 100.0;
const VERY_SLOW: f64 = 1_000.0;

fn rest(
    options: &Options,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    report.baselines.push(KERNEL.to_owned());
    let found = programs::selftests().and_then(|objects| Ok((objects, veristat::find()?)));
    let (mut objects, veristat) = match found {
        Ok(found) => found,
        Err(absent) => {
            report.notes.push(format!("not measured: {absent}"));
            return Ok(());
        }
    };
    objects.extend(programs::own());
    let rounds = if options.quick { 2 } else { 5 };
    // First, because peak memory counts what this process has resident.
    measure_memory(options, progress, report)?;
    parallel::measure(options, progress, report)?;
    progress("the kernel's times");
    let answers = veristat::ask(&veristat, &objects, rounds)?;
    let target = Target::running()?;
    let mut all = Vec::new();
    for object in &objects {
        progress(&format!("linking {}", object.display()));
        all.extend(programs::of_object(object, &target)?);
    }
    let times = measure_all(&all, &target, rounds, progress);
    compare(&all, &times, &answers, report);
    measure_stress(&all, &target, &answers, rounds, report);
    measure_jobs(&all, &target, progress, report);
    measure_families(&target, rounds, progress, report)
}

/// Time of each program in microseconds; `None` for unsupported programs.
fn measure_all(
    all: &[Named],
    target: &Target,
    rounds: u32,
    progress: &mut Progress<'_>,
) -> Vec<Option<(bool, f64)>> {
    let measure = |named: &Named| {
        progress(&named.name.1);
        let (answer, micros) =
            programs::time(&named.program, target, &VerifyOptions::default(), rounds);
        match answer.verdict {
            Verdict::Accepted => Some((true, micros)),
            Verdict::Refused(_) => Some((false, micros)),
            Verdict::Unsupported(_) | Verdict::Bug(_) => None,
        }
    };
    all.iter().map(measure).collect()
}

/// Ratios over the programs that both accept.
fn compare(all: &[Named], times: &[Option<(bool, f64)>], answers: &Answers, report: &mut Report) {
    let mut pairs: HashMap<&(String, String), (f64, f64)> = HashMap::new();
    for (named, time) in all.iter().zip(times) {
        let (Some((true, ours)), Some(answer)) = (time, answers.get(&named.name)) else {
            continue;
        };
        if answer.accepted {
            // The kernel states whole microseconds.
            pairs.insert(&named.name, (*ours, answer.micros.max(1.0)));
        }
    }
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.values().map(of).sum::<f64>();
    let (ours, theirs) = (sum(|pair| pair.0), sum(|pair| pair.1));
    let workload = "programs that both accept";
    report.add_row(workload, BEEBOX, Unit::Micros, ours);
    report.add_row(workload, KERNEL, Unit::Micros, theirs);
    report.notes.push(format!(
        "{} programs are accepted by both verifiers",
        pairs.len()
    ));
    report.add_figure(
        "accepted_vs_kernel",
        "time over the kernel's, all programs that both accept",
        ours / theirs,
        Some(Goal::AtMost(0.25)),
    );
    let ratios = |least: f64| -> Vec<(f64, &(String, String))> {
        let slow = pairs.iter().filter(|(_, pair)| pair.1 >= least);
        slow.map(|(name, pair)| (pair.0 / pair.1, *name)).collect()
    };
    let slow = ratios(SLOW);
    if !slow.is_empty() {
        let logarithms: f64 = slow.iter().map(|(ratio, _)| ratio.ln()).sum();
        report.add_figure(
            "slow_geomean_vs_kernel",
            "time over the kernel's, geometric mean of the programs that take it 100 µs or more",
            (logarithms / slow.len() as f64).exp(),
            Some(Goal::AtMost(0.5)),
        );
    }
    let worst = ratios(VERY_SLOW)
        .into_iter()
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((ratio, (file, program))) = worst {
        report
            .notes
            .push(format!("slowest beside the kernel: {file} {program}"));
        report.add_figure(
            "slow_worst_vs_kernel",
            "time over the kernel's, worst of the programs that take it a millisecond or more",
            ratio,
            Some(Goal::AtMost(0.7)),
        );
    }
}

/// The program with many precision requests on a long history.
fn measure_stress(
    all: &[Named],
    target: &Target,
    answers: &Answers,
    rounds: u32,
    report: &mut Report,
) {
    let Some(named) = all
        .iter()
        .find(|named| programs::STRESS.ends_with(&named.name.0))
    else {
        return;
    };
    let workload = "precision requests on a long history";
    for (engine, precision_skip) in [(BEEBOX, true), (NO_SKIP, false)] {
        let options = VerifyOptions {
            precision_skip,
            ..VerifyOptions::default()
        };
        let (_, micros) = programs::time(&named.program, target, &options, rounds);
        report.add_row(workload, engine, Unit::Micros, micros);
    }
    if let Some(answer) = answers.get(&named.name) {
        report.add_row(workload, KERNEL, Unit::Micros, answer.micros);
    }
    if let Some(speed_up) = report.speed_up(workload, BEEBOX, KERNEL, Unit::Micros) {
        report.add_figure(
            "stress_vs_kernel",
            "time over the kernel's, the program with repeated precision requests",
            1.0 / speed_up,
            Some(Goal::AtMost(0.5)),
        );
    }
}

/// All programs by one thread and by two.
fn measure_jobs(all: &[Named], target: &Target, progress: &mut Progress<'_>, report: &mut Report) {
    let mut seconds = [f64::INFINITY; 2];
    for _ in 0..2 {
        for (threads, least) in [1, 2].into_iter().zip(&mut seconds) {
            progress(&format!("all programs by {threads} threads"));
            let start = Instant::now();
            verify_in_parallel(all, target, threads);
            *least = least.min(start.elapsed().as_secs_f64());
        }
    }
    report.add_row("all programs", "1 thread", Unit::Seconds, seconds[0]);
    report.add_row("all programs", "2 threads", Unit::Seconds, seconds[1]);
    report.add_figure(
        "two_jobs_vs_one",
        "throughput of two threads over one, all programs",
        seconds[0] / seconds[1],
        Some(Goal::AtLeast(1.8)),
    );
}

fn verify_in_parallel(all: &[Named], target: &Target, threads: usize) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(named) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            target.verify(&named.program, &VerifyOptions::default());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

/// Growth of the time in each family, for our verifier and the kernel's.
fn measure_families(
    target: &Target,
    rounds: u32,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    for family in FAMILIES {
        for size in family.sizes {
            let workload = format!("{}, {size}", family.name);
            progress(&workload);
            let program = family.program(size, target.types())?;
            let (answer, micros) =
                programs::time(&program, target, &VerifyOptions::default(), rounds);
            if answer.verdict != Verdict::Accepted {
                return Err(Failure::Process {
                    purpose: "verifying a generated program",
                    said: format!("{workload}: {:?}", answer.verdict),
                });
            }
            report.add_row(&workload, BEEBOX, Unit::Micros, micros);
            if let Some(micros) = kernel_time(&program, rounds) {
                report.add_row(&workload, KERNEL, Unit::Micros, micros);
            }
        }
    }
    Ok(())
}

/// Least verification time that the kernel states, in microseconds.
fn kernel_time(program: &Program, rounds: u32) -> Option<f64> {
    use kernel_client::load::{LoadRequest, load};
    let request = LoadRequest {
        log_level: sys::bpf::LogLevel::STATS.0,
        log_size: 1 << 16,
    };
    let mut least: Option<f64> = None;
    for _ in 0..rounds {
        let loaded = load(program, request).ok()?;
        loaded.answer.result.as_ref().ok()?;
        let stated = loaded
            .log
            .lines()
            .find_map(|line| line.strip_prefix("verification time "))?;
        let micros: f64 = stated.split_whitespace().next()?.parse().ok()?;
        least = Some(least.map_or(micros, |least| least.min(micros)));
    }
    least
}

fn measure_memory(
    options: &Options,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    progress("peak memory");
    let usage = fresh::succeed(options.part(BENCH.name, &[MEMORY]), "measuring memory")?;
    let megabytes = usage.peak_memory as f64 / 1e6;
    report.add_row(
        "all programs, one process",
        BEEBOX,
        Unit::Megabytes,
        megabytes,
    );
    report.add_figure(
        "peak_mb",
        "peak memory of a process that links and verifies every program, in MB",
        megabytes,
        Some(Goal::AtMost(200.0)),
    );
    for (index, family) in FAMILIES.iter().enumerate() {
        let Some(size) = family.largest else { continue };
        let workload = format!("{}, {size}", family.name);
        let part = options.part(BENCH.name, &[MEMORY, &index.to_string()]);
        let usage = fresh::succeed(part, "measuring memory")?;
        let megabytes = usage.peak_memory as f64 / 1e6;
        report.add_row(&workload, BEEBOX, Unit::Megabytes, megabytes);
    }
    Ok(())
}

fn part(words: &[&str]) -> Option<Result<(), Failure>> {
    match words {
        [MEMORY] => Some(verify_everything()),
        [MEMORY, family] => {
            let family = FAMILIES.get(family.parse::<usize>().ok()?)?;
            Some(verify_largest(family, family.largest?))
        }
        _ => parallel::part(words),
    }
}

/// Verifies the largest program of a family.
fn verify_largest(family: &Family, size: u32) -> Result<(), Failure> {
    let target = Target::running()?;
    let program = family.program(size, target.types())?;
    target.verify(&program, &VerifyOptions::default());
    Ok(())
}

/// Links and verifies every program, an object at a time, and every family; not the
/// largest program with a checkpoint at every prune point, which is measured alone.
fn verify_everything() -> Result<(), Failure> {
    let target = Target::running()?;
    let mut objects = programs::selftests().unwrap_or_default();
    objects.extend(programs::own());
    for object in &objects {
        for named in programs::of_object(object, &target)? {
            target.verify(&named.program, &VerifyOptions::default());
        }
    }
    for family in FAMILIES {
        for size in family.sizes {
            let program = family.program(size, target.types())?;
            target.verify(&program, &VerifyOptions::default());
        }
        if let (Some(size), false) = (family.largest, family.has_dense_checkpoints()) {
            let program = family.program(size, target.types())?;
            target.verify(&program, &VerifyOptions::default());
        }
    }
    Ok(())
}
