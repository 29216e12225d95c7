//! An explanation as text for a terminal.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use verifier::reason::{Cause, Decision, Explanation, InsnPlace, Path};

use super::words::{Words, words};
use super::{note, value};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const MARK: Style = AnsiColor::Blue.on_default().bold();
const BOLD: Style = Style::new().bold();
const HELP: Style = AnsiColor::Green.on_default().bold();

/// Columns of a source line that decisions and notes show.
const LINE_WIDTH: usize = 80;

/// The explanation for a person, without escape sequences.
pub fn plain_text(explanation: &Explanation) -> String {
    let text = text(explanation);
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A sequence ends at its first `m`.
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

/// The explanation for a person; styled by escape sequences.
pub fn text(explanation: &Explanation) -> String {
    let words = words(explanation);
    let mut text = String::new();
    let out = &mut text;
    let _ = writeln!(
        out,
        "{ERROR}refused{ERROR:#}: {BOLD}{}{BOLD:#}",
        words.headline
    );
    let margin = margin(explanation);
    if let Some(place) = &explanation.place {
        failing_place(out, place, margin);
    }
    facts(out, explanation, &words, margin);
    origin(out, explanation, margin);
    costs(out, &explanation.cause, margin);
    path(out, &explanation.path, margin);
    for help in &words.help {
        let _ = writeln!(out, "{HELP}help{HELP:#}: {help}");
    }
    text
}

/// Columns that line numbers or indices of instructions need.
fn margin(explanation: &Explanation) -> usize {
    let notes = explanation.notes.iter().map(|note| &note.place);
    let decisions = explanation
        .path
        .decisions
        .iter()
        .map(|decision| match decision {
            Decision::Branch { at, .. }
            | Decision::Call { at, .. }
            | Decision::Return { at, .. } => at,
        });
    let places = explanation.place.iter().chain(notes).chain(decisions);
    let widths = places.map(|place| label(place).len());
    widths.max().unwrap_or(1).max(2)
}

/// The line number of a place, or the index of its instruction.
fn label(place: &InsnPlace) -> String {
    match &place.source {
        Some(source) => source.line.to_string(),
        None => place.insn.to_string(),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The source line of a place without the space around it; its instruction where there is
/// no line, or where the line begins inline assembly, which holds several.
fn line_text(place: &InsnPlace) -> String {
    let source = place.source.as_ref().map(|source| source.text.trim());
    let is_assembly = |text: &&str| text.starts_with("asm") || text.starts_with("__asm");
    let text = source
        .filter(|text| !is_assembly(text))
        .unwrap_or(&place.text);
    match text.char_indices().nth(LINE_WIDTH) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

fn failing_place(out: &mut String, place: &InsnPlace, margin: usize) {
    let insn = place.insn;
    let function = match &place.function[..] {
        "" => String::new(),
        name => format!(" in `{name}`"),
    };
    let Some(source) = &place.source else {
        let _ = writeln!(
            out,
            "{:margin$}{MARK}-->{MARK:#} instruction {insn}{function}",
            ""
        );
        let _ = writeln!(out, "{:margin$} {MARK}|{MARK:#}", "");
        let _ = writeln!(out, "{MARK}{insn:>margin$} |{MARK:#} {}", place.text);
        let _ = writeln!(out, "{:margin$} {MARK}|{MARK:#}", "");
        return;
    };
    let (file, line, column) = (file_name(&source.file), source.line, source.column);
    let _ = writeln!(
        out,
        "{:margin$}{MARK}-->{MARK:#} {file}:{line}:{column}{function}, instruction {insn}",
        ""
    );
    // Tabs are shown as they are counted by the compiler: one column each.
    let shown = source.text.trim_end_matches(['\\', '\t', ' ']);
    let shown = shown.replace('\t', " ");
    let indent = shown.len() - shown.trim_start().len();
    let cut = indent.min((column as usize).saturating_sub(1));
    let cut = cut.saturating_sub(4);
    let shown = shown.get(cut..).unwrap_or(&shown);
    let caret = (column as usize).saturating_sub(1 + cut);
    let _ = writeln!(out, "{:margin$} {MARK}|{MARK:#}", "");
    let _ = writeln!(out, "{MARK}{line:>margin$} |{MARK:#} {shown}");
    let _ = writeln!(
        out,
        "{:margin$} {MARK}|{MARK:#} {:caret$}{ERROR}^{ERROR:#} {}",
        "", "", place.text
    );
    let _ = writeln!(out, "{:margin$} {MARK}|{MARK:#}", "");
}

fn facts(out: &mut String, explanation: &Explanation, words: &Words, margin: usize) {
    let mut fact = |name: &str, text: &str| {
        let name = format!("{name}:");
        let _ = writeln!(
            out,
            "{:margin$} {MARK}={MARK:#} {BOLD}{name:<7}{BOLD:#} {text}",
            ""
        );
    };
    for line in &explanation.log {
        fact("kernel", line);
    }
    if !explanation.refusal.message().is_empty() {
        fact("kernel", &explanation.refusal.message());
    }
    for known in &explanation.known {
        let text = format!("{} is {}", known.holder, value::known(&known.value));
        fact("known", &text);
    }
    if let Some(needed) = &words.needed {
        fact("needed", needed);
    }
}

fn origin(out: &mut String, explanation: &Explanation, margin: usize) {
    if explanation.notes.is_empty() {
        return;
    }
    let _ = writeln!(out, "{BOLD}where it comes from{BOLD:#}:");
    for note in &explanation.notes {
        place_line(out, &note.place, margin);
        let _ = writeln!(
            out,
            "{:margin$} {MARK}|{MARK:#}   {}",
            "",
            note::words(&note.kind)
        );
    }
}

fn place_line(out: &mut String, place: &InsnPlace, margin: usize) {
    let label = label(place);
    let _ = writeln!(out, "{MARK}{label:>margin$} |{MARK:#} {}", line_text(place));
}

fn costs(out: &mut String, cause: &Cause, margin: usize) {
    let (Cause::TooComplex { lines } | Cause::TooManyBranches { lines }) = cause else {
        return;
    };
    let _ = writeln!(out, "{BOLD}where the instructions go{BOLD:#}:");
    for (place, processed) in lines {
        let label = label(place);
        let _ = writeln!(
            out,
            "{MARK}{label:>margin$} |{MARK:#} {processed:>8}  {}",
            line_text(place)
        );
    }
}

fn path(out: &mut String, path: &Path, margin: usize) {
    if path.decisions.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "{BOLD}the path there{BOLD:#} ({} instructions):",
        path.steps
    );
    for (index, decision) in path.decisions.iter().enumerate() {
        if let Some((at, omitted)) = path.omitted
            && at == index
        {
            let _ = writeln!(
                out,
                "{:margin$} {MARK}|{MARK:#} … {omitted} more decisions",
                ""
            );
        }
        let (at, text) = decision_words(decision);
        place_line(out, at, margin);
        let _ = writeln!(out, "{:margin$} {MARK}|{MARK:#}   {text}", "");
    }
}

/// Place of a decision, and its direction.
pub(super) fn decision_words(decision: &Decision) -> (&InsnPlace, String) {
    match decision {
        Decision::Branch {
            at,
            taken,
            to,
            times,
        } => {
            let line = |place: &InsnPlace| place.source.as_ref().map(|source| source.line);
            let to = match line(to) {
                Some(number) if line(at) != Some(number) => format!("line {number}"),
                _ => format!("instruction {}", to.insn),
            };
            let condition = at.text.split(" goto ").next().unwrap_or(&at.text);
            let way = match (taken, &at.source) {
                (true, Some(_)) => format!("`{condition}` holds: goes on at {to}"),
                (false, Some(_)) => format!("`{condition}` does not hold: goes on at {to}"),
                (true, None) => format!("holds: goes on at {to}"),
                (false, None) => format!("does not hold: goes on at {to}"),
            };
            match times {
                1 => (at, way),
                times => (at, format!("{way}, {times} times")),
            }
        }
        Decision::Call {
            at,
            function,
            callback,
        } => match callback {
            true => (at, format!("calls back `{function}`")),
            false => (at, format!("enters `{function}`")),
        },
        Decision::Return { at, function } => (at, format!("`{function}` returns")),
    }
}
