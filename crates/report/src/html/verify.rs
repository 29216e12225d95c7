//! The page of a verification: the steps of the walk over each program, with states, pruning, precision
//! and the refusal.

use std::collections::BTreeMap;

use program::Program;
use serde_json::{Value, json};
use verifier::{PrecisionRequest, StatePlace, StepEnd, Walk, WalkStep};

use super::page::{self, page};
use super::source::SourceFinder;

/// A program whose walk is shown.
#[derive(Clone, Copy, Debug)]
pub struct WalkedProgram<'p> {
    /// The file that it is of.
    pub file: &'p str,
    /// Its name.
    pub name: &'p str,
    /// The program, if it could be loaded.
    pub program: Option<&'p Program>,
    /// The verdict in a word.
    pub verdict: &'p str,
    /// Why it is not accepted.
    pub reason: &'p str,
    /// The explanation of the refusal, as [`crate::explain::json`] has it.
    pub explanation: Option<&'p Value>,
    /// Instructions that the walk processed.
    pub total_insns: u64,
    /// States that it made.
    pub total_states: u64,
    /// The steps.
    pub walk: &'p Walk,
}

/// The page, while programs are added.
#[derive(Debug, Default)]
pub struct VerifyPage {
    programs: Vec<String>,
    /// Texts of the lines that programs have, by file and number.
    lines: BTreeMap<String, BTreeMap<u32, String>>,
}

/// Number of a place that is no register or slot.
const FRAME: u32 = 250;
const REFERENCES: u32 = 0xffff;

impl VerifyPage {
    /// Adds a program.
    pub fn add(&mut self, walked: &WalkedProgram<'_>) {
        let walk = walked.walk;
        let steps: Vec<Value> = walk.steps.iter().enumerate().map(step).collect();
        let requests: Vec<Value> = walk.requests.iter().map(request).collect();
        let functions = walked.program.map_or_else(Vec::new, |program| {
            let subprogs = program.subprogs().iter();
            subprogs
                .map(|subprog| (subprog.start, subprog.name.clone()))
                .collect()
        });
        let lines = walked
            .program
            .map_or_else(Vec::new, |program| self.lines_of(program));
        self.programs.push(page::json(&json!({
            "file": walked.file,
            "name": walked.name,
            "prog_type": walked.program.map(|program| program.kind().name()),
            "verdict": walked.verdict,
            "reason": walked.reason,
            "explanation": walked.explanation,
            "total_insns": walked.total_insns,
            "total_states": walked.total_states,
            "insns": walk.insns,
            "live_regs": walk.live_regs,
            "functions": functions,
            "lines": lines,
            "values": walk.values,
            "steps": steps,
            "gap": walk.gap,
            "requests": requests,
        })));
    }

    /// The file and number of the line of each instruction; `None` without one.
    fn lines_of(&mut self, program: &Program) -> Vec<Option<(String, u32)>> {
        let Some(types) = program.btf() else {
            return Vec::new();
        };
        let slots = 0..program.insns().len() as u32;
        let lines = slots.map(|slot| {
            let line = program.line_at(slot).filter(|line| line.line > 0)?;
            let name = types.string(line.file).to_string();
            let file = self.lines.entry(name.clone()).or_default();
            file.entry(line.line)
                .or_insert_with(|| types.string(line.text).to_string());
            Some((name, line.line))
        });
        lines.collect()
    }

    /// The page.
    pub fn finish(self, title: &str, sources: &SourceFinder) -> String {
        let files = self.lines.iter().map(|(name, known)| {
            let source = sources.find(name, known);
            json!({ "source": source, "counts": [] })
        });
        let files: Vec<Value> = files.collect();
        let data = format!(
            "{{\"title\":{},\"files\":{},\"programs\":[{}]}}",
            page::json(&title),
            page::json(&files),
            self.programs.join(",")
        );
        let title = format!("{title} – Beebox");
        page(&title, include_str!("verify.js"), &data)
    }
}

/// A step: instruction, distance to the step before it (0 if there is none), flags, frame, end, the
/// checkpoint that covers it, changes, checkpoints that did not.
fn step((index, step): (usize, &WalkStep)) -> Value {
    let flags = u32::from(step.is_speculative)
        | u32::from(step.is_checkpoint) << 1
        | u32::from(step.is_whole) << 2;
    let before = step.before.map_or(0, |before| index as u32 - before);
    let (end, by) = match step.end {
        StepEnd::GoesOn => (0, None),
        StepEnd::Exits => (1, None),
        StepEnd::Pruned(by, false) => (2, by),
        StepEnd::Pruned(by, true) => (3, by),
        StepEnd::Barrier => (4, None),
        StepEnd::Refused => (5, None),
    };
    let changes = step.changes.iter();
    let changes: Vec<i64> = changes
        .flat_map(|(place, value)| [place_number(*place).into(), value.map_or(-1, i64::from)])
        .collect();
    json!([
        step.insn,
        before,
        flags,
        step.frame,
        end,
        by,
        changes,
        step.missed
    ])
}

fn place_number(place: StatePlace) -> u32 {
    let of = |frame: u8, number: u32| u32::from(frame) << 8 | number;
    match place {
        StatePlace::Frame(frame) => of(frame, FRAME),
        StatePlace::Reg(frame, reg) => of(frame, reg.into()),
        StatePlace::Slot(frame, spi) => of(frame, 16 + u32::from(spi)),
        StatePlace::References => REFERENCES,
    }
}

/// A request: the step that made it, what it asked for, the instructions that it was carried over, and
/// what became precise. Masks of slots are lists of numbers, since they have more bits than numbers of
/// scripts.
fn request(request: &PrecisionRequest) -> Value {
    let bits = |mask: u64| -> Vec<u32> { (0..64).filter(|bit| mask >> bit & 1 != 0).collect() };
    let places = |frame: u8, regs: u16, slots: u64| -> Vec<u32> {
        let of = |number: u32| u32::from(frame) << 8 | number;
        let regs = bits(regs.into()).into_iter().map(of);
        regs.chain(bits(slots).into_iter().map(|spi| of(16 + spi)))
            .collect()
    };
    let asked = request.asked.iter();
    let asked: Vec<u32> = asked
        .flat_map(|(frame, regs, slots)| places(*frame, *regs, *slots))
        .collect();
    let carried = request.carried.iter();
    let carried: Vec<Value> = carried
        .map(|(insn, frame, regs, slots)| json!([insn, places(*frame, *regs, *slots)]))
        .collect();
    let marked = request.marked.iter();
    let marked: Vec<Value> = marked
        .map(|(step, frame, regs, slots)| json!([step, places(*frame, *regs, *slots)]))
        .collect();
    json!([request.step, asked, carried, marked])
}
