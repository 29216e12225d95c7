//! The path of a run as text for a terminal.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::value::Ordered;

use super::{CodeLine, Content, Why, WhyEvent, WhyLine, WhyOperand, WhyStep};

const LINE: Style = AnsiColor::Blue.on_default().bold();
const BOLD: Style = Style::new().bold();
const HOLDS: Style = AnsiColor::Green.on_default();
const FAILS: Style = AnsiColor::Yellow.on_default();
const CHANGE: Style = AnsiColor::Magenta.on_default();
const STOP: Style = AnsiColor::Red.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Columns of a step of indentation.
const STEP: usize = 2;
/// Most characters of a variable; JSON has it whole.
const LONGEST: usize = 240;
/// Most steps of indentation.
const DEEPEST: usize = 8;

/// The run for a person, in lines of at most so many columns; styled by escape sequences.
pub fn text(why: &Why, width: usize) -> String {
    let mut writer = Writer {
        text: String::new(),
        width: width.max(40),
        margin: margin(&why.steps).max(3),
        place: None,
        file: why.steps.iter().find_map(first_file),
        last: Vec::new(),
    };
    head(&mut writer.text, why);
    writer.steps(&why.steps, 0);
    let out = &mut writer.text;
    if !why.packet_changes.is_empty() {
        let _ = writeln!(out, "\n{BOLD}what changed in the packet{BOLD:#}");
        for change in &why.packet_changes {
            let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "absent".to_owned());
            let (before, after) = (side(&change.text_before), side(&change.text_after));
            let note = format!("{}: {before} → {after}", change.name);
            wrapped(out, &note, 2, width, CHANGE);
        }
    }
    if !why.unseen_variables.is_empty() {
        let _ = writeln!(out, "\n{BOLD}not shown{BOLD:#}");
        for unseen in &why.unseen_variables {
            let note = format!("{} of {}: {}", unseen.name, unseen.function, unseen.reason);
            wrapped(out, &note, 2, width, DIM);
        }
    }
    if why.lacks_debug_info {
        let note = "the object has no debug information (clang -g, without \
                    llvm-strip -g and without linking, which drop it), so local variables have no \
                    names here";
        let _ = writeln!(out);
        wrapped(out, note, 0, width, DIM);
    }
    writer.text
}

fn head(out: &mut String, why: &Why) {
    if let Some(packet) = why.packet {
        let _ = write!(out, "{BOLD}packet {packet}{BOLD:#}, ");
    }
    if why.bytes > 0 || why.packet.is_some() {
        let _ = writeln!(out, "{} bytes: {}", why.bytes, why.packet_text);
    }
    let place = why
        .source
        .as_ref()
        .map(|source| format!("{}:{}", base_name(&source.file), source.line));
    let executed = why.executed;
    let (verb, place) = match place {
        Some(place) => (", returned at ", place),
        None => ("", String::new()),
    };
    let _ = match (&why.verdict, why.retval, &why.stopped) {
        (Some(verdict), Some(retval), _) => {
            let number = (retval as i32).to_string();
            let value = match *verdict == number {
                true => number,
                false => format!("{verdict} ({number})"),
            };
            writeln!(
                out,
                "{}: {BOLD}{value}{BOLD:#}{verb}{place}, {executed} instructions",
                why.prog
            )
        }
        (_, _, Some(stopped)) => {
            writeln!(out, "{}: {STOP}trap{STOP:#} {place}\n{stopped}", why.prog)
        }
        _ => Ok(()),
    };
    if let Some(redirect) = &why.redirect_text {
        let _ = writeln!(out, "redirected to {redirect}");
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The file of the first line that has one.
fn first_file(step: &WhyStep) -> Option<String> {
    match step {
        WhyStep::Line(line) => line.source.as_ref().map(|source| source.file.clone()),
        WhyStep::Loop { first_steps, .. } => first_steps.iter().find_map(first_file),
        WhyStep::Omitted { .. } => None,
    }
}

/// Columns that line numbers need.
fn margin(steps: &[WhyStep]) -> usize {
    let widths = steps.iter().map(|step| match step {
        WhyStep::Line(line) => label(line).len(),
        WhyStep::Loop { first_steps, .. } => margin(first_steps),
        WhyStep::Omitted { .. } => 0,
    });
    widths.max().unwrap_or(0)
}

/// Number of a line, or the index of its instruction.
fn label(line: &WhyLine) -> String {
    match &line.source {
        Some(source) => source.line.to_string(),
        None => line
            .insn_ranges
            .first()
            .map_or(0, |(first, _)| *first)
            .to_string(),
    }
}

struct Writer {
    text: String,
    width: usize,
    margin: usize,
    /// Program, function and depth that the last line was of.
    place: Option<(String, Vec<String>, usize)>,
    /// The file of the line that was written last.
    file: Option<String>,
    /// By depth the source line that was written last.
    last: Vec<Option<CodeLine>>,
}

impl Writer {
    fn steps(&mut self, steps: &[WhyStep], indent: usize) {
        for step in steps {
            match step {
                WhyStep::Line(line) => self.line(line, indent),
                WhyStep::Loop {
                    times,
                    first_steps,
                    last_steps,
                } => {
                    self.mark(&format!("× {times}, the first time"), indent);
                    self.steps(first_steps, indent + 1);
                    self.mark("the last time", indent);
                    self.steps(last_steps, indent + 1);
                    self.mark("behind the loop", indent);
                }
                WhyStep::Omitted { omitted } => {
                    self.mark(&format!("… {omitted} lines are left out"), indent)
                }
            }
        }
    }

    fn mark(&mut self, mark: &str, indent: usize) {
        let indent = self.margin + 2 + STEP * indent.min(DEEPEST);
        let _ = writeln!(self.text, "{:indent$}{DIM}{mark}{DIM:#}", "");
    }

    fn line(&mut self, line: &WhyLine, indent: usize) {
        let depth = line.depth + line.inlined_names.len();
        let is_return = self.last.len() > depth + 1;
        self.last.resize(depth + 1, None);
        let is_resumed = is_return && self.last[depth] == line.source;
        if is_resumed && line.events.is_empty() {
            return;
        }
        let indent = indent + depth;
        self.heading(line, indent);
        self.file_heading(line, indent);
        let margin = self.margin;
        let shift = STEP * indent.min(DEEPEST);
        if !is_resumed {
            let shown = match &line.source {
                Some(source) => source.text.trim(),
                None => &line.insn_text,
            };
            let room = self.width.saturating_sub(margin + 2 + shift);
            let shown = cut(shown, room);
            let number = label(line);
            let _ = writeln!(
                self.text,
                "{LINE}{number:>margin$}{LINE:#}  {:shift$}{shown}",
                ""
            );
        }
        self.last[depth] = line.source.clone();
        let shift = margin + 2 + shift + STEP;
        self.notes(&line.events, shift);
    }

    /// The file, where it is another one than that of the line before.
    fn file_heading(&mut self, line: &WhyLine, indent: usize) {
        let Some(source) = &line.source else {
            return;
        };
        if self.file.as_ref() != Some(&source.file) {
            self.mark(&format!("of {}", base_name(&source.file)), indent);
            self.file = Some(source.file.clone());
        }
    }

    /// The function, where it is another one than that of the line before.
    fn heading(&mut self, line: &WhyLine, indent: usize) {
        let mut names = vec![line.function.clone()];
        names.extend(line.inlined_names.iter().cloned());
        let place = (line.prog.clone(), names, line.depth);
        if self.place.as_ref() == Some(&place) {
            return;
        }
        let shift = self.margin + 2 + STEP * indent.min(DEEPEST);
        let name = place.1.last().map_or("", |name| name);
        let caller = line.events.iter().find_map(|event| match event {
            WhyEvent::Enter { callback_of } => callback_of.as_deref(),
            _ => None,
        });
        let how = match (caller, line.inlined_names.is_empty()) {
            (Some(caller), _) => format!(", called by {caller}"),
            (None, false) => ", inlined".to_owned(),
            (None, true) => String::new(),
        };
        let _ = writeln!(self.text, "{:shift$}{BOLD}{name}(){BOLD:#}{how}", "");
        self.place = Some(place);
    }

    fn notes(&mut self, events: &[WhyEvent], shift: usize) {
        let mut variables = Vec::new();
        let width = self.width;
        for event in events {
            if let WhyEvent::Variable { name, text, .. } = event {
                let shown = format!("{name} = {}", cut(text, LONGEST));
                if !variables.contains(&shown) {
                    variables.push(shown);
                }
                continue;
            }
            self.variables(&mut variables, shift);
            let (note, style) = note(event);
            if !note.is_empty() {
                wrapped(&mut self.text, &note, shift, width, style);
            }
        }
        self.variables(&mut variables, shift);
    }

    fn variables(&mut self, variables: &mut Vec<String>, shift: usize) {
        if !variables.is_empty() {
            let width = self.width;
            wrapped(
                &mut self.text,
                &variables.join(", "),
                shift,
                width,
                Style::new(),
            );
            variables.clear();
        }
    }
}

/// What happened in a line of text.
fn note(event: &WhyEvent) -> (String, Style) {
    let plain = Style::new();
    match event {
        WhyEvent::Branch {
            left_operand,
            condition,
            right_operand,
            holds,
            next_line,
            ..
        } => {
            let (left, right) = (operand(left_operand), operand(right_operand));
            let (answer, style) = match holds {
                true => ("yes", HOLDS),
                false => ("no", FAILS),
            };
            let next = next_line.map_or_else(String::new, |line| format!(", on at {line}"));
            (format!("{left} {condition} {right}: {answer}{next}"), style)
        }
        WhyEvent::Call {
            callee,
            operands,
            result_operand,
            ..
        } => {
            let operands: Vec<String> = operands.iter().map(pointed).collect();
            let result = match result_operand {
                // It returns only where it cannot be made.
                Some(_) if callee == "bpf_tail_call" => ", which falls through".to_owned(),
                Some(result) => match &result.content {
                    Some(of) => format!(" = {}: {}", result.text, content(of)),
                    None => format!(" = {}", result.text),
                },
                None => String::new(),
            };
            (format!("{callee}({}){result}", operands.join(", ")), plain)
        }
        WhyEvent::Write {
            target_name,
            map,
            map_key,
            before,
            after,
        } => {
            let key = map_key
                .as_ref()
                .map_or_else(String::new, |key| format!("[{}]", content(key)));
            let side = |side: &Option<Content>| side.as_ref().map_or("absent".to_owned(), content);
            let member = map
                .as_ref()
                .and_then(|map| target_name.strip_prefix(&**map));
            let target = match (map, member) {
                (Some(map), Some(member)) => format!("{map}{key}{member}"),
                _ => format!("{target_name}{key}"),
            };
            (
                format!("{target}: {} → {}", side(before), side(after)),
                CHANGE,
            )
        }
        WhyEvent::Enter { .. } | WhyEvent::Variable { .. } => (String::new(), plain),
        WhyEvent::Return { result_operand } => (format!("returns {}", result_operand.text), plain),
        WhyEvent::TailCall { target_prog } => (format!("tail call of {target_prog}"), plain),
        WhyEvent::Record {
            map,
            record_content,
        } => (
            format!("record of {map}: {}", content(record_content)),
            CHANGE,
        ),
        WhyEvent::Printk { text } => (format!("printk: {}", crate::run::one_line(text)), CHANGE),
    }
}

/// A value with its name.
fn operand(operand: &WhyOperand) -> String {
    match &operand.name {
        Some(name) => format!("{name} ({})", operand.text),
        None => operand.text.clone(),
    }
}

/// What a value points to, or the value.
fn pointed(operand: &WhyOperand) -> String {
    match &operand.content {
        Some(of) => content(of),
        None => operand.text.clone(),
    }
}

fn content(content: &Content) -> String {
    if let Ordered::Scalar(Value::String(text)) = &content.value {
        return text.clone();
    }
    serde_json::to_string(&content.value).expect("keys are strings")
}

/// A text in so many columns.
fn cut(text: &str, room: usize) -> String {
    match text.char_indices().nth(room) {
        Some(_) => {
            let kept: String = text.chars().take(room.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
        None => text.to_owned(),
    }
}

/// Writes words in lines of at most so many columns; those behind the first are two columns in.
fn wrapped(out: &mut String, text: &str, shift: usize, width: usize, style: Style) {
    let shift = shift.min(width / 2);
    let mut room = width.saturating_sub(shift).max(20);
    let mut indent = shift;
    let mut rest = text;
    loop {
        let end = rest.char_indices().nth(room).map(|(end, _)| end);
        let Some(end) = end else {
            let _ = writeln!(out, "{:indent$}{style}{rest}{style:#}", "");
            return;
        };
        let at = rest[..end].rfind([' ', ',']).map(|at| at + 1);
        let at = at.filter(|at| *at > room / 3).unwrap_or(end);
        let _ = writeln!(
            out,
            "{:indent$}{style}{}{style:#}",
            "",
            rest[..at].trim_end()
        );
        rest = rest[at..].trim_start();
        if indent == shift {
            (indent, room) = (shift + 2, room - 2);
        }
    }
}
