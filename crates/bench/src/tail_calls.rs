//! `bench tail-calls`: chains of programs, and a flow dissector in pieces, as native code and in
//! the running kernel; changes of targets under load.

mod chains;
mod changes;
mod dissector;
mod frames;

use std::time::Duration;

use crate::report::{Report, Target, Unit};
use crate::{Bench, Failure, Options, Progress};
use chains::CHAINS;

/// The benchmark.
pub(crate) const BENCH: Bench = Bench {
    name: "tail-calls",
    about: "tail calls, chains of them and a flow dissector, beside the kernel",
    workloads: || {
        let chains = CHAINS.iter().map(|chain| chain.0);
        chains.chain([DISSECTOR, CHANGES]).collect()
    },
    sample,
    rest: |_: &Options, _: &mut Progress<'_>, _: &mut Report| Ok(()),
    part: |_| None,
};

const DISSECTOR: &str = "dissector";
const CHANGES: &str = "changes";

const BEEBOX: &str = "beebox";
const KERNEL: &str = "kernel";

fn failed(said: String) -> Failure {
    Failure::Process {
        purpose: "preparing tail calls",
        said,
    }
}

fn sample(options: &Options) -> Result<Report, Failure> {
    let samples = if options.quick { 20 } else { 60 };
    let mut report = Report {
        baselines: [KERNEL].map(String::from).to_vec(),
        columns: [KERNEL, BEEBOX].map(String::from).to_vec(),
        ..Report::default()
    };
    let is_chosen = |key: &str| match &options.only {
        None => true,
        Some(only) => key.eq_ignore_ascii_case(only),
    };
    chains::measure(options, samples, &mut report)?;
    if is_chosen(DISSECTOR) {
        dissector::measure(samples, &mut report)?;
    }
    if is_chosen(CHANGES) {
        let time = Duration::from_millis(if options.quick { 100 } else { 1000 });
        changes::measure(time, &mut report)?;
    }
    summarize(&mut report);
    Ok(report)
}

/// Time of an engine for a tail call of a chain.
fn of_chain(report: &Report, at: usize, engine: &str) -> Option<f64> {
    report.value(CHAINS[at].1, engine, Unit::NsPerOperation)
}

/// Time of an engine for a frame, without what a run costs that does nothing; `None` if a
/// disturbed machine shows no difference.
fn of_frame(report: &Report, title: &str, engine: &str) -> Option<f64> {
    let whole = report.value(title, engine, Unit::NsPerRun)?;
    let nothing = report.value(dissector::NOTHING, engine, Unit::NsPerRun)?;
    Some(whole - nothing).filter(|time| *time > 0.0)
}

/// Ratios of two engines in every workload that has both.
fn ratios(report: &Report, engine: &str, other: &str) -> Vec<f64> {
    let ratio = |of: &dyn Fn(&str) -> Option<f64>| Some(of(engine)? / of(other)?);
    let chains = (0..CHAINS.len()).map(|at| ratio(&|engine| of_chain(report, at, engine)));
    let frames = dissector::titles().map(|title| ratio(&|engine| of_frame(report, &title, engine)));
    chains.chain(frames).flatten().collect()
}

fn summarize(report: &mut Report) {
    let against_kernel = ratios(report, BEEBOX, KERNEL);
    if let Some(worst) = against_kernel.iter().copied().reduce(f64::max) {
        report.add_figure(
            "native_vs_kernel",
            "time over the kernel's, the worst of chains (a tail call) and frames of the flow \
             dissector (a run, without what one costs that does nothing)",
            worst,
            Some(Target::AtMost(1.0)),
        );
    }
    let ratio = of_chain(report, 0, BEEBOX).zip(of_chain(report, 1, BEEBOX));
    if let Some((direct, indirect)) = ratio {
        report.add_figure(
            "direct_vs_indirect",
            "time of a tail call to a computed index over that to a constant one; without a \
             retpoline the index itself is what differs",
            indirect / direct,
            Some(Target::AtLeast(1.5)),
        );
    }
    for (name, meaning, workload) in [
        (
            "change_vs_kernel",
            "time of one change while another thread runs, over the kernel's",
            changes::CHANGE,
        ),
        (
            "disturbance_vs_kernel",
            "time that a change takes from runs of another thread, over the kernel's",
            changes::DISTURBANCE,
        ),
    ] {
        let value = |engine| report.value(workload, engine, Unit::NsPerOperation);
        if let Some((ours, kernels)) = value(BEEBOX).zip(value(KERNEL))
            && kernels > 0.0
        {
            report.add_figure(name, meaning, ours / kernels, None);
        }
    }
}
