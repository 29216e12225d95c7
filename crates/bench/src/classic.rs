//! `bench classic`: what classic filters cost, beside libpcap, rbpf and native
//! code.

mod files;
pub(crate) mod filters;
mod preparation;
pub(crate) mod seccomp_rules;

use sys::libpcap::Libpcap;

use crate::report::Report;
use crate::{Bench, Failure, Options, Progress};

/// The benchmark.
pub(crate) const BENCH: Bench = Bench {
    name: "classic",
    about: "packet and seccomp filters: every engine beside libpcap, rbpf, tcpdump and native code",
    workloads: Vec::new,
    sample,
    rest,
    part: files::part,
};

// The engines, as tables name them.
pub(crate) const CHECKED: &str = "checked";
const INTERP: &str = "interp";
pub(crate) const LIBPCAP: &str = "libpcap";
const RBPF: &str = "rbpf";
pub(crate) const DPDK: &str = "dpdk";
pub(crate) const DPDK_JIT: &str = "dpdk jit";
const COMPILED: &str = "compiled";

fn sample(options: &Options) -> Result<Report, Failure> {
    let samples = if options.quick { 20 } else { 60 };
    let mut report = Report {
        baselines: [LIBPCAP, files::TCPDUMP, CHECKED]
            .map(String::from)
            .to_vec(),
        ..Report::default()
    };
    let libpcap = Libpcap::load().ok();
    match &libpcap {
        Some(libpcap) => report.notes.push(format!(
            "libpcap is the system's ({}), called through bpf_filter.",
            libpcap.version()
        )),
        None => report.notes.push(
            "There is no libpcap on this machine (Debian: libpcap0.8), so nothing is compared \
             with it."
                .into(),
        ),
    }
    filters::measure(samples, libpcap.as_ref(), &mut report)?;
    seccomp_rules::measure(samples, libpcap.as_ref(), &mut report)?;
    preparation::measure(samples, &mut report);
    Ok(report)
}

fn rest(
    options: &Options,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<(), Failure> {
    if options.quick {
        let note = "Whole processes were not measured, to be quick.";
        report.notes.push(note.into());
        return Ok(());
    }
    files::measure(options, progress, report)
}
