//! Filters of programs and results, in the syntax of veristat's `-f`.
//!
//! A filter is a glob for names or a condition on a value. With `!` in front it leaves
//! out. Of several globs, and of several conditions, one has to fit.

use std::cmp::Ordering;

use super::VeristatError;
use super::row::{ResultRow, ResultVerdict};
use super::spec::{Column, Stat};

/// Filters of one direction.
#[derive(Debug, Default)]
struct List {
    names: Vec<NameGlob>,
    conditions: Vec<Condition>,
}

/// A glob for files and programs.
#[derive(Debug, PartialEq, Eq)]
enum NameGlob {
    /// `GLOB` fits either name.
    Any(String),
    /// `FILE/PROG`; an empty one fits every name.
    Both { file: String, prog: String },
}

/// A comparison of a value with a number.
#[derive(Debug)]
struct Condition {
    stat: Stat,
    operator: &'static str,
    value: f64,
}

/// Filters of programs and results.
#[derive(Debug, Default)]
pub struct Filters {
    allow: List,
    deny: List,
}

/// The number of the verdict `unsupported` in conditions; veristat has 1 for success, 0 for failure.
const UNSUPPORTED: f64 = -1.0;

/// Comparisons; longer ones come first.
const OPERATORS: [&str; 8] = ["==", "!=", "<>", "<=", ">=", "=", "<", ">"];

impl Filters {
    /// Adds a filter.
    ///
    /// # Errors
    /// For a text that selects nothing, and a condition on an unknown value or with no number.
    pub fn push(&mut self, text: &str) -> Result<(), VeristatError> {
        let (text, list) = match text.strip_prefix('!') {
            Some(text) => (text, &mut self.deny),
            None => (text, &mut self.allow),
        };
        if let Some(condition) = Condition::read(text)? {
            list.conditions.push(condition);
            return Ok(());
        }
        let glob = match text.split_once('/') {
            None => NameGlob::Any(text.to_owned()),
            Some((file, prog)) => NameGlob::Both {
                file: file.to_owned(),
                prog: prog.to_owned(),
            },
        };
        if text.is_empty() || text == "/" {
            return Err(VeristatError::EmptyFilter(text.to_owned()));
        }
        list.names.push(glob);
        Ok(())
    }

    /// True if the program is selected by its name.
    pub fn keep(&self, file: &str, prog: &str) -> bool {
        let takes = |glob: &NameGlob| glob.takes(file, prog);
        let allowed = &self.allow.names;
        !self.deny.names.iter().any(takes) && (allowed.is_empty() || allowed.iter().any(takes))
    }

    /// True if results are selected by their values, which a function states; `None`
    /// for a value that there is not.
    pub fn keep_values(&self, value: impl Fn(Stat) -> Option<f64>) -> bool {
        let holds = |condition: &Condition| {
            let value = value(condition.stat);
            value.is_some_and(|value| condition.holds(value))
        };
        let allowed = &self.allow.conditions;
        !self.deny.conditions.iter().any(holds) && (allowed.is_empty() || allowed.iter().any(holds))
    }

    /// True if results are selected by values.
    pub fn selects_results(&self) -> bool {
        !self.allow.conditions.is_empty() || !self.deny.conditions.is_empty()
    }

    /// True if a row is selected by its values.
    pub fn keep_results(&self, row: &ResultRow) -> bool {
        self.keep_values(|stat| match (stat.column, row.verdict) {
            (Column::Verdict, ResultVerdict::Unsupported) => Some(UNSUPPORTED),
            (column, _) => value_of(row, column),
        })
    }
}

/// The number in a column; of verdicts 1 for success.
pub(super) fn value_of(row: &ResultRow, column: Column) -> Option<f64> {
    match (column, row.verdict) {
        (Column::Verdict, ResultVerdict::Success) => Some(1.0),
        (Column::Verdict, ResultVerdict::Failure) => Some(0.0),
        (Column::Verdict, ResultVerdict::Unsupported) => None,
        _ => row.number(column).map(|number| number as f64),
    }
}

impl Condition {
    /// Reads `STAT OPERATOR VALUE`; `None` for a text without operator.
    fn read(text: &str) -> Result<Option<Condition>, VeristatError> {
        let operators = OPERATORS.iter();
        let found = operators
            .filter_map(|operator| Some((text.find(operator)?, *operator)))
            .min_by_key(|(at, operator)| (*at, std::cmp::Reverse(operator.len())));
        let Some((at, operator)) = found else {
            return Ok(None);
        };
        let name = text[..at].trim();
        let whole = text;
        let wrong = |fact: String| VeristatError::Condition {
            text: whole.to_owned(),
            fact,
        };
        let stat = Stat::named(name).filter(|stat| {
            let column = stat.column;
            !column.is_text() || column == Column::Verdict
        });
        let stat = stat.ok_or_else(|| wrong(format!("no value is called {name:?}")))?;
        let text = text[at + operator.len()..].trim();
        let value = match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "success" | "succ" | "s" | "match" | "m" => 1.0,
            "false" | "f" | "failure" | "fail" | "mismatch" | "mis" => 0.0,
            "unsupported" if stat.column == Column::Verdict => UNSUPPORTED,
            number => match number.parse::<i64>() {
                Ok(number) => number as f64,
                Err(_) if stat.column == Column::Verdict => {
                    let fact = format!("{text:?} is no verdict: success, failure or unsupported");
                    return Err(wrong(fact));
                }
                Err(_) => return Err(wrong(format!("{text:?} is no number"))),
            },
        };
        Ok(Some(Condition {
            stat,
            operator,
            value,
        }))
    }

    fn holds(&self, value: f64) -> bool {
        let value = if self.stat.is_absolute {
            value.abs()
        } else {
            value
        };
        let order = value.partial_cmp(&self.value).unwrap_or(Ordering::Less);
        match self.operator {
            "=" | "==" => order.is_eq(),
            "!=" | "<>" => order.is_ne(),
            "<=" => order.is_le(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            _ => order.is_gt(),
        }
    }
}

impl NameGlob {
    fn takes(&self, file: &str, prog: &str) -> bool {
        let is_free_or_like = |glob: &str, name: &str| glob.is_empty() || is_like(glob, name);
        match self {
            NameGlob::Any(glob) => is_like(glob, file) || is_like(glob, prog),
            NameGlob::Both {
                file: file_glob,
                prog: prog_glob,
            } => is_free_or_like(file_glob, file) && is_free_or_like(prog_glob, prog),
        }
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

    fn filters(texts: &[&str]) -> Filters {
        let mut filters = Filters::default();
        texts.iter().for_each(|text| filters.push(text).unwrap());
        filters
    }

    #[test]
    fn globs() {
        assert!(is_like("test_*", "test_map.bpf.o"));
        assert!(is_like("*map?bpf*", "test_map.bpf.o"));
        assert!(!is_like("map", "test_map.bpf.o"));
        assert!(is_like("*", ""));
    }

    #[test]
    fn names_select_files_programs_or_both() {
        let both = filters(&["a.o/x*", "!*/xy"]);
        assert!(both.keep("a.o", "x1"));
        assert!(!both.keep("a.o", "xy"));
        assert!(!both.keep("b.o", "x1"));
        assert!(!filters(&["x1/"]).keep("a.o", "x1"));
        assert!(filters(&["/x1"]).keep("a.o", "x1"));
        assert!(filters(&["x1"]).keep("a.o", "x1"));
    }

    #[test]
    fn one_of_several_conditions_has_to_hold() {
        let mut row = ResultRow::empty("a.o", "x1");
        (row.total_insns, row.verdict) = (10, ResultVerdict::Failure);
        assert!(filters(&["insns>=10"]).keep_results(&row));
        assert!(!filters(&["insns>10"]).keep_results(&row));
        assert!(filters(&["insns>10", "verdict=failure"]).keep_results(&row));
        assert!(!filters(&["!verdict=f"]).keep_results(&row));
        assert!(!filters(&["verdict=unsupported"]).keep_results(&row));
        row.verdict = ResultVerdict::Unsupported;
        assert!(filters(&["verdict=unsupported"]).keep_results(&row));
        assert!(!filters(&["verdict=failure"]).keep_results(&row));
        for wrong in ["insn>1", "insns>x", "file=1", ""] {
            assert!(Filters::default().push(wrong).is_err(), "{wrong}");
        }
    }
}
