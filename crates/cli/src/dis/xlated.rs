//! Programs of an object as Linux rewrites them after verification (`xlated`).

use std::fmt::Write;

use beebox::Kernel;
use beebox::internal::ebpf::{Callee, Insn, decode, helper_name};
use beebox::internal::object::{Trial, TrialOutcome};
use beebox::internal::program::Program;
use beebox::internal::verify::{KernelCode, Proof};
use beebox::verify::Verdict;
use serde::Serialize;
use serde_json::{Value, json};

use super::object::{Labels, Listed, Outcome, Shown, View};
use crate::answer::Failure;
use crate::program_input::ClassicForm;
use crate::program_output::ProgramFormat;

/// The function that gives `may_goto` more rounds.
const MORE_ROUNDS: &str = "arch_bpf_timed_may_goto";

/// A program after verification, or why there is none.
type Xlated<'t> = Result<(&'t Listed<'t>, KernelCode), String>;

/// Verifies linked programs and shows what the kernel keeps of them.
pub(super) fn show(
    trial: &Trial,
    outcomes: &[Outcome<'_>],
    labels: &Labels<'_, '_>,
    view: &View,
) -> Result<Shown, Failure> {
    let mut programs = Vec::new();
    for ((name, outcome), trial) in outcomes.iter().zip(&trial.programs) {
        let xlated = match (outcome, &trial.outcome) {
            (Ok(listed), TrialOutcome::Linked(linked)) => {
                verified(&linked.program, labels.kernel)?.map(|code| (listed, code))
            }
            (Ok(_), _) => Err("Linux loads no program of its type".to_owned()),
            (Err(error), _) => Err(format!("can't be linked: {error}")),
        };
        programs.push((name.as_str(), xlated));
    }
    let complete = programs.iter().all(|(_, xlated)| xlated.is_ok());
    let bytes = match view.format {
        ProgramFormat::Json => as_json(&programs, labels),
        ProgramFormat::Form(ClassicForm::D) | ProgramFormat::Log => {
            as_text(&programs, labels, view.source).into_bytes()
        }
        _ => {
            let what = "instructions of the kernel are written as in its log, or as JSON";
            return Err(Failure::new(what).hint("no --format, or --format json"));
        }
    };
    Ok(Shown { bytes, complete })
}

/// The rewritten program, or the reason of its refusal.
fn verified(program: &Program, kernel: &Kernel) -> Result<Result<KernelCode, String>, Failure> {
    let registry = kernel.registry().ok_or_else(|| {
        Failure::new(format_args!(
            "{} has no registry to verify by",
            kernel.name()
        ))
    })?;
    Ok(match Proof::of(program, kernel, registry) {
        Ok(proof) => Ok(proof.kernel_code()),
        Err(verification) => Err(match verification.verdict {
            Verdict::Refused(refusal) => format!("refused: {}", refusal.reason()),
            Verdict::Unsupported(what) => format!("unsupported: {what}"),
            Verdict::Bug(what) => format!("bug of the verifier: {what}"),
            Verdict::Accepted => "no facts".to_owned(),
        }),
    })
}

/// An instruction of the kernel, or one that the kernel replaces by its own.
#[derive(Serialize)]
struct Line {
    /// The kernel's number.
    index: u32,
    /// The slot of the program that it comes from.
    origin: usize,
    /// As the verifier's log has it.
    log: String,
    /// True if the kernel puts instructions of its own in its place.
    rewritten: bool,
    /// The number of instructions in its place, if it is known.
    insns: Option<u32>,
}

impl Line {
    fn text(&self) -> String {
        let Line { index, log, .. } = self;
        match (self.rewritten, self.insns) {
            (false, _) | (true, Some(1)) => format!("{index:4}: {log}"),
            (true, Some(insns)) => format!("{index:4}: {log}  ; {insns} instructions"),
            (true, None) => format!("{index:4}: {log}  ; instructions of the kernel"),
        }
    }
}

/// The lines of a program. The second slots of wide loads have none.
fn lines(listed: &Listed<'_>, code: &KernelCode, labels: &Labels<'_, '_>) -> Vec<Line> {
    let places = code.places();
    let raw: Vec<_> = (0..code.slots.len())
        .map(|slot| code.placed(slot, &places))
        .collect();
    let origins = origins(code);
    let mut lines = Vec::new();
    for (slot, insn) in decode(&raw).into_iter().enumerate() {
        if matches!(insn, Insn::Imm64High) {
            continue;
        }
        let origin = origins[slot];
        let name = match insn {
            Insn::Call(Callee::Helper(0)) => Some(MORE_ROUNDS.to_owned()),
            Insn::Call(_) | Insn::LoadImm64 { .. } => labels.of_slot(listed, origin as u32, insn),
            _ => None,
        };
        let callee = |callee| match callee {
            Callee::Helper(number) => helper_name(number).or(name.as_deref()),
            _ => name.as_deref(),
        };
        let log = insn.kernel_form(&callee);
        let log = match (insn, &name) {
            (Insn::LoadImm64 { .. } | Insn::Call(Callee::Local(_)), Some(name)) => {
                format!("{log} <{name}>")
            }
            _ => log.to_string(),
        };
        lines.push(Line {
            index: places[slot],
            origin,
            log,
            rewritten: code.slots[slot].is_open,
            insns: code.slots[slot].insns,
        });
    }
    lines
}

/// By slot of the kernel's form, the slot of the program that it comes from.
fn origins(code: &KernelCode) -> Vec<usize> {
    let mut origins = vec![0; code.slots.len()];
    let mut starts: Vec<(u32, usize)> = Vec::new();
    for (old, new) in code.new_slots.iter().enumerate() {
        starts.extend(new.map(|new| (new, old)));
    }
    starts.sort_unstable();
    let mut starts = starts.into_iter().peekable();
    let mut origin = 0;
    for (slot, to) in origins.iter_mut().enumerate() {
        while let Some((_, old)) = starts.next_if(|(new, _)| *new as usize <= slot) {
            origin = old;
        }
        *to = origin;
    }
    origins
}

fn heading(listed: &Listed<'_>, code: &KernelCode) -> String {
    let Listed { name, section, .. } = listed;
    let insns = match code.insns() {
        Some(insns) => format!("{insns} instructions"),
        None => "an unknown number of instructions".to_owned(),
    };
    format!("{name}: section {section}, {insns} after verification")
}

fn as_text(programs: &[(&str, Xlated<'_>)], labels: &Labels<'_, '_>, with_source: bool) -> String {
    let mut text = String::new();
    for (at, (name, xlated)) in programs.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = match xlated {
            Ok((listed, code)) => {
                let _ = writeln!(text, "{}", heading(listed, code));
                write_lines(&mut text, listed, code, labels, with_source)
            }
            Err(why) => writeln!(text, "{name}: {why}"),
        };
    }
    text
}

/// Writes instructions, with the names of subprogs and source lines between them.
fn write_lines(
    text: &mut String,
    listed: &Listed<'_>,
    code: &KernelCode,
    labels: &Labels<'_, '_>,
    with_source: bool,
) -> std::fmt::Result {
    let mut functions = listed.subprogs.iter().peekable();
    let mut sources = listed.line_info.iter().peekable();
    let mut prologue = code.prologue;
    let begin = code.places()[code.begin as usize];
    for line in lines(listed, code, labels) {
        let mut function = None;
        while let Some(next) = functions.next_if(|next| next.start as usize <= line.origin) {
            function = Some(next);
        }
        if let Some(function) = function {
            writeln!(text, "{}:", function.name)?;
        }
        if line.index == begin && prologue > 0 {
            let at = line.index - prologue;
            writeln!(
                text,
                "{at:4}: {prologue} instructions that make the packet writable"
            )?;
            prologue = 0;
        }
        let mut source = None;
        while let Some(next) = sources.next_if(|next| next.insn as usize <= line.origin) {
            source = Some(next);
        }
        if let Some(source) = source
            .filter(|_| with_source)
            .and_then(|it| labels.line(it))
        {
            writeln!(text, "{}", source.comment())?;
        }
        writeln!(text, "{}", line.text())?;
    }
    Ok(())
}

fn as_json(programs: &[(&str, Xlated<'_>)], labels: &Labels<'_, '_>) -> Vec<u8> {
    let record = |(name, xlated): &(&str, Xlated<'_>)| -> Value {
        match xlated {
            Ok((listed, code)) => json!({
                "name": name,
                "section": listed.section,
                "xlated_insns": code.insns(),
                "prologue_insns": code.prologue,
                "insns": lines(listed, code, labels),
            }),
            Err(why) => json!({ "name": name, "error": why }),
        }
    };
    let programs: Vec<Value> = programs.iter().map(record).collect();
    crate::stdout::json(&json!({ "programs": programs }))
}
