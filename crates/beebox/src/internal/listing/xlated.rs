//! Programs of an object as Linux rewrites them after verification (`xlated`).

use std::fmt::Write;

use crate::Kernel;
use crate::internal::ebpf::{Callee, Insn, decode, helper_name};
use crate::internal::object::{LinkOutcome, LinkReport};
use crate::internal::program::Program;
use crate::internal::verify::{KernelCode, Proof, Registry};
use crate::verify::Verdict;
use serde::Serialize;
use serde_json::{Value, json};

use super::linked::{Labels, Listed, Outcome};

/// The function that gives `may_goto` more rounds.
const MORE_ROUNDS: &str = "arch_bpf_timed_may_goto";

/// A program after verification.
pub struct Xlated<'t> {
    name: &'t str,
    /// The program and what the kernel keeps of it, or why there is nothing.
    code: Result<(&'t Listed<'t>, KernelCode), String>,
}

impl<'t> Xlated<'t> {
    /// Verifies linked programs; `None` for a kernel without a registry.
    pub fn of_all(
        link_report: &LinkReport,
        outcomes: &'t [Outcome<'t>],
        kernel: &Kernel,
    ) -> Option<Vec<Xlated<'t>>> {
        let registry = kernel.registry()?;
        let programs = outcomes.iter().zip(&link_report.programs);
        let programs = programs.map(|((name, outcome), link_report)| Xlated {
            name,
            code: match (outcome, &link_report.outcome) {
                (Ok(listed), LinkOutcome::Linked(linked)) => {
                    verified(&linked.program, kernel, registry).map(|code| (listed, code))
                }
                (Ok(_), _) => Err("Linux loads no program of its type".to_owned()),
                (Err(error), _) => Err(format!("can't be linked: {error}")),
            },
        });
        Some(programs.collect())
    }

    /// True if the kernel accepts the program.
    pub fn is_accepted(&self) -> bool {
        self.code.is_ok()
    }
}

/// The rewritten program, or the reason of its refusal.
fn verified(program: &Program, kernel: &Kernel, registry: &Registry) -> Result<KernelCode, String> {
    Proof::of(program, kernel, registry)
        .map(|proof| proof.kernel_code())
        .map_err(|verification| match verification.verdict {
            Verdict::Refused(refusal) => format!("refused: {}", refusal.reason()),
            Verdict::Unsupported(what) => format!("unsupported: {what}"),
            Verdict::Bug(what) => format!("bug of the verifier: {what}"),
            Verdict::Accepted => "no facts".to_owned(),
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
    kernel_text: String,
    /// True if the kernel puts instructions of its own in its place.
    rewritten: bool,
    /// The number of instructions in its place, if it is known.
    insn_count: Option<u32>,
}

impl Line {
    fn text(&self) -> String {
        let Line {
            index,
            kernel_text: text,
            ..
        } = self;
        match (self.rewritten, self.insn_count) {
            (false, _) | (true, Some(1)) => format!("{index:4}: {text}"),
            (true, Some(count)) => format!("{index:4}: {text}  ; {count} instructions"),
            (true, None) => format!("{index:4}: {text}  ; instructions of the kernel"),
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
        let text = insn.kernel_form(&callee);
        let kernel_text = match (insn, &name) {
            (Insn::LoadImm64 { .. } | Insn::Call(Callee::Local(_)), Some(name)) => {
                format!("{text} <{name}>")
            }
            _ => text.to_string(),
        };
        lines.push(Line {
            index: places[slot],
            origin,
            kernel_text,
            rewritten: code.slots[slot].is_open,
            insn_count: code.slots[slot].insns,
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

/// The programs as the verifier's log has them, with source lines if `with_source` says so.
pub fn xlated_text(programs: &[Xlated<'_>], labels: &Labels<'_, '_>, with_source: bool) -> String {
    let mut text = String::new();
    for (at, Xlated { name, code }) in programs.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = match code {
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

/// The programs as JSON.
pub fn xlated_json(programs: &[Xlated<'_>], labels: &Labels<'_, '_>) -> Value {
    let record = |Xlated { name, code }: &Xlated<'_>| -> Value {
        match code {
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
    json!({ "programs": programs })
}
