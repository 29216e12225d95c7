//! `bench maps`: operations on maps from verified programs, as native code, beside the
//! kernel's test run of the same program and beside a hash table in native code; and a
//! firewall on one packet and on a capture.
//!
//! A run of a program does many operations, so that what a run costs by itself hardly
//! counts. The keys follow from a state in the packet, which a run leaves advanced for the
//! next one: no cache holds more of a large map than it would otherwise.

mod capture;
mod firewall;
mod kernel;
mod native;
mod prefixes;
mod subject;
mod table;
mod workload;

use std::collections::BTreeMap;

use crate::race::Race;
use crate::report::{Measured, Report, Target, Unit};
use crate::{Bench, Failure, Options, Progress};
use kernel::KernelProgram;
use native::Ours;
use subject::Verifier;
use workload::{OPERATIONS, WORKLOADS, Workload};

/// The benchmark.
pub(crate) const BENCH: Bench = Bench {
    name: "maps",
    about: "operations on maps from programs, and a firewall, beside the kernel and a hash table",
    workloads: || {
        let keys = WORKLOADS.iter().map(|workload| workload.key);
        keys.chain([firewall::KEY, capture::KEY]).collect()
    },
    sample,
    rest,
    part: |_| None,
};

// The engines, as tables name them.
const BEEBOX: &str = "beebox";
const INTERP: &str = "interp";
const KERNEL: &str = "kernel";
const TABLE: &str = "hash table";
const INLINE_TABLE: &str = "hash table, inline values";
const INTERP_TO_BEEBOX: &str = "interp / beebox";
const TO_KERNEL: &str = "beebox / kernel";
const TO_TABLE: &str = "beebox / hash table";

fn sample(options: &Options) -> Result<Report, Failure> {
    let samples = if options.quick { 20 } else { 60 };
    let mut report = Report {
        baselines: [KERNEL].map(String::from).to_vec(),
        columns: [
            KERNEL,
            BEEBOX,
            INTERP,
            TABLE,
            INLINE_TABLE,
            TO_KERNEL,
            TO_TABLE,
            INTERP_TO_BEEBOX,
        ]
        .map(String::from)
        .to_vec(),
        ..Report::default()
    };
    let is_chosen = |key: &str| match &options.only {
        Some(only) => key.eq_ignore_ascii_case(only),
        None => true,
    };
    let verifier = Verifier::new()?;
    let asks_kernel = kernel::is_available(&mut report);
    for workload in WORKLOADS {
        if is_chosen(workload.key) && !(options.quick && workload.is_large) {
            measure(workload, &verifier, asks_kernel, samples, &mut report)?;
        }
    }
    if is_chosen(firewall::KEY) {
        firewall::measure(&verifier, asks_kernel, samples, &mut report)?;
    }
    if is_chosen(capture::KEY) {
        capture::measure(options.quick, &verifier, &mut report)?;
    }
    add_mean(&mut report);
    Ok(report)
}

/// Nanoseconds of an operation, for all who take part.
fn measure(
    workload: &Workload,
    verifier: &Verifier,
    asks_kernel: bool,
    samples: u32,
    report: &mut Report,
) -> Result<(), Failure> {
    let program = workload.program()?;
    let ours = Ours::new(workload.title, &program, verifier)?;
    let threaded = Ours::new(workload.title, &program, verifier)?;
    let entries = workload.entries();
    ours.fill(0, &entries)?;
    threaded.fill(0, &entries)?;
    let theirs = match asks_kernel {
        true => Some(KernelProgram::load(workload.title, &program)?),
        false => None,
    };
    if let Some(theirs) = &theirs {
        theirs.fill(0, &entries)?;
    }
    let mut race = Race::new(workload.title, &[()]);
    race.add_contender(BEEBOX, ours.contender(&workload.first_packet()));
    let threaded = threaded.contender(&workload.first_packet());
    race.add_contender(INTERP, threaded.in_interpreter());
    if let Some(theirs) = &theirs {
        race.add_contender(KERNEL, theirs.contender(workload.first_packet()));
    }
    if let Some(work) = workload.table {
        race.add_contender(TABLE, table::boxed(work, &entries));
        race.add_contender(INLINE_TABLE, table::inline(work, &entries));
    }
    for (engine, nanoseconds) in race.run(samples)? {
        let each = nanoseconds / f64::from(OPERATIONS);
        report.add_row(workload.title, engine, Unit::NsPerOperation, each);
    }
    for (name, other) in [(TO_KERNEL, KERNEL), (TO_TABLE, TABLE)] {
        add_ratio(
            report,
            workload.title,
            name,
            (BEEBOX, other),
            Unit::NsPerOperation,
        );
    }
    let pair = (INTERP, BEEBOX);
    add_ratio(
        report,
        workload.title,
        INTERP_TO_BEEBOX,
        pair,
        Unit::NsPerOperation,
    );
    Ok(())
}

/// Adds the time of one engine over that of another.
fn add_ratio(report: &mut Report, workload: &str, name: &str, of: (&str, &str), unit: Unit) {
    let value = |engine| report.value(workload, engine, unit);
    if let (Some(ours), Some(theirs)) = (value(of.0), value(of.1)) {
        report.add_row(workload, name, Unit::Ratio, ours / theirs);
    }
}

/// Adds the geometric mean of the lookups beside the hash table's, if all were measured.
fn add_mean(report: &mut Report) {
    let lookups = WORKLOADS.iter().filter(|workload| workload.is_lookup);
    let ratio = |workload: &Workload| report.value(workload.title, TO_TABLE, Unit::Ratio);
    let ratios: Option<Vec<f64>> = lookups.map(ratio).collect();
    if let Some(ratios) = ratios {
        let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        report.add_figure(
            "hash_lookup_vs_native",
            "time of a hash lookup over that of a native hash table with boxed values: \
             geometric mean of the three sizes",
            (logarithms / ratios.len() as f64).exp(),
            Some(Target::AtMost(1.3)),
        );
    }
}

/// Adds the worst of the ratios to the kernel, of what all processes found.
fn rest(_: &Options, _: &mut Progress<'_>, report: &mut Report) -> Result<(), Failure> {
    let ratios = report.rows.iter().filter(|row| row.engine == TO_KERNEL);
    let by_name: BTreeMap<&str, Measured> = ratios
        .map(|row| (row.workload.as_str(), row.measured()))
        .collect();
    let worst = by_name
        .into_iter()
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    if let Some((workload, measured)) = worst {
        let meaning = format!("time over the kernel's, the worst: {workload}");
        report.add_figure(
            "vs_kernel_worst",
            meaning,
            measured,
            Some(Target::AtMost(1.0)),
        );
    }
    Ok(())
}
