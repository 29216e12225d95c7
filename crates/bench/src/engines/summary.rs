//! Ratios of the engines, by workload and in total.
//!
//! A ratio is formed in each process and the median is taken of the ratios. The
//! worst of several workloads is found among those medians.

use super::preparation::{CHECK_AND_RBPF_JIT, DECODE_AND_JIT, LOWER_AND_JIT};
use super::workload::{Kind, WORKLOADS};
use super::{CHECKED, COMPILED, INTERP, KERNEL, NATIVE, RBPF, RBPF_JIT};
use crate::report::{Report, Row, Target, Unit};

// Ratios, as columns name them.
const NATIVE_TO_COMPILED: &str = "native / compiled";
const NATIVE_TO_VECTORISED: &str = "native / vectorised";
const KERNEL_TO_COMPILED: &str = "kernel / compiled";
const NATIVE_TO_KERNEL: &str = "native / kernel";
const NATIVE_TO_RBPF: &str = "native / rbpf jit";
const RBPF_TO_INTERP: &str = "rbpf / interp";
const COMPILE: &str = "check and compile: native / rbpf jit";
const COMPILE_ALONE: &str = "compile: native / rbpf jit";
const IMAGE: &str = "image: native / kernel";

/// In which order tables show them.
pub(super) const COLUMNS: &[&str] = &[
    NATIVE_TO_COMPILED,
    NATIVE_TO_VECTORISED,
    KERNEL_TO_COMPILED,
    NATIVE_TO_KERNEL,
    NATIVE_TO_RBPF,
    RBPF_TO_INTERP,
    COMPILE,
    COMPILE_ALONE,
    IMAGE,
];

/// Adds the ratios of a workload whose figures are in the report.
pub(super) fn compare(workload: &str, vectorised: bool, report: &mut Report) {
    let to_compiled = if vectorised {
        NATIVE_TO_VECTORISED
    } else {
        NATIVE_TO_COMPILED
    };
    const RUN: Unit = Unit::NsPerRun;
    const TO_COMPILE: Unit = Unit::MicrosPerThousandInsns;
    for (name, unit, engine, other) in [
        (to_compiled, RUN, NATIVE, COMPILED),
        (KERNEL_TO_COMPILED, RUN, KERNEL, COMPILED),
        (NATIVE_TO_KERNEL, RUN, NATIVE, KERNEL),
        (NATIVE_TO_RBPF, RUN, NATIVE, RBPF_JIT),
        (RBPF_TO_INTERP, RUN, RBPF, INTERP),
        (COMPILE, TO_COMPILE, LOWER_AND_JIT, CHECK_AND_RBPF_JIT),
        (COMPILE_ALONE, TO_COMPILE, DECODE_AND_JIT, RBPF_JIT),
        (IMAGE, Unit::BytesPerInsn, NATIVE, KERNEL),
    ] {
        let needs = |engine| report.value(workload, engine, unit);
        if let (Some(mine), Some(theirs)) = (needs(engine), needs(other)) {
            report.add_row(workload, name, Unit::Ratio, mine / theirs);
        }
    }
}

/// Adds the means, which are formed in each process.
pub(super) fn of_process(report: &mut Report) {
    for (name, meaning, column, least, target) in [
        (
            "native_vs_compiled_geomean",
            "native's time over compiled code's: geometric mean of the workloads that clang does not \
             vectorise, none counted below 1",
            NATIVE_TO_COMPILED,
            1.0,
            Some(Target::AtMost(1.2)),
        ),
        (
            "compile_vs_rbpf",
            "time from bytes to native code over rbpf's, each with its own check of the form: \
             geometric mean of the programs that rbpf can compile",
            COMPILE,
            0.0,
            Some(Target::AtMost(2.0)),
        ),
        (
            "compile_alone_vs_rbpf",
            "the same without the checks: decoding and compiling over rbpf's translation",
            COMPILE_ALONE,
            0.0,
            None,
        ),
    ] {
        let logarithms: Vec<f64> = ratios(report, column)
            .map(|row| row.value.max(least).ln())
            .collect();
        if !logarithms.is_empty() {
            let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
            report.add_figure(name, meaning, mean.exp(), target);
        }
    }
}

/// Adds the worst of several workloads, of what all processes found.
pub(super) fn of_all(report: &mut Report) {
    worst_ratios(report);
    worst_interpreters(report);
}

fn worst_ratios(report: &mut Report) {
    for (name, meaning, column, kind, target) in [
        (
            "native_vs_kernel_worst",
            "native's time over that of the kernel's code",
            NATIVE_TO_KERNEL,
            None,
            Target::AtMost(1.0),
        ),
        (
            "native_vs_compiled_worst",
            "native's time over compiled code's, where clang does not vectorise",
            NATIVE_TO_COMPILED,
            None,
            Target::AtMost(1.3),
        ),
        (
            "image_vs_kernel_worst",
            "bytes of native code over the kernel's",
            IMAGE,
            None,
            Target::AtMost(1.0),
        ),
        (
            "interp_vs_rbpf",
            "interp's speed over rbpf's interpreter's on arithmetic, memory and branches",
            RBPF_TO_INTERP,
            Some(Kind::Loop),
            Target::AtLeast(4.0),
        ),
        (
            "empty_vs_rbpf_jit",
            "native's time for the empty program over that of rbpf's compiler",
            NATIVE_TO_RBPF,
            Some(Kind::Empty),
            Target::AtMost(0.5),
        ),
    ] {
        let worse = |a: &&Row, b: &&Row| match target {
            Target::AtMost(_) => a.value.total_cmp(&b.value),
            Target::AtLeast(_) => b.value.total_cmp(&a.value),
        };
        let worst = ratios(report, column)
            .filter(|row| kind.is_none_or(|kind| is_of(kind, &row.workload)))
            .max_by(worse);
        if let Some(worst) = worst.cloned() {
            let meaning = match kind {
                Some(Kind::Empty) => meaning.to_owned(),
                _ => format!("{meaning}: the worst, {}", worst.workload),
            };
            report.add_figure(name, meaning, worst.measured(), Some(target));
        }
    }
}

/// Time per instruction in the small loops.
fn worst_interpreters(report: &mut Report) {
    for (name, engine, key, most) in [
        ("interp_ns_per_insn", INTERP, "W3", 1.0),
        ("checked_ns_per_insn", CHECKED, "W", 3.0),
    ] {
        let rows = report.rows.iter().filter(|row| {
            row.unit == Unit::NsPerInsn
                && row.engine == engine
                && row.workload.starts_with(key)
                && is_of(Kind::Loop, &row.workload)
        });
        if let Some(worst) = rows.max_by(|a, b| a.value.total_cmp(&b.value)).cloned() {
            let meaning = format!(
                "{engine}'s ns an instruction: the worst, {}",
                worst.workload
            );
            report.add_figure(name, meaning, worst.measured(), Some(Target::AtMost(most)));
        }
    }
}

fn is_of(kind: Kind, title: &str) -> bool {
    let mut of_kind = WORKLOADS.iter().filter(|workload| workload.kind == kind);
    of_kind.any(|workload| workload.title() == title)
}

fn ratios<'r>(report: &'r Report, column: &'static str) -> impl Iterator<Item = &'r Row> {
    report
        .rows
        .iter()
        .filter(move |row| row.unit == Unit::Ratio && row.engine == column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_ratio_hides_another_and_vectors_stand_apart() {
        let mut report = Report::default();
        for (workload, jit, vectorised) in
            [("a", 5.0, false), ("b", 40.0, false), ("c", 90.0, true)]
        {
            report.add_row(workload, NATIVE, Unit::NsPerRun, jit);
            report.add_row(workload, COMPILED, Unit::NsPerRun, 10.0);
            compare(workload, vectorised, &mut report);
        }
        of_process(&mut report);
        let [figure] = &report.summary[..] else {
            panic!("{:?}", report.summary);
        };
        // Of 1 (not 0.5) and 4.
        assert!((figure.value - 2.0).abs() < 1e-9, "{figure:?}");
    }

    #[test]
    fn the_worst_is_named() {
        let mut report = Report::default();
        let [first, second] = [&WORKLOADS[3], &WORKLOADS[4]];
        for (workload, jit) in [(first, 11.0), (second, 15.0)] {
            report.add_row(workload.title(), NATIVE, Unit::NsPerRun, jit);
            report.add_row(workload.title(), KERNEL, Unit::NsPerRun, 10.0);
            compare(&workload.title(), false, &mut report);
        }
        of_all(&mut report);
        let [figure] = &report.summary[..] else {
            panic!("{:?}", report.summary);
        };
        assert_eq!(figure.name, "native_vs_kernel_worst");
        assert!((figure.value - 1.5).abs() < 1e-9);
        assert!(figure.meaning.ends_with(&second.title()), "{figure:?}");
    }
}
