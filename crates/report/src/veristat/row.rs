//! Results: one row for each program, in veristat's columns.

use serde::Serialize;

use super::VeristatError;
use super::spec::{Column, Emit};

/// Verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultVerdict {
    /// Refused.
    Failure,
    /// Accepted.
    Success,
    /// Unsupported.
    Unsupported,
}

impl ResultVerdict {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            ResultVerdict::Failure => "failure",
            ResultVerdict::Success => "success",
            ResultVerdict::Unsupported => "unsupported",
        }
    }
}

/// One program's results.
#[derive(Clone, Debug, Serialize)]
pub struct ResultRow {
    /// The file.
    pub file_name: String,
    /// The program.
    pub prog_name: String,
    /// The verdict.
    #[serde(rename = "verifier_verdict")]
    pub verdict: ResultVerdict,
    /// Duration of the verification in microseconds.
    pub duration: u64,
    /// Instructions that the verifier processed.
    pub total_insns: u64,
    /// States that it explored.
    pub total_states: u64,
    /// Most states at a time.
    pub peak_states: u64,
    /// Most states of an instruction.
    pub max_states_per_insn: u64,
    /// Length of the longest chain of read marks.
    pub max_mark_read_len: u64,
    /// Instructions of the program.
    pub prog_size: u64,
    /// Bytes of its native code.
    pub prog_size_jited: u64,
    /// Sum over subprograms, as veristat has it.
    pub stack_depth: u64,
    /// Stack of the deepest call chain in bytes.
    pub max_stack_depth: u64,
    /// The program type.
    pub prog_type: String,
    /// The attach type; the first by number where the program states none, as veristat has it.
    #[serde(skip)]
    pub attach_type: String,
    /// Peak memory in MiB.
    pub mem_peak: u64,
    /// Reason of a refusal.
    pub reason: String,
    /// Microseconds.
    pub duration_us: u64,
    /// Stack depth by subprogram, as the kernel prints it.
    pub stack: String,
}

impl AsRef<ResultRow> for ResultRow {
    fn as_ref(&self) -> &ResultRow {
        self
    }
}

impl ResultRow {
    /// A row without results.
    pub fn empty(file: &str, prog: &str) -> ResultRow {
        ResultRow {
            file_name: file.to_owned(),
            prog_name: prog.to_owned(),
            verdict: ResultVerdict::Unsupported,
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
        }
    }

    /// The number in a column; `None` for words.
    pub fn number(&self, column: Column) -> Option<u64> {
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

    /// Sets the number in a column; nothing for words.
    pub fn set_number(&mut self, column: Column, number: u64) {
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
    pub fn text(&self, column: Column) -> String {
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

/// Comma-separated values; `with_ours` adds our columns and the programs that are
/// unsupported.
pub fn csv<R: AsRef<ResultRow>>(rows: &[R], emit: &Emit, with_ours: bool) -> String {
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
    for row in rows.iter().map(AsRef::as_ref) {
        if with_ours || row.verdict != ResultVerdict::Unsupported {
            push_line(
                &mut text,
                columns.iter().map(|&column| quoted(row.text(column))),
            );
        }
    }
    text
}

/// A line of comma-separated values.
pub fn csv_line(cells: Vec<String>) -> String {
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

/// A cell of comma-separated values, in quotes if it needs them.
pub fn quoted(cell: String) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

/// Most results of a file, which bounds the memory of comparisons.
pub const MOST_ROWS: usize = 100_000;

/// Reads results that this command or veristat wrote as comma-separated values. Columns that are
/// unknown are left out.
///
/// # Errors
/// If there are no columns of files, programs and verdicts, a column or a line has another form,
/// or there are more results than [`MOST_ROWS`].
pub fn read_csv(text: &str) -> Result<Vec<ResultRow>, VeristatError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    let open = |line| move || VeristatError::OpenQuote { line };
    let headings = cells(lines.next().unwrap_or_default()).ok_or_else(open(1))?;
    let columns: Vec<Option<Column>> = headings.iter().map(|name| Column::named(name)).collect();
    let has = |column| columns.contains(&Some(column));
    let needed = [Column::FileName, Column::ProgName, Column::Verdict];
    let absent: Vec<_> = needed.into_iter().filter(|column| !has(*column)).collect();
    if !absent.is_empty() {
        let absent = absent.iter().map(|column| column.name()).collect();
        return Err(VeristatError::Absent(absent));
    }
    for (at, column) in columns.iter().enumerate() {
        if let Some(column) = column.filter(|it| columns[..at].contains(&Some(*it))) {
            return Err(VeristatError::ColumnTwice(column.name()));
        }
    }
    let mut rows = Vec::new();
    for (line, number) in lines.zip(2..) {
        if rows.len() == MOST_ROWS {
            return Err(VeristatError::TooMany { line: number });
        }
        let mut row = ResultRow::empty("", "");
        let cells = cells(line).ok_or_else(open(number))?;
        if cells.len() != columns.len() {
            return Err(VeristatError::Cells {
                line: number,
                cells: cells.len(),
                columns: columns.len(),
            });
        }
        for (cell, column) in cells.into_iter().zip(&columns) {
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
                        "success" => ResultVerdict::Success,
                        "failure" => ResultVerdict::Failure,
                        "unsupported" => ResultVerdict::Unsupported,
                        _ => return Err(VeristatError::Verdict { line: number, cell }),
                    }
                }
                column => {
                    // veristat has -1 for what it did not measure.
                    let value = match &*cell {
                        "-1" => Some(0),
                        cell => cell.parse().ok(),
                    };
                    let value = value.ok_or_else(|| VeristatError::Number {
                        line: number,
                        column: column.name(),
                        cell,
                    })?;
                    row.set_number(column, value);
                }
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The cells of a line, without their quotes; `None` if the last quote is open.
fn cells(line: &str) -> Option<Vec<String>> {
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
    (!is_quoted).then_some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_without_verdicts_and_too_many_are_refused() {
        let fault = |text: &str| read_csv(text).err().map(|fault| fault.to_string());
        let absent = fault("file_name,prog_name\na.o,p\n");
        assert_eq!(absent.as_deref(), Some("no column verdict"));
        let absent = fault("file_name\na.o\n");
        assert_eq!(absent.as_deref(), Some("no columns prog_name, verdict"));
        for (text, expected) in [
            ("a.o,p,success", "line 2: 3 of 4 columns"),
            ("a.o,p,maybe,1", "line 2: \"maybe\" is no verdict"),
            ("a.o,\"p,success,1", "line 2: a quote is not closed"),
            (
                "a.o,p,success,-5",
                "line 2: \"-5\" in column total_insns is no number",
            ),
        ] {
            let text = format!("\u{feff}file_name,prog_name,verdict,total_insns\n{text}\n");
            assert_eq!(fault(&text).as_deref(), Some(expected));
        }
        let twice = fault("file_name,prog_name,verdict,verdict\n");
        assert_eq!(twice.as_deref(), Some("two columns verdict"));
        let most =
            "file_name,prog_name,verdict\n".to_owned() + &"a.o,p,success\n".repeat(MOST_ROWS);
        assert_eq!(fault(&most), None);
        let more = fault(&(most + "a.o,q,success\n"));
        let expected = "line 100002: a file has at most 100000 results";
        assert_eq!(more.as_deref(), Some(expected));
    }

    #[test]
    fn cells_are_read_as_they_are_written() {
        for cell in ["plain", "a, b", "say \"x\"", ""] {
            assert_eq!(cells(&quoted(cell.to_owned())).unwrap(), [cell]);
        }
        assert_eq!(cells("a,,\"b,c\"").unwrap(), ["a", "", "b,c"]);
        assert_eq!(cells("a,\"b"), None);
    }
}
