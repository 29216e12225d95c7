//! Side-by-side benchmarks: Beebox, its peers and native code on the same work,
//! in one run.
//!
//! Absolute figures move from machine to machine and from minute to minute, so
//! what is reported are ratios with their spread. How they are found:
//!
//! - Engines that race must give the same answers, or nothing is timed ([`race`]).
//! - Many short samples are taken, engines in turns; the fastest counts ([`race`]).
//! - All of it is repeated in new processes, where code and data lie elsewhere;
//!   the median counts, and the distance of the quartiles is the spread
//!   ([`fresh`]). A ratio is formed in each process and the median is taken of
//!   the ratios, so that what slows a process down does not enter it.
//!
//! A benchmark is one entry of [`BENCHES`]: it makes a [`Report`], which
//! [`render`] writes for people and for programs.
#![forbid(unsafe_code)]

pub mod captures;
pub mod classic;
mod failure;
mod fresh;
mod machine;
mod native;
mod peer;
pub mod race;
mod render;
mod report;
mod step;
mod traffic;

pub use failure::Failure;
pub use peer::Unfit;
pub use render::{Form, render};
pub use report::{Figure, Report, Row, Target, Unit};
pub use step::NotCounted;

use std::path::PathBuf;
use std::process::Command;

/// Told in a few words what is going on.
pub type Progress<'a> = dyn FnMut(&str) + 'a;

/// A benchmark.
pub struct Bench {
    /// By what name it is chosen.
    pub name: &'static str,
    /// What it measures, in one line.
    pub about: &'static str,
    /// Measures what one process can; the rest is repetition.
    sample: fn(&Options, &mut Progress<'_>) -> Result<Report, Failure>,
}

/// All benchmarks.
pub const BENCHES: &[Bench] = &[classic::BENCH];

/// How to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Less repetition, and nothing that takes long.
    pub quick: bool,
    /// The `beebox` command, for what is measured as a whole process and for
    /// measuring in new processes.
    pub beebox: PathBuf,
}

impl Options {
    /// In how many processes to measure.
    fn processes(&self) -> u32 {
        if self.quick { 3 } else { 9 }
    }
}

/// What the command is called with, after the name of a benchmark, to measure in
/// its own process only and print the report for [`Bench::run`].
pub const SAMPLE: &str = "--sample";

impl Bench {
    /// The benchmark with this name.
    pub fn find(name: &str) -> Option<&'static Bench> {
        BENCHES.iter().find(|bench| bench.name == name)
    }

    /// Measures in several processes.
    pub fn run(&self, options: &Options, progress: &mut Progress<'_>) -> Result<Report, Failure> {
        let again = || {
            let mut command = Command::new(&options.beebox);
            command.args(["bench", self.name, SAMPLE]);
            if options.quick {
                command.arg("--quick");
            }
            command
        };
        let mut report = fresh::measure(again, options.processes(), progress)?;
        report.machine = machine::description();
        Ok(report)
    }

    /// Measures in this process and returns the report as `run` reads it.
    pub fn sample(&self, options: &Options) -> Result<String, Failure> {
        let report = (self.sample)(options, &mut |_| {})?;
        serde_json::to_string(&report)
            .map_err(|error| Failure::System("writing the report", error.into()))
    }
}
