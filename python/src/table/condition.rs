//! Conditions on columns: packets that do not meet them become no rows.
//!
//! They compare the values that the columns have, so a query gives the same rows whether its engine
//! compares or the reader does. A null value meets `is null` alone.

use arrow_array::builder::StringBuilder;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use super::column::{COLUMNS, Needs, Row, Value};
use crate::errors::Fault;

/// The name of a column, an operator, and what its values are compared with.
pub(super) type Given<'py> = (String, String, Bound<'py, PyAny>);

/// A condition on a column.
pub(super) struct Condition {
    of: Of,
    operator: Operator,
    operand: Operand,
}

/// What is compared.
enum Of {
    Column(Needs, Value),
    /// The column of a filter, by its place.
    Match(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
    In,
    StartsWith,
    IsNull,
    IsNotNull,
}

const OPERATORS: &[(&str, Operator)] = &[
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    ("<=", Operator::AtMost),
    (">", Operator::Greater),
    (">=", Operator::AtLeast),
    ("in", Operator::In),
    ("starts with", Operator::StartsWith),
    ("is null", Operator::IsNull),
    ("is not null", Operator::IsNotNull),
];

/// What values are compared with; one but for `In`, none for nulls.
enum Operand {
    Numbers(Vec<i128>),
    Texts(Vec<Vec<u8>>),
}

/// Bytes of texts after which the memory for them is given back.
const SCRATCH: usize = 64 << 10;

impl Condition {
    /// Reads a condition of Python; `matches` are the names of the filters that have a column.
    ///
    /// # Errors
    /// `NotFoundError` for names that are not there, `DataTypeError` for values that do not fit.
    pub(super) fn read(
        (name, operator, value): &Given<'_>,
        matches: &[&str],
    ) -> PyResult<Condition> {
        let column = COLUMNS.iter().find(|(known, ..)| known == name);
        let place = matches.iter().position(|known| known == name);
        let of = match (column, place) {
            (_, Some(place)) => Of::Match(place),
            (Some((_, needs, value)), None) => Of::Column(*needs, *value),
            (None, None) => return Err(Fault::absent(format!("no column {name:?}")).into()),
        };
        let known = OPERATORS.iter().find(|(known, _)| known == operator);
        let &(_, operator) = known.ok_or_else(|| {
            let known: Vec<_> = OPERATORS.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            Fault::absent(format!("no operator {operator:?}; there are {known}"))
        })?;
        let unfit = |what: &str| {
            let value = value.repr().map(|value| value.to_string());
            let value = value.unwrap_or_default();
            PyErr::from(Fault::of_type(format!(
                "condition on {name}: {what}, got {value}"
            )))
        };
        if matches!(operator, Operator::IsNull | Operator::IsNotNull) {
            let operand = Operand::Numbers(Vec::new());
            return match (&of, value.is_none()) {
                (_, false) => Err(unfit("None fits")),
                (Of::Column(_, Value::Bytes(_)), _) => Err(unfit("its bytes are not compared")),
                _ => Ok(Condition {
                    of,
                    operator,
                    operand,
                }),
            };
        }
        let values: Vec<Bound<'_, PyAny>> = match operator {
            Operator::In if value.is_instance_of::<PyString>() => Err(unfit("a list fits"))?,
            Operator::In => value.try_iter()?.collect::<PyResult<_>>()?,
            _ => vec![value.clone()],
        };
        let is_order = !matches!(
            operator,
            Operator::Equal | Operator::NotEqual | Operator::In | Operator::StartsWith
        );
        let operand = match &of {
            Of::Column(_, Value::Bytes(_)) => return Err(unfit("its bytes are not compared")),
            Of::Column(_, Value::Text(_)) if is_order => {
                return Err(unfit("texts have no order here"));
            }
            Of::Column(_, Value::Text(_)) => {
                let text = |value: &Bound<'_, PyAny>| value.extract().map(String::into_bytes);
                let texts = values.iter().map(text).collect::<PyResult<_>>();
                Operand::Texts(texts.map_err(|_| unfit("text fits"))?)
            }
            _ if operator == Operator::StartsWith => return Err(unfit("texts start with others")),
            Of::Column(..) => {
                let number = |value: &Bound<'_, PyAny>| value.extract::<i128>();
                let numbers = values.iter().map(number).collect::<PyResult<_>>();
                Operand::Numbers(numbers.map_err(|_| unfit("a number fits"))?)
            }
            Of::Match(_) => {
                let truth =
                    |value: &Bound<'_, PyAny>| Ok(i128::from(value.cast::<PyBool>()?.is_true()));
                let truths = values.iter().map(truth).collect::<PyResult<_>>();
                Operand::Numbers(truths.map_err(|_| unfit("True or False fits"))?)
            }
        };
        Ok(Condition {
            of,
            operator,
            operand,
        })
    }

    /// What its column needs.
    pub(super) fn needs(&self) -> Needs {
        match self.of {
            Of::Column(needs, _) => needs,
            Of::Match(_) => Needs::Record,
        }
    }

    /// True if a row meets it; `matched` has the values of the filters' columns.
    fn is_met(&self, row: &Row<'_>, matched: &[bool], scratch: &mut StringBuilder) -> bool {
        let number = match self.of {
            Of::Match(place) => matched.get(place).map(|it| i128::from(*it)),
            Of::Column(_, Value::U8(get)) => get(row).map(i128::from),
            Of::Column(_, Value::U16(get)) => get(row).map(i128::from),
            Of::Column(_, Value::U32(get)) => get(row).map(i128::from),
            Of::Column(_, Value::U64(get)) => get(row).map(i128::from),
            Of::Column(_, Value::Time(get)) => get(row).map(i128::from),
            Of::Column(_, Value::Text(get)) => {
                let text = text(get, row, scratch);
                return match &self.operand {
                    Operand::Texts(texts) => self.operator.compares_text(text, texts),
                    Operand::Numbers(_) => text.is_some() == (self.operator == Operator::IsNotNull),
                };
            }
            // Refused when it was read.
            Of::Column(_, Value::Bytes(_)) => None,
        };
        match &self.operand {
            Operand::Numbers(numbers) => self.operator.compares(number, numbers),
            Operand::Texts(_) => false,
        }
    }
}

impl Operator {
    fn compares(self, value: Option<i128>, with: &[i128]) -> bool {
        let Some(value) = value else {
            return self == Operator::IsNull;
        };
        let first = with.first();
        match self {
            Operator::Equal | Operator::In => with.contains(&value),
            Operator::NotEqual => !with.contains(&value),
            Operator::Less => first.is_some_and(|other| value < *other),
            Operator::AtMost => first.is_some_and(|other| value <= *other),
            Operator::Greater => first.is_some_and(|other| value > *other),
            Operator::AtLeast => first.is_some_and(|other| value >= *other),
            Operator::IsNotNull => true,
            Operator::IsNull | Operator::StartsWith => false,
        }
    }

    fn compares_text(self, value: Option<&[u8]>, with: &[Vec<u8>]) -> bool {
        let Some(value) = value else {
            return false;
        };
        match self {
            Operator::NotEqual => with.iter().all(|other| value != &other[..]),
            Operator::StartsWith => with.iter().all(|other| value.starts_with(other)),
            _ => with.iter().any(|other| value == &other[..]),
        }
    }
}

/// The text of a column.
fn text<'s>(
    get: fn(&Row<'_>, &mut StringBuilder) -> bool,
    row: &Row<'_>,
    scratch: &'s mut StringBuilder,
) -> Option<&'s [u8]> {
    if scratch.values_slice().len() > SCRATCH {
        scratch.finish();
    }
    let from = scratch.values_slice().len();
    let is_there = get(row, scratch);
    scratch.append_value("");
    is_there.then(|| &scratch.values_slice()[from..])
}

/// Tests rows for all conditions of a table.
pub(super) struct Test<'p> {
    conditions: &'p [Condition],
    scratch: StringBuilder,
}

impl<'p> Test<'p> {
    pub(super) fn new(conditions: &'p [Condition]) -> Test<'p> {
        Test {
            conditions,
            scratch: StringBuilder::new(),
        }
    }

    /// True if a row meets all conditions.
    #[inline]
    pub(super) fn is_met(&mut self, row: &Row<'_>, matched: &[bool]) -> bool {
        let scratch = &mut self.scratch;
        let mut conditions = self.conditions.iter();
        conditions.all(|condition| condition.is_met(row, matched, scratch))
    }
}
