//! Results: one row for each program, with what veristat does not have.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use program::Program;
use program::creation::RefusedMap;
use report::veristat;
use serde::{Serialize, Serializer};
use spec::loader::LoaderKind;
use spec::maps::MapKind;
use verifier::Refusal;

use super::super::StandaloneProgram;
use super::super::cost_table::ProgramCost;
use super::super::fact_table::FactTable;
use super::recorded::Agreement;
use super::top_lines::TopLine;

/// `prog_type` of a program whose section name implies none, and none is set.
pub const UNTYPED: &str = "unspec";

/// An explanation, as text and as data.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Explained {
    /// For people.
    #[serde(skip)]
    pub text: String,
    /// For programs.
    pub data: serde_json::Value,
}

/// A map that is not created.
#[derive(Clone, Debug, Serialize)]
pub struct MapRow {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    errno: i32,
    /// The violated rule.
    violated_rule: String,
}

impl MapRow {
    pub(super) fn new(map: &RefusedMap) -> MapRow {
        MapRow {
            name: map.name.clone(),
            kind: map.kind.map(MapKind::name),
            errno: map.refusal.errno.0,
            violated_rule: map.refusal.fault.to_string(),
        }
    }
}

/// One program's results.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The columns of veristat.
    #[serde(flatten)]
    columns: veristat::ResultRow,
    /// The end of the log, if it was not printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub log: String,
    /// Bytes of the log before what `log` has.
    #[serde(skip_serializing_if = "is_zero")]
    pub log_left_out: u64,
    /// The error number of a refusal.
    #[serde(skip)]
    pub errno: Option<i32>,
    /// The refusal.
    #[serde(skip)]
    pub refusal: Option<Refusal>,
    /// The program as it was loaded, where several kernels are compared.
    #[serde(skip)]
    pub(in super::super) loaded: Option<Arc<StandaloneProgram>>,
    /// The attach type that it states.
    #[serde(rename = "attach_type", skip_serializing_if = "Option::is_none")]
    pub stated_attach_type: Option<String>,
    /// True if it replaces or traces a function of another program, or is there to replace one.
    #[serde(skip)]
    pub uses_target: bool,
    /// True if it is refused for a kernel function or type that the kernel lacks.
    #[serde(skip)]
    pub(super) needs_absent: bool,
    /// The map that is not created, if that is why the program is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_map: Option<MapRow>,
    /// The loader whose conventions count, if it is not libbpf.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "loader_name"
    )]
    pub loader: Option<LoaderKind>,
    /// Assumptions about the maps of the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Comparison with the answers that a text case records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<Agreement>,
    /// Explanation of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explained>,
    /// Costs of verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<ProgramCost>,
    /// Facts of an accepted program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<FactTable>,
    /// The source lines that the log names most often, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub top_lines: Vec<TopLine>,
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
            stated_attach_type: Some(columns.attach_type.clone()).filter(|name| !name.is_empty()),
            uses_target: false,
            columns,
            log: String::new(),
            log_left_out: 0,
            errno: None,
            refusal: None,
            loaded: None,
            needs_absent: false,
            refused_map: None,
            loader: None,
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
    /// The program as it was loaded, if it was kept.
    pub fn program(&self) -> Option<&Program> {
        self.loaded.as_deref()?.program.as_ref().ok()
    }

    /// The row of a program that is not verified.
    pub fn empty(file: &str, prog: &str) -> Row {
        veristat::ResultRow::empty(file, prog).into()
    }
}

fn loader_name<S: Serializer>(
    loader: &Option<LoaderKind>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    loader.map(LoaderKind::name).serialize(serializer)
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
