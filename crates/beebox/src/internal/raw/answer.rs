//! What came of a run of instructions, as text and as JSON.

use std::fmt::{self, Write};

use report::count;
use report::run::{hex, hex_rows};
use serde_json::{Value, json};

use super::{CheckedProgram, Finish, Region, Regions, Trap, limit_json, trap_json, trap_text};

/// Result of a run.
pub enum RawEnd {
    /// All that the checked interpreter tells, and the lines of the trace.
    Checked {
        /// Registers, and the value or the trap.
        finish: Box<Finish>,
        /// The trace; empty without one.
        trace: String,
    },
    /// `r0`, from an engine that tells nothing else; `None` if the time limit passed.
    Trusted(Option<u64>),
}

/// Why a run ended without a value.
#[derive(Debug)]
pub enum RawStop<'r> {
    /// A trap.
    Trap(&'r Trap),
    /// The time limit.
    Deadline,
}

impl fmt::Display for RawStop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RawStop::Trap(trap) => trap.fmt(f),
            RawStop::Deadline => f.write_str("the time limit passed"),
        }
    }
}

impl std::error::Error for RawStop<'_> {}

impl RawEnd {
    /// The value of `r0`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn outcome(&self) -> Result<u64, RawStop<'_>> {
        match self {
            RawEnd::Checked { finish, .. } => {
                finish.outcome.as_ref().copied().map_err(RawStop::Trap)
            }
            RawEnd::Trusted(value) => value.ok_or(RawStop::Deadline),
        }
    }
}

/// A run, to be shown.
pub struct RawAnswer<'a> {
    /// The program.
    pub program: &'a CheckedProgram,
    /// Its run.
    pub end: &'a RawEnd,
    /// The memory, if it is to be shown.
    pub regions: Option<&'a Regions>,
    /// What is said of a run that the time limit ended.
    pub timed_out: &'a str,
}

impl RawAnswer<'_> {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut performed = String::new();
        if let RawEnd::Checked { finish, trace } = self.end {
            text.push_str(trace);
            performed = count(finish.executed as usize, "instruction") + "\n";
        }
        let _ = match self.end.outcome() {
            Ok(value) => write!(text, "r0 = {value:#x} ({value})\n{performed}"),
            Err(RawStop::Trap(trap)) => write!(text, "{}\nafter {performed}", self.trap(trap)),
            Err(RawStop::Deadline) => writeln!(text, "trap: {}", self.timed_out),
        };
        for region in self.regions.iter().flat_map(|regions| regions.iter()) {
            write_region(&mut text, region);
        }
        text
    }

    fn trap(&self, trap: &Trap) -> String {
        let mut text = format!("trap: {}", trap_text(trap, self.timed_out));
        let shown = self.program.insns().iter().enumerate();
        for (at, insn) in shown.skip(trap.at.saturating_sub(2)).take(5) {
            let mark = if at == trap.at { '>' } else { ' ' };
            if at <= trap.at + 2 {
                let _ = write!(text, "\n{mark} {at:4}: {insn}");
            }
        }
        text
    }

    /// As data.
    pub fn json(&self) -> Value {
        let mut record = match self.end.outcome() {
            Ok(value) => json!({ "r0": value, "r0_hex": format!("{value:#x}") }),
            Err(RawStop::Trap(trap)) => json!({ "trap": trap_json(trap, self.timed_out) }),
            Err(RawStop::Deadline) => json!({ "trap": limit_json("deadline", self.timed_out) }),
        };
        if let RawEnd::Checked { finish, trace } = self.end {
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
