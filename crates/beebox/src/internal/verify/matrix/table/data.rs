//! The matrix as data: comma-separated values, and a record for each program.

use report::veristat::{ResultVerdict, csv_line};
use serde_json::{Value, json};

use super::super::{Cell, Edit, EditOutcome, RefusalCause};
use super::{MatrixTable, NamedKernel, change};

/// A line for each program and kernel.
pub fn csv(matrix: &MatrixTable<'_>) -> String {
    let mut text = String::from(
        "file_name,prog_name,kernel,version,verdict,total_insns,total_states,reason,decided_by,types_of\n",
    );
    for program in &matrix.programs {
        for (cell, named) in program.cells.iter().zip(matrix.kernels) {
            let cell = cell.as_ref();
            let count = |count: fn(&Cell) -> u64| cell.map(|cell| count(cell).to_string());
            let deciders = cell.and_then(|cell| cell.cause.as_ref());
            let deciders = deciders.map(|cause| {
                let names = cause.deciders.iter().map(|decider| decider.name.as_str());
                names.collect::<Vec<_>>().join("; ")
            });
            let cells = [
                program.file.clone(),
                program.name.clone(),
                named.name.clone(),
                version(named).unwrap_or_default(),
                cell.map(|cell| cell.row.verdict.name())
                    .unwrap_or_default()
                    .to_owned(),
                count(|cell| cell.row.total_insns).unwrap_or_default(),
                count(|cell| cell.row.total_states).unwrap_or_default(),
                cell.map(|cell| cell.row.reason.trim().to_owned())
                    .unwrap_or_default(),
                deciders.unwrap_or_default(),
                named.types_of().unwrap_or_default().to_owned(),
            ];
            text += &csv_line(cells.to_vec());
        }
    }
    text
}

/// A record for each program.
pub fn json(matrix: &MatrixTable<'_>) -> Vec<Value> {
    let name = |at: &usize| matrix.name_of(*at).to_owned();
    let records = matrix.programs.iter().map(|program| {
        let answers = program.cells.iter().zip(matrix.kernels);
        let answers = answers.map(|(cell, named)| answer(cell.as_ref(), named, matrix.kernels));
        let taken = program.taken_by();
        let mut record = json!({
            "file_name": program.file,
            "prog_name": program.name,
            "first": taken.first.as_ref().map(name),
            "last": taken.last.as_ref().map(name),
            "gaps": taken.gaps.iter().map(name).collect::<Vec<_>>(),
            "kernels": answers.collect::<Vec<_>>(),
        });
        if matrix.is_diff {
            record["change"] = change(program).into();
        }
        record
    });
    records.collect()
}

fn version(named: &NamedKernel) -> Option<String> {
    named.kernel.version().map(|version| version.to_string())
}

fn answer(cell: Option<&Cell>, named: &NamedKernel, kernels: &[NamedKernel]) -> Value {
    let reason = cell.map(|cell| cell.row.reason.trim());
    let cause = cell.and_then(|cell| cell.cause.as_ref());
    let edit = cell.and_then(|cell| cell.edit.as_ref());
    let mut record = json!({
        "kernel_name": named.name,
        "version": version(named),
        "types_of": named.types_of(),
        "verifier_verdict": cell.map(|cell| cell.row.verdict.name()),
        "total_insns": cell.map(|cell| cell.row.total_insns),
        "total_states": cell.map(|cell| cell.row.total_states),
        "reason": reason.filter(|reason| !reason.is_empty()),
        "decision": cause.map(|cause| of_cause(cause, kernels)),
    });
    let is_refused = cell.is_some_and(|cell| cell.row.verdict == ResultVerdict::Failure);
    if let Some(edit) = edit.filter(|_| is_refused) {
        record["edit"] = of_edit(edit);
    }
    record
}

fn of_cause(cause: &RefusalCause, kernels: &[NamedKernel]) -> Value {
    let deciders = cause.deciders.iter().map(|decider| {
        json!({
            "kind": decider.kind.name(),
            "name": decider.name,
            "since": decider.since.map(|since| since.to_string()),
            "backports": decider.backports.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "title": decider.title,
            "accepting_has": decider.is_theirs,
        })
    });
    json!({
        "accepting": cause.accepting.map(|at| &kernels[at].name),
        "tried": cause.is_tried,
        "search_ended": cause.is_cut,
        "deciders": deciders.collect::<Vec<_>>(),
    })
}

fn of_edit(edit: &Edit) -> Value {
    let (outcome, reason) = match &edit.outcome {
        EditOutcome::Accepted => ("accepted", None),
        EditOutcome::Refused(reason) => ("refused", Some(reason)),
        EditOutcome::Untried => ("untried", None),
    };
    json!({ "text": edit.text, "outcome": outcome, "reason": reason })
}
