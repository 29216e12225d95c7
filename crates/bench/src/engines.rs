//! `bench engines`: what programs cost on every engine, beside the kernel's
//! compiler, rbpf, solana-sbpf and the same logic compiled to native code.
//!
//! A workload is one program for all: the kernel runs it as it stands, the
//! others with the two loads of its context widened as the kernel widens them,
//! and clang makes native code of the same source. Each engine has data of its
//! own, laid out alike, and all answers are compared before anything is timed.

mod checked;
mod clang;
mod classic_filters;
mod kernel;
mod object;
mod preparation;
mod prepared;
mod region;
mod setting;
mod solana;
mod summary;
mod unchecked;
mod workload;

pub use object::Unreadable;
use setting::Setting;
use workload::WORKLOADS;

use crate::classic::{DPDK, DPDK_JIT, LIBPCAP};
use crate::report::Report;
use crate::{Bench, Failure, Options, Progress};

/// The benchmark.
pub(crate) const BENCH: Bench = Bench {
    name: "engines",
    about: "eBPF programs: every engine beside the kernel's compiler, rbpf, solana-sbpf and native code",
    workloads: || {
        WORKLOADS
            .iter()
            .map(|w| w.key)
            .chain([classic_filters::KEY])
            .collect()
    },
    sample,
    rest,
    part: |_| None,
};

// The engines, as tables name them.
const INTERP: &str = "interp";
const CHECKED: &str = "checked";
const NATIVE: &str = "native";
const KERNEL: &str = "kernel";
const RBPF: &str = "rbpf";
const RBPF_JIT: &str = "rbpf jit";
const SOLANA: &str = "solana";
const SOLANA_JIT: &str = "solana jit";
const COMPILED: &str = "compiled";

/// In which order tables show the engines.
const COLUMNS: &[&str] = &[
    COMPILED, NATIVE, KERNEL, RBPF_JIT, SOLANA_JIT, DPDK_JIT, INTERP, CHECKED, RBPF, SOLANA, DPDK,
    LIBPCAP,
];

fn sample(options: &Options) -> Result<Report, Failure> {
    let samples = if options.quick { 20 } else { 60 };
    let mut report = Report {
        baselines: [COMPILED, KERNEL, RBPF_JIT, RBPF]
            .map(String::from)
            .to_vec(),
        columns: COLUMNS
            .iter()
            .chain(summary::COLUMNS)
            .map(ToString::to_string)
            .collect(),
        ..Report::default()
    };
    let is_chosen = |key: &str| match &options.only {
        Some(only) => key.eq_ignore_ascii_case(only),
        None => true,
    };
    let setting = Setting::new(options, samples, &mut report)?;
    for workload in WORKLOADS.iter().filter(|workload| is_chosen(workload.key)) {
        setting.measure(workload, &mut report)?;
    }
    if is_chosen(classic_filters::KEY) {
        classic_filters::measure(samples, &mut report)?;
    }
    summary::of_process(&mut report);
    Ok(report)
}

fn rest(_: &Options, _: &mut Progress<'_>, report: &mut Report) -> Result<(), Failure> {
    summary::of_all(report);
    Ok(())
}
