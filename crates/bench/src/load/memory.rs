//! The most memory that a process needs for one piece of work, with either loader.

use super::{BEEBOX, LIBBPF, libbpf, objects, types};
use crate::report::{Measured, Report, Target, Unit};
use crate::{Failure, Options, Progress, fresh};

/// The part that is measured.
const PART: &str = "memory";

/// Pieces of work, by the name that a part knows them by.
const WORKS: &[(&str, &str)] = &[("types", types::WORKLOAD), ("link", objects::LINK_MANY)];

/// In how many turns each is measured.
const TURNS: usize = 3;

pub(super) fn measure(
    options: &Options,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    const PURPOSE: &str = "measuring memory";
    let mut worst: Option<f64> = None;
    for &(work, workload) in WORKS {
        for engine in [BEEBOX, LIBBPF] {
            let was_timed = report.value(workload, engine, Unit::Micros).is_some();
            if !was_timed {
                continue;
            }
            progress(&format!("memory: {workload}, {engine}"));
            let mut megabytes = Vec::new();
            for _ in 0..TURNS {
                let command = options.part("load", &[PART, engine, work]);
                let usage = fresh::succeed(command, PURPOSE)?;
                megabytes.push(usage.peak_memory as f64 / 1e6);
            }
            report.add_row(
                workload,
                engine,
                Unit::Megabytes,
                Measured::median(megabytes),
            );
        }
        let needs = |engine| report.value(workload, engine, Unit::Megabytes);
        if let (Some(ours), Some(theirs)) = (needs(BEEBOX), needs(LIBBPF)) {
            let ratio = ours / theirs;
            worst = Some(worst.map_or(ratio, |worst| worst.max(ratio)));
        }
    }
    if let Some(worst) = worst {
        report.add_figure(
            "memory_vs_libbpf",
            "peak memory of a process over that of one with libbpf: the greater of 2 works",
            worst,
            Some(Target::AtMost(1.0)),
        );
    }
    Ok(())
}

/// Runs a part in a process of its own; `None` if the name is no part of this benchmark.
pub(super) fn part(words: &[&str]) -> Option<Result<(), Failure>> {
    let [PART, engine, work] = *words else {
        return None;
    };
    if !WORKS.iter().any(|(name, _)| *name == work) || ![BEEBOX, LIBBPF].contains(&engine) {
        return None;
    }
    Some(perform(engine, work))
}

fn perform(engine: &str, work: &str) -> Result<(), Failure> {
    let done = match (engine, work) {
        (BEEBOX, "types") => types::parse() != crate::race::NO_ANSWER,
        (BEEBOX, _) => objects::link_many(),
        (_, work) => {
            let mut unread = Report::default();
            let libbpf = libbpf::find(&mut unread);
            libbpf.is_some_and(|libbpf| match work {
                "types" => libbpf.parse_btf_file(super::KERNEL_TYPES.as_ref()).is_ok(),
                _ => objects::link_many_with(&libbpf),
            })
        }
    };
    match done {
        true => Ok(()),
        false => Err(Failure::Process {
            purpose: "a piece of work for its memory",
            said: format!("{engine} could not do it: {work}"),
        }),
    }
}
