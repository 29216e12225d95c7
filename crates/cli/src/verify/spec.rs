//! What to print, in which order and of which programs: veristat's specifications.

use super::row::Row;
use crate::answer::Failure;

macro_rules! columns {
    ($($column:ident $heading:literal $($name:literal),+;)*) => {
        /// A column of results.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Column {
            $($column,)*
        }

        impl Column {
            /// Every column.
            pub(super) const ALL: &'static [Column] = &[$(Column::$column,)*];

            /// The heading for people.
            pub(super) fn heading(self) -> &'static str {
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
    Stack "Stack depth" "stack_depth", "stack";
    MaxStack "Max stack depth" "max_stack_depth";
    ProgType "Program type" "prog_type";
    AttachType "Attach type" "attach_type";
    MemoryPeak "Peak memory (MiB)" "mem_peak";
    Reason "Reason" "reason";
    DurationUs "Duration (us)" "duration_us";
}

impl Column {
    /// veristat's columns.
    pub(super) const VERISTAT: &'static [Column] = Column::ALL.split_at(16).0;

    /// The columns of a table where none are named.
    pub(super) const SHOWN: &'static [Column] = &[
        Column::FileName,
        Column::ProgName,
        Column::Verdict,
        Column::Duration,
        Column::TotalInsns,
        Column::TotalStates,
        Column::Size,
        Column::Reason,
    ];

    pub(super) fn name(self) -> &'static str {
        self.names()[0]
    }

    pub(super) fn named(name: &str) -> Option<Column> {
        let name = name.trim();
        Column::ALL
            .iter()
            .copied()
            .find(|column| column.names().contains(&name))
    }

    pub(super) fn is_text(self) -> bool {
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

/// Columns to print and to sort by.
pub(super) struct Emit {
    columns: Option<Vec<Column>>,
    /// Column, and whether it ascends.
    order: Vec<(Column, bool)>,
}

impl Emit {
    pub(super) fn read(columns: &[String], order: &[String]) -> Result<Emit, Failure> {
        let split = |specs: &[String]| -> Vec<String> {
            let parts = specs.iter().flat_map(|spec| spec.split(','));
            parts
                .map(|part| part.trim().to_owned())
                .filter(|part| !part.is_empty())
                .collect()
        };
        let named = |name: &str| {
            Column::named(name).ok_or_else(|| {
                let names: Vec<&str> = Column::ALL.iter().map(|column| column.name()).collect();
                Failure::new(format_args!("no column {name:?}")).hint(names.join(", "))
            })
        };
        let columns = split(columns);
        let emitted = columns
            .iter()
            .map(|name| named(name))
            .collect::<Result<Vec<_>, _>>()?;
        let mut sorted = Vec::new();
        for part in split(order) {
            let (name, ascends) = match part.strip_suffix(['^', '<']) {
                Some(name) => (name, Some(true)),
                None => match part.strip_suffix(['v', 'V', '>', '!']) {
                    // A name may end so itself.
                    Some(name) if Column::named(&part).is_none() => (name, Some(false)),
                    _ => (part.as_str(), None),
                },
            };
            let column = named(name)?;
            sorted.push((column, ascends.unwrap_or_else(|| column.is_text())));
        }
        Ok(Emit {
            columns: (!emitted.is_empty()).then_some(emitted),
            order: sorted,
        })
    }

    /// The columns that were named, if any were.
    pub(super) fn columns(&self) -> Option<&[Column]> {
        self.columns.as_deref()
    }

    /// Sorts, keeping the order of what is equal.
    pub(super) fn sort(&self, rows: &mut [Row]) {
        rows.sort_by(|one, other| {
            let orders = self.order.iter().map(|&(column, ascends)| {
                let order = match (one.number(column), other.number(column)) {
                    (Some(one), Some(other)) => one.cmp(&other),
                    _ => one.text(column).cmp(&other.text(column)),
                };
                if ascends { order } else { order.reverse() }
            });
            orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
    }
}

/// Which programs, and which results.
#[derive(Default)]
pub(super) struct Filters {
    allow: Vec<(String, String)>,
    deny: Vec<(String, String)>,
    conditions: Vec<(Column, &'static str, String)>,
}

/// Comparisons; longer ones come first.
const OPERATORS: [&str; 8] = ["==", "!=", "<>", "<=", ">=", "=", "<", ">"];

impl Filters {
    pub(super) fn read(texts: &[String]) -> Result<Filters, Failure> {
        let mut filters = Filters::default();
        for text in texts {
            if let Some(path) = text.strip_prefix('@') {
                let failed = |error| Failure::of_file(path.as_ref(), &error);
                let lines = std::fs::read_to_string(path).map_err(failed)?;
                for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
                    filters.push(line)?;
                }
            } else {
                filters.push(text)?;
            }
        }
        Ok(filters)
    }

    fn push(&mut self, text: &str) -> Result<(), Failure> {
        if let Some((at, operator)) = OPERATORS
            .iter()
            .filter_map(|operator| Some((text.find(operator)?, *operator)))
            .min_by_key(|(at, operator)| (*at, std::cmp::Reverse(operator.len())))
            && let Some(column) = Column::named(&text[..at])
        {
            let value = text[at + operator.len()..].trim().to_owned();
            if !column.is_text() && value.parse::<u64>().is_err() {
                return Err(Failure::new(format_args!(
                    "filter {text:?}: {value:?} is no number"
                )));
            }
            self.conditions.push((column, operator, value));
            return Ok(());
        }
        let (text, list) = match text.strip_prefix('!') {
            Some(text) => (text, &mut self.deny),
            None => (text, &mut self.allow),
        };
        let (file, prog) = text.split_once('/').unwrap_or((text, ""));
        list.push((file.to_owned(), prog.to_owned()));
        Ok(())
    }

    /// True if the program is selected by its name. A glob without a slash stands for
    /// files and for programs.
    pub(super) fn keep(&self, file: &str, prog: &str) -> bool {
        let takes = |(file_glob, prog_glob): &(String, String)| match prog_glob.is_empty() {
            true => is_like(file_glob, file) || is_like(file_glob, prog),
            false => (file_glob.is_empty() || is_like(file_glob, file)) && is_like(prog_glob, prog),
        };
        !self.deny.iter().any(takes) && (self.allow.is_empty() || self.allow.iter().any(takes))
    }

    /// True if the results fit every condition.
    pub(super) fn keep_results(&self, row: &Row) -> bool {
        self.conditions.iter().all(|(column, operator, value)| {
            let order = match row.number(*column) {
                Some(number) => number.cmp(&value.parse().unwrap_or(0)),
                None => row.text(*column).as_str().cmp(value.as_str()),
            };
            match *operator {
                "=" | "==" => order.is_eq(),
                "!=" | "<>" => order.is_ne(),
                "<=" => order.is_le(),
                ">=" => order.is_ge(),
                "<" => order.is_lt(),
                _ => order.is_gt(),
            }
        })
    }
}

/// True if a text fits a glob of `*` and `?`: backtracking to the last star.
fn is_like(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut at, mut here) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while here < text.len() {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, here));
                at += 1;
            }
            Some(&now) if now == '?' || now == text[here] => {
                at += 1;
                here += 1;
            }
            _ => match star {
                Some((behind, from)) => {
                    star = Some((behind, from + 1));
                    at = behind + 1;
                    here = from + 1;
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|&now| now == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        assert!(is_like("test_*", "test_map.bpf.o"));
        assert!(is_like("*map?bpf*", "test_map.bpf.o"));
        assert!(!is_like("map", "test_map.bpf.o"));
        assert!(is_like("*", ""));
    }

    #[test]
    fn filters_by_name_and_by_result() {
        let texts = ["a.o/x*", "!*/xy", "insns>=10"].map(str::to_owned);
        let filters = Filters::read(&texts).ok().unwrap();
        assert!(filters.keep("a.o", "x1"));
        assert!(!filters.keep("a.o", "xy"));
        assert!(!filters.keep("b.o", "x1"));
        let mut row = Row::empty("a.o", "x1");
        assert!(!filters.keep_results(&row));
        row.total_insns = 10;
        assert!(filters.keep_results(&row));
    }

    #[test]
    fn orders() {
        let order = ["insnsv,prog".to_owned()];
        let emit = Emit::read(&[], &order).ok().unwrap();
        let mut rows = vec![
            Row::empty("f", "b"),
            Row::empty("f", "a"),
            Row::empty("f", "c"),
        ];
        rows[2].total_insns = 7;
        emit.sort(&mut rows);
        let names: Vec<&str> = rows.iter().map(|row| row.prog_name.as_str()).collect();
        assert_eq!(names, ["c", "a", "b"]);
        assert!(Emit::read(&["nonsense".to_owned()], &[]).is_err());
    }
}
