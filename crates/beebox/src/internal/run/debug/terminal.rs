//! Line commands at a terminal, named as gdb's.

mod show;

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::breakpoint::{BreakKind, BreakOptions};
use super::plan::{DebugStep, Position, Resume, StepKind};
use super::session::{DebugError, DebugSetup, debug};
use super::view::{Pause, View};
use super::{Breakpoints, FrontEnd, Poll};

/// The commands, for people.
const HELP: &str = "\
b WHERE [if EXPR]   stop at a line (33, edge.bpf.c:33), function, helper, map, verdict (XDP_DROP),
                    instruction (insn:12) or packet (packet:17); function:NAME, helper:NAME, map:NAME
                    and verdict:NAME say which one is meant
log WHERE TEXT      print TEXT there, with the values of {EXPR} in it, in place of a stop
watch EXPR          stop behind each write of a variable, register, map entry or packet field
d [N]               delete breakpoint N, or all
c, rc               continue; back to the last stop
s, n, fin           step into, over, out of functions by lines; si, ni by instructions
rs, rn, rfin        the same back; rsi, rni by instructions
who EXPR            go back to the last write of EXPR
packet N            go to the begin of the run on packet N; run goes to the begin of the session
p EXPR              print a value, as p tcp->to, p ports[22], p $r1, p ip.ttl, p $packet[12]
x[/N] EXPR          N bytes of memory at an address; x/Ni N instructions
bt, frame N, up, down   frames
info WHAT           locals, globals, maps, packet, registers, breakpoints, frame, source
l [LINE]            source lines; disas: the instructions of the function
q                   end the session
An empty line repeats the last command.";

/// Commands that take nothing behind them.
const ALONE: [&str; 31] = [
    "c",
    "continue",
    "rc",
    "reverse-continue",
    "s",
    "step",
    "n",
    "next",
    "si",
    "stepi",
    "ni",
    "nexti",
    "fin",
    "finish",
    "rs",
    "reverse-step",
    "rn",
    "reverse-next",
    "rsi",
    "reverse-stepi",
    "rni",
    "reverse-nexti",
    "rfin",
    "reverse-finish",
    "run",
    "start",
    "bt",
    "backtrace",
    "where",
    "up",
    "down",
];

/// A front end of line commands.
pub struct Terminal {
    /// Commands that come before those of the input.
    first: VecDeque<String>,
    input: Box<dyn BufRead + Send>,
    out: Box<dyn Write + Send>,
    has_prompt: bool,
    /// The last command, which an empty line repeats.
    last: String,
    /// The frame that is shown.
    frame: usize,
    /// The line behind which source lines are listed next.
    listed: Option<u32>,
    fault: FirstFault,
}

/// The first fault of a session: of writing, or of a command that was given without a prompt.
type FirstFault = Arc<Mutex<Option<DebugError>>>;

/// Holds a session by line commands: first those that are given, then those of the input.
///
/// # Errors
/// For a session that cannot begin or go on; without a prompt also for a given command that is none.
pub fn interact(
    setup: &DebugSetup<'_>,
    commands: Vec<String>,
    input: impl BufRead + Send + 'static,
    out: impl Write + Send + 'static,
    has_prompt: bool,
) -> Result<(), DebugError> {
    let fault = FirstFault::default();
    let terminal = Terminal {
        first: commands.into(),
        input: Box::new(input),
        out: Box::new(out),
        has_prompt,
        last: String::new(),
        frame: 0,
        listed: None,
        fault: fault.clone(),
    };
    debug(setup, Box::new(terminal))?;
    let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
    fault.take().map_or(Ok(()), Err)
}

/// What a command leads to.
enum Next {
    /// Another command.
    Command,
    /// The run goes on.
    Resume(Resume),
}

impl Terminal {
    fn print(&mut self, text: &str) {
        let written = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.fail(DebugError::Output(error));
        }
    }

    /// Keeps the first fault.
    fn fail(&self, fault: DebugError) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
    }

    /// True if nothing can be shown any more.
    fn is_cut_off(&self) -> bool {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*fault, Some(DebugError::Output(_)))
    }

    /// The next command, and whether it was given at the start; `None` at the end of the input.
    fn read(&mut self) -> Option<(String, bool)> {
        if let Some(command) = self.first.pop_front() {
            self.print(&format!("> {command}"));
            return Some((command, true));
        }
        if self.has_prompt {
            let _ = write!(self.out, "> ");
            let _ = self.out.flush();
        }
        let mut line = Vec::new();
        match self.input.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some((String::from_utf8_lossy(&line).trim().to_owned(), false)),
        }
    }

    /// Does what a command says.
    fn run(&mut self, command: &str, pause: &mut Pause<'_, '_, '_>) -> Result<Next, String> {
        let (word, rest) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        let (word, form) = word.split_once('/').unwrap_or((word, ""));
        let rest = rest.trim();
        let view = pause.view;
        let step = |kind, is_insn| Next::Resume(Resume::Step(DebugStep { kind, is_insn }));
        let back = |kind, is_insn| Next::Resume(Resume::BackStep(DebugStep { kind, is_insn }));
        if ALONE.contains(&word) && !rest.is_empty() {
            return Err(format!("{word} takes nothing behind it, not {rest:?}"));
        }
        match word {
            "" => {}
            "h" | "help" => self.print(HELP),
            "b" | "break" => self.set(pause, rest, None)?,
            "log" => {
                let parts = rest.split_once(char::is_whitespace);
                let (place, text) = parts.ok_or("log WHERE TEXT")?;
                self.set(pause, place, Some(text.trim().to_owned()))?;
            }
            "watch" => {
                let watch = view.watch_of(self.frame, needed(rest, "watch EXPR")?)?;
                let kind = BreakKind::Watch(watch);
                let options = BreakOptions::default();
                let set = view.set_breakpoint(pause.breakpoints, kind, options);
                let id = set.map_err(|error| error.0)?.id;
                self.print(&format!("Watchpoint {id}: {rest}"));
            }
            "d" | "delete" if rest.is_empty() => {
                let ids: Vec<u32> = pause.breakpoints.list().iter().map(|it| it.id).collect();
                ids.into_iter().for_each(|id| {
                    pause.breakpoints.remove(id);
                });
            }
            "d" | "delete" => {
                let id = rest.parse().ok();
                let is_there = id.is_some_and(|id| pause.breakpoints.remove(id));
                if !is_there {
                    return Err(format!("there is no breakpoint {rest}; info breakpoints"));
                }
            }
            "c" | "continue" => return Ok(Next::Resume(Resume::Continue)),
            "rc" | "reverse-continue" => return Ok(Next::Resume(Resume::BackContinue)),
            "s" | "step" => return Ok(step(StepKind::Into, false)),
            "n" | "next" => return Ok(step(StepKind::Over, false)),
            "si" | "stepi" => return Ok(step(StepKind::Into, true)),
            "ni" | "nexti" => return Ok(step(StepKind::Over, true)),
            "fin" | "finish" => return Ok(step(StepKind::Out, false)),
            "rs" | "reverse-step" => return Ok(back(StepKind::Into, false)),
            "rn" | "reverse-next" => return Ok(back(StepKind::Over, false)),
            "rsi" | "reverse-stepi" => return Ok(back(StepKind::Into, true)),
            "rni" | "reverse-nexti" => return Ok(back(StepKind::Over, true)),
            "rfin" | "reverse-finish" => return Ok(back(StepKind::Out, false)),
            "who" => {
                let watch = view.watch_of(self.frame, needed(rest, "who EXPR")?)?;
                return Ok(Next::Resume(Resume::BackToWrite(watch)));
            }
            "run" | "start" => {
                let packet = pause.first_packet;
                return Ok(Next::Resume(Resume::To(Position { packet, insn: 0 })));
            }
            "packet" => {
                let packet = rest
                    .parse()
                    .ok()
                    .filter(|packet| *packet >= pause.first_packet);
                let first = pause.first_packet;
                let packet = packet.ok_or_else(|| {
                    format!("packet N, from {first} on; --from N begins with another packet")
                })?;
                return Ok(Next::Resume(Resume::To(Position { packet, insn: 0 })));
            }
            "p" | "print" => {
                let node = view.evaluate_node(self.frame, needed(rest, "p EXPR")?)?;
                let text = show::printed(&view, &node, form);
                self.print(&text);
            }
            // Of instructions it shows those at hand.
            "x" if !rest.is_empty() || form.contains('i') => {
                self.print(&show::examined(&view, self.frame, form, rest)?);
            }
            "x" => return Err("x EXPR, x/16 EXPR, x/4i".to_owned()),
            "bt" | "backtrace" | "where" => self.print(&show::frames(&view, self.frame)),
            "f" | "frame" => {
                let number = match rest {
                    "" => self.frame,
                    rest => rest.parse().map_err(|_| frames_of(&view, rest))?,
                };
                self.choose(&view, number)?;
            }
            "up" => self.choose(&view, self.frame + 1)?,
            "down" => {
                let number = self.frame.checked_sub(1);
                self.choose(&view, number.ok_or("this is the innermost frame")?)?;
            }
            "info" | "i" => {
                let text = show::info(&view, self.frame, rest, pause.breakpoints)?;
                self.print(&text);
            }
            "l" | "list" => {
                let line = match rest {
                    "" => self.listed,
                    rest => Some(
                        rest.parse()
                            .map_err(|_| format!("list LINE, not {rest:?}"))?,
                    ),
                };
                let (text, next) = show::listing(&view, self.frame, line)?;
                self.listed = Some(next);
                self.print(&text);
            }
            "disas" | "disassemble" => self.print(&show::function(&view, self.frame)),
            "q" | "quit" | "exit" => return Ok(Next::Resume(Resume::Quit)),
            _ => return Err(format!("there is no command {word}; help lists them")),
        }
        Ok(Next::Command)
    }

    fn choose(&mut self, view: &View<'_, '_, '_>, number: usize) -> Result<(), String> {
        if number >= view.depth() {
            return Err(frames_of(view, &number.to_string()));
        }
        self.frame = number;
        self.listed = None;
        self.print(&show::frame(view, number));
        Ok(())
    }

    /// Sets a breakpoint, or one that prints a message.
    fn set(
        &mut self,
        pause: &mut Pause<'_, '_, '_>,
        text: &str,
        message: Option<String>,
    ) -> Result<(), String> {
        let (place, condition) = match text.split_once(" if ") {
            Some((place, condition)) => (place.trim(), Some(condition.trim().to_owned())),
            None => (text, None),
        };
        let view = pause.view;
        let place = needed(place, "b WHERE")?;
        let kind = match place.strip_prefix('*') {
            Some(slot) => view.break_kind(&format!("insn:{slot}"))?,
            None => view.break_kind(place)?,
        };
        let options = BreakOptions {
            condition,
            message,
            ..BreakOptions::default()
        };
        let set = view.set_breakpoint(pause.breakpoints, kind, options);
        let set = set.map_err(|error| error.0)?.clone();
        self.print(&show::breakpoint(&view, &set));
        Ok(())
    }
}

/// That there is no such frame, and which ones there are.
fn frames_of(view: &View<'_, '_, '_>, given: &str) -> String {
    let last = view.depth().max(1) - 1;
    format!("there is no frame {given}; there are frames 0 to {last}")
}

/// The argument of a command; an error with its usage if there is none.
fn needed<'t>(text: &'t str, usage: &str) -> Result<&'t str, String> {
    match text.is_empty() {
        true => Err(usage.to_owned()),
        false => Ok(text),
    }
}

impl FrontEnd for Terminal {
    fn stopped(&mut self, pause: &mut Pause<'_, '_, '_>) -> Resume {
        self.frame = 0;
        self.listed = None;
        let text = show::stop(pause);
        self.print(&text);
        loop {
            let read = self.read();
            let Some((line, is_given)) = read.filter(|_| !self.is_cut_off()) else {
                return Resume::Quit;
            };
            let command = match line.is_empty() {
                true => self.last.clone(),
                false => line,
            };
            self.last.clone_from(&command);
            match self.run(&command, pause) {
                Ok(Next::Command) => {}
                Ok(Next::Resume(resume)) => return resume,
                Err(why) => {
                    self.print(&why);
                    if is_given && !self.has_prompt {
                        self.fail(DebugError::FrontEnd(why));
                    }
                }
            }
        }
    }

    fn poll(&mut self, _: &mut Breakpoints, _: &View<'_, '_, '_>) -> Poll {
        Poll::GoOn
    }

    fn show(&mut self, line: &str) {
        self.print(line);
    }
}
