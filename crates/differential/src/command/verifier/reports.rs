//! `cargo differential compare reports`: the logs that Linux 7.3.4 wrote of the selftests that it refuses, with
//! its report, beside those for its description.
//!
//! The logs are of level 5, recorded by `tools/kernels/vm run 7.3`. They quote the sources of the tests, so
//! they are kept beside the kernel and not in the repository. Addresses count as equal and times are left
//! out, nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use beebox::internal::verify::StandaloneProgram;
use beebox_differential::recorded::read_text;
use verifier::{Options, verify};

use super::kernels::described_kernel;
use super::logs::{VerdictDifference, difference};
use super::selftests::{Options as Objects, Target, name_of};
use crate::command::Outcome;

/// The kernel whose logs are recorded.
const KERNEL: &str = "7.3";
/// The recorded logs, beside the kernel: behind each line `=== FILE/PROGRAM` its log.
const LOGS: &str = "log-7.2-v3-on-7.3.4.txt.gz";
/// The set of the programs.
const SET: &str = "7.2/v3";
/// The first words of a report.
const REPORT: &str = "\nVerification failed: ";
/// The mark in front of each program's log in the file.
const MARK: &str = "=== ";

/// Compares the logs of refused programs of objects whose name has the text, for a description in a
/// directory, or the kept one.
pub(crate) fn compare(directory: Option<&Path>, only: Option<&str>) -> Outcome {
    let kept = described_kernel(KERNEL);
    let text = read_text(&kept.with_file_name(LOGS))?;
    let logs = parse(&text);
    let options = Objects::of_set(SET)?;
    let mut objects = options.objects(&options.sets[0])?;
    objects.retain(|path| only.is_none_or(|only| name_of(path).contains(only)));
    let target = Target {
        // As the loader of the recorded ones.
        keeps_names: true,
        ..Target::described(directory.unwrap_or(&kept))?
    };
    let mut counts = Counts::default();
    for path in &objects {
        let file = name_of(path);
        target.load_each(path, &mut |loaded| {
            let name = format!("{file}/{}", loaded.name);
            let Some(theirs) = logs.get(name.as_str()) else {
                return;
            };
            if let Some(ours) = log_of(&loaded, &target) {
                counts.add(&name, theirs, &ours);
            }
        })?;
    }
    println!(
        "| kernel | logs | equal | equal before the report | with a report | report equal |\n\
         |---|---:|---:|---:|---:|---:|\n\
         | {KERNEL} | {} | {} | {} | {} | {} |",
        counts.logs, counts.equal, counts.before, counts.reports, counts.equal_reports
    );
    Ok(())
}

/// Logs by FILE/PROGRAM.
fn parse(text: &str) -> BTreeMap<&str, &str> {
    let parts = text.strip_prefix(MARK).unwrap_or(text).split("\n=== ");
    parts.filter_map(|part| part.split_once('\n')).collect()
}

/// Our log at the levels of the recorded ones; `None` without an answer.
fn log_of(loaded: &StandaloneProgram, target: &Target) -> Option<String> {
    let program = loaded.program.as_ref().ok()?;
    let options = Options {
        log_level: 5,
        ..Options::default()
    };
    let done = verify(program, &target.kernel, &target.registry, &options);
    matches!(done.verdict, verifier::Verdict::Refused(_)).then_some(done.log)
}

#[derive(Default)]
struct Counts {
    logs: usize,
    equal: usize,
    /// Logs that are equal up to the report, or whole where there is none.
    before: usize,
    reports: usize,
    equal_reports: usize,
}

impl Counts {
    fn add(&mut self, name: &str, theirs: &str, ours: &str) {
        let (theirs, ours) = (without_time(theirs), without_time(ours));
        let (their_walk, their_report) = split(&theirs);
        let (our_walk, our_report) = split(&ours);
        self.logs += 1;
        self.reports += usize::from(!their_report.is_empty());
        let walk = difference(their_walk, our_walk);
        let report = difference(their_report, our_report);
        let is_reported = !their_report.is_empty() && report.is_none();
        self.equal_reports += usize::from(is_reported);
        self.before += usize::from(walk.is_none());
        self.equal += usize::from(walk.is_none() && report.is_none());
        for (part, found) in [("walk", walk), ("report", report)] {
            if let Some(VerdictDifference {
                equal,
                kernel,
                ours,
                ..
            }) = found
            {
                println!(
                    "{name}: {part}: {equal} lines equal; the kernel `{kernel}`; Beebox `{ours}`"
                );
            }
        }
    }
}

/// The log before its report, and from it on.
fn split(log: &str) -> (&str, &str) {
    log.split_at(log.find(REPORT).unwrap_or(log.len()))
}

fn without_time(log: &str) -> String {
    let lines = log
        .lines()
        .filter(|line| !line.starts_with("verification time "));
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_parted() {
        let logs = parse("=== a.bpf.o/one\nR1\n\nend\n=== a.bpf.o/two\nR2\n");
        assert_eq!(logs["a.bpf.o/one"], "R1\n\nend");
        assert_eq!(logs["a.bpf.o/two"], "R2\n");
        assert_eq!(
            split("a\n\nVerification failed: x"),
            ("a\n", "\nVerification failed: x")
        );
    }
}
