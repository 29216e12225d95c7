//! The path of one packet through the filter.

use std::ffi::OsString;
use std::fmt::Write as _;

use beebox::SockFilter;
use beebox::captures::FilterSource;
use beebox::internal::captures::{Event, Record, packet_metadata};
use beebox::internal::classic::{Insn, Operand};
use beebox::internal::text::dump_line;
use beebox::internal::{Next, Step};
use beebox::{Filter, JumpLimitExceeded, Metadata, Packet, Semantics};
use serde::Serialize;
use sys::interruptible::Interruption;

use super::inputs;
use super::programs::Chosen;
use crate::answer::{Answer, Failure};
use crate::stdout::{json, write_json, write_output};

/// Shows the path of packet `number`, counted through all captures.
pub(super) fn explain(
    paths: &[OsString],
    programs: &Chosen,
    number: u64,
    as_json: bool,
) -> Result<Answer, Failure> {
    let mut seen = 0;
    for mut named in inputs::open_all(paths, &Interruption::default())? {
        let before = seen;
        loop {
            let event = named.input.next_event();
            let event = event.map_err(|error| inputs::unreadable(&named.name, &error))?;
            match event {
                None => break,
                Some(Event::Block(_)) => continue,
                Some(Event::Packet(record)) => {
                    seen += 1;
                    if seen < number {
                        continue;
                    }
                    // Other tools number the packets of each file from 1.
                    let in_file = number - before;
                    let mut place = format!("{}: packet {in_file}", named.name);
                    if before > 0 {
                        let _ = write!(place, " ({number} of all captures)");
                    }
                    let filter = programs
                        .for_interface(record.interface())
                        .map_err(|refusal| programs.refused(&refusal, &place))?;
                    let path = Path::of(filter, &record);
                    match as_json {
                        true => write_json(&json(&path.record(&named.name, in_file, &record)))?,
                        false => write_output(path.text(&place, &record).as_bytes(), None)?,
                    }
                    return match path.verdict {
                        Some(0) => Ok(Answer::No),
                        Some(_) => Ok(Answer::Yes),
                        None => Err(Failure::new(JumpLimitExceeded).within(place)),
                    };
                }
            }
        }
    }
    Err(Failure::new(format_args!(
        "there is no packet {number}: the captures have {seen}"
    )))
}

/// A run as a list of instructions.
struct Path {
    steps: Vec<(SockFilter, Step)>,
    /// The return value; `None` if the run exceeded its limit.
    verdict: Option<u32>,
}

impl Path {
    fn of(filter: &Filter, record: &Record<'_>) -> Path {
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
        Path {
            steps,
            verdict: verdict.ok(),
        }
    }

    fn text(&self, place: &str, record: &Record<'_>) -> String {
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

    fn record(&self, file: &str, number: u64, record: &Record<'_>) -> PathRecord {
        let steps = self.steps.iter().map(|&(insn, step)| StepRecord {
            at: step.at,
            insn: dump_line(step.at, insn)
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

#[derive(Serialize)]
struct PathRecord {
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
    at: usize,
    insn: String,
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
