//! The requests of a stopped run.

use serde_json::{Value, json};

use super::super::plan::{DebugStep, Position, Resume, StepKind};
use super::super::view::{Pause, View};
use super::message::Request;
use super::show::{Scope, Tree, Trees, address_of, insn_address, insn_of_address, source_json};
use super::{Server, argument, breakpoints};

/// What a request is answered with.
pub(super) enum Answer {
    /// A body, or why there is none.
    Done(Result<Value, String>),
    /// Another answer comes later.
    Later,
    /// A body, and the run goes on.
    Resume(Value, Resume),
}

/// Instructions from a reference to those that are shown, at most.
const FARTHEST: i64 = 1 << 30;

/// What the server can do.
pub(super) fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsStepBack": true,
        "supportsSteppingGranularity": true,
        "supportsInstructionBreakpoints": true,
        "supportsDisassembleRequest": true,
        "supportsReadMemoryRequest": true,
        "supportsDataBreakpoints": true,
        "supportsEvaluateForHovers": true,
        "supportsRestartRequest": true,
        "supportsTerminateRequest": true,
        "supportsLoadedSourcesRequest": true,
        "supportsBreakpointLocationsRequest": true,
        "supportsExceptionFilterOptions": true,
        "exceptionBreakpointFilters": [{
            "filter": "verdict",
            "label": "Verdicts",
            "description": "Stops where the program returns; the condition is the name of a verdict",
            "supportsCondition": true,
            "conditionDescription": "XDP_DROP",
        }],
    })
}

/// The only thread, named by what it runs.
pub(super) fn threads(view: &View<'_, '_, '_>) -> Value {
    let name = format!("packet {}", view.position().packet);
    json!({ "threads": [{ "id": 1, "name": name }] })
}

impl Server {
    /// Answers a request of a stopped run.
    pub(super) fn answer<'r>(
        &mut self,
        request: &Request,
        pause: &mut Pause<'_, 'r, '_>,
        trees: &mut Trees<'r>,
    ) -> Answer {
        if breakpoints::is_setting(&request.command) {
            let set = self.set_breakpoints(request, pause.breakpoints, &pause.view);
            return Answer::Done(set);
        }
        let view = &pause.view;
        let by_insn = argument(request, "granularity").as_str() == Some("instruction");
        let step = |kind| DebugStep {
            kind,
            is_insn: by_insn,
        };
        let goes_on = || json!({ "allThreadsContinued": true });
        Answer::Done(match &*request.command {
            "initialize" => {
                let first = |name| u32::from(argument(request, name).as_bool() != Some(false));
                self.first_line = first("linesStartAt1");
                self.first_column = first("columnsStartAt1");
                self.out.answer(request, Ok(capabilities()));
                self.out.event("initialized", json!({}));
                return Answer::Later;
            }
            "launch" | "attach" if self.launch.is_some() || self.has_begun => {
                Err("the session is launched already".to_owned())
            }
            "launch" | "attach" => {
                let stops = argument(request, "stopOnEntry").as_bool();
                self.stops_on_entry = stops.unwrap_or(false);
                self.launch = Some(Request {
                    seq: request.seq,
                    command: request.command.clone(),
                    arguments: Value::Null,
                });
                return Answer::Later;
            }
            "configurationDone" => {
                self.has_begun = true;
                Ok(json!({}))
            }
            "threads" => Ok(threads(view)),
            "stackTrace" => Ok(self.stack_trace(request, view)),
            "scopes" => self.scopes(request, view, trees),
            "variables" => variables(request, view, trees),
            "evaluate" => return evaluate(request, view, trees),
            "source" => source(request, view),
            "loadedSources" => {
                let sources = view.sources().files().map(|(name, path)| match path {
                    Some(path) => json!({ "name": name, "path": path.display().to_string() }),
                    None => json!({ "name": name, "path": name, "sourceReference": 1 }),
                });
                Ok(json!({ "sources": sources.collect::<Vec<_>>() }))
            }
            "breakpointLocations" => {
                let path = argument(request, "source")
                    .get("path")
                    .and_then(Value::as_str);
                let number = |name: &str| argument(request, name).as_u64();
                let first = number("line").unwrap_or(1);
                let last = number("endLine").unwrap_or(first);
                let lines = view.sources().lines_with_code(path.unwrap_or_default());
                let lines = lines.into_iter().map(|line| line - 1 + self.first_line);
                let lines = lines.filter(|line| (first..=last).contains(&u64::from(*line)));
                let found: Vec<Value> = lines.map(|line| json!({ "line": line })).collect();
                Ok(json!({ "breakpoints": found }))
            }
            "dataBreakpointInfo" => Ok(self.data_info(request, view, trees)),
            "disassemble" => self.disassemble(request, view),
            "readMemory" => read_memory(request, view),
            "continue" => return Answer::Resume(goes_on(), Resume::Continue),
            "next" => return Answer::Resume(json!({}), Resume::Step(step(StepKind::Over))),
            "stepIn" => return Answer::Resume(json!({}), Resume::Step(step(StepKind::Into))),
            "stepOut" => return Answer::Resume(json!({}), Resume::Step(step(StepKind::Out))),
            "stepBack" => return Answer::Resume(json!({}), Resume::BackStep(step(StepKind::Over))),
            "reverseContinue" => return Answer::Resume(json!({}), Resume::BackContinue),
            "restart" | "beebox/packet" => {
                let packet = argument(request, "packet").as_u64();
                let packet = packet.unwrap_or(pause.first_packet);
                match packet < pause.first_packet {
                    true => Err(format!(
                        "the session begins with packet {}; --from N begins with another one",
                        pause.first_packet
                    )),
                    false => {
                        let to = Position { packet, insn: 0 };
                        return Answer::Resume(json!({}), Resume::To(to));
                    }
                }
            }
            "beebox/stepBackInto" => {
                return Answer::Resume(json!({}), Resume::BackStep(step(StepKind::Into)));
            }
            "beebox/stepBackOut" => {
                return Answer::Resume(json!({}), Resume::BackStep(step(StepKind::Out)));
            }
            "beebox/whoWrote" => {
                let expression = argument(request, "expression").as_str().unwrap_or_default();
                match who_wrote(view, frame_of(request), expression) {
                    Ok(resume) => return Answer::Resume(json!({}), resume),
                    Err(why) => Err(why),
                }
            }
            "beebox/position" => {
                let position = view.position();
                Ok(json!({ "packet": position.packet, "insn": position.insn }))
            }
            "pause" => Ok(json!({})),
            "disconnect" | "terminate" => {
                return Answer::Resume(json!({}), Resume::Quit);
            }
            command => Err(format!("{command} is not a request that this server knows")),
        })
    }

    fn stack_trace(&self, request: &Request, view: &View<'_, '_, '_>) -> Value {
        let number = |name: &str| argument(request, name).as_u64();
        let start = number("startFrame").unwrap_or(0) as usize;
        let count = match number("levels").unwrap_or(0) {
            0 => usize::MAX,
            count => count as usize,
        };
        let frames = view.frames();
        let total = frames.len();
        let frames = frames.iter().enumerate().skip(start).take(count);
        let frames = frames.map(|(id, frame)| {
            let mut row = json!({
                "id": id,
                "name": match frame.is_inlined {
                    true => format!("{} (inlined)", frame.name),
                    false => frame.name.clone(),
                },
                "line": 0,
                "column": 0,
                "instructionPointerReference": format!("{:#x}", insn_address(frame.place)),
            });
            if let Some(source) = &frame.source {
                row["source"] = source_json(source);
                row["line"] = json!(source.line - 1 + self.first_line);
                row["column"] = json!(source.column.max(1) - 1 + self.first_column);
            }
            row
        });
        json!({ "stackFrames": frames.collect::<Vec<_>>(), "totalFrames": total })
    }

    fn scopes<'r>(
        &self,
        request: &Request,
        view: &View<'_, 'r, '_>,
        trees: &mut Trees<'r>,
    ) -> Result<Value, String> {
        let frame = frame_of(request);
        if frame >= view.depth() {
            return Err(format!("there is no frame {frame}"));
        }
        let mut scopes = vec![
            ("Locals", "locals", Scope::Locals),
            ("Globals", "globals", Scope::Globals),
            ("Maps", "maps", Scope::Maps),
        ];
        if view.packet().is_some() {
            scopes.push(("Packet", "packet", Scope::Packet));
        }
        scopes.push(("Registers", "registers", Scope::Registers));
        let scopes = scopes.into_iter().map(|(name, hint, scope)| {
            let reference = trees.refer(Tree::Scope(scope, frame));
            json!({
                "name": name,
                "presentationHint": hint,
                "variablesReference": reference,
                "expensive": scope == Scope::Registers,
            })
        });
        Ok(json!({ "scopes": scopes.collect::<Vec<_>>() }))
    }

    fn disassemble(&self, request: &Request, view: &View<'_, '_, '_>) -> Result<Value, String> {
        let address = address_of(argument(request, "memoryReference"));
        let address = address.ok_or("memoryReference is no address, as 0x100000000")?;
        let number = |name: &str| argument(request, name).as_i64().unwrap_or(0);
        let (program, slot) = insn_of_address(address).ok_or("no instruction is there")?;
        let offset = (number("offset") / 8).saturating_add(number("instructionOffset"));
        let offset = offset.clamp(-FARTHEST, FARTHEST);
        let from = i64::from(slot).saturating_add(offset);
        let count = number("instructionCount").clamp(0, 10_000);
        let mut rows = Vec::new();
        // Rows in front of the program keep the places of the others.
        for at in from..from.saturating_add(count).min(0) {
            let address =
                insn_address((program, slot)).wrapping_add_signed(8 * (at - i64::from(slot)));
            rows.push(json!({
                "address": format!("{address:#x}"),
                "instruction": "",
                "presentationHint": "invalid",
            }));
        }
        let first = from.clamp(0, i64::from(u32::MAX)) as u32;
        let rest = count as usize - rows.len();
        let mut last = None;
        for (slot, bytes, text) in view.instructions(program, first, rest) {
            let place = (program, slot);
            let mut row = json!({
                "address": format!("{:#x}", insn_address(place)),
                "instructionBytes": bytes,
                "instruction": format!("{slot}: {text}"),
            });
            let source = view.source(place);
            if let Some(source) = source.as_ref().filter(|_| source != last) {
                row["location"] = source_json(source);
                row["line"] = json!(source.line - 1 + self.first_line);
            }
            last = source;
            rows.push(row);
        }
        while rows.len() < count as usize {
            let place = (program, first.saturating_add(rows.len() as u32));
            rows.push(json!({
                "address": format!("{:#x}", insn_address(place)),
                "instruction": "",
                "presentationHint": "invalid",
            }));
        }
        Ok(json!({ "instructions": rows }))
    }
}

/// The frame that a request is about: the innermost one if it names none.
pub(super) fn frame_of(request: &Request) -> usize {
    match argument(request, "frameId") {
        Value::Null => 0,
        frame => {
            let frame = frame.as_u64().and_then(|frame| usize::try_from(frame).ok());
            frame.unwrap_or(usize::MAX)
        }
    }
}

/// Goes back to the last write of what an expression is of.
fn who_wrote(view: &View<'_, '_, '_>, frame: usize, expression: &str) -> Result<Resume, String> {
    Ok(Resume::BackToWrite(view.watch_of(frame, expression)?))
}

fn variables<'r>(
    request: &Request,
    view: &View<'_, 'r, '_>,
    trees: &mut Trees<'r>,
) -> Result<Value, String> {
    let reference = argument(request, "variablesReference")
        .as_u64()
        .unwrap_or(0);
    let tree = trees.get(reference);
    let tree = tree.ok_or_else(|| format!("there are no variables {reference} here"))?;
    let number = |name: &str| argument(request, name).as_u64();
    let start = number("start").unwrap_or(0) as usize;
    let count = match number("count").unwrap_or(0) {
        0 => usize::MAX,
        count => count as usize,
    };
    Ok(json!({ "variables": trees.variables(view, &tree, (start, count)) }))
}

/// The value of an expression; of `!who EXPRESSION` in the console a way back to its last write.
fn evaluate<'r>(request: &Request, view: &View<'_, 'r, '_>, trees: &mut Trees<'r>) -> Answer {
    let expression = argument(request, "expression").as_str().unwrap_or_default();
    let is_console = argument(request, "context").as_str() == Some("repl");
    if let (true, Some(of)) = (is_console, expression.trim().strip_prefix("!who ")) {
        return match who_wrote(view, frame_of(request), of.trim()) {
            Ok(resume) => {
                let body = json!({ "result": "", "variablesReference": 0 });
                Answer::Resume(body, resume)
            }
            Err(why) => Answer::Done(Err(why)),
        };
    }
    let node = view.evaluate_node(frame_of(request), expression);
    let of = (expression, frame_of(request));
    Answer::Done(node.map(|node| trees.result(view, node, of)))
}

fn source(request: &Request, view: &View<'_, '_, '_>) -> Result<Value, String> {
    let source = argument(request, "source");
    let name = source
        .get("path")
        .or(source.get("name"))
        .and_then(Value::as_str);
    let text = name.and_then(|name| view.sources().text(name));
    match text {
        Some(content) => Ok(json!({ "content": content, "mimeType": "text/x-c" })),
        None => Err("there is no such source".to_owned()),
    }
}

fn read_memory(request: &Request, view: &View<'_, '_, '_>) -> Result<Value, String> {
    let address = address_of(argument(request, "memoryReference"));
    let address = address.ok_or("memoryReference is no address, as 0x100000000")?;
    let number = |name: &str| argument(request, name).as_i64().unwrap_or(0);
    let address = address.wrapping_add_signed(number("offset"));
    let count = number("count").clamp(0, 1 << 16) as usize;
    let bytes = view.memory_up_to(address, count);
    Ok(json!({
        "address": format!("{address:#x}"),
        "data": base64(&bytes),
        "unreadableBytes": count - bytes.len(),
    }))
}

/// Bytes in base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes(group);
        for place in 0..4 {
            let is_padding = place > chunk.len();
            let digit = DIGITS[(number >> (18 - 6 * place) & 63) as usize];
            text.push(if is_padding { '=' } else { char::from(digit) });
        }
    }
    text
}
