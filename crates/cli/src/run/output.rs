//! The output of `beebox run`.

use std::fmt::Write;

use beebox::internal::raw::{AccessError, BadAccess, CallFault, CheckedProgram, Reason, Trap};
use report::run::hex_rows;
use serde_json::{Value, json};

use super::memory::{Region, Regions};
use super::trusted::TIMED_OUT;
use super::{Ran, RunFormat, Stop};
use crate::answer::Failure;
use crate::answer_format::count;
use crate::stdout::{write_json, write_output};

/// A run, to be printed.
pub(crate) struct Report<'a> {
    pub(crate) program: &'a CheckedProgram,
    pub(crate) ran: &'a Ran,
    /// The memory, if it is to be printed.
    pub(crate) regions: Option<&'a Regions>,
}

impl Report<'_> {
    pub(crate) fn print(&self, format: RunFormat) -> Result<(), Failure> {
        match format {
            RunFormat::Text => write_output(self.text().as_bytes(), None),
            RunFormat::Json => write_json(format!("{:#}\n", self.json()).as_bytes()),
            RunFormat::Junit => Err(Failure::new("--format junit needs --expect FILE")),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut performed = String::new();
        if let Ran::Checked { finish, trace } = self.ran {
            text.push_str(trace);
            let plural = if finish.executed == 1 { "" } else { "s" };
            performed = format!("{} instruction{plural}\n", finish.executed);
        }
        let _ = match self.ran.outcome() {
            Ok(value) => write!(text, "r0 = {value:#x} ({value})\n{performed}"),
            Err(Stop::Trap(trap)) => write!(text, "{}\nafter {performed}", self.trap(trap)),
            Err(Stop::Deadline) => writeln!(text, "trap: {TIMED_OUT}"),
        };
        for region in self.regions.iter().flat_map(|regions| regions.iter()) {
            write_region(&mut text, region);
        }
        text
    }

    fn trap(&self, trap: &Trap) -> String {
        let mut text = format!("trap: {}", message(trap));
        let shown = self.program.insns().iter().enumerate();
        for (at, insn) in shown.skip(trap.at.saturating_sub(2)).take(5) {
            let mark = if at == trap.at { '>' } else { ' ' };
            if at <= trap.at + 2 {
                let _ = write!(text, "\n{mark} {at:4}: {insn}");
            }
        }
        text
    }

    fn json(&self) -> Value {
        let mut record = match self.ran.outcome() {
            Ok(value) => json!({ "r0": value, "r0_hex": format!("{value:#x}") }),
            Err(Stop::Trap(trap)) => json!({ "trap": trap_record(trap) }),
            Err(Stop::Deadline) => json!({ "trap": limit_record("deadline", TIMED_OUT) }),
        };
        if let Ran::Checked { finish, trace } = self.ran {
            let registers = finish.registers.iter().enumerate();
            let registers = registers.map(|(number, value)| (format!("r{number}"), json!(value)));
            record["executed"] = json!(finish.executed);
            record["registers"] = Value::Object(registers.collect());
            if !trace.is_empty() {
                record["trace"] = trace.lines().collect();
            }
        }
        if let Some(regions) = self.regions {
            let regions = regions.iter().map(|region| {
                json!({
                    "name": region.name,
                    "address": region.address,
                    "bytes": hex(&region.bytes),
                })
            });
            record["memory"] = regions.collect();
        }
        record
    }
}

/// The reason of a trap; that of a time limit names the option.
fn message(trap: &Trap) -> String {
    match trap.reason {
        Reason::Deadline(_) => TIMED_OUT.to_owned(),
        _ => trap.reason.to_string(),
    }
}

/// The record of a run that a limit ended at an unknown place.
pub(super) fn limit_record(kind: &str, message: &str) -> Value {
    json!({ "at": null, "insn": null, "kind": kind, "message": message })
}

pub(super) fn trap_record(trap: &Trap) -> Value {
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

/// A region, at the addresses that the program saw.
fn write_region(text: &mut String, region: &Region) {
    let len = count(region.bytes.len(), "byte");
    let _ = writeln!(text, "{} ({len})", region.name);
    hex_rows(text, region.address, &region.bytes);
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
