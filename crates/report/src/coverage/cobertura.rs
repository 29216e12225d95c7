//! Cobertura's XML, by its DTD of version 4.

use std::fmt::Write;

use super::{Coverage, FileCoverage, Share};
use crate::xml::escaped;

/// The document. `timestamp` is in milliseconds since 1970.
pub(super) fn cobertura(coverage: &Coverage, timestamp: u64) -> String {
    let totals = coverage.totals();
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE coverage SYSTEM \
         \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n",
    );
    let (lines, branches) = (totals.lines, totals.branches);
    let _ = writeln!(
        out,
        "<coverage {} lines-covered=\"{}\" lines-valid=\"{}\" branches-covered=\"{}\" \
         branches-valid=\"{}\" version=\"beebox {}\" timestamp=\"{timestamp}\">",
        rates(lines, branches),
        lines.hit,
        lines.found,
        branches.hit,
        branches.found,
        env!("CARGO_PKG_VERSION"),
    );
    out.push_str("  <sources>\n    <source>.</source>\n  </sources>\n  <packages>\n");
    let _ = writeln!(
        out,
        "    <package name=\"bpf\" {}>\n      <classes>",
        rates(lines, branches)
    );
    for (name, file) in &coverage.files {
        write_file(&mut out, name, file);
    }
    out.push_str("      </classes>\n    </package>\n  </packages>\n</coverage>\n");
    out
}

fn rates(lines: Share, branches: Share) -> String {
    format!(
        "line-rate=\"{:.4}\" branch-rate=\"{:.4}\" complexity=\"0\"",
        lines.rate(),
        branches.rate()
    )
}

fn write_file(out: &mut String, name: &str, file: &FileCoverage) {
    let totals = file.totals();
    let base = name.rsplit('/').next().unwrap_or(name);
    let _ = writeln!(
        out,
        "        <class name=\"{}\" filename=\"{}\" {}>\n          <methods>",
        escaped(base),
        escaped(name),
        rates(totals.lines, totals.branches)
    );
    let functions = file.functions.iter();
    for (name, function) in functions.filter(|(_, function)| function.is_reachable) {
        let share = Share::of([function.count].into_iter());
        let _ = writeln!(
            out,
            "            <method name=\"{}\" signature=\"\" {}>\n              <lines>\n                \
             <line number=\"{}\" hits=\"{}\"/>\n              </lines>\n            </method>",
            escaped(name),
            rates(share, Share::default()),
            function.line,
            function.count
        );
    }
    out.push_str("          </methods>\n          <lines>\n");
    for (number, line) in file.lines.iter().filter(|(_, line)| line.is_reachable) {
        let ways = || {
            let branches = file.branches_of(*number);
            branches.flat_map(|(_, branch)| branch.ways())
        };
        let share = Share::of(ways().map(|(_, count)| count));
        let count = line.count;
        let _ = match share.found {
            0 => writeln!(
                out,
                "            <line number=\"{number}\" hits=\"{count}\"/>"
            ),
            _ => writeln!(
                out,
                "            <line number=\"{number}\" hits=\"{count}\" branch=\"true\" \
                 condition-coverage=\"{}% ({}/{})\"/>",
                share.hit * 100 / share.found,
                share.hit,
                share.found
            ),
        };
    }
    out.push_str("          </lines>\n        </class>\n");
}
