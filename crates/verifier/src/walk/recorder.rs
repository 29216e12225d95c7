//! The recorder of a walk.

use std::collections::HashMap;
use std::rc::Rc;

use super::{KeptSteps, Masks, PrecisionRequest, StatePlace, StepEnd, WHOLE_EVERY, Walk, WalkStep};
use crate::analysis::Analysis;
use crate::input::Input;
use crate::log::{self, insn_text};
use crate::state::{Frame, RegKind, State};

/// No step.
pub(crate) const NONE: u32 = u32::MAX;

/// Checkpoints that are named of those that did not cover a state.
const MOST_MISSED: usize = 8;

/// Instructions of a request that are named.
const MOST_CARRIED: usize = 256;

/// Records a walk.
#[derive(Debug)]
pub(crate) struct WalkRecorder {
    kept: KeptSteps,
    walk: Walk,
    numbers: HashMap<String, u32>,
    /// Steps that the walk made.
    count: u32,
    /// The frames of the last step that is kept, if the next one follows it on its path.
    last: Vec<Rc<Frame>>,
    references: String,
    /// Steps since one had its whole state.
    since_whole: usize,
    /// The step before the next one.
    before: u32,
    is_checkpoint: bool,
    missed: Vec<u32>,
    request: Option<PrecisionRequest>,
}

impl WalkRecorder {
    pub(crate) fn new(kept: KeptSteps) -> WalkRecorder {
        WalkRecorder {
            kept,
            walk: Walk::default(),
            numbers: HashMap::new(),
            count: 0,
            last: Vec::new(),
            references: String::new(),
            since_whole: 0,
            before: NONE,
            is_checkpoint: false,
            missed: Vec::new(),
            request: None,
        }
    }

    /// Begins a path that branches off behind a step.
    pub(crate) fn begin_path(&mut self, before: u32) {
        self.end_path(StepEnd::Exits);
        self.last.clear();
        self.before = before;
    }

    /// The index of the last step.
    pub(crate) fn last_step(&self) -> u32 {
        (self.walk.steps.len() as u32)
            .checked_sub(1)
            .unwrap_or(NONE)
    }

    /// Notes that the state in front of the next step is a checkpoint; the index of that step.
    pub(crate) fn note_checkpoint(&mut self) -> u32 {
        self.is_checkpoint = true;
        match self.kept.has(self.count) {
            true => self.walk.steps.len() as u32,
            false => NONE,
        }
    }

    /// Notes a checkpoint that does not cover the state in front of the next step.
    pub(crate) fn note_missed(&mut self, step: u32) {
        if self.missed.len() < MOST_MISSED && step != NONE {
            self.missed.push(step);
        }
    }

    /// Says how the path goes on behind the last step, if it ended there.
    pub(crate) fn end_path(&mut self, end: StepEnd) {
        let is_last = self.before != NONE && self.before == self.last_step();
        if let (true, Some(step)) = (is_last, self.walk.steps.last_mut())
            && step.end == StepEnd::GoesOn
        {
            step.end = end;
        }
        self.before = NONE;
    }

    /// Records a step at an instruction, with the state in front of it.
    pub(crate) fn step(&mut self, input: &Input<'_>, state: &State, insn: u32) {
        let number = self.count;
        self.count += 1;
        let missed = std::mem::take(&mut self.missed);
        let is_checkpoint = std::mem::take(&mut self.is_checkpoint);
        if !self.kept.has(number) {
            let at = self.walk.steps.len();
            self.walk.gap.get_or_insert((at, 0)).1 += 1;
            self.last.clear();
            self.before = NONE;
            return;
        }
        let is_whole = self.last.is_empty() || self.since_whole >= WHOLE_EVERY;
        if is_whole {
            self.last.clear();
            self.references.clear();
            self.since_whole = 0;
        }
        self.since_whole += 1;
        let changes = self.changes(input, state);
        self.walk.steps.push(WalkStep {
            number,
            insn,
            before: (self.before != NONE).then_some(self.before),
            frame: state.curframe as u8,
            is_speculative: state.speculative,
            is_checkpoint,
            is_whole,
            changes,
            missed,
            end: StepEnd::GoesOn,
        });
        self.before = self.last_step();
    }

    /// Records that a checkpoint covers the state at an instruction.
    pub(crate) fn pruned(
        &mut self,
        input: &Input<'_>,
        state: &State,
        (insn, by): (u32, u32),
        loops: bool,
    ) {
        self.step(input, state, insn);
        self.end_path(StepEnd::Pruned((by != NONE).then_some(by), loops));
    }

    /// What is unlike the last step.
    fn changes(&mut self, input: &Input<'_>, state: &State) -> Vec<(StatePlace, Option<u32>)> {
        let mut changes = Vec::new();
        let frames: Vec<Rc<Frame>> = (0..=state.curframe)
            .map(|number| state.frame_rc(number).clone())
            .collect();
        let last = std::mem::take(&mut self.last);
        for number in (frames.len()..last.len()).rev() {
            changes.push((StatePlace::Frame(number as u8), None));
        }
        for (number, frame) in frames.iter().enumerate() {
            let old = last
                .get(number)
                .filter(|old| old.callsite == frame.callsite);
            let old = old.filter(|old| old.subprogno == frame.subprogno);
            match old {
                Some(old) if Rc::ptr_eq(old, frame) => continue,
                Some(_) => {}
                None => {
                    if last.get(number).is_some() {
                        changes.push((StatePlace::Frame(number as u8), None));
                    }
                    let text = self.frame_text(input, frame);
                    changes.push((StatePlace::Frame(number as u8), Some(text)));
                }
            }
            self.frame_changes(
                input,
                (number as u8, frame),
                old.map(|old| &**old),
                &mut changes,
            );
        }
        self.last = frames;
        let mut references = String::new();
        log::write_references(&mut references, state);
        if references != self.references {
            let value = (!references.is_empty()).then(|| self.value(references.trim()));
            changes.push((StatePlace::References, value));
            self.references = references;
        }
        changes
    }

    fn frame_changes(
        &mut self,
        input: &Input<'_>,
        (number, frame): (u8, &Frame),
        old: Option<&Frame>,
        changes: &mut Vec<(StatePlace, Option<u32>)>,
    ) {
        let is_precise = !input.bpf_capable;
        for (at, reg) in frame.regs.iter().enumerate() {
            let is_there = reg.kind != RegKind::NotInit;
            let value = match old.map(|old| &old.regs[at]) {
                Some(old) if old == reg => continue,
                None if !is_there => continue,
                _ => is_there.then(|| {
                    let mut text = String::new();
                    log::write_reg(input, &mut text, frame.frameno, reg, is_precise);
                    self.value(&text)
                }),
            };
            changes.push((StatePlace::Reg(number, at as u8), value));
        }
        for spi in 0..frame.stack.len() {
            let slot = &frame.stack[spi];
            let before = old.and_then(|old| old.stack.get(spi));
            // What occupies slots as a whole changes without them.
            if before == Some(slot) && !slot.is_special() {
                continue;
            }
            let text = log::slot_text(input, frame, spi);
            if text.is_empty() && before.is_none() {
                continue;
            }
            let value = (!text.is_empty()).then(|| self.value(&text));
            changes.push((StatePlace::Slot(number, spi as u8), value));
        }
    }

    fn frame_text(&mut self, input: &Input<'_>, frame: &Frame) -> u32 {
        let subprogs = input.program.subprogs();
        let name = subprogs.get(frame.subprogno as usize);
        let name = name.map_or("", |subprog| &subprog.name);
        let kind = match (frame.in_callback_fn, frame.in_async_callback_fn) {
            (_, true) => " (asynchronous callback)",
            (true, false) => " (callback)",
            (false, false) => "",
        };
        self.value(&format!("{name}{kind}"))
    }

    /// The number of a text.
    fn value(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.walk.values.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.walk.values.push(text.to_owned());
        number
    }

    /// Begins a request for precise scalars.
    pub(crate) fn begin_request(&mut self, (regs, slots): &Masks) {
        let masks = regs.iter().zip(slots).zip(0u8..);
        let asked = masks.filter(|((regs, slots), _)| **regs != 0 || **slots != 0);
        self.request = Some(PrecisionRequest {
            step: self.last_step(),
            asked: asked
                .map(|((regs, slots), frame)| (frame, *regs, *slots))
                .collect(),
            carried: Vec::new(),
            marked: Vec::new(),
        });
    }

    /// Notes what the request asks for in front of an instruction that changed it.
    pub(crate) fn carry_request(&mut self, insn: u32, frame: usize, regs: u16, slots: u64) {
        if let Some(request) = &mut self.request
            && request.carried.len() < MOST_CARRIED
        {
            request.carried.push((insn, frame as u8, regs, slots));
        }
    }

    /// Notes what became precise in a checkpoint.
    pub(crate) fn mark(&mut self, checkpoint: u32, frame: usize, regs: u16, slots: u64) {
        let step = self.last_step();
        let request = self.request.get_or_insert_with(|| PrecisionRequest {
            step,
            asked: Vec::new(),
            carried: Vec::new(),
            marked: Vec::new(),
        });
        if regs != 0 || slots != 0 {
            let checkpoint = (checkpoint != NONE).then_some(checkpoint);
            request.marked.push((checkpoint, frame as u8, regs, slots));
        }
    }

    /// Ends the request, which is kept if something became precise.
    pub(crate) fn end_request(&mut self) {
        let request = self.request.take();
        let request = request.filter(|request| !request.marked.is_empty() && request.step != NONE);
        self.walk.requests.extend(request);
    }

    /// The walk, when it is over: `refused` at an instruction and in a state, or not.
    pub(crate) fn finish(
        mut self,
        input: &Input<'_>,
        analysis: &Analysis,
        refused: Option<(State, u32, u32)>,
    ) -> Walk {
        self.end_request();
        if let Some((state, insn, processed)) = refused {
            // A refusal in front of the check of the instruction.
            if self.count < processed && (insn as usize) < input.insns.len() {
                self.step(input, &state, insn);
            }
            self.end_path(StepEnd::Refused);
        } else {
            self.end_path(StepEnd::Exits);
        }
        self.walk.insns = (0..input.insns.len() as u32)
            .map(|insn| insn_text(input, insn))
            .collect();
        let live = analysis.insns.iter();
        self.walk.live_regs = live.map(|info| info.live_regs & 0x7ff).collect();
        self.walk
    }
}
