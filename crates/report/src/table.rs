//! Text table: aligned columns under headings.

use std::fmt::Write;

use anstyle::Style;

/// Cells in columns, two spaces apart; those of `right` are numbers, which end at the same column.
/// `style` is that of a cell by its row, its column and its text.
pub fn aligned(
    cells: &[Vec<String>],
    right: &[usize],
    style: impl Fn(usize, usize, &str) -> Style,
) -> String {
    let count = cells.first().map_or(0, Vec::len);
    let width = |at: usize| cells.iter().map(|line| line[at].chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|at| width(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for (row, line) in cells.iter().enumerate() {
        let padded = line.iter().zip(&widths).enumerate();
        let padded = padded.map(|(at, (cell, width))| {
            let style = style(row, at, cell);
            let room = width - cell.chars().count();
            match right.contains(&at) {
                true => format!("{:room$}{style}{cell}{style:#}", ""),
                false => format!("{style}{cell}{style:#}{:room$}", ""),
            }
        });
        let padded: Vec<String> = padded.collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

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
    /// Columns of the terminal.
    width: Option<usize>,
    /// Headings of the columns that are left out first where the table is wider.
    minor: &'static [&'static str],
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Side)]) -> Table {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
            width: None,
            minor: &[],
        }
    }

    /// Fits the table into a width, without these columns if need be: the first goes first.
    pub(crate) fn fit(mut self, width: Option<usize>, minor: &'static [&'static str]) -> Table {
        (self.width, self.minor) = (width, minor);
        self
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Writes the headings and at most so many rows, two spaces in; `hint` is behind the number of
    /// those that are left out.
    pub(crate) fn write(&self, text: &mut String, most: usize, hint: &str) {
        let shown = &self.rows[..self.rows.len().min(most)];
        let width = |at: usize| {
            let cells = shown.iter().map(|row| row[at].chars().count());
            cells.fold(self.columns[at].0.chars().count(), usize::max)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let left_out = self.left_out(&widths);
        let shows = |at: &usize| !left_out.contains(&self.columns[*at].0);
        let columns: Vec<usize> = (0..self.columns.len()).filter(shows).collect();
        let line = |cells: &[&str]| {
            let mut line = String::new();
            for &at in &columns {
                let (cell, width) = (cells[at], widths[at]);
                let _ = match self.columns[at].1 {
                    Side::Left => write!(line, "  {cell:width$}"),
                    Side::Right => write!(line, "  {cell:>width$}"),
                };
            }
            line.truncate(line.trim_end().len());
            line
        };
        let dim = Style::new().dimmed();
        let headings: Vec<&str> = self.columns.iter().map(|(heading, _)| *heading).collect();
        let _ = writeln!(text, "{dim}{}{dim:#}", line(&headings));
        for row in shown {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            let _ = writeln!(text, "{}", line(&cells));
        }
        if let Some(more @ 1..) = self.rows.len().checked_sub(shown.len()) {
            let _ = writeln!(text, "  … and {more} more{hint}");
        }
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            let _ = writeln!(text, "  … without {names}{hint}");
        }
    }

    /// Headings of the columns that have no room.
    fn left_out(&self, widths: &[usize]) -> &'static [&'static str] {
        let Some(room) = self.width else {
            return &[];
        };
        let needed = |without: &[&str]| -> usize {
            let columns = self.columns.iter().zip(widths);
            let kept = columns.filter(|((heading, _), _)| !without.contains(heading));
            kept.map(|(_, width)| width + 2).sum()
        };
        let mut counts = 0..self.minor.len();
        let fits = counts.find(|count| needed(&self.minor[..*count]) <= room);
        &self.minor[..fits.unwrap_or(self.minor.len())]
    }
}
