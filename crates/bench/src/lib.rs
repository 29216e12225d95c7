//! Side-by-side benchmarks: Beebox, its peers and native code on the same work,
//! in one run.
//!
//! Absolute figures move from machine to machine and from minute to minute, so
//! what is reported are ratios with their spread. How they are found:
//!
//! - Engines that race must give the same answers, or nothing is timed (`race`).
//! - Many short samples are taken, engines in turns; the fastest counts (`race`).
//! - All of it is repeated in new processes, where code and data lie elsewhere;
//!   the median counts, and the distance of the quartiles is the spread
//!   (`fresh`). A ratio is formed in each process and the median is taken of
//!   the ratios, so that what slows a process down does not enter it.
//!
//! A benchmark is one entry of [`BENCHES`]: it makes a [`Report`], which
//! [`render`] writes for people and for programs.
//!
//! # Modules
//!
//! `engines/` runs one XDP program on every engine, the kernel included: `workload.rs` lists the
//! programs, `unchecked.rs` is the one file that asserts their safety, `summary.rs` computes
//! ratios. `race.rs` compares every answer and takes samples in turns, `fresh.rs` repeats that in
//! new processes, `report.rs` and `render.rs` hold and print the report. `maps/` has programs with
//! maps, here (`native.rs`), in the kernel and on a hash table. A benchmark is one entry of a list
//! and a module (`classic/`, `load/`).
#![deny(unsafe_code)]

mod classic;
mod engines;
mod failure;
mod fresh;
mod gateway;
mod load;
mod machine;
mod maps;
mod native;
mod peer;
pub mod race;
mod render;
mod report;
mod scratch;
mod step;
mod tail_calls;
mod traffic;
mod verify;

pub use engines::Unreadable;
pub use failure::Failure;
pub use peer::UnsupportedConstruct;
pub use render::{Form, render};
pub use report::{Figure, Measured, Report, Row, Target, Unit};
pub use step::NotCounted;

use std::path::PathBuf;
use std::process::Command;

/// Called with what is measured now.
pub type Progress<'a> = dyn FnMut(&str) + 'a;

/// A benchmark.
pub struct Bench {
    /// Name of the benchmark.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// The workloads that can be measured alone.
    workloads: fn() -> Vec<&'static str>,
    /// Measures what is repeated in several new processes.
    sample: fn(&Options) -> Result<Report, Failure>,
    /// Measures the rest.
    rest: fn(&Options, &mut Progress<'_>, &mut Report) -> Result<(), Failure>,
    /// Runs a part in this process; `None` if the words name no part.
    part: fn(&[&str]) -> Option<Result<(), Failure>>,
}

/// All benchmarks.
pub const BENCHES: &[Bench] = &[
    classic::BENCH,
    engines::BENCH,
    gateway::BENCH,
    load::BENCH,
    maps::BENCH,
    tail_calls::BENCH,
    verify::BENCH,
];

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// Take fewer samples, and skip what takes minutes.
    pub quick: bool,
    /// Only the workload with this name.
    pub only: Option<String>,
    /// The directory for native code of the workloads.
    pub keep: Option<PathBuf>,
    /// The `beebox-bench` command, which measures in new processes.
    pub bench: PathBuf,
    /// The `beebox` command, which is measured as a whole. Without it that part is
    /// skipped, and a note says so.
    pub beebox: Option<PathBuf>,
}

/// The option of `beebox-bench NAME` after which the words of [`Bench::part`]
/// follow.
pub const PART: &str = "--part";

/// The part that every benchmark has: measure in this process and print the
/// report.
const SAMPLE: &str = "sample";

impl Options {
    /// In how many processes to measure.
    fn processes(&self) -> u32 {
        if self.quick { 3 } else { 9 }
    }

    /// Starts a part of a benchmark in a new process.
    fn part(&self, bench: &str, words: &[&str]) -> Command {
        let mut command = Command::new(&self.bench);
        command.arg(bench);
        if self.quick {
            command.arg("--quick");
        }
        if let Some(only) = &self.only {
            command.args(["--only", only]);
        }
        if let Some(keep) = &self.keep {
            command.arg("--keep").arg(keep);
        }
        command.arg(PART).args(words);
        command
    }
}

impl Bench {
    /// The benchmark with this name.
    pub fn find(name: &str) -> Option<&'static Bench> {
        BENCHES.iter().find(|bench| bench.name == name)
    }

    /// Measures everything.
    pub fn run(&self, options: &Options, progress: &mut Progress<'_>) -> Result<Report, Failure> {
        if let Some(only) = &options.only {
            let known = (self.workloads)();
            if !known.iter().any(|name| name.eq_ignore_ascii_case(only)) {
                return Err(Failure::NoWorkload(only.clone(), known));
            }
        }
        let again = || options.part(self.name, &[SAMPLE]);
        let mut report = fresh::measure(again, options.processes(), progress)?;
        (self.rest)(options, progress, &mut report)?;
        report.machine = machine::description();
        Ok(report)
    }

    /// Runs a part of the benchmark in a process that [`run`](Self::run) started; returns
    /// its output.
    pub fn part(&self, options: &Options, words: &[&str]) -> Result<String, Failure> {
        if words == [SAMPLE] {
            let report = (self.sample)(options)?;
            return serde_json::to_string(&report)
                .map_err(|error| Failure::System("writing the report", error.into()));
        }
        match (self.part)(words) {
            Some(outcome) => outcome.map(|()| String::new()),
            None => Err(Failure::Process {
                purpose: "a part of a benchmark",
                said: format!("there is no part {words:?}"),
            }),
        }
    }
}
