//! Differences of two sets of types.

use std::fmt::Write as _;

use ::btf::Kind;
use ::btf::diff::{Change, Changed, MemberPlace};
use serde::Serialize;

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Struct => "struct",
        Kind::Union => "union",
        Kind::Enum => "enum",
        Kind::Typedef => "typedef",
        _ => "function",
    }
}

/// A changed type with a line for each change.
pub fn changed_text(changed: &Changed) -> String {
    let mut text = format!("{} {}\n", word(changed.kind), changed.name);
    for change in &changed.changes {
        let _ = writeln!(text, "  {}", line(change));
    }
    text
}

fn line(change: &Change) -> String {
    match change {
        Change::Added => "is new".to_owned(),
        Change::Removed => "is gone".to_owned(),
        Change::Size { old, new } => format!("size {old} -> {new}"),
        Change::MemberAdded { name, new } => format!("+ {name}: {}", place(new)),
        Change::MemberRemoved { name, old } => format!("- {name}: {}", place(old)),
        Change::MemberChanged { name, old, new } => member_change(name, old, new),
        Change::ValueAdded { name, new } => format!("+ {name} = {new}"),
        Change::ValueRemoved { name, old } => format!("- {name} = {old}"),
        Change::ValueChanged { name, old, new } => format!("~ {name} = {old} -> {new}"),
        Change::Target { old, new } => format!("{old} -> {new}"),
    }
}

fn member_change(name: &str, old: &MemberPlace, new: &MemberPlace) -> String {
    let mut parts = Vec::new();
    if old.bit_offset != new.bit_offset {
        parts.push(format!("at {} -> {}", at(old), at(new)));
    }
    if (old.bits, old.size) != (new.bits, new.size) {
        parts.push(format!("{} -> {}", size(old), size(new)));
    }
    if old.ty != new.ty {
        parts.push(format!("{} -> {}", old.ty, new.ty));
    }
    format!("~ {name}: {}", parts.join(", "))
}

fn place(place: &MemberPlace) -> String {
    format!("{} at {}, {}", place.ty, at(place), size(place))
}

fn at(place: &MemberPlace) -> String {
    match place.bit_offset % 8 {
        0 => (place.bit_offset / 8).to_string(),
        bit => format!("{}.{bit}", place.bit_offset / 8),
    }
}

fn size(place: &MemberPlace) -> String {
    match (place.bits, place.size) {
        (0, Some(size)) => format!("{size} bytes"),
        (0, None) => "no size".to_owned(),
        (bits, _) => format!("{bits} bits"),
    }
}

/// A changed type as JSON.
#[derive(Serialize)]
pub struct ChangedRecord {
    kind: &'static str,
    name: String,
    change_texts: Vec<String>,
}

impl ChangedRecord {
    /// The record of a changed type.
    pub fn new(changed: &Changed) -> ChangedRecord {
        ChangedRecord {
            kind: word(changed.kind),
            name: changed.name.clone(),
            change_texts: changed.changes.iter().map(line).collect(),
        }
    }
}
