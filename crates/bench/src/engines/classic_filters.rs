//! Classic filters as native code: those of `bench classic` that Linux's own
//! history measured, in the same races.

use sys::libpcap::Libpcap;

use super::{CHECKED, COMPILED, INTERP, NATIVE, summary};
use crate::Failure;
use crate::classic::{LIBPCAP, filters, seccomp_rules};
use crate::report::{Report, Target, Unit};

/// By what name they are chosen.
pub(super) const KEY: &str = "filters";

/// Rules of the seccomp filter.
const RULES: usize = 200;

/// Measures all engines on the filters, and adds the ratios of our engines.
pub(super) fn measure(samples: u32, report: &mut Report) -> Result<(), Failure> {
    let libpcap = Libpcap::load().ok();
    filters::race(samples, libpcap.as_ref(), report)?;
    seccomp_rules::race(RULES, samples, libpcap.as_ref(), report)?;
    let workloads = filters::workloads();
    for workload in &workloads {
        summary::compare(workload, false, report);
    }
    summarise(&workloads, report);
    Ok(())
}

fn summarise(workloads: &[String], report: &mut Report) {
    let least = |chosen: &[String], engine, other| {
        let chosen = chosen.iter().map(String::as_str);
        report.least_speed_up(chosen, engine, other, Unit::NsPerRun)
    };
    let of_port_22 = workloads.iter().filter(|name| name.starts_with("port 22"));
    let port_22: Vec<String> = of_port_22.cloned().collect();
    let ancillary = filters::ancillary_workloads();
    let figures = [
        (
            "port_22_vs_compiled",
            "native's time over compiled code's on `port 22`: the greater of one packet and many",
            least(&port_22, NATIVE, COMPILED).map(f64::recip),
            Target::AtMost(1.2),
        ),
        (
            "ancillary_native_vs_interp",
            "native's speed over interp's on ancillary loads: the lesser of one packet and many",
            least(&ancillary, NATIVE, INTERP),
            Target::AtLeast(4.0),
        ),
        (
            "ancillary_native_vs_checked",
            "the same over the plain interpreter's",
            least(&ancillary, NATIVE, CHECKED),
            Target::AtLeast(10.0),
        ),
        (
            "seccomp200_native_vs_libpcap",
            "native's speed over libpcap's, a seccomp filter of 200 rules: the lesser of a call that \
             matches the last and one that matches none",
            seccomp_rules::least_speed_up(RULES, NATIVE, LIBPCAP, report),
            Target::AtLeast(20.0),
        ),
    ];
    for (name, meaning, value, target) in figures {
        if let Some(value) = value {
            report.add_figure(name, meaning, value, Some(target));
        }
    }
}
