//! Recorded answers of a kernel: comma-separated values with a line for each program.

use std::collections::HashMap;
use std::path::Path;

use beebox_differential::recorded::{cells, read_text};

use crate::command::Outcome;

/// Recorded answers about a program's verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// `None` if there is none.
    pub(super) accepted: Option<bool>,
    pub(super) insns: String,
    pub(super) states: String,
    pub(super) reason: String,
}

/// Answers by FILE/PROGRAM.
pub(super) fn read(path: &Path) -> Outcome<HashMap<String, Answer>> {
    let text = read_text(path)?;
    let mut lines = text.lines();
    let headings = cells(lines.next().unwrap_or_default());
    let at = |name: &str| {
        let found = headings.iter().position(|heading| heading == name);
        found.ok_or_else(|| format!("{}: no column {name}", path.display()))
    };
    let columns = [
        at("object")?,
        at("prog")?,
        at("verdict")?,
        at("total_insns")?,
        at("total_states")?,
        at("reason")?,
    ];
    let mut truth = HashMap::new();
    for line in lines {
        let cells = cells(line);
        let cell = |column: usize| cells.get(columns[column]).cloned().unwrap_or_default();
        let answer = Answer {
            accepted: match cell(2).as_str() {
                "accepted" => Some(true),
                "rejected" => Some(false),
                _ => None,
            },
            insns: cell(3),
            states: cell(4),
            reason: cell(5).trim().to_owned(),
        };
        truth.insert(format!("{}/{}", cell(0), cell(1)), answer);
    }
    Ok(truth)
}
