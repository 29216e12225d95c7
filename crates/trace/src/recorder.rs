//! The observer that records a run.

mod calls;
mod values;
mod writes;

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::rc::Rc;

use btf::{Btf, TypeId};
use interp::checked::{Finish, Memory, Moment, Observer};
use isa::ebpf::{Callee, Insn, Reg};
use packet::{FirstHeader, HeaderField};
use program::Program;
use spec::calls::TAIL_CALL;

use crate::dwarf::Debug;
use crate::member::Part;
use crate::origin::Origin;
use crate::run::{Run, SeenVariable, TraceEvent, UnseenVariable, Visit};
use crate::variables::{Facts, Watch};

/// Lines from the start of a run that are kept, and from its end.
const FIRST_LINES: usize = 20_000;
const LAST_LINES: usize = 5_000;

/// What a run meets outside of the instructions.
pub trait Host {
    /// Name of the helper or kfunc with a number in resolved code, and how many arguments it takes.
    fn function(&self, number: i32) -> (String, usize);

    /// A map by its index in the memory of the run.
    fn map(&self, index: u32) -> Option<TracedMap<'_>>;

    /// The value of a key of a map.
    fn lookup(&self, map: u32, key: &[u8]) -> Option<Vec<u8>>;
}

/// A map.
#[derive(Clone, Copy, Debug)]
pub struct TracedMap<'h> {
    /// Its name.
    pub name: &'h str,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// True if its values are maps.
    pub holds_maps: bool,
    /// The types, and that of values: of global variables that of their section.
    pub value: Option<(&'h Btf<'static>, TypeId)>,
}

/// A program that may run, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Traced<'p> {
    /// The program.
    pub program: &'p Program,
    /// The debug information of its object.
    pub debug: Option<&'p Debug>,
}

/// A frame.
struct Frame<'p> {
    watch: Watch<'p>,
    origins: [Option<Origin>; Reg::COUNT],
    /// The call of a helper that has not returned, with the number of its line.
    calling: Option<Open>,
}

/// An event whose end is not there yet.
struct Open {
    /// Number of the line, and of the event in it.
    line: u64,
    event: usize,
    kind: Unfinished,
}

enum Unfinished {
    /// A helper that returns a value.
    Call { number: i32, arguments: [u64; 5] },
    /// A write of so many bytes at an address, to parts of a value with their bytes before.
    Write {
        address: u64,
        len: usize,
        parts: Vec<(Part, u64, Vec<u8>)>,
    },
}

/// What was observed last.
#[derive(Clone, Copy)]
struct Last {
    insn: Insn,
    at: usize,
    depth: usize,
    program: u32,
}

/// The observer.
pub struct Recorder<'p> {
    host: &'p dyn Host,
    programs: &'p [Traced<'p>],
    first: FirstHeader,
    frames: Vec<Frame<'p>>,
    last: Option<Last>,
    /// Functions that were entered, by program and first slot.
    facts: HashMap<(u32, u32), Rc<Facts<'p>>>,
    /// By program the number of the source line of each slot, as they follow each other.
    line_numbers: Vec<Vec<Option<u32>>>,
    /// The last slot of the line that is executed which has a line itself.
    last_lined: u32,
    /// The instruction from which lines are recorded again, if those before it are only counted.
    tail_from: u64,
    executed: u64,
    /// What calls the first function, if it is not that of a program.
    caller: Option<&'static str>,
    /// Program, depth and slot of the last instruction, if lines are counted alone.
    counting: Option<(u32, usize, u32)>,
    /// Lines that ended: the first ones, and the last ones.
    lines: Vec<Visit>,
    tail: VecDeque<Visit>,
    left_out: u64,
    /// The line that is executed; its number is that of lines that ended.
    line: Option<Visit>,
    ended: u64,
    write: Option<Open>,
    /// Fields of the packet, as long as they are not written.
    fields: Option<(u64, Vec<HeaderField>)>,
    /// Values that were spilled with where they come from.
    spilled: HashMap<u64, (u64, Origin)>,
    /// Keys of values that were looked up, by the address of the value.
    keys: HashMap<u64, Vec<u8>>,
    /// Records that are being written, with their maps and sizes.
    records: HashMap<u64, (u32, usize)>,
    unseen: Vec<UnseenVariable>,
}

impl<'p> Recorder<'p> {
    /// A recorder of runs of these programs, by their numbers, on packets that begin with this header.
    pub fn new(host: &'p dyn Host, programs: &'p [Traced<'p>], first: FirstHeader) -> Recorder<'p> {
        Recorder {
            host,
            programs,
            first,
            frames: Vec::new(),
            last: None,
            facts: HashMap::new(),
            line_numbers: programs.iter().map(|_| Vec::new()).collect(),
            last_lined: 0,
            tail_from: u64::MAX,
            executed: 0,
            caller: None,
            counting: None,
            lines: Vec::new(),
            tail: VecDeque::new(),
            left_out: 0,
            line: None,
            ended: 0,
            write: None,
            fields: None,
            spilled: HashMap::new(),
            keys: HashMap::new(),
            records: HashMap::new(),
            unseen: Vec::new(),
        }
    }

    /// Has lines behind the first ones recorded again from an instruction on; until then they are
    /// counted. Without it they are counted to the end.
    #[must_use]
    pub fn with_tail(mut self, from: u64) -> Recorder<'p> {
        self.tail_from = from;
        self
    }

    /// Says what calls the first function.
    #[must_use]
    pub fn called_by(mut self, caller: &'static str) -> Recorder<'p> {
        self.caller = Some(caller);
        self
    }

    /// Counts the line of an instruction where lines are counted alone; false where they are
    /// recorded.
    fn counts(&mut self, moment: &Moment<'_, '_>) -> bool {
        let is_due = self.lines.len() >= FIRST_LINES && self.executed < self.tail_from;
        let place = (moment.program.number(), moment.depth, moment.at as u32);
        let goes_on = match self.counting {
            None if is_due => {
                if let Some(line) = self.line.take() {
                    self.ended += 1;
                    self.lines.push(line);
                }
                false
            }
            None => return false,
            Some((program, depth, slot)) if (program, depth) == (place.0, place.1) => {
                match self.follows(slot, place.2, program) {
                    Follows::Unlined => return true,
                    Follows::Same => slot < place.2,
                    Follows::Other => false,
                }
            }
            Some(_) => false,
        };
        if !goes_on && !is_due {
            self.counting = None;
            self.forget();
            return false;
        }
        if !goes_on {
            self.ended += 1;
            self.left_out += 1;
        }
        self.counting = Some(place);
        true
    }

    /// Forgets where values come from, which was not followed while lines were counted.
    fn forget(&mut self) {
        self.spilled.clear();
        self.fields = None;
        for frame in &mut self.frames {
            frame.origins.fill(None);
            frame.watch.begin();
        }
    }

    /// The record, at the end of the run.
    pub fn finish(mut self, finish: &Finish, memory: &Memory<'_>) -> Run {
        self.close_write(memory);
        while let Some(frame) = self.frames.pop() {
            self.note_unseen(&frame);
        }
        self.end_line();
        let gap = self.lines.len();
        self.lines.extend(self.tail);
        Run {
            last: self.lines.len().checked_sub(1),
            visits: self.lines,
            gap,
            left_out: self.left_out,
            instructions: finish.executed,
            unseen: self.unseen,
        }
    }

    /// Keeps the variables of a frame that no value was seen of.
    fn note_unseen(&mut self, frame: &Frame<'_>) {
        for variable in frame.watch.unseen() {
            if !self.unseen.contains(&variable) {
                self.unseen.push(variable);
            }
        }
    }

    fn end_line(&mut self) {
        let Some(line) = self.line.take() else {
            return;
        };
        self.ended += 1;
        if self.lines.len() < FIRST_LINES {
            self.lines.push(line);
            return;
        }
        self.tail.push_back(line);
        if self.tail.len() > LAST_LINES {
            self.tail.pop_front();
            self.left_out += 1;
        }
    }

    /// The line of a number, if it is kept.
    fn line_mut(&mut self, number: u64) -> Option<&mut Visit> {
        if number == self.ended {
            return self.line.as_mut();
        }
        let kept = self.lines.len() as u64;
        match number < kept {
            true => self.lines.get_mut(number as usize),
            false => {
                let index = number.checked_sub(kept + self.left_out)?;
                self.tail.get_mut(index as usize)
            }
        }
    }

    /// Adds an event to the line that is executed; its place.
    fn add(&mut self, event: TraceEvent) -> (u64, usize) {
        let events = self.line.as_mut().map(|line| &mut line.events);
        let index = events.map_or(0, |events| {
            events.push(event);
            events.len() - 1
        });
        (self.ended, index)
    }

    /// Finds the frame of a moment, which calls and returns since the last one change; true if it was
    /// entered.
    fn follow(&mut self, moment: &Moment<'_, '_>) -> bool {
        let (depth, number) = (moment.depth, moment.program.number());
        let last = self.last;
        let is_new = match last {
            None => true,
            Some(last) => {
                let has_returned = matches!(last.insn, Insn::Exit) && depth == last.depth;
                let is_tail_call = last.insn == Insn::Call(Callee::Helper(TAIL_CALL))
                    && depth == last.depth
                    && (number != last.program || moment.at != last.at + 1);
                if is_tail_call {
                    self.add(TraceEvent::TailCall { program: number });
                }
                // An exception goes on in another function of the same frame.
                let goes_on = depth == last.depth
                    && !matches!(last.insn, Insn::Call(_) | Insn::CallReg { .. });
                let is_other = !goes_on && self.is_in_other_function(moment);
                depth > last.depth || has_returned || is_tail_call || is_other
            }
        };
        let kept = if is_new { depth } else { depth + 1 };
        while self.frames.len() > kept {
            if let Some(frame) = self.frames.pop()
                && self.counting.is_none()
            {
                self.note_unseen(&frame);
            }
        }
        if !is_new && self.frames.len() == depth + 1 {
            return false;
        }
        let calling = self.frames.last().and_then(|frame| frame.calling.as_ref());
        let caller = calling.and_then(|open| match open.kind {
            Unfinished::Call { number, .. } => Some(number),
            Unfinished::Write { .. } => None,
        });
        self.note_callback(moment);
        match self.counting {
            None => {
                let helper = caller.map(|number| self.host.function(number).0);
                let first = self.caller.take().map(str::to_owned);
                self.enter(moment, helper.or(first));
            }
            Some(_) => {
                if let Some(facts) = self.facts(moment) {
                    let is_callback = caller.is_some();
                    self.frames.push(Frame {
                        watch: Watch::unwatched(facts, *moment.registers, is_callback),
                        origins: Default::default(),
                        calling: None,
                    });
                }
            }
        }
        true
    }

    /// True if the frame of a moment is of another function than the one that the moment is in.
    fn is_in_other_function(&self, moment: &Moment<'_, '_>) -> bool {
        let Some(frame) = self.frames.get(moment.depth) else {
            return false;
        };
        let traced = self.programs.get(moment.program.number() as usize);
        let subprog = traced.and_then(|traced| traced.program.subprog_at(moment.at as u32));
        frame.watch.facts.start != subprog.map_or(0, |subprog| subprog.start)
    }

    /// What is known of the function that a moment is in.
    fn facts(&mut self, moment: &Moment<'_, '_>) -> Option<Rc<Facts<'p>>> {
        let programs = self.programs;
        let number = moment.program.number();
        let traced = programs.get(number as usize)?;
        let subprog = traced.program.subprog_at(moment.at as u32);
        let start = subprog.map_or(0, |subprog| subprog.start);
        let make = || Rc::new(Facts::new(traced.debug, traced.program, subprog));
        Some(
            self.facts
                .entry((number, start))
                .or_insert_with(make)
                .clone(),
        )
    }

    /// Adds the frame of a function that is entered.
    fn enter(&mut self, moment: &Moment<'_, '_>, caller: Option<String>) {
        let Some(facts) = self.facts(moment) else {
            return;
        };
        let watch = Watch::new(facts.clone(), *moment.registers, caller.is_some());
        let mut origins: [Option<Origin>; Reg::COUNT] = Default::default();
        let parameters = facts.parameters.iter().map(|(name, _)| name.as_str());
        let parameters = parameters.chain(std::iter::repeat("")).take(5);
        for (name, register) in parameters.zip((1..=5).filter_map(Reg::new)) {
            let origin = &mut origins[register.index()];
            let variable = watch.name_of(register, moment.at as u32);
            *origin = match (variable, facts.has_debug()) {
                (Some((name, is_pointer)), _) => Some(Origin {
                    is_pointer,
                    ..Origin::named(name)
                }),
                (None, false) if watch.has_all_parameters() && !name.is_empty() => {
                    Some(Origin::named(name))
                }
                (None, _) => None,
            };
        }
        self.frames.push(Frame {
            watch,
            origins,
            calling: None,
        });
        self.begin_line(moment);
        self.add(TraceEvent::Enter { caller });
        let traced = &self.programs[moment.program.number() as usize];
        let frame = self.frames.last();
        let arguments = frame.map(|frame| {
            let describe = |number| self.pointer_text(number, moment.memory);
            frame.watch.arguments(traced.program, &describe)
        });
        let seen = self.changed_variables(moment);
        for argument in arguments.into_iter().flatten().chain(seen) {
            self.add(TraceEvent::Variable(argument));
        }
    }

    fn begin_line(&mut self, moment: &Moment<'_, '_>) {
        self.end_line();
        let at = moment.at as u32;
        let traced = self.programs.get(moment.program.number() as usize);
        let number = traced
            .and_then(|traced| traced.program.line_at(at))
            .map(|line| line.line)
            .filter(|line| *line > 0);
        let (function, inlined) = match self.frames.last_mut() {
            Some(frame) => {
                number
                    .into_iter()
                    .for_each(|number| frame.watch.note_line(number));
                (frame.watch.facts.start, frame.watch.inlined_at(at))
            }
            None => (0, Vec::new()),
        };
        self.last_lined = at;
        self.line = Some(Visit {
            program: moment.program.number(),
            function,
            depth: moment.depth,
            inlined,
            spans: vec![(at, at)],
            events: Vec::new(),
        });
    }

    /// Adds the instruction to its line, which may be a new one.
    fn add_step(&mut self, moment: &Moment<'_, '_>) {
        let (at, number) = (moment.at as u32, moment.program.number());
        let line = self.line.as_ref();
        let is_in_frame =
            line.is_some_and(|line| line.depth == moment.depth && line.program == number);
        let last = self.last_lined;
        let goes_on = is_in_frame
            && match self.follows(last, at, number) {
                Follows::Unlined => true,
                Follows::Same => at > last,
                Follows::Other => false,
            };
        if !goes_on {
            let variables = self.changed_variables(moment);
            if !is_in_frame {
                self.begin_line(moment);
            }
            for variable in variables {
                self.add(TraceEvent::Variable(variable));
            }
            if is_in_frame {
                self.begin_line(moment);
            }
            return;
        }
        let width = match self.last.map(|last| last.insn) {
            Some(Insn::LoadImm64 { .. }) => 2,
            _ => 1,
        };
        if self.has_line(at, number) {
            self.last_lined = at;
        }
        if let Some(line) = &mut self.line
            && let Some((_, last)) = line.spans.last_mut()
        {
            match *last + width == at {
                true => *last = at,
                false => line.spans.push((at, at)),
            }
        }
        // A function that ends in the line that it began in has values at its end alone.
        if matches!(moment.insn(), Insn::Exit) {
            for variable in self.changed_variables(moment) {
                self.add(TraceEvent::Variable(variable));
            }
        }
    }

    /// How a slot of a program goes on behind another one.
    fn follows(&mut self, last: u32, at: u32, program: u32) -> Follows {
        match (
            self.line_number(last, program),
            self.line_number(at, program),
        ) {
            (_, None) => Follows::Unlined,
            (last, at) if last == at => Follows::Same,
            _ => Follows::Other,
        }
    }

    fn has_line(&mut self, at: u32, program: u32) -> bool {
        self.line_number(at, program).is_some()
    }

    /// The number of the source line of a slot.
    fn line_number(&mut self, at: u32, program: u32) -> Option<u32> {
        let traced = self.programs.get(program as usize)?;
        let numbers = &mut self.line_numbers[program as usize];
        if numbers.is_empty() {
            *numbers = line_numbers(traced.program);
        }
        numbers.get(at as usize).copied().flatten()
    }

    fn changed_variables(&mut self, moment: &Moment<'_, '_>) -> Vec<SeenVariable> {
        let Some(mut frame) = self.frames.pop() else {
            return Vec::new();
        };
        let describe = |number| self.pointer_text(number, moment.memory);
        let changed =
            frame
                .watch
                .changed(moment.at as u32, moment.registers, moment.memory, &describe);
        self.frames.push(frame);
        changed
    }
}

/// The number of the source line of each slot: slots of one line have one number. Without any source lines all
/// are one.
fn line_numbers(program: &Program) -> Vec<Option<u32>> {
    let mut known = HashMap::new();
    let lines = program.source_lines().into_iter();
    let has_lines = !program.line_info().is_empty();
    let numbers = lines.map(|line| {
        let line = line.map(|line| (line.file, line.line));
        if has_lines && line.is_none() {
            return None;
        }
        let next = known.len() as u32;
        Some(*known.entry(line).or_insert(next))
    });
    numbers.collect()
}

/// What an instruction is to the line of the one before it.
enum Follows {
    Same,
    Other,
    /// It has no line, and goes on with that one.
    Unlined,
}

impl Observer for Recorder<'_> {
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()> {
        self.close_write(moment.memory);
        let counts = self.counts(moment);
        let has_entered = self.follow(moment);
        self.close_call(moment);
        match (counts, has_entered) {
            (true, _) => self.note_counted(moment),
            (false, true) => self.note(moment),
            (false, false) => {
                self.add_step(moment);
                self.note(moment);
            }
        }
        self.executed += 1;
        self.last = Some(Last {
            insn: moment.insn(),
            at: moment.at,
            depth: moment.depth,
            program: moment.program.number(),
        });
        ControlFlow::Continue(())
    }
}
