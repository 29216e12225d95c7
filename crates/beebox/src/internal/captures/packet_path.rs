//! The path of one packet through a filter.

use std::fmt::Write as _;

use serde::Serialize;

use super::{Record, packet_metadata};
use crate::internal::classic::{Insn, Operand};
use crate::internal::text::dump_line;
use crate::internal::{JumpLimitExceeded, Next, Semantics, SockFilter, Step};
use crate::{Filter, Metadata, Packet};

/// The run of a filter on a packet, as a list of instructions.
pub struct PacketPath {
    steps: Vec<(SockFilter, Step)>,
    /// The return value; `None` if the run exceeded its limit.
    pub verdict: Option<u32>,
}

impl PacketPath {
    /// Runs a filter on a packet of a capture.
    pub fn of(filter: &Filter, record: &Record<'_>) -> PacketPath {
        /// Steps that are shown of a filter with loops.
        const SHOWN: usize = 100_000;
        let program = filter.checked().program();
        let meta = match filter.semantics() {
            Semantics::Capture => Metadata::UNKNOWN,
            Semantics::Kernel => {
                packet_metadata(record.interface(), record.interface_id(), record.data())
            }
        };
        let packet = match filter.semantics() {
            Semantics::Capture => Packet::captured(record.data(), record.wire_len(), &meta),
            Semantics::Kernel => Packet::whole(record.data(), &meta),
        };
        let mut steps = Vec::new();
        let verdict = filter.trace(&packet, &mut |step| {
            if steps.len() < SHOWN {
                steps.push((program[step.at], step));
            }
        });
        PacketPath {
            steps,
            verdict: verdict.ok(),
        }
    }

    /// A line for each instruction with its effect, under the place of the packet.
    pub fn text(&self, place: &str, record: &Record<'_>) -> String {
        let link_type = record.interface().link_type;
        let mut text = format!(
            "{place}: {} bytes on the wire, {} captured, interface {} ({link_type})\n",
            record.wire_len(),
            record.data().len(),
            record.interface_id(),
        );
        let lines = self
            .steps
            .iter()
            .map(|&(insn, step)| dump_line(step.at, insn));
        let lines: Vec<_> = lines.map(|line| line.replace('\t', "  ")).collect();
        let width = lines.iter().map(String::len).max().unwrap_or(0);
        for (line, &(insn, step)) in lines.iter().zip(&self.steps) {
            writeln!(text, "{line:width$}  ; {}", effect(insn, step)).expect("strings take all");
        }
        text.push_str(&match self.verdict {
            None => format!("stopped: {JumpLimitExceeded}\n"),
            Some(0) => "does not match: the filter returns 0\n".to_owned(),
            Some(value) => format!("matches: the filter returns {value}\n"),
        });
        text
    }

    /// The run as JSON, of the packet of a number in a file.
    pub fn record(&self, file: &str, number: u64, record: &Record<'_>) -> PathRecord {
        let steps = self.steps.iter().map(|&(insn, step)| StepRecord {
            insn: step.at,
            text: dump_line(step.at, insn)
                .split_whitespace()
                .skip(1)
                .collect::<Vec<_>>()
                .join(" "),
            a: step.a,
            x: step.x,
            next: match step.next {
                Next::Insn(next) => Some(next),
                Next::End(_) | Next::Stopped => None,
            },
        });
        PathRecord {
            file: file.to_owned(),
            packet: number,
            interface: record.interface_id(),
            link_type: record.interface().link_type.0,
            captured: record.data().len(),
            wire: record.wire_len(),
            steps: steps.collect(),
            returns: self.verdict,
        }
    }
}

/// The run of a filter on a packet as JSON.
#[derive(Serialize)]
pub struct PathRecord {
    file: String,
    /// Number in the file, from 1.
    packet: u64,
    interface: u32,
    link_type: u32,
    captured: usize,
    wire: u32,
    steps: Vec<StepRecord>,
    returns: Option<u32>,
}

#[derive(Serialize)]
struct StepRecord {
    /// The number of the instruction.
    insn: usize,
    text: String,
    /// After the instruction.
    a: u32,
    x: u32,
    next: Option<usize>,
}

/// The effect of an instruction in words.
fn effect(raw: SockFilter, step: Step) -> String {
    let value = |register: &str, value: u32| format!("{register} = {value:#x} ({value})");
    let insn = Insn::decode(raw);
    match (insn, step.next) {
        (Insn::RetK(_) | Insn::RetA, Next::End(value)) => format!("returns {value}"),
        (Insn::LoadAbs { .. } | Insn::LoadInd { .. } | Insn::LoadXMsh(_), Next::End(value)) => {
            format!("not in the packet: ends with {value}")
        }
        (_, Next::End(value)) => format!("ends with {value}"),
        (_, Next::Stopped) => "stopped here".to_owned(),
        (Insn::Jump { cond, src, .. }, Next::Insn(next)) => {
            let operand = match src {
                Operand::K(k) => k,
                Operand::X => step.x,
            };
            let holds = cond.holds(step.a, operand);
            let answer = if holds { "yes" } else { "no" };
            format!("{}: {answer}, to {next}", value("A", step.a))
        }
        (Insn::Goto(_), Next::Insn(next)) => format!("to {next}"),
        (
            Insn::LoadXImm(_) | Insn::LoadXMem(_) | Insn::LoadXLen | Insn::LoadXMsh(_) | Insn::Tax,
            _,
        ) => value("X", step.x),
        (Insn::Store(k), _) => value(&format!("M[{k}]"), step.a),
        (Insn::StoreX(k), _) => value(&format!("M[{k}]"), step.x),
        _ => value("A", step.a),
    }
}
