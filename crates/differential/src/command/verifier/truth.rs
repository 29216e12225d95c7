//! Recorded answers of a kernel: comma-separated values with a line for each program.

use std::collections::HashMap;
use std::path::Path;

use beebox_differential::recorded::{cells, read_text};

use crate::command::Outcome;
use spec::programs::{AttachType, ProgramType};

/// Prefix of the note that names the type that a program without one was loaded as: the recorder takes
/// that of its context, as veristat does.
const LOADED_AS: &str = "as-";

/// Recorded answers about a program's verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// `None` if there is none.
    pub(super) accepted: Option<bool>,
    pub(super) insns: String,
    pub(super) states: String,
    pub(super) reason: String,
    /// The type that a program without one was loaded as, and its attach type.
    pub(super) kind: Option<(ProgramType, Option<AttachType>)>,
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
        at("notes")?,
        at("attach_type")?,
    ];
    let mut truth = HashMap::new();
    for line in lines {
        let cells = cells(line);
        let cell = |column: usize| cells.get(columns[column]).cloned().unwrap_or_default();
        let notes = cell(6);
        let answer = Answer {
            accepted: match cell(2).as_str() {
                "accepted" => Some(true),
                "rejected" => Some(false),
                _ => None,
            },
            insns: cell(3),
            states: cell(4),
            reason: cell(5).trim().to_owned(),
            kind: notes.split_whitespace().find_map(|note| {
                let kind = ProgramType::from_name(note.strip_prefix(LOADED_AS)?)?;
                Some((kind, AttachType::from_name(&cell(7))))
            }),
        };
        truth.insert(format!("{}/{}", cell(0), cell(1)), answer);
    }
    Ok(truth)
}
