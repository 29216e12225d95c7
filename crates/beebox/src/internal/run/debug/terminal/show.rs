//! The texts of a terminal.

use std::fmt::Write;

use super::super::breakpoint::{BreakKind, Breakpoint, Breakpoints};
use super::super::plan::StopReason;
use super::super::value::{TreeNode, TreeRow};
use super::super::view::{FrameRow, Pause, View};

/// Lines of a listing.
const LINES: u32 = 10;
/// Most entries of a map that are printed.
const ENTRIES: usize = 20;

/// Why and where a run is stopped.
pub(super) fn stop(pause: &Pause<'_, '_, '_>) -> String {
    let mut text = match &pause.reason {
        StopReason::Entry | StopReason::Step | StopReason::Reached => String::new(),
        StopReason::Breakpoint(ids) => {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            format!("Breakpoint {}\n", ids.join(", "))
        }
        StopReason::Watch(id, text) => format!("Watchpoint {id}: {text}\n"),
        StopReason::Write(text) => format!("This writes {text}\n"),
        StopReason::NotWritten(text) => format!("{text}\n"),
        StopReason::Pause => "Stopped\n".to_owned(),
        StopReason::Trap(text) => format!("The program is stopped here: {text}\n"),
        StopReason::End(text) => format!("The end of the input: {text}\n"),
        StopReason::Start => "The begin of the session\n".to_owned(),
    };
    text.push_str(&frame(&pause.view, 0));
    text
}

/// A frame: where it is, and the source line or instruction.
pub(super) fn frame(view: &View<'_, '_, '_>, number: usize) -> String {
    let frames = view.frames();
    let Some(row) = frames.get(number) else {
        return String::new();
    };
    let position = view.position();
    let mut text = format!("packet {}, {}", position.packet, place(row));
    match &row.source {
        Some(source) => {
            let _ = write!(text, "\n{}\t{}", source.line, source.text.trim());
        }
        None => {
            let insns = view.instructions(row.place.0, row.place.1, 1);
            let insn = insns.first().map_or("", |(_, _, insn)| insn);
            let _ = write!(text, "\n{}: {insn}", row.place.1);
        }
    }
    text
}

fn place(row: &FrameRow) -> String {
    let program = match row.name.ends_with(&*row.program) {
        true => String::new(),
        false => format!(" of {}", row.program),
    };
    let inlined = if row.is_inlined { " (inlined)" } else { "" };
    let name = &row.name;
    match &row.source {
        Some(source) => format!(
            "{name}{inlined}{program} at {}:{}",
            source.file, source.line
        ),
        None => format!("{name}{inlined}{program}, instruction {}", row.place.1),
    }
}

pub(super) fn frames(view: &View<'_, '_, '_>, chosen: usize) -> String {
    let rows = view.frames();
    let rows = rows.iter().enumerate().map(|(number, row)| {
        let mark = if number == chosen { '*' } else { ' ' };
        format!("{mark}#{number} {}", place(row))
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// A value, in the form of a letter.
pub(super) fn printed<'r>(view: &View<'_, 'r, '_>, node: &TreeNode<'r>, form: &str) -> String {
    let number = match node {
        TreeNode::Value(value) => value.as_number(),
        _ => None,
    };
    match (form, number) {
        ("x", Some(number)) => format!("{number:#x}"),
        ("t", Some(number)) => format!("{number:#b}"),
        ("d", Some(number)) => number.to_string(),
        ("u", Some(number)) => (number as u64).to_string(),
        _ => match node {
            TreeNode::Map(_) | TreeNode::PerCpu(_) | TreeNode::Packet => {
                let mut text = view.node_text(node);
                let children = view.children(node);
                for row in children.iter().take(ENTRIES) {
                    let _ = write!(text, "\n  {}", row_text(view, row));
                }
                if children.len() > ENTRIES {
                    let _ = write!(text, "\n  … {} more", children.len() - ENTRIES);
                }
                text
            }
            TreeNode::Value(_)
            | TreeNode::Absent(_)
            | TreeNode::NoEntry(..)
            | TreeNode::Text(..) => view.node_text(node),
        },
    }
}

fn row_text<'r>(view: &View<'_, 'r, '_>, row: &TreeRow<'r>) -> String {
    let text = view.node_text(&row.node);
    match (&row.node, &row.kind) {
        (TreeNode::Map(_), _) => format!("{}: {text}", row.name),
        _ => format!("{} = {text}", row.name),
    }
}

fn rows_text<'r>(view: &View<'_, 'r, '_>, rows: &[TreeRow<'r>], none: &str) -> String {
    match rows.is_empty() {
        true => none.to_owned(),
        false => {
            let rows: Vec<String> = rows.iter().map(|row| row_text(view, row)).collect();
            rows.join("\n")
        }
    }
}

/// Bytes of memory, or instructions.
pub(super) fn examined(
    view: &View<'_, '_, '_>,
    frame: usize,
    form: &str,
    expression: &str,
) -> Result<String, String> {
    let digits: String = form.chars().take_while(char::is_ascii_digit).collect();
    let count: usize = digits.parse().unwrap_or(16);
    let count = count.min(4096);
    if form.ends_with('i') {
        let (program, slot) = view.place();
        let from = match expression {
            "" => slot,
            text => {
                let number = view.evaluate(frame, text)?.as_number();
                let number = number.and_then(|number| u32::try_from(number).ok());
                number.ok_or("an instruction has a number from 0 on")?
            }
        };
        return Ok(instructions(view, program, from, count, Some(slot)));
    }
    let value = match view.evaluate_node(frame, expression)? {
        TreeNode::Text(_, Some((address, _))) => address as i64,
        TreeNode::Value(value) => value.as_number().ok_or("it is no address")?,
        TreeNode::Packet => view.packet_start().ok_or("the run has no packet")? as i64,
        TreeNode::Absent(why) | TreeNode::NoEntry(_, why) => return Err(why),
        TreeNode::Text(_, None) | TreeNode::Map(_) | TreeNode::PerCpu(_) => {
            return Err("it is no address".to_owned());
        }
    };
    let address = value as u64;
    let bytes = view.memory(address, count);
    let bytes = bytes.ok_or_else(|| format!("no {count} bytes are at {address:#x}"))?;
    let lines = bytes.chunks(16).zip(0u64..).map(|(chunk, number)| {
        let words: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{:#x}  {}", address + 16 * number, words.join(" "))
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// What `info` is asked for.
pub(super) fn info(
    view: &View<'_, '_, '_>,
    frame: usize,
    what: &str,
    breakpoints: &Breakpoints,
) -> Result<String, String> {
    Ok(match what {
        "locals" | "l" | "args" => {
            let rows = view.variables(frame);
            rows_text(
                view,
                &rows,
                "the object has no debug information of variables here",
            )
        }
        "globals" | "g" | "variables" => {
            rows_text(view, &view.globals(), "the object has no global variables")
        }
        "maps" | "m" => rows_text(view, &view.map_rows(), "the program uses no maps"),
        "packet" => rows_text(
            view,
            &view.children(&TreeNode::Packet),
            "the run has no packet",
        ),
        "registers" | "r" => {
            let rows = view
                .registers(frame)
                .into_iter()
                .map(|row| match row.known.is_empty() {
                    true => format!("{:<4} {}", row.name, row.text),
                    false => format!("{:<4} {:<40} {}", row.name, row.text, row.known),
                });
            rows.collect::<Vec<_>>().join("\n")
        }
        "breakpoints" | "b" => {
            let list = breakpoints.list().iter();
            let list: Vec<String> = list.map(|one| breakpoint(view, one)).collect();
            match list.is_empty() {
                true => "no breakpoints".to_owned(),
                false => list.join("\n"),
            }
        }
        "frame" | "f" => {
            let position = view.position();
            let (_, slot) = view.place();
            format!(
                "{}\ninstruction {slot} of the program, number {} of the run",
                self::frame(view, frame),
                position.insn
            )
        }
        "source" | "sources" => {
            let files = view.sources().files().map(|(name, path)| match path {
                Some(path) => format!("{name} ({})", path.display()),
                None => format!("{name} (the file is not there)"),
            });
            files.collect::<Vec<_>>().join("\n")
        }
        _ => {
            return Err(
                "info locals, globals, maps, packet, registers, breakpoints, frame or source"
                    .to_owned(),
            );
        }
    })
}

/// A breakpoint, and where it is.
pub(super) fn breakpoint(view: &View<'_, '_, '_>, breakpoint: &Breakpoint) -> String {
    let what = match &breakpoint.kind {
        BreakKind::Line { .. } => String::new(),
        BreakKind::Function(name) => format!(" {name}"),
        BreakKind::Helper(name) => format!(" calls of {name}"),
        BreakKind::Map(name) => format!(" accesses of map {name}"),
        BreakKind::Verdict(Some(name)) => format!(" verdict {name}"),
        BreakKind::Verdict(None) => " any verdict".to_owned(),
        BreakKind::Insn { slot, .. } => format!(" instruction {slot}"),
        BreakKind::Packet(packet) => format!(" packet {packet}"),
        BreakKind::Watch(watch) => format!(" writes of {}", watch.name),
    };
    let mut text = format!("Breakpoint {}:{what}", breakpoint.id);
    let mut places: Vec<String> = Vec::new();
    for place in &breakpoint.places {
        let place = match view.source(*place) {
            Some(source) => format!("{}:{}", source.file, source.line),
            None => format!("instruction {}", place.1),
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for (index, place) in places.iter().take(4).enumerate() {
        text.push_str(if index == 0 { " at " } else { ", " });
        text.push_str(place);
    }
    if places.len() > 4 {
        let _ = write!(text, " and {} more", places.len() - 4);
    }
    if breakpoint.places.len() > places.len() {
        let _ = write!(text, " ({} instructions)", breakpoint.places.len());
    }
    if let Some(condition) = &breakpoint.condition {
        let _ = write!(text, " if {condition}");
    }
    if let Some(message) = &breakpoint.message {
        let _ = write!(text, ", prints {message}");
    }
    if breakpoint.hits > 0 {
        let _ = write!(text, ", {} hits", breakpoint.hits);
    }
    text
}

/// Source lines around one, and the line behind them.
pub(super) fn listing(
    view: &View<'_, '_, '_>,
    frame: usize,
    line: Option<u32>,
) -> Result<(String, u32), String> {
    let frames = view.frames();
    let source = frames.get(frame).and_then(|row| row.source.as_ref());
    let source = source.ok_or("no source line is known here (clang -g)")?;
    let first = line.unwrap_or_else(|| source.line.saturating_sub(LINES / 2).max(1));
    let text = view.sources().text(&source.file);
    let text = text.ok_or_else(|| format!("{} cannot be read", source.file))?;
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(_, number)| (first..first.saturating_add(LINES)).contains(number));
    let lines = lines.map(|(line, number)| {
        let mark = if number == source.line { ">" } else { " " };
        format!("{mark}{number:>5}\t{line}")
    });
    let lines: Vec<String> = lines.collect();
    match lines.is_empty() {
        true => Err(format!("{} has no line {first}", source.file)),
        false => Ok((lines.join("\n"), first + LINES)),
    }
}

/// The instructions of the function of a frame.
pub(super) fn function(view: &View<'_, '_, '_>, frame: usize) -> String {
    let Some((program, range, slot)) = view.function_of(frame) else {
        return String::new();
    };
    let count = (range.end - range.start) as usize;
    instructions(view, program, range.start, count, Some(slot))
}

fn instructions(
    view: &View<'_, '_, '_>,
    program: u32,
    from: u32,
    count: usize,
    at: Option<u32>,
) -> String {
    let mut text = String::new();
    let mut last = None;
    for (slot, _, insn) in view.instructions(program, from, count) {
        if insn.is_empty() {
            continue;
        }
        let source = view.source((program, slot));
        if source.is_some() && source.as_ref().map(|it| it.line) != last {
            let line = source.as_ref().map_or("", |source| source.text.trim());
            last = source.as_ref().map(|source| source.line);
            let _ = writeln!(text, "{}\t{line}", last.unwrap_or(0));
        }
        let mark = if Some(slot) == at { "=>" } else { "  " };
        let _ = writeln!(text, "{mark} {slot:>5}: {insn}");
    }
    text.truncate(text.trim_end().len());
    text
}
