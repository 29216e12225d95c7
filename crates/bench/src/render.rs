//! Reports as text for a terminal, as Markdown and as JSON.
//!
//! Rows of one unit make a table: a line for each workload, a column for each
//! engine. A cell holds the value, its spread, and how it compares with the
//! baseline of its line: `8.1 ±2% 2.1×` is 2.1 times as fast.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::report::{Figure, Report, Row, Target, Unit};

/// A form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Aligned columns.
    Text,
    /// Tables of CommonMark with the usual extension.
    Markdown,
    /// `{"machine", "rows": […], "summary": {…}, "summary_spread": {…}, "notes": […]}`.
    Json,
}

/// Writes a report in a form, with a line end.
pub fn render(report: &Report, form: Form) -> String {
    match form {
        Form::Text => text(report),
        Form::Markdown => markdown(report),
        Form::Json => json(report),
    }
}

/// One table, cells as text: a heading and lines of equal length.
struct Table {
    title: &'static str,
    head: Vec<String>,
    lines: Vec<Vec<String>>,
}

fn text(report: &Report) -> String {
    let mut out = format!("{}\n", report.machine);
    for table in tables(report) {
        let widths: Vec<usize> = (0..table.head.len())
            .map(|column| {
                let cells = table.lines.iter().map(|line| &line[column]);
                cells
                    .chain([&table.head[column]])
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let _ = writeln!(out, "\n{}", table.title);
        for line in [&table.head].into_iter().chain(&table.lines) {
            let mut written = String::new();
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                if column == 0 {
                    let _ = write!(written, "  {cell:<width$}");
                } else {
                    let _ = write!(written, "  {cell:>width$}");
                }
            }
            let _ = writeln!(out, "{}", written.trim_end());
        }
    }
    if !report.summary.is_empty() {
        out.push_str("\nSummary\n");
    }
    let width = report
        .summary
        .iter()
        .map(|figure| figure.name.len())
        .max()
        .unwrap_or(0);
    for figure in &report.summary {
        let _ = writeln!(
            out,
            "  {:<width$}  {:>6} {:>5}  {}{}",
            figure.name,
            number(figure.value),
            spread(figure.spread),
            figure.meaning,
            verdict(figure)
        );
    }
    if !report.notes.is_empty() {
        out.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(out, "* {note}");
    }
    out
}

fn markdown(report: &Report) -> String {
    let mut out = format!("Machine: {}.\n", report.machine);
    if !report.summary.is_empty() {
        out.push_str("\n### Summary\n\n| figure | value | target | what it says |\n");
        out.push_str("|---|---|---|---|\n");
    }
    for figure in &report.summary {
        let target = figure.target.map_or_else(String::new, |target| {
            let met = if target.is_met(figure.value) {
                "met"
            } else {
                "**missed**"
            };
            format!("{} {met}", bound(target))
        });
        let _ = writeln!(
            out,
            "| `{}` | {} {} | {target} | {} |",
            figure.name,
            number(figure.value),
            spread(figure.spread),
            figure.meaning
        );
    }
    for table in tables(report) {
        let _ = writeln!(out, "\n### {}\n", table.title);
        let _ = writeln!(out, "| {} |", table.head.join(" | "));
        let _ = writeln!(out, "|{}", "---|".repeat(table.head.len()));
        for line in &table.lines {
            let _ = writeln!(out, "| {} |", line.join(" | "));
        }
    }
    if !report.notes.is_empty() {
        out.push_str("\n### Notes\n\n");
    }
    for note in &report.notes {
        let _ = writeln!(out, "- {note}");
    }
    out
}

fn json(report: &Report) -> String {
    let figures = |of: fn(&Figure) -> f64| -> Map<String, Value> {
        let summary = report.summary.iter();
        summary
            .map(|figure| (figure.name.clone(), json!(of(figure))))
            .collect()
    };
    let value = json!({
        "machine": report.machine,
        "rows": report.rows,
        "summary": figures(|figure| figure.value),
        "summary_spread": figures(|figure| figure.spread),
        "notes": report.notes,
    });
    format!("{value:#}\n")
}

fn tables(report: &Report) -> Vec<Table> {
    let mut units: Vec<Unit> = Vec::new();
    for row in &report.rows {
        if !units.contains(&row.unit) {
            units.push(row.unit);
        }
    }
    units.into_iter().map(|unit| table(report, unit)).collect()
}

fn table(report: &Report, unit: Unit) -> Table {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.unit == unit).collect();
    let mut workloads: Vec<&str> = Vec::new();
    let mut engines: Vec<&str> = Vec::new();
    for row in &rows {
        if !workloads.contains(&row.workload.as_str()) {
            workloads.push(&row.workload);
        }
        if !engines.contains(&row.engine.as_str()) {
            engines.push(&row.engine);
        }
    }
    let place = |engine: &&str| report.columns.iter().position(|name| name == engine);
    engines.sort_by_key(|engine| place(engine).unwrap_or(usize::MAX));
    let line = |workload: &&str| {
        let find = |engine: &str| {
            rows.iter()
                .find(|row| row.workload == *workload && row.engine == engine)
                .copied()
        };
        let baseline = report.baselines.iter().find_map(|baseline| find(baseline));
        let cells = engines
            .iter()
            .map(|engine| find(engine).map_or_else(String::new, |row| cell(row, baseline)));
        [workload.to_string()].into_iter().chain(cells).collect()
    };
    Table {
        title: unit.title(),
        head: [String::new()]
            .into_iter()
            .chain(engines.iter().map(ToString::to_string))
            .collect(),
        lines: workloads.iter().map(line).collect(),
    }
}

fn cell(row: &Row, baseline: Option<&Row>) -> String {
    let mut cell = format!("{} {}", number(row.value), spread(row.spread));
    if let Some(baseline) = baseline
        && baseline.engine != row.engine
    {
        let ratio = if row.unit.is_rate() {
            row.value / baseline.value
        } else {
            baseline.value / row.value
        };
        let _ = write!(cell, " {}×", number(ratio));
    }
    cell
}

fn verdict(figure: &Figure) -> String {
    figure.target.map_or_else(String::new, |target| {
        let met = if target.is_met(figure.value) {
            "met"
        } else {
            "MISSED"
        };
        format!(" ({}: {met})", bound(target))
    })
}

fn bound(target: Target) -> String {
    match target {
        Target::AtLeast(least) => format!("≥ {}", number(least)),
        Target::AtMost(most) => format!("≤ {}", number(most)),
    }
}

/// Three digits that count.
fn number(value: f64) -> String {
    let whole_digits = value.abs().max(1.0).log10().floor() as usize;
    let decimals = 2usize.saturating_sub(whole_digits);
    format!("{value:.decimals$}")
}

fn spread(spread: f64) -> String {
    format!("±{:.0}%", spread * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report {
            machine: "a machine".into(),
            baselines: vec!["libpcap".into()],
            notes: vec!["a note".into()],
            ..Report::default()
        };
        report.add_row("port 22, one packet", "interp", Unit::NsPerRun, 8.125);
        report.add_row("port 22, one packet", "libpcap", Unit::NsPerRun, 16.25);
        report.add_row("ancillary", "interp", Unit::NsPerRun, 412.4);
        report.rows[0].spread = 0.021;
        report.add_figure(
            "interp_vs_libpcap",
            "how fast",
            2.0,
            Some(Target::AtLeast(1.5)),
        );
        report
    }

    #[test]
    fn a_terminal_gets_aligned_columns_and_ratios() {
        let expected = "\
a machine

Nanoseconds a run
                               interp   libpcap
  port 22, one packet  8.12 ±2% 2.00×  16.2 ±0%
  ancillary                   412 ±0%

Summary
  interp_vs_libpcap    2.00   ±0%  how fast (≥ 1.50: met)

* a note
";
        assert_eq!(render(&report(), Form::Text), expected);
    }

    #[test]
    fn programs_find_rows_and_summary() {
        let value: Value = serde_json::from_str(&render(&report(), Form::Json)).expect("JSON");
        let expected = json!({
            "workload": "port 22, one packet",
            "engine": "interp",
            "value": 8.125,
            "unit": "ns/run",
            "spread": 0.021,
        });
        assert_eq!(value["rows"][0], expected);
        assert_eq!(value["summary"], json!({"interp_vs_libpcap": 2.0}));
    }

    #[test]
    fn numbers_keep_three_digits() {
        let written = [0.834, 8.125, 16.25, 412.4, 20_483.0, 2.0, 30.0].map(number);
        assert_eq!(
            written,
            ["0.83", "8.12", "16.2", "412", "20483", "2.00", "30.0"]
        );
    }
}
