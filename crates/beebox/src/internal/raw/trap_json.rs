//! Traps and limits that end runs, as JSON.

use interp::checked::{AccessError, BadAccess, CallFault, Reason, Trap};
use serde_json::{Value, json};

/// The reason of a trap as text; `deadline` is that of a time limit.
pub fn trap_text(trap: &Trap, deadline: &str) -> String {
    match trap.reason {
        Reason::Deadline(_) => deadline.to_owned(),
        _ => trap.reason.to_string(),
    }
}

/// The record of a run that a limit ended at an unknown place.
pub fn limit_json(kind: &str, message: &str) -> Value {
    json!({ "insn": null, "text": null, "kind": kind, "message": message })
}

/// The record of a trap; `deadline` is the message of a time limit.
pub fn trap_json(trap: &Trap, deadline: &str) -> Value {
    let mut record = json!({
        "insn": trap.at,
        "text": trap.insn.map(|insn| insn.to_string()),
        "kind": trap.reason.name(),
        "message": trap_text(trap, deadline),
    });
    if let Reason::Memory(access) | Reason::Call(_, CallFault::Memory(access)) = &trap.reason {
        record["access"] = access_json(access);
    }
    record
}

fn access_json(access: &BadAccess) -> Value {
    let kind = match access.error {
        AccessError::Outside => "outside",
        AccessError::Crosses(_) => "crosses",
        AccessError::ReadOnly => "read-only",
        AccessError::Misaligned => "misaligned",
        AccessError::Wraps => "wraps",
        AccessError::Shared => "shared",
        AccessError::NotGiven => "not-given",
    };
    let region = access
        .nearest
        .as_ref()
        .map(|region| json!({ "name": region.name, "start": region.start, "len": region.len }));
    json!({
        "address": access.address,
        "size": access.size,
        "does": access.access.name(),
        "violation": kind,
        "nearest": region,
    })
}
