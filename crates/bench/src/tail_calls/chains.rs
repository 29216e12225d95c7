//! Chains of programs that do nothing but go on with each other. A run makes 33 tail calls, the
//! most that it may; what a run costs by itself hardly counts.

use std::time::Duration;

use differential::direct::DirectEngine;
use differential::tail_calls::{Code, Direct, InKernel, SLOTS, link};
use jit::Features;
use lower::Passes;

use super::{BEEBOX, KERNEL, failed};
use crate::race::{Contender, Race, timed};
use crate::report::{Report, Unit};
use crate::{Failure, Options};

/// Key, title, and whether programs know their index only when they run.
pub(super) const CHAINS: [(&str, &str, bool); 2] = [
    ("direct", "constant index", false),
    ("indirect", "computed index", true),
];

/// Tail calls of a run.
const TAIL_CALLS: f64 = 33.0;

/// A chain as native code, with options of the compiler, and in the kernel if it can be asked.
pub(super) struct Chain {
    codes: Vec<Code>,
}

impl Chain {
    pub(super) fn new(is_computed: bool) -> Chain {
        Chain {
            codes: (0..SLOTS).map(|id| link(id, is_computed)).collect(),
        }
    }

    /// As native code, every slot with a program.
    pub(super) fn native(&self, compiler: &jit::Options) -> Result<Direct, Failure> {
        let kernel = kernel_data::linux_6_18_minimal();
        let types = kernel.btf().ok_or_else(|| failed("no types".into()))?;
        let registry = kernel_data::linux_6_18_minimal_registry(types);
        let compiler = jit::Options {
            features: Features::detect(),
            ..*compiler
        };
        let native = Direct::load(
            &self.codes,
            &kernel,
            &registry,
            Passes::ALL,
            (DirectEngine::Native, &compiler),
        );
        let native = native.map_err(failed)?;
        for slot in 0..SLOTS {
            let set = native.set(slot, Some(slot));
            set.map_err(|errno| failed(format!("errno {errno}")))?;
        }
        Ok(native)
    }

    /// In the running kernel; `None`, with a note, where it takes no programs.
    pub(super) fn in_kernel(&self, report: &mut Report) -> Result<Option<InKernel>, Failure> {
        let theirs = match InKernel::load(&self.codes) {
            Ok(theirs) => theirs,
            Err(errno) => {
                let note = format!("The kernel takes no programs from us ({errno}).");
                report.notes.push(note);
                return Ok(None);
            }
        };
        for slot in 0..SLOTS {
            let set = theirs.set(slot, Some(slot));
            set.map_err(|errno| failed(format!("errno {errno}")))?;
        }
        Ok(Some(theirs))
    }
}

/// Measures the chains.
pub(super) fn measure(options: &Options, samples: u32, report: &mut Report) -> Result<(), Failure> {
    for (key, title, is_computed) in CHAINS {
        let is_chosen = |only: &String| key.eq_ignore_ascii_case(only);
        if !options.only.as_ref().is_none_or(is_chosen) {
            continue;
        }
        let chain = Chain::new(is_computed);
        let native = chain.native(&jit::Options::default())?;
        let theirs = chain.in_kernel(report)?;
        let mut race = Race::new(title, &[()]);
        race.add_contender(BEEBOX, Ours(&native));
        if let Some(theirs) = &theirs {
            race.add_contender(KERNEL, KernelProgram(theirs));
        }
        for (engine, nanoseconds) in race.run(samples)? {
            report.add_row(
                title,
                engine,
                Unit::NsPerOperation,
                nanoseconds / TAIL_CALLS,
            );
        }
    }
    Ok(())
}

/// Runs as native code.
struct Ours<'n>(&'n Direct);

impl Contender<()> for Ours<'_> {
    fn answer(&mut self, _: &()) -> u32 {
        self.0.run_repeated(1)
    }

    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        timed(|| self.0.run_repeated(rounds))
    }
}

/// Runs in the kernel, timed by its own clock.
struct KernelProgram<'k>(&'k InKernel);

impl Contender<()> for KernelProgram<'_> {
    fn answer(&mut self, _: &()) -> u32 {
        self.0.run_repeated(1).0
    }

    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        self.0.run_repeated(rounds).1 * rounds
    }
}
