//! `bench load`: what it costs to get from files to linked programs, beside libbpf
//! in the same process.
//!
//! libbpf parses the kernel's types anew for each object that it links, so for the
//! ratio Beebox does so too; that it can keep them shows in a column of its own.

mod libbpf;
mod memory;
mod objects;
mod types;

use sys::libbpf::Libbpf;

use crate::report::{Report, Target, Unit};
use crate::{Bench, Failure, Options, Progress};

/// The benchmark.
pub(crate) const BENCH: Bench = Bench {
    name: "load",
    about: "types and objects: parsing, opening and linking beside libbpf",
    workloads: Vec::new,
    sample,
    rest,
    part: memory::part,
};

// The engines, as tables name them.
const BEEBOX: &str = "beebox";
const LIBBPF: &str = "libbpf";

/// Path of the kernel's BTF.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

fn sample(options: &Options) -> Result<Report, Failure> {
    let samples = if options.quick { 5 } else { 20 };
    let mut report = Report {
        baselines: [LIBBPF].map(String::from).to_vec(),
        ..Report::default()
    };
    let libbpf = libbpf::find(&mut report);
    types::measure(samples, libbpf.as_ref(), &mut report)?;
    objects::measure(samples, libbpf.as_ref(), &mut report)?;
    Ok(report)
}

fn rest(
    options: &Options,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    memory::measure(options, progress, report)
}

/// Adds the least speed-up over several workloads to the summary.
fn add_speed_up(report: &mut Report, name: &str, meaning: &str, workloads: &[&str]) {
    let workloads = workloads.iter().copied();
    if let Some(value) = report.least_speed_up(workloads, BEEBOX, LIBBPF, Unit::Micros) {
        report.add_figure(name, meaning, value, Some(Target::AtLeast(1.0)));
    }
}

/// The contender, where there is a libbpf.
type Peer<'l> = Option<&'l Libbpf>;
