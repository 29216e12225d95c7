//! Columns of text.

use std::fmt::Write as _;

use super::row::ResultVerdict;
use super::spec::Column;
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
