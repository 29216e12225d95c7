//! Causes and edits in words.

use super::super::{Cell, Decider, DeciderKind, EditOutcome, RefusalCause, SEARCH_INSNS};
use super::NamedKernel;

/// What decides a refusal, and the edit.
pub(super) fn lines(cell: &Cell, kernels: &[NamedKernel]) -> Vec<String> {
    let reason = &cell.row.reason;
    let cause = cell
        .cause
        .as_ref()
        .map(|cause| of_cause(cause, reason, kernels));
    let edit = cell.edit.as_ref().map(|edit| {
        let outcome = match &edit.outcome {
            EditOutcome::Accepted => String::from(" (verified: accepted then)"),
            EditOutcome::Refused(reason) => format!(" (verified: then refused: {reason})"),
            EditOutcome::Untried => String::new(),
        };
        format!("edit: {}{outcome}", edit.text)
    });
    cause.into_iter().chain(edit).collect()
}

fn of_cause(cause: &RefusalCause, reason: &str, kernels: &[NamedKernel]) -> String {
    let deciders = cause.deciders.iter();
    let named: Vec<String> = deciders
        .map(|decider| of_decider(decider, reason))
        .collect();
    let named = named.join("; and ");
    let cut = match cause.is_cut {
        true => format!(
            "the search for what decides ended at its budget of {SEARCH_INSNS} instructions"
        ),
        false => String::new(),
    };
    if cause.deciders.is_empty() {
        return cut;
    }
    let Some(accepting) = cause.accepting.and_then(|at| kernels.get(at)) else {
        return format!("needs {named}");
    };
    let accepting = &accepting.name;
    let has = match cause.deciders.iter().all(|decider| decider.is_theirs) {
        true => format!("{accepting} has it"),
        false => format!("{accepting} is without"),
    };
    let verb = if cause.is_tried {
        "decided by"
    } else {
        "differs in"
    };
    let found = format!("{verb} {named} ({has})");
    match cause.is_cut {
        true => format!("{found}; {cut}"),
        false => found,
    }
}

fn of_decider(decider: &Decider, reason: &str) -> String {
    if reason.ends_with(&decider.name) {
        return String::from("what the reason names");
    }
    let kind = match decider.kind {
        DeciderKind::Offer => "",
        DeciderKind::Feature | DeciderKind::Context => "",
        kind => kind.name(),
    };
    let mut text = format!("{kind} {}", decider.name).trim_start().to_owned();
    if let Some(since) = decider.since {
        text += &format!(", Linux {since}");
    }
    for backport in &decider.backports {
        text += &format!(" and {backport}");
    }
    if !decider.title.is_empty() {
        text += &format!(": {}", decider.title);
    }
    text
}
