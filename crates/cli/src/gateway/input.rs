//! Sets of rules from files, as text or compiled.

use std::ffi::CString;
use std::path::Path;

use gateway::{Compiled, Packet, RuleSet, Table, protocol_name};

use crate::answer::Failure;
use crate::program_input::name;
use crate::run::memory::read_file;

/// A set of rules from a file, with its table.
pub(super) struct Rules {
    pub(super) set: RuleSet,
    pub(super) table: Table,
}

/// Reads rules from a file or standard input (`-`), as text or compiled.
pub(super) fn read_set(path: &Path) -> Result<(RuleSet, Option<Table>), Failure> {
    let bytes = read_file(path)?;
    if gateway::is_state(&bytes) {
        let (set, table) =
            gateway::read_state(&bytes).map_err(|error| Failure::new(error).within(name(path)))?;
        return Ok((set, Some(table)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new("the file is not text (UTF-8)").within(name(path)))?;
    let set = RuleSet::parse(&text).map_err(|error| {
        let line = text.lines().nth(error.line - 1).unwrap_or_default();
        let marker = format!("{}^", " ".repeat(error.column - 1));
        Failure::new(&error)
            .within(name(path))
            .excerpt(format_args!("  {line}\n  {marker}"))
    })?;
    let is_blank = |line: &str| line.split('#').next().unwrap_or_default().trim().is_empty();
    if text.lines().all(is_blank) {
        diagnostic!(
            "beebox: warning: {}: no rules, so that every packet passes",
            name(path)
        );
    }
    Ok((set, None))
}

/// Reads rules, and compiles them if they are text.
pub(super) fn read(path: &Path) -> Result<Rules, Failure> {
    let (set, table) = read_set(path)?;
    let table = match table {
        Some(table) => table,
        None => compile(&set, path)?.into_table(),
    };
    Ok(Rules { set, table })
}

/// Compiles rules, with the interfaces of this machine. Those that it lacks have index 0.
pub(super) fn compile(set: &RuleSet, path: &Path) -> Result<Compiled, Failure> {
    let compiled = Compiled::with_interfaces(set, &|name| Some(interface(name).unwrap_or(0)));
    compiled.map_err(|error| Failure::new(error).within(name(path)))
}

/// The index of an interface by its name, or the index that the name is.
pub(super) fn interface(name: &str) -> Option<u32> {
    if let Ok(index) = name.parse() {
        return Some(index);
    }
    let name = CString::new(name).ok()?;
    sys::network::interface_index(&name).ok()
}

/// A rule as text: its number, and the rule itself.
pub(super) fn describe_rule(set: &RuleSet, rule: u32) -> String {
    let count = set.rules.len() as u32;
    match rule {
        0 => format!("default {}", set.default),
        rule if rule <= count => format!("rule {rule}: {}", set.rules[rule as usize - 1]),
        rule if rule == count + 1 => format!("no IP packet: {}", set.other),
        _ => format!("malformed: {}", set.malformed),
    }
}

/// A packet as the words of a rule that matches it alone.
pub(super) fn describe_packet(packet: &Packet) -> String {
    let protocol = match protocol_name(packet.protocol) {
        Some(name) => name.to_owned(),
        None => packet.protocol.to_string(),
    };
    let is_icmp = matches!(packet.protocol, 1 | 58);
    let (source, destination) = (packet.source, packet.destination);
    match (packet.source_port, packet.destination_port) {
        (Some(kind), Some(code)) if is_icmp => {
            format!("proto {protocol} from {source} to {destination} type {kind} code {code}")
        }
        (Some(from), Some(to)) => {
            format!("proto {protocol} from {source} port {from} to {destination} port {to}")
        }
        _ => format!("proto {protocol} from {source} to {destination}"),
    }
}
