//! `bench tail-calls`: chains of programs that do nothing but go on with each other, as native
//! code and in the running kernel. A run makes 33 tail calls, the most that it may; what a run
//! costs by itself hardly counts.

use std::time::Duration;

use jit::Features;
use lower::Passes;
use testkit::tail_calls::{Code, InKernel, Native, SLOTS, link};

use crate::race::{Contender, Race, timed};
use crate::report::{Report, Target, Unit};
use crate::{Bench, Failure, Options, Progress};

/// The benchmark.
pub(crate) const BENCH: Bench = Bench {
    name: "tail-calls",
    about: "chains of tail calls beside the kernel",
    workloads: || WORKLOADS.iter().map(|workload| workload.0).collect(),
    sample,
    rest: |_: &Options, _: &mut Progress<'_>, _: &mut Report| Ok(()),
    part: |_| None,
};

/// Key, title, and whether programs know their index only when they run.
const WORKLOADS: [(&str, &str, bool); 2] = [
    ("direct", "constant index", false),
    ("indirect", "computed index", true),
];

const BEEBOX: &str = "beebox";
const KERNEL: &str = "kernel";
/// Tail calls of a run.
const TAIL_CALLS: f64 = 33.0;

fn sample(options: &Options) -> Result<Report, Failure> {
    let samples = if options.quick { 20 } else { 60 };
    let failed = |said: String| Failure::Process {
        purpose: "preparing a chain of tail calls",
        said,
    };
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().ok_or_else(|| failed("no types".into()))?;
    let registry = kernel_data::linux_6_18_registry(types);
    let mut report = Report {
        baselines: [KERNEL].map(String::from).to_vec(),
        columns: [KERNEL, BEEBOX].map(String::from).to_vec(),
        ..Report::default()
    };
    for (key, title, is_computed) in WORKLOADS {
        let is_chosen = |only: &String| key.eq_ignore_ascii_case(only);
        if !options.only.as_ref().is_none_or(is_chosen) {
            continue;
        }
        let codes: Vec<Code> = (0..SLOTS).map(|id| link(id, is_computed)).collect();
        let compiler = jit::Options {
            features: Features::detect(),
            ..jit::Options::default()
        };
        let native = Native::load(&codes, &kernel, &registry, Passes::ALL, &compiler);
        let native = native.map_err(failed)?;
        let theirs = InKernel::load(&codes);
        if let Err(errno) = &theirs {
            let note = format!("The kernel takes no programs from us ({errno}).");
            report.notes.push(note);
        }
        for slot in 0..SLOTS {
            let set = |done: Result<(), i32>| done.map_err(|errno| failed(format!("{errno}")));
            set(native.set(slot, Some(slot)))?;
            if let Ok(theirs) = &theirs {
                set(theirs.set(slot, Some(slot)))?;
            }
        }
        let mut race = Race::new(title, &[()]);
        race.add_contender(BEEBOX, Ours(&native));
        if let Ok(theirs) = &theirs {
            race.add_contender(KERNEL, Theirs(theirs));
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
    summarize(&mut report);
    Ok(report)
}

fn summarize(report: &mut Report) {
    let value =
        |workload: usize, engine| report.value(WORKLOADS[workload].1, engine, Unit::NsPerOperation);
    let direct = value(0, BEEBOX).zip(value(0, KERNEL));
    let ratio = value(0, BEEBOX).zip(value(1, BEEBOX));
    if let Some((ours, kernels)) = direct {
        report.add_figure(
            "native_vs_kernel",
            "time of a tail call to a constant index over the kernel's",
            ours / kernels,
            Some(Target::AtMost(1.0)),
        );
    }
    if let Some((direct, indirect)) = ratio {
        report.add_figure(
            "direct_vs_indirect",
            "time of a tail call to a computed index over that to a constant one; without a \
             retpoline the index itself is what differs",
            indirect / direct,
            Some(Target::AtLeast(1.5)),
        );
    }
}

/// Runs as native code.
struct Ours<'n>(&'n Native);

impl Contender<()> for Ours<'_> {
    fn answer(&mut self, _: &()) -> u32 {
        self.0.run_repeated(1)
    }

    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        timed(|| self.0.run_repeated(rounds))
    }
}

/// Runs in the kernel, timed by its own clock.
struct Theirs<'k>(&'k InKernel);

impl Contender<()> for Theirs<'_> {
    fn answer(&mut self, _: &()) -> u32 {
        self.0.run_repeated(1).0
    }

    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        self.0.run_repeated(rounds).1 * rounds
    }
}
