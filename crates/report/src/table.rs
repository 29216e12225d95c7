//! Text table: aligned columns under headings.

use std::fmt::Write;

use anstyle::Style;

/// On which side a column is even.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table in the making.
pub(crate) struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Side)]) -> Table {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Writes the headings and at most so many rows, two spaces in.
    pub(crate) fn write(&self, text: &mut String, most: usize) {
        let shown = &self.rows[..self.rows.len().min(most)];
        let width = |at: usize| {
            let cells = shown.iter().map(|row| row[at].chars().count());
            cells.fold(self.columns[at].0.len(), usize::max)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let dim = Style::new().dimmed();
        let headings = self.columns.iter().map(|(heading, _)| *heading);
        let line = self.line(&widths, headings);
        let _ = writeln!(text, "{dim}{line}{dim:#}");
        for row in shown {
            let line = self.line(&widths, row.iter().map(String::as_str));
            let _ = writeln!(text, "{line}");
        }
        if let Some(more @ 1..) = self.rows.len().checked_sub(shown.len()) {
            let _ = writeln!(text, "  … and {more} more (--all lists them)");
        }
    }

    fn line<'c>(&self, widths: &[usize], cells: impl Iterator<Item = &'c str>) -> String {
        let mut line = String::new();
        for ((cell, width), (_, side)) in cells.zip(widths).zip(&self.columns) {
            let _ = match side {
                Side::Left => write!(line, "  {cell:width$}"),
                Side::Right => write!(line, "  {cell:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}
