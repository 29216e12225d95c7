//! Results: one row for each program, in veristat's columns.

use std::path::Path;

use beebox::program::MapKind;
use beebox::verify::RefusedMap;
use serde::Serialize;

use super::cost::ProgramCost;
use super::facts::FactTable;
use super::recorded::Agreement;
use super::spec::{Column, Emit};
use super::top_lines::TopLine;
use crate::answer::Failure;
use crate::program_input::read_at_most;
use crate::program_output;

/// Bytes of the largest file of results.
const LARGEST: u64 = 32 << 20;

/// Most results of a file, which bounds the memory of comparisons.
const MOST_ROWS: usize = 100_000;

/// `prog_type` of a program whose section name implies none, and none is set.
pub(super) const UNTYPED: &str = "unspec";

/// Verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// Refused.
    Failure,
    /// Accepted.
    Success,
    /// Unsupported.
    Unsupported,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Failure => "failure",
            Verdict::Success => "success",
            Verdict::Unsupported => "unsupported",
        }
    }
}

/// An explanation, as text and as data.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Explained {
    #[serde(skip)]
    pub(super) text: String,
    pub(super) data: serde_json::Value,
}

/// A map that is not created.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MapRow {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    errno: String,
    /// The violated rule.
    rule: String,
}

impl MapRow {
    pub(super) fn new(map: &RefusedMap) -> MapRow {
        MapRow {
            name: map.name.clone(),
            kind: map.kind.map(MapKind::name),
            errno: map.refusal.errno.to_string(),
            rule: map.refusal.fault.to_string(),
        }
    }
}

/// One program's results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) file_name: String,
    pub(super) prog_name: String,
    pub(super) verdict: Verdict,
    /// Microseconds.
    pub(super) duration: u64,
    pub(super) total_insns: u64,
    pub(super) total_states: u64,
    pub(super) peak_states: u64,
    pub(super) max_states_per_insn: u64,
    pub(super) max_mark_read_len: u64,
    pub(super) prog_size: u64,
    pub(super) prog_size_jited: u64,
    /// Sum over subprograms, as veristat has it.
    pub(super) stack_depth: u64,
    pub(super) max_stack_depth: u64,
    pub(super) prog_type: String,
    pub(super) attach_type: String,
    /// MiB.
    pub(super) mem_peak: u64,
    pub(super) reason: String,
    pub(super) duration_us: u64,
    /// Stack depth by subprogram, as the kernel prints it.
    pub(super) stack: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) log: String,
    /// Bytes of the log before what `log` has.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) log_left_out: u64,
    /// The error number of a refusal.
    #[serde(skip)]
    pub(super) errno: Option<i32>,
    /// The map that is not created, if that is why the program is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused_map: Option<MapRow>,
    /// Assumptions about the maps of the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// Comparison with the answers that a text case records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) recorded: Vec<Agreement>,
    /// Explanation of the refusal, with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) explanation: Option<Explained>,
    /// Costs of verification, with `--cost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<ProgramCost>,
    /// Facts of an accepted program, with `--facts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) facts: Option<FactTable>,
    /// The source lines that the log names most often, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) top_lines: Vec<TopLine>,
}

impl Row {
    pub(super) fn empty(file: &str, prog: &str) -> Row {
        Row {
            file_name: file.to_owned(),
            prog_name: prog.to_owned(),
            verdict: Verdict::Unsupported,
            duration: 0,
            total_insns: 0,
            total_states: 0,
            peak_states: 0,
            max_states_per_insn: 0,
            max_mark_read_len: 0,
            prog_size: 0,
            prog_size_jited: 0,
            stack_depth: 0,
            max_stack_depth: 0,
            prog_type: String::new(),
            attach_type: String::new(),
            mem_peak: 0,
            reason: String::new(),
            duration_us: 0,
            stack: String::new(),
            log: String::new(),
            log_left_out: 0,
            errno: None,
            refused_map: None,
            notes: Vec::new(),
            recorded: Vec::new(),
            explanation: None,
            cost: None,
            facts: None,
            top_lines: Vec::new(),
        }
    }

    /// The number in a column; `None` for words.
    pub(super) fn number(&self, column: Column) -> Option<u64> {
        Some(match column {
            Column::Duration => self.duration,
            Column::TotalInsns => self.total_insns,
            Column::TotalStates => self.total_states,
            Column::PeakStates => self.peak_states,
            Column::MaxStatesPerInsn => self.max_states_per_insn,
            Column::MarkRead => self.max_mark_read_len,
            Column::Size => self.prog_size,
            Column::JitedSize => self.prog_size_jited,
            Column::Stack => self.stack_depth,
            Column::MaxStack => self.max_stack_depth,
            Column::MemoryPeak => self.mem_peak,
            Column::DurationUs => self.duration_us,
            _ => return None,
        })
    }

    pub(super) fn set_number(&mut self, column: Column, number: u64) {
        let field = match column {
            Column::Duration => &mut self.duration,
            Column::TotalInsns => &mut self.total_insns,
            Column::TotalStates => &mut self.total_states,
            Column::PeakStates => &mut self.peak_states,
            Column::MaxStatesPerInsn => &mut self.max_states_per_insn,
            Column::MarkRead => &mut self.max_mark_read_len,
            Column::Size => &mut self.prog_size,
            Column::JitedSize => &mut self.prog_size_jited,
            Column::Stack => &mut self.stack_depth,
            Column::MaxStack => &mut self.max_stack_depth,
            Column::MemoryPeak => &mut self.mem_peak,
            Column::DurationUs => &mut self.duration_us,
            _ => return,
        };
        *field = number;
    }

    /// The text in a column.
    pub(super) fn text(&self, column: Column) -> String {
        match column {
            Column::FileName => self.file_name.clone(),
            Column::ProgName => self.prog_name.clone(),
            Column::Verdict => self.verdict.name().to_owned(),
            Column::ProgType => self.prog_type.clone(),
            Column::AttachType => self.attach_type.clone(),
            Column::Reason => self.reason.clone(),
            _ => self.number(column).unwrap_or(0).to_string(),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Comma-separated values; `with_ours` adds our columns and the programs that are
/// unsupported.
pub(super) fn csv(rows: &[Row], emit: &Emit, with_ours: bool) -> String {
    let columns = match emit.columns() {
        Some(columns) => columns.to_vec(),
        None if with_ours => Column::ALL.to_vec(),
        None => Column::VERISTAT.to_vec(),
    };
    let columns: Vec<Column> = columns
        .into_iter()
        .filter(|column| with_ours || Column::VERISTAT.contains(column))
        .collect();
    let mut text = String::new();
    let names = columns.iter().map(|column| column.name().to_owned());
    push_line(&mut text, names);
    for row in rows {
        if with_ours || row.verdict != Verdict::Unsupported {
            push_line(
                &mut text,
                columns.iter().map(|&column| quoted(row.text(column))),
            );
        }
    }
    text
}

/// A line of comma-separated values.
pub(super) fn csv_line(cells: Vec<String>) -> String {
    let mut text = String::new();
    push_line(&mut text, cells.into_iter().map(quoted));
    text
}

fn push_line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&cell);
    }
    text.push('\n');
}

fn quoted(cell: String) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

/// One line of JSON.
pub(super) fn json(row: &Row) -> Vec<u8> {
    program_output::json(row)
}

/// Reads results that this command or veristat wrote.
pub(super) fn read_csv(path: &Path) -> Result<Vec<Row>, Failure> {
    let bytes = read_at_most(path, LARGEST)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let within = |failure: Failure| failure.within(path.display());
    let headings = cells(lines.next().unwrap_or_default());
    let columns: Vec<Option<Column>> = headings.iter().map(|name| Column::named(name)).collect();
    let has = |column| columns.contains(&Some(column));
    let needed = [Column::FileName, Column::ProgName, Column::Verdict];
    let absent: Vec<_> = needed.into_iter().filter(|column| !has(*column)).collect();
    if !absent.is_empty() {
        let names: Vec<_> = absent.iter().map(|column| column.name()).collect();
        let columns = if names.len() == 1 {
            "column"
        } else {
            "columns"
        };
        let failure = Failure::new(format_args!("no {columns} {}", names.join(", ")));
        return Err(within(failure).hint("the CSV of veristat or of `beebox verify --format csv`"));
    }
    let mut rows = Vec::new();
    for (line, number) in lines.zip(2..) {
        if rows.len() == MOST_ROWS {
            let what = format_args!("line {number}: a file has at most {MOST_ROWS} results");
            return Err(within(Failure::new(what)));
        }
        let mut row = Row::empty("", "");
        for (cell, column) in cells(line).into_iter().zip(&columns) {
            let Some(column) = *column else {
                continue;
            };
            match column {
                Column::FileName => row.file_name = cell,
                Column::ProgName => row.prog_name = cell,
                Column::ProgType => row.prog_type = cell,
                Column::AttachType => row.attach_type = cell,
                Column::Reason => row.reason = cell,
                Column::Verdict => {
                    row.verdict = match cell.as_str() {
                        "success" => Verdict::Success,
                        "failure" => Verdict::Failure,
                        _ => Verdict::Unsupported,
                    }
                }
                column => {
                    let value: i64 = cell.parse().map_err(|_| {
                        within(Failure::new(format_args!(
                            "line {number}: {cell:?} in column {} is no number",
                            column.name()
                        )))
                    })?;
                    // veristat has -1 for what it did not measure.
                    let value = u64::try_from(value).unwrap_or(0);
                    row.set_number(column, value);
                }
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The cells of a line, without their quotes.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut rest = line.chars().peekable();
    while let Some(now) = rest.next() {
        match now {
            '"' if is_quoted && rest.peek() == Some(&'"') => {
                rest.next();
                cells.last_mut().expect("one from the start").push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            other => cells.last_mut().expect("one from the start").push(other),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_verdicts_and_with_too_many_results_are_refused() {
        let path = std::env::temp_dir().join(format!("beebox-rows-{}.csv", std::process::id()));
        let fault = |text: &str| {
            std::fs::write(&path, text).expect("a file in the temporary directory");
            let failure = read_csv(&path).err().map(|it| it.to_string());
            let _ = std::fs::remove_file(&path);
            failure.unwrap_or_default()
        };
        assert!(fault("file_name,prog_name\na.o,p\n").ends_with("no column verdict"));
        assert!(fault("file_name\na.o\n").ends_with("no columns prog_name, verdict"));
        let most =
            "file_name,prog_name,verdict\n".to_owned() + &"a.o,p,success\n".repeat(MOST_ROWS);
        assert_eq!(fault(&most), "");
        let more = fault(&(most + "a.o,q,success\n"));
        assert!(
            more.ends_with("line 100002: a file has at most 100000 results"),
            "{more}"
        );
    }

    #[test]
    fn cells_are_read_as_they_are_written() {
        for cell in ["plain", "a, b", "say \"x\"", ""] {
            assert_eq!(cells(&quoted(cell.to_owned())), [cell]);
        }
        assert_eq!(cells("a,,\"b,c\""), ["a", "", "b,c"]);
    }
}
