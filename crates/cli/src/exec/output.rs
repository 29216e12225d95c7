//! The output of `beebox exec`.

use report::json::pretty;
use std::fmt::Write;

use beebox::internal::raw::{CheckedProgram, Trap, limit_json, trap_json, trap_text};
use report::run::{hex, hex_rows};
use serde_json::{Value, json};

use super::memory::{Region, Regions};
use super::{Ran, Stop};
use crate::answer::Failure;
use crate::answer_format::{AnswerFormat, count};
use crate::limits::TIMED_OUT;
use crate::stdout::{write_json, write_output};

/// A run, to be printed.
pub(crate) struct Report<'a> {
    pub(crate) program: &'a CheckedProgram,
    pub(crate) ran: &'a Ran,
    /// The memory, if it is to be printed.
    pub(crate) regions: Option<&'a Regions>,
}

impl Report<'_> {
    pub(crate) fn print(&self, format: AnswerFormat) -> Result<(), Failure> {
        match format {
            AnswerFormat::Text => write_output(self.text().as_bytes(), None),
            AnswerFormat::Json => write_json(pretty(&self.json()).as_bytes()),
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
        let mut text = format!("trap: {}", trap_text(trap, TIMED_OUT));
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
            Err(Stop::Trap(trap)) => json!({ "trap": trap_json(trap, TIMED_OUT) }),
            Err(Stop::Deadline) => json!({ "trap": limit_json("deadline", TIMED_OUT) }),
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
                    "hex": hex(&region.bytes),
                })
            });
            record["memory"] = regions.collect();
        }
        record
    }
}

/// A region, at the addresses that the program saw.
fn write_region(text: &mut String, region: &Region) {
    let len = count(region.bytes.len(), "byte");
    let _ = writeln!(text, "{} ({len})", region.name);
    hex_rows(text, region.address, &region.bytes);
}
