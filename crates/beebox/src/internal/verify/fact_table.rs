//! Facts that hold at each instruction in every run.

use std::fmt::Write as _;

use super::{
    Branch, CallFact, InsnFact, MapRef, PacketCheck, Pointer, PointerKind, ProgramFacts, Scalar,
    Value,
};
use isa::ebpf::{Insn, Reg};
use program::Program;
use serde::Serialize;

/// Columns of an instruction's text in the table.
const TEXT_WIDTH: usize = 34;

/// Facts of an accepted program.
#[derive(Clone, Debug, Serialize)]
pub struct FactTable {
    insns: Vec<InsnRow>,
    packet_checks: Vec<CheckRow>,
}

/// Facts of an instruction; those that are unknown are left out.
#[derive(Clone, Debug, Serialize)]
struct InsnRow {
    insn: usize,
    text: String,
    /// True if no run comes here; there are no other facts then.
    dead: bool,
    /// Registers that it reads, before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reads: Vec<RegisterRow>,
    /// The register that it writes, after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    writes: Option<RegisterRow>,
    /// Memory that it reads or writes, without a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<ValueRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jumps: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    key_in_bounds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    needs_zero_extension: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
struct RegisterRow {
    register: u8,
    #[serde(flatten)]
    value: ValueRow,
}

/// A value: a number of a range, or a pointer with its offsets.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ValueRow {
    Constant {
        constant: u64,
    },
    Number {
        umin: u64,
        umax: u64,
        smin: i64,
        smax: i64,
    },
    Pointer {
        points_to: String,
        min_offset: i64,
        max_offset: i64,
        may_be_null: bool,
    },
    Mixed,
}

/// Accesses that a comparison with the end of the packet alone proves.
#[derive(Clone, Debug, Serialize)]
struct CheckRow {
    insn: u32,
    proven_bytes: u32,
    accesses: Vec<u32>,
}

impl FactTable {
    pub fn new(program: &Program, facts: &ProgramFacts) -> FactTable {
        let decoded = program.decode();
        let mut insns = Vec::new();
        let mut is_second_slot = false;
        for (at, (insn, fact)) in decoded.iter().zip(&facts.insns).enumerate() {
            if !std::mem::take(&mut is_second_slot) {
                insns.push(InsnRow::new(program, at, insn, fact));
                is_second_slot = matches!(insn, Insn::LoadImm64 { .. });
            }
        }
        let checks = facts.packet_checks.iter().map(CheckRow::new);
        FactTable {
            insns,
            packet_checks: checks.collect(),
        }
    }

    /// A line for each instruction, then one for each check of the packet's end.
    pub fn write(&self, text: &mut String) {
        for row in &self.insns {
            let line = format!(
                "{:>5}: {:<TEXT_WIDTH$}  {}",
                row.insn,
                row.text,
                row.facts()
            );
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for check in &self.packet_checks {
            let accesses: Vec<String> = check.accesses.iter().map(u32::to_string).collect();
            let _ = writeln!(
                text,
                "the check at {} proves {} bytes of the packet, alone for: {}",
                check.insn,
                check.proven_bytes,
                match accesses.is_empty() {
                    true => String::from("no access"),
                    false => accesses.join(", "),
                }
            );
        }
        text.push('\n');
    }
}

impl InsnRow {
    fn new(program: &Program, at: usize, insn: &Insn, fact: &InsnFact) -> InsnRow {
        let register = |(reg, value): &(Reg, Value)| RegisterRow {
            register: reg.number(),
            value: ValueRow::new(program, value),
        };
        let call: CallFact = fact.call.unwrap_or_default();
        InsnRow {
            insn: at,
            text: insn.to_string(),
            dead: !fact.is_reached,
            reads: fact.operands.iter().map(register).collect(),
            writes: fact.result.as_ref().map(register),
            access: fact
                .access
                .as_ref()
                .map(|value| ValueRow::new(program, value)),
            jumps: fact.branch.map(|branch| match branch {
                Branch::Always => "always",
                Branch::Never => "never",
                Branch::Both => "both",
            }),
            map: call.map.map(|map| map_name(program, map)),
            key: call.key,
            key_in_bounds: call.is_key_in_bounds,
            needs_zero_extension: fact.needs_zero_extension,
        }
    }

    /// The facts as text. A jump that may go both ways is no news.
    fn facts(&self) -> String {
        if self.dead {
            return String::from("dead");
        }
        let mut facts: Vec<String> = Vec::new();
        facts.extend(self.reads.iter().map(RegisterRow::text));
        if let Some(access) = &self.access {
            facts.push(format!("at {}", access.text()));
        }
        if let Some(map) = &self.map {
            facts.push(format!("map {map}"));
        }
        if let Some(key) = self.key {
            let place = if self.key_in_bounds {
                ", in bounds"
            } else {
                ""
            };
            facts.push(format!("key {key}{place}"));
        }
        match self.jumps {
            Some("always") => facts.push(String::from("always jumps")),
            Some("never") => facts.push(String::from("never jumps")),
            _ => {}
        }
        match self.needs_zero_extension {
            Some(true) => facts.push(String::from("upper half needed")),
            Some(false) => facts.push(String::from("upper half not needed")),
            None => {}
        }
        let known = facts.join("; ");
        match &self.writes {
            Some(result) if known.is_empty() => format!("→ {}", result.text()),
            Some(result) => format!("{known} → {}", result.text()),
            None => known,
        }
    }
}

impl RegisterRow {
    fn text(&self) -> String {
        format!("r{}: {}", self.register, self.value.text())
    }
}

impl ValueRow {
    fn new(program: &Program, value: &Value) -> ValueRow {
        match value {
            Value::Scalar(scalar) => ValueRow::of_number(scalar),
            Value::Pointer(pointer) => ValueRow::of_pointer(program, pointer),
            Value::Mixed => ValueRow::Mixed,
        }
    }

    fn of_number(scalar: &Scalar) -> ValueRow {
        match scalar.as_const() {
            Some(constant) => ValueRow::Constant { constant },
            None => ValueRow::Number {
                umin: scalar.umin,
                umax: scalar.umax,
                smin: scalar.smin,
                smax: scalar.smax,
            },
        }
    }

    fn of_pointer(program: &Program, pointer: &Pointer) -> ValueRow {
        let points_to = match pointer.kind {
            PointerKind::Context => String::from("context"),
            PointerKind::Map(map) => format!("map {}", map_name(program, map)),
            PointerKind::MapValue(map) => format!("value of {}", map_name(program, map)),
            PointerKind::MapKey(map) => format!("key of {}", map_name(program, map)),
            PointerKind::Stack { frames_up: 0 } => String::from("stack"),
            PointerKind::Stack { frames_up } => format!("stack of caller {frames_up}"),
            PointerKind::Packet => String::from("packet"),
            PointerKind::FlowKeys => String::from("flow keys"),
            PointerKind::PacketMeta => String::from("packet metadata"),
            PointerKind::PacketEnd => String::from("packet end"),
            PointerKind::Memory { size } => format!("memory of {size} bytes"),
            PointerKind::Function { subprog } => format!("function {subprog}"),
            PointerKind::Other { base } => format!("object (type {})", base as u32),
        };
        ValueRow::Pointer {
            points_to,
            min_offset: pointer.offset.min,
            max_offset: pointer.offset.max,
            may_be_null: pointer.may_be_null,
        }
    }

    fn text(&self) -> String {
        match self {
            ValueRow::Constant { constant } => (*constant as i64).to_string(),
            ValueRow::Number {
                umin: 0,
                umax: u64::MAX,
                smin: i64::MIN,
                smax: i64::MAX,
            } => String::from("number"),
            // The range that fits into both readings, else the narrower one.
            ValueRow::Number {
                umin,
                umax,
                smin,
                smax,
            } => match umax.wrapping_sub(*umin) <= smax.wrapping_sub(*smin) as u64 {
                true => format!("{umin} to {umax}"),
                false => format!("{smin} to {smax}"),
            },
            ValueRow::Pointer {
                points_to,
                min_offset,
                max_offset,
                may_be_null,
            } => {
                let mut text = points_to.clone();
                if min_offset != max_offset {
                    let _ = write!(text, " {min_offset:+} to {max_offset:+}");
                } else if *min_offset != 0 {
                    let _ = write!(text, " {min_offset:+}");
                }
                if *may_be_null {
                    text.push_str(" or null");
                }
                text
            }
            ValueRow::Mixed => String::from("pointer or number"),
        }
    }
}

impl CheckRow {
    fn new(check: &PacketCheck) -> CheckRow {
        CheckRow {
            insn: check.insn,
            proven_bytes: check.proven,
            accesses: check.accesses.clone(),
        }
    }
}

/// Name of a map of the program; inner maps come behind those that it declares.
fn map_name(program: &Program, map: MapRef) -> String {
    let found = program.maps().get(map.0 as usize);
    found.map_or_else(
        || format!("inner map {}", map.0),
        |def| def.name.to_string(),
    )
}
