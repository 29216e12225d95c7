//! Shared state of the measurements of a process: available engines, and the fixed cost of
//! a test run of the kernel.

use std::path::Path;

use jit::memory::Pool;

use super::clang::Clang;
use super::kernel::{self, Kernel};
use super::prepared::Prepared;
use super::workload::{WORKLOADS, Workload};
use super::{CHECKED, INTERP, KERNEL, RBPF, SOLANA, preparation, summary};
use crate::race::Race;
use crate::report::{Report, Unit};
use crate::{Failure, Options};

/// Name of the row of the kernel's fixed cost.
const TEST_RUN: &str = "a test run of nothing";

/// Available engines, and options of the measurement.
pub(super) struct Setting<'o> {
    samples: u32,
    clang: Option<Clang>,
    /// Nanoseconds of a test run of an empty program; `None` without the kernel.
    fixed_cost: Option<f64>,
    /// Directory for native code.
    keep: Option<&'o Path>,
    pool: Pool,
}

impl<'o> Setting<'o> {
    /// Finds out who can take part.
    pub(super) fn new(
        options: &'o Options,
        samples: u32,
        report: &mut Report,
    ) -> Result<Setting<'o>, Failure> {
        let clang = Clang::find()?;
        report.notes.push(match &clang {
            Some(clang) => format!(
                "compiled is the source of each workload, compiled by {} -O2 when the benchmark \
                 ran.",
                clang.version
            ),
            None => {
                "There is no clang on this machine, so nothing is compared with native code.".into()
            }
        });
        Ok(Setting {
            samples,
            clang,
            fixed_cost: fixed_cost(samples, report)?,
            keep: options.keep.as_deref(),
            pool: Pool::new(),
        })
    }

    /// Lets all engines race on a workload, and times their preparation.
    pub(super) fn measure(&self, workload: &Workload, report: &mut Report) -> Result<(), Failure> {
        let ask_kernel = self.fixed_cost.is_some();
        let prepared = Prepared::new(workload, self.clang.as_ref(), ask_kernel, &self.pool)?;
        if let Some(directory) = self.keep {
            prepared.leave(directory)?;
        }
        let title = workload.title();
        for (engine, nanoseconds) in prepared.race(self.samples)? {
            let fixed = match self.fixed_cost {
                Some(cost) if engine == KERNEL => cost,
                _ => 0.0,
            };
            report.add_row(&title, engine, Unit::NsPerRun, nanoseconds - fixed);
        }
        if !workload.is_empty() {
            let executed = prepared.executed() as f64;
            for engine in [INTERP, CHECKED, RBPF, SOLANA] {
                if let Some(per_run) = report.value(&title, engine, Unit::NsPerRun) {
                    report.add_row(&title, engine, Unit::NsPerInsn, per_run / executed);
                }
            }
        }
        prepared.measure_images(report)?;
        preparation::measure(
            workload,
            &prepared.program,
            self.samples,
            &self.pool,
            report,
        )?;
        summary::compare(&title, prepared.is_vectorised(), report);
        Ok(())
    }
}

/// Measures a test run of an empty program; `None`, and a note, if the kernel is not
/// available.
fn fixed_cost(samples: u32, report: &mut Report) -> Result<Option<f64>, Failure> {
    let empty = &WORKLOADS[0];
    let program = empty
        .program()
        .map_err(|unreadable| Failure::Unreadable(empty.key, unreadable))?;
    if let Some(obstacle) = kernel::obstacle(&program) {
        let note = format!("The kernel takes no programs from us ({obstacle}).");
        report.notes.push(note);
        return Ok(None);
    }
    let kernel = Kernel::load(empty.key, &program, empty.input())?;
    let mut race = Race::new(empty.title(), &[()]);
    race.add_contender(KERNEL, &kernel);
    let cost = race.run(samples)?.iter().map(|&(_, time)| time).sum();
    report.add_row(TEST_RUN, KERNEL, Unit::NsPerRun, cost);
    Ok(Some(cost))
}
