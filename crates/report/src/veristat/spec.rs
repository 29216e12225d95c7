//! Columns and order of the output, in veristat's syntax.

use std::cmp::Ordering;

use super::VeristatError;
use super::row::ResultRow;

macro_rules! columns {
    ($($column:ident $heading:literal $($name:literal),+;)*) => {
        /// A column of results.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Column {
            $(#[doc = $heading] $column,)*
        }

        impl Column {
            /// Every column.
            pub const ALL: &'static [Column] = &[$(Column::$column,)*];

            /// The heading for people.
            pub fn heading(self) -> &'static str {
                match self {
                    $(Column::$column => $heading,)*
                }
            }

            /// Its names; the first is that of CSV headings.
            fn names(self) -> &'static [&'static str] {
                match self {
                    $(Column::$column => &[$($name),+],)*
                }
            }
        }
    };
}

columns! {
    FileName "File" "file_name", "filename", "file";
    ProgName "Program" "prog_name", "progname", "prog";
    Verdict "Verdict" "verdict";
    Duration "Duration (us)" "duration", "dur";
    TotalInsns "Insns" "total_insns", "insns";
    TotalStates "States" "total_states", "states";
    PeakStates "Peak states" "peak_states";
    MaxStatesPerInsn "Max states per insn" "max_states_per_insn";
    MarkRead "Max mark read length" "max_mark_read_len", "mark_read";
    Size "Program size" "prog_size";
    JitedSize "Jited size" "prog_size_jited";
    ProgType "Program type" "prog_type";
    AttachType "Attach type" "attach_type";
    Stack "Stack depth" "stack_depth", "stack";
    MaxStack "Max stack depth" "max_stack_depth";
    MemoryPeak "Peak memory (MiB)" "mem_peak";
    Reason "Reason" "reason";
    DurationUs "Duration (us)" "duration_us";
}

impl Column {
    /// veristat's columns, in the order of its CSV: it compares files of one order only.
    pub const VERISTAT: &'static [Column] = Column::ALL.split_at(16).0;

    /// The columns of a table where none are named.
    pub const SHOWN: &'static [Column] = &[
        Column::FileName,
        Column::ProgName,
        Column::Verdict,
        Column::Duration,
        Column::TotalInsns,
        Column::TotalStates,
        Column::Size,
        Column::Reason,
    ];

    /// The name in headings of CSV.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The column of a name.
    pub fn named(name: &str) -> Option<Column> {
        let name = name.trim();
        Column::ALL
            .iter()
            .copied()
            .find(|column| column.names().contains(&name))
    }

    /// True for words, false for numbers.
    pub fn is_text(self) -> bool {
        matches!(
            self,
            Column::FileName
                | Column::ProgName
                | Column::Verdict
                | Column::ProgType
                | Column::AttachType
                | Column::Reason
        )
    }
}

/// Selection of a column's value, where two sets of results are compared. Where there is one
/// set, all are its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatSide {
    /// The first.
    A,
    /// The second.
    #[default]
    B,
    /// The second less the first; of verdicts 1 if they are equal.
    Diff,
    /// The same in percent of the first.
    Percent,
}

/// A value of a row: `insns`, `insns_a`, `insns_b`, `insns_diff`, `insns_pct`, and
/// between bars its absolute value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The column.
    pub column: Column,
    /// The set of results.
    pub variant: StatSide,
    /// True for the absolute value.
    pub is_absolute: bool,
}

impl Stat {
    /// The value of that name.
    pub fn named(name: &str) -> Option<Stat> {
        const VARIANTS: [(&str, StatSide); 4] = [
            ("_a", StatSide::A),
            ("_b", StatSide::B),
            ("_diff", StatSide::Diff),
            ("_pct", StatSide::Percent),
        ];
        let name = name.trim();
        let inside = name
            .strip_prefix('|')
            .and_then(|name| name.strip_suffix('|'));
        let is_absolute = inside.is_some();
        let name = inside.unwrap_or(name);
        let stat = |column, variant| Stat {
            column,
            variant,
            is_absolute,
        };
        if let Some(column) = Column::named(name) {
            return Some(stat(column, StatSide::default()));
        }
        VARIANTS.iter().find_map(|&(end, variant)| {
            let column = Column::named(name.strip_suffix(end)?)?;
            Some(stat(column, variant))
        })
    }
}

/// Columns to print and values to sort by.
#[derive(Debug)]
pub struct Emit {
    columns: Option<Vec<Column>>,
    /// Value, and whether it ascends.
    order: Vec<(Stat, bool)>,
}

impl Emit {
    /// Reads lists of columns and of values to sort by, with commas between; `^` behind a value
    /// ascends, `v` descends.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn read(columns: &[String], order: &[String]) -> Result<Emit, VeristatError> {
        let split = |specs: &[String]| -> Vec<String> {
            let parts = specs.iter().flat_map(|spec| spec.split(','));
            parts
                .map(|part| part.trim().to_owned())
                .filter(|part| !part.is_empty())
                .collect()
        };
        let named =
            |name: &str| Stat::named(name).ok_or_else(|| VeristatError::NoColumn(name.to_owned()));
        let columns = split(columns);
        let emitted = columns
            .iter()
            .map(|name| named(name).map(|stat| stat.column))
            .collect::<Result<Vec<_>, _>>()?;
        let mut sorted = Vec::new();
        for part in split(order) {
            let (name, ascends) = match part.strip_suffix(['^', '<']) {
                Some(name) => (name, Some(true)),
                None => match part.strip_suffix(['v', 'V', '.', '>', '!', '_']) {
                    // A name may end so itself.
                    Some(name) if Stat::named(&part).is_none() => (name, Some(false)),
                    _ => (part.as_str(), None),
                },
            };
            let stat = named(name)?;
            sorted.push((stat, ascends.unwrap_or_else(|| stat.column.is_text())));
        }
        Ok(Emit {
            columns: (!emitted.is_empty()).then_some(emitted),
            order: sorted,
        })
    }

    /// The columns that were named, if any were.
    pub fn columns(&self) -> Option<&[Column]> {
        self.columns.as_deref()
    }

    /// True if rows are sorted.
    pub fn sorts(&self) -> bool {
        !self.order.is_empty()
    }

    /// Sorts rows, equal ones by file and program. Without an order they stay as they
    /// are.
    pub fn sort<R: AsRef<ResultRow>>(&self, rows: &mut [R]) {
        if self.order.is_empty() {
            return;
        }
        rows.sort_by(|one, other| {
            let (one, other) = (one.as_ref(), other.as_ref());
            let compare = |stat: Stat| match (one.number(stat.column), other.number(stat.column)) {
                (Some(one), Some(other)) => one.cmp(&other),
                _ => one.text(stat.column).cmp(&other.text(stat.column)),
            };
            let names = |row: &ResultRow| (row.file_name.clone(), row.prog_name.clone());
            self.order(compare)
                .then_with(|| names(one).cmp(&names(other)))
        });
    }

    /// The order of two rows whose values a function compares.
    pub(super) fn order(&self, compare: impl Fn(Stat) -> Ordering) -> Ordering {
        let orders = self.order.iter().map(|&(stat, ascends)| {
            let order = compare(stat);
            if ascends { order } else { order.reverse() }
        });
        orders.fold(Ordering::Equal, Ordering::then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders() {
        let order = ["insnsv,prog".to_owned()];
        let emit = Emit::read(&[], &order).ok().unwrap();
        let mut rows = vec![
            ResultRow::empty("f", "b"),
            ResultRow::empty("f", "a"),
            ResultRow::empty("f", "c"),
        ];
        rows[2].total_insns = 7;
        emit.sort(&mut rows);
        let names: Vec<&str> = rows.iter().map(|row| row.prog_name.as_str()).collect();
        assert_eq!(names, ["c", "a", "b"]);
        assert!(Emit::read(&["nonsense".to_owned()], &[]).is_err());
    }

    #[test]
    fn values_have_variants_and_absolute_values() {
        let stat = Stat::named("|insns_pct|").unwrap();
        assert_eq!(
            (stat.column, stat.variant),
            (Column::TotalInsns, StatSide::Percent)
        );
        assert!(stat.is_absolute);
        assert_eq!(Stat::named("dur_a").unwrap().variant, StatSide::A);
        assert_eq!(Stat::named("states").unwrap().variant, StatSide::B);
        assert_eq!(Stat::named("states_c"), None);
    }
}
