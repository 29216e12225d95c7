//! Coverage as text: a table of files, and the lines that were missed.

use std::fmt::Write;

use super::{Coverage, FileCoverage, Share, Totals};
use crate::table::{Side, Table};

/// One line about all files.
pub(super) fn summary(coverage: &Coverage) -> String {
    let totals = coverage.totals();
    let of = |share: Share, what: &str| format!("{} of {} {what}", share.hit, share.found);
    let mut text = [
        of(totals.lines, "lines"),
        of(totals.branches, "branches"),
        of(totals.functions, "functions"),
    ]
    .join(", ");
    if totals.unreachable > 0 {
        let lines = crate::count(totals.unreachable, "line");
        let _ = write!(text, "; no run can reach {lines}");
    }
    text
}

/// A row for each file, and below the lines, branches and functions that were missed.
pub(super) fn text(coverage: &Coverage) -> String {
    let row = |name: &str, totals: Totals| {
        let share = |share: Share| format!("{} of {}", share.hit, share.found);
        [
            name.to_owned(),
            share(totals.lines),
            totals.lines.percent(),
            share(totals.branches),
            share(totals.functions),
            totals.unreachable.to_string(),
        ]
    };
    let mut table = Table::new(&[
        ("file", Side::Left),
        ("lines", Side::Right),
        ("percent", Side::Right),
        ("branches", Side::Right),
        ("functions", Side::Right),
        ("unreachable lines", Side::Right),
    ]);
    for (name, file) in &coverage.files {
        table.row(row(name, file.totals()));
    }
    if coverage.files.len() > 1 {
        table.row(row("all", coverage.totals()));
    }
    let mut out = String::new();
    table.write(&mut out, usize::MAX, "");
    for (name, file) in &coverage.files {
        write_missed(&mut out, name, file);
    }
    out
}

fn write_missed(out: &mut String, name: &str, file: &FileCoverage) {
    let missed = |is_reachable: bool| {
        let lines = file.lines.iter();
        let lines = lines.filter(move |(_, line)| line.is_reachable == is_reachable);
        ranges(
            file,
            lines
                .filter(|(_, line)| line.count == 0)
                .map(|(number, _)| *number),
        )
    };
    let functions = file.functions.iter();
    let functions: Vec<&str> = functions
        .filter(|(_, function)| function.is_reachable && function.count == 0)
        .map(|(name, _)| name.as_str())
        .collect();
    // Of lines that were executed.
    let branches: Vec<String> = file
        .lines
        .iter()
        .filter(|(number, line)| {
            let mut ways = file.branches_of(**number).flat_map(|(_, it)| it.ways());
            line.count > 0 && ways.any(|(_, count)| count == 0)
        })
        .map(|(number, _)| number.to_string())
        .collect();
    let rows = [
        ("lines that were not executed", missed(true).join(", ")),
        ("branches that went one way only", branches.join(", ")),
        ("functions that were not entered", functions.join(", ")),
        ("lines that no run can reach", missed(false).join(", ")),
    ];
    for (what, which) in rows.iter().filter(|(_, which)| !which.is_empty()) {
        let _ = writeln!(out, "{name}: {what}: {which}");
    }
}

/// Numbers as ranges; lines without instructions between two do not part them.
fn ranges(file: &FileCoverage, numbers: impl Iterator<Item = u32>) -> Vec<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if file.lines.range(*last + 1..number).next().is_none() => {
                *last = number;
            }
            _ => ranges.push((number, number)),
        }
    }
    let texts = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect()
}
