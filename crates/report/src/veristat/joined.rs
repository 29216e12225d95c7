//! Two sets of results side by side, as `veristat -C` prints them: each value of the
//! first set, of the second, and their difference.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::columns::push_columns;
use super::error::VeristatError;
use super::filter::{Filters, value_of};
use super::row::{ResultRow, csv_line};
use super::spec::{Column, Emit, Stat, StatSide};

/// Columns of a table where none are named; comma-separated values have all of veristat's.
const SHOWN: &[Column] = &[
    Column::FileName,
    Column::ProgName,
    Column::Verdict,
    Column::TotalInsns,
    Column::TotalStates,
];

/// A program in one or both sets.
struct Pair<'r> {
    name: (&'r str, &'r str),
    rows: [Option<&'r ResultRow>; 2],
}

/// Programs of both sets, selected, sorted and printed.
pub struct Joined<'r> {
    pairs: Vec<Pair<'r>>,
    /// The columns that are named.
    columns: Option<Vec<Column>>,
}

impl<'r> Joined<'r> {
    /// Joins two sets by file and program.
    ///
    /// # Errors
    /// If a set has a program twice.
    pub fn new(
        [a, b]: [&'r [ResultRow]; 2],
        emit: &Emit,
        filters: &Filters,
        top: Option<usize>,
    ) -> Result<Joined<'r>, VeristatError> {
        let mut all: BTreeMap<(&str, &str), [Option<&ResultRow>; 2]> = BTreeMap::new();
        for (side, rows) in [a, b].into_iter().enumerate() {
            for row in rows {
                let of_program = all.entry((&row.file_name, &row.prog_name)).or_default();
                if of_program[side].replace(row).is_some() {
                    let (file, prog) = (row.file_name.clone(), row.prog_name.clone());
                    return Err(VeristatError::ProgramTwice { file, prog });
                }
            }
        }
        let mut pairs: Vec<Pair<'_>> = all
            .into_iter()
            .map(|(name, rows)| Pair { name, rows })
            .filter(|pair| filters.keep_values(|stat| pair.value(stat)))
            .collect();
        // The sort is stable: programs that are equal stay in the order of their names.
        pairs.sort_by(|one, other| emit.order(|stat| one.compare(other, stat)));
        pairs.truncate(top.unwrap_or(usize::MAX));
        Ok(Joined {
            pairs,
            columns: emit.columns().map(<[Column]>::to_vec),
        })
    }

    /// Columns of text.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let (columns, cells) = self.cells(SHOWN, |column, part| match part {
            None => column.heading().to_owned(),
            Some(part) => format!("{} ({})", column.heading(), ["A", "B", "DIFF"][part]),
        });
        push_columns(&mut text, &columns, &cells);
        text
    }

    /// Comma-separated values.
    pub fn csv(&self) -> String {
        let (_, cells) = self.cells(Column::VERISTAT, |column, part| match part {
            None => column.name().to_owned(),
            Some(part) => format!("{}{}", column.name(), ["_base", "_comp", "_diff"][part]),
        });
        cells.into_iter().map(csv_line).collect()
    }

    /// Headings and values of the named columns, or of the default ones.
    fn cells(
        &self,
        default: &[Column],
        heading: impl Fn(Column, Option<usize>) -> String,
    ) -> (Vec<Column>, Vec<Vec<String>>) {
        let chosen = self.columns.as_deref().unwrap_or(default);
        let mut columns = Vec::new();
        let mut headings = Vec::new();
        for &column in chosen {
            match is_key(column) {
                true => {
                    columns.push(column);
                    headings.push(heading(column, None));
                }
                false => {
                    // Differences are words, to the left.
                    columns.extend([column, column, Column::Reason]);
                    headings.extend((0..3).map(|part| heading(column, Some(part))));
                }
            }
        }
        let mut cells = vec![headings];
        for pair in &self.pairs {
            let row = chosen.iter().flat_map(|&column| match column {
                Column::FileName => vec![pair.name.0.to_owned()],
                Column::ProgName => vec![pair.name.1.to_owned()],
                column => pair.values(column).to_vec(),
            });
            cells.push(row.collect());
        }
        (columns, cells)
    }
}

fn is_key(column: Column) -> bool {
    matches!(column, Column::FileName | Column::ProgName)
}

impl Pair<'_> {
    /// A value as a number; `None` for words, and where a set lacks the program.
    fn value(&self, stat: Stat) -> Option<f64> {
        let value = |side: usize| self.rows[side].and_then(|row| value_of(row, stat.column));
        match stat.variant {
            StatSide::A => value(0),
            StatSide::B => value(1),
            StatSide::Diff if stat.column == Column::Verdict => {
                Some(f64::from(u8::from(value(0)? == value(1)?)))
            }
            StatSide::Diff => Some(value(1)? - value(0)?),
            StatSide::Percent => Some(percent(value(0)?, value(1)?)),
        }
    }

    fn compare(&self, other: &Pair<'_>, stat: Stat) -> Ordering {
        match stat.column {
            Column::FileName => return self.name.0.cmp(other.name.0),
            Column::ProgName => return self.name.1.cmp(other.name.1),
            _ => {}
        }
        let value = |pair: &Pair<'_>| {
            let value = pair.value(stat).unwrap_or(f64::MIN);
            if stat.is_absolute { value.abs() } else { value }
        };
        value(self).total_cmp(&value(other))
    }

    /// The value of each set and the difference.
    fn values(&self, column: Column) -> [String; 3] {
        let text = |side: usize| self.rows[side].map(|row| row.text(column));
        let difference = match (text(0), text(1), column.is_text()) {
            (Some(a), Some(b), true) => match a == b {
                true => "MATCH".to_owned(),
                false => "MISMATCH".to_owned(),
            },
            (Some(_), Some(_), false) => {
                let stat = |variant| Stat {
                    column,
                    variant,
                    is_absolute: false,
                };
                let value = |variant| self.value(stat(variant)).unwrap_or(0.0);
                format!(
                    "{:+} ({:+.2}%)",
                    value(StatSide::Diff),
                    value(StatSide::Percent)
                )
            }
            _ => "N/A".to_owned(),
        };
        let shown = |side: usize| text(side).unwrap_or_else(|| "N/A".to_owned());
        [shown(0), shown(1), difference]
    }
}

/// Growth from one number to another; what was 0 grows by all of it.
fn percent(from: f64, to: f64) -> f64 {
    match from == 0.0 {
        false => (to - from) * 100.0 / from,
        true if to == from => 0.0,
        true => 100.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(insns: &[(&str, u64)]) -> Vec<ResultRow> {
        let row = |&(prog, total_insns): &(&str, u64)| ResultRow {
            total_insns,
            ..ResultRow::empty("a.o", prog)
        };
        insns.iter().map(row).collect()
    }

    #[test]
    fn pairs_are_selected_sorted_and_printed() {
        let (a, b) = (
            rows(&[("x", 100), ("y", 10)]),
            rows(&[("x", 90), ("y", 15), ("z", 1)]),
        );
        let emit = |order: &str| {
            let columns = ["prog,insns".to_owned()];
            Emit::read(&columns, &[order.to_owned()]).ok().unwrap()
        };
        let all = Filters::default();
        let joined = Joined::new([&a, &b], &emit("insns_diff^"), &all, None).unwrap();
        assert_eq!(
            joined.csv(),
            "prog_name,total_insns_base,total_insns_comp,total_insns_diff\n\
             z,N/A,1,N/A\n\
             x,100,90,-10 (-10.00%)\n\
             y,10,15,+5 (+50.00%)\n"
        );
        let mut grown = Filters::default();
        grown.push("|insns_pct|>=50").unwrap();
        let joined = Joined::new([&a, &b], &emit("prog"), &grown, None).unwrap();
        assert_eq!(joined.table().lines().count(), 3, "{}", joined.table());
        let first = Joined::new([&a, &b], &emit("|insns_diff|"), &all, Some(2)).unwrap();
        let twice = [a.clone(), a.clone()].concat();
        assert!(Joined::new([&twice, &b], &emit("prog"), &all, None).is_err());
        assert!(first.csv().contains("\nz,"), "{}", first.csv());
    }
}
