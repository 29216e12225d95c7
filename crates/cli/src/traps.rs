//! Traps and limits that end runs, as text and as JSON.

use beebox::internal::raw::{AccessError, BadAccess, CallFault, Reason, Trap};
use serde_json::{Value, json};

/// What is said of a run that the time limit ended.
pub(crate) const TIMED_OUT: &str = "the time limit of --timeout has passed";

/// The reason of a trap; that of a time limit names the option.
pub(crate) fn message(trap: &Trap) -> String {
    match trap.reason {
        Reason::Deadline(_) => TIMED_OUT.to_owned(),
        _ => trap.reason.to_string(),
    }
}

/// The record of a run that a limit ended at an unknown place.
pub(crate) fn limit_record(kind: &str, message: &str) -> Value {
    json!({ "at": null, "insn": null, "kind": kind, "message": message })
}

pub(crate) fn trap_record(trap: &Trap) -> Value {
    let mut record = json!({
        "at": trap.at,
        "insn": trap.insn.map(|insn| insn.to_string()),
        "kind": trap.reason.name(),
        "message": message(trap),
    });
    if let Reason::Memory(access) | Reason::Call(_, CallFault::Memory(access)) = &trap.reason {
        record["access"] = access_record(access);
    }
    record
}

fn access_record(access: &BadAccess) -> Value {
    let kind = match access.error {
        AccessError::Outside => "outside",
        AccessError::Crosses(_) => "crosses",
        AccessError::ReadOnly => "read-only",
        AccessError::Misaligned => "misaligned",
        AccessError::Wraps => "wraps",
        AccessError::Shared => "shared",
    };
    let region = access
        .nearest
        .as_ref()
        .map(|region| json!({ "name": region.name, "start": region.start, "len": region.len }));
    json!({
        "address": access.address,
        "size": access.size,
        "does": access.access.name(),
        "error": kind,
        "nearest": region,
    })
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
