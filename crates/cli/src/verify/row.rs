//! Results of this command: one row for each program, with what veristat does not have.

use std::ops::{Deref, DerefMut};
use std::path::Path;

use beebox::internal::program::MapKind;
use beebox::internal::verify::RefusedMap;
use report::veristat::{self, VeristatError};
use serde::Serialize;

use super::cost::ProgramCost;
use super::facts::FactTable;
use super::recorded::Agreement;
use super::top_lines::TopLine;
use crate::answer::Failure;
use crate::input::read_at_most;

/// Bytes of the largest file of results.
const LARGEST: u64 = 32 << 20;

/// `prog_type` of a program whose section name implies none, and none is set.
pub(super) const UNTYPED: &str = "unspec";

/// An explanation, as text and as data.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Explained {
    #[serde(skip)]
    pub(super) text: String,
    pub(super) data: serde_json::Value,
}

/// A map that is not created.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MapRow {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    errno: String,
    /// The violated rule.
    rule: String,
}

impl MapRow {
    pub(super) fn new(map: &RefusedMap) -> MapRow {
        MapRow {
            name: map.name.clone(),
            kind: map.kind.map(MapKind::name),
            errno: map.refusal.errno.to_string(),
            rule: map.refusal.fault.to_string(),
        }
    }
}

/// One program's results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// The columns of veristat.
    #[serde(flatten)]
    columns: veristat::ResultRow,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) log: String,
    /// Bytes of the log before what `log` has.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) log_left_out: u64,
    /// The error number of a refusal.
    #[serde(skip)]
    pub(super) errno: Option<i32>,
    /// The map that is not created, if that is why the program is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused_map: Option<MapRow>,
    /// Assumptions about the maps of the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    /// Comparison with the answers that a text case records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) recorded: Vec<Agreement>,
    /// Explanation of the refusal, with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) explanation: Option<Explained>,
    /// Costs of verification, with `--cost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<ProgramCost>,
    /// Facts of an accepted program, with `--facts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) facts: Option<FactTable>,
    /// The source lines that the log names most often, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) top_lines: Vec<TopLine>,
}

impl Deref for Row {
    type Target = veristat::ResultRow;

    fn deref(&self) -> &veristat::ResultRow {
        &self.columns
    }
}

impl DerefMut for Row {
    fn deref_mut(&mut self) -> &mut veristat::ResultRow {
        &mut self.columns
    }
}

impl AsRef<veristat::ResultRow> for Row {
    fn as_ref(&self) -> &veristat::ResultRow {
        &self.columns
    }
}

impl From<veristat::ResultRow> for Row {
    fn from(columns: veristat::ResultRow) -> Row {
        Row {
            columns,
            log: String::new(),
            log_left_out: 0,
            errno: None,
            refused_map: None,
            notes: Vec::new(),
            recorded: Vec::new(),
            explanation: None,
            cost: None,
            facts: None,
            top_lines: Vec::new(),
        }
    }
}

impl Row {
    pub(super) fn empty(file: &str, prog: &str) -> Row {
        veristat::ResultRow::empty(file, prog).into()
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One line of JSON.
pub(super) fn json(row: &Row) -> Vec<u8> {
    crate::stdout::json(row)
}

/// Reads results that this command or veristat wrote.
pub(super) fn read_csv(path: &Path) -> Result<Vec<veristat::ResultRow>, Failure> {
    let bytes = read_at_most(path, LARGEST)?;
    let rows = veristat::read_csv(&String::from_utf8_lossy(&bytes));
    rows.map_err(|error| failure(&error).within(path.display()))
}

/// The failure for a filter, a column or a file of results, with a remedy.
pub(super) fn failure(error: &VeristatError) -> Failure {
    let failure = Failure::new(error);
    match error.form() {
        Some(form) => failure.hint(form),
        None => failure,
    }
}
