//! Columns of text.

use std::fmt::Write as _;

use super::row::ResultVerdict;
use super::spec::Column;
use crate::terminal::columns_of;
use anstyle::{AnsiColor, Style};

/// Cells under each other, words to the left and numbers to the right; verdicts in colour.
pub fn push_columns(text: &mut String, columns: &[Column], cells: &[Vec<String>]) {
    let width = |at: usize| {
        cells
            .iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    for (number, row) in cells.iter().enumerate() {
        let mut line = String::new();
        for ((cell, width), column) in row.iter().zip(&widths).zip(columns) {
            // Widths of formats end at 65,535.
            let padding = " ".repeat(width - cell.chars().count());
            let style = style(*column, cell);
            let _ = match column.is_text() {
                true => write!(line, "{style}{cell}{style:#}{padding}  "),
                false => write!(line, "{padding}{cell}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if number == 0 {
            let rule = widths.iter().map(|&width| "-".repeat(width));
            text.push_str(&rule.collect::<Vec<_>>().join("  "));
            text.push('\n');
        }
    }
}

/// Columns that a table leaves out where it has no room, the first first.
const MINOR: [Column; 3] = [Column::Size, Column::TotalStates, Column::Duration];

/// As [`push_columns`], in lines of at most `width` columns where that is possible: reasons then
/// stand below their rows, and columns that nobody named (`may_omit`) are left out, which a last
/// line says. The first row of cells are the headings.
pub fn push_columns_within(
    text: &mut String,
    columns: &[Column],
    cells: &[Vec<String>],
    width: usize,
    may_omit: bool,
) {
    let lines = |columns: &[Column], cells: &[Vec<String>]| {
        let mut text = String::new();
        push_columns(&mut text, columns, cells);
        text
    };
    let fits = |text: &str| text.lines().all(|line| columns_of(line) <= width);
    let whole = lines(columns, cells);
    if fits(&whole) {
        return text.push_str(&whole);
    }
    let minor = if may_omit { &MINOR[..] } else { &[] };
    let mut table = String::new();
    let mut omitted = Vec::new();
    for count in 0..=minor.len() {
        let is_kept =
            |column: &Column| *column != Column::Reason && !minor[..count].contains(column);
        let kept: Vec<usize> = (0..columns.len())
            .filter(|at| is_kept(&columns[*at]))
            .collect();
        let cells: Vec<Vec<String>> = cells
            .iter()
            .map(|row| kept.iter().map(|at| row[*at].clone()).collect())
            .collect();
        let columns: Vec<Column> = kept.iter().map(|at| columns[*at]).collect();
        table = lines(&columns, &cells);
        omitted = minor[..count]
            .iter()
            .map(|column| column.heading())
            .collect();
        if fits(&table) {
            break;
        }
    }
    // Two lines of headings, then a line for each row.
    let reason = columns.iter().position(|column| *column == Column::Reason);
    let reasons = cells
        .iter()
        .skip(1)
        .map(|row| reason.map_or("", |at| &row[at]));
    for (line, reason) in table.lines().zip(["", ""].into_iter().chain(reasons)) {
        let _ = writeln!(text, "{line}");
        if !reason.is_empty() {
            let _ = writeln!(text, "    {reason}");
        }
    }
    if !omitted.is_empty() {
        let _ = writeln!(text, "without {} (-e names columns)", omitted.join(", "));
    }
}

/// The style of a cell.
fn style(column: Column, cell: &str) -> Style {
    let colours = [
        (ResultVerdict::Success, AnsiColor::Green),
        (ResultVerdict::Failure, AnsiColor::Red),
        (ResultVerdict::Unsupported, AnsiColor::Yellow),
    ];
    let colour = colours.iter().find(|(verdict, _)| verdict.name() == cell);
    match colour.filter(|_| column == Column::Verdict) {
        Some((_, colour)) => colour.on_default(),
        None => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_has_reasons_below_and_leaves_columns_out() {
        let columns = Column::SHOWN;
        let headings = columns.iter().map(|column| column.heading().to_owned());
        let row = [
            "long-name.bpf.o",
            "long_name",
            "failure",
            "7",
            "1",
            "2",
            "3",
            "a reason",
        ];
        let cells = [headings.collect(), row.map(str::to_owned).to_vec()];
        let table = |width, may_omit| {
            let mut text = String::new();
            push_columns_within(&mut text, columns, &cells, width, may_omit);
            let plain = text.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
            plain.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let mut whole = String::new();
        push_columns(&mut whole, columns, &cells);
        assert_eq!(table(200, true).len(), 3);
        assert!(whole.contains("3  a reason"));
        for width in [60, 70, 80] {
            let lines = table(width, true);
            assert!(lines.iter().all(|line| line.len() <= width), "{lines:?}");
            assert!(lines.contains(&"    a reason".to_owned()), "{lines:?}");
        }
        let narrow = table(70, true);
        assert_eq!(
            narrow.last().unwrap(),
            "without Program size (-e names columns)"
        );
        // Columns that are named stay.
        assert!(table(70, false)[0].ends_with("Insns  States  Program size"));
    }
}
