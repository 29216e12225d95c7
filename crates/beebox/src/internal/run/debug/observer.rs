//! The observer of a run that is debugged: follows calls, and stops where the plan of the session says.
//!
//! Until the first instruction at which a stop is possible an instruction costs the comparisons that
//! follow calls.

use std::ops::ControlFlow;

use ::kernel::programs::verdict;
use interp::checked::{Moment, Observer};
use isa::ebpf::{Callee, Insn};

use super::Poll;
use super::breakpoint::{BreakKind, Breakpoint};
use super::plan::{DebugStep, Goal, Plan, Position, Resume, StepFrom, StepKind, StopReason};
use super::resolve::{is_verdict, number_of};
use super::scene::Scene;
use super::state::DebugState;
use super::view::Pause;
use super::watch::{Touch, Watch, store};

/// Instructions between two questions to the front end.
const POLL_INTERVAL: u64 = 1 << 14;

/// The observer.
pub(in crate::internal::run) struct DebugObserver<'r> {
    state: &'r mut DebugState,
    scene: Scene<'r>,
    /// The instruction at which a stop is possible next, and at which the front end is asked.
    quiet_until: u64,
    look_at: u64,
    poll_at: u64,
    /// By depth: the instruction that the frame was entered with, and its last line.
    lines: Vec<(u64, u64)>,
    /// Objects that the last instruction writes or may change.
    pending: Vec<Pending>,
}

/// A watched object that the last instruction writes or may change.
struct Pending {
    /// The breakpoint; 0 in a search.
    id: u32,
    watch: Watch,
    touch: Touch,
    before: Option<Vec<u8>>,
}

impl<'r> DebugObserver<'r> {
    pub(in crate::internal::run) fn new(
        state: &'r mut DebugState,
        scene: Scene<'r>,
    ) -> DebugObserver<'r> {
        let mut observer = DebugObserver {
            state,
            scene,
            quiet_until: 0,
            look_at: 0,
            poll_at: 0,
            lines: Vec::new(),
            pending: Vec::new(),
        };
        observer.plan_is_new(0);
        observer
    }

    /// Notes that the plan changed at an instruction.
    fn plan_is_new(&mut self, at: u64) {
        self.quiet_until = match &self.state.plan {
            // Hits are counted from the begin of the session.
            Plan::To(..) if self.state.breakpoints.has_counts => 0,
            plan => plan.quiet_until(self.state.packet),
        };
        self.poll_at = at + POLL_INTERVAL;
        self.look_at = self.quiet_until.min(self.poll_at);
    }

    /// Looks at an instruction at which the run may stop.
    fn look(&mut self, moment: &Moment<'_, '_>, at: u64) -> ControlFlow<()> {
        let position = Position {
            packet: self.state.packet,
            insn: at,
        };
        if at >= self.poll_at {
            self.poll_at = at + POLL_INTERVAL;
            self.look_at = self.quiet_until.min(self.poll_at);
            let view = self.scene.view(moment, position);
            match self.state.front.poll(&mut self.state.breakpoints, &view) {
                Poll::GoOn => {}
                Poll::Quit => return self.follow(Resume::Quit, moment, position),
                Poll::Stop => {
                    let before = match &self.state.plan {
                        Plan::Search { before, .. } => Some(*before),
                        Plan::Continue | Plan::Step(_) | Plan::To(..) => None,
                    };
                    let Some(before) = before else {
                        // The instruction is not looked at again.
                        self.breakpoint(moment, position, false);
                        return self.stop(StopReason::Pause, moment, position);
                    };
                    self.state.next = Some(Plan::To(before, StopReason::Pause));
                    return ControlFlow::Break(());
                }
            }
        }
        if at < self.quiet_until {
            return ControlFlow::Continue(());
        }
        match &self.state.plan {
            Plan::Continue if self.is_plain(moment, at) => ControlFlow::Continue(()),
            Plan::Search {
                goal: Goal::Stops,
                before,
                ..
            } if position < *before && self.is_plain(moment, at) => ControlFlow::Continue(()),
            Plan::To(to, _) if position < *to => {
                if !self.is_plain(moment, at) {
                    self.breakpoint(moment, position, false);
                }
                ControlFlow::Continue(())
            }
            Plan::To(_, reason) => {
                let reason = reason.clone();
                self.breakpoint(moment, position, false);
                match self.state.after.take() {
                    Some(resume) => self.go_on(resume, moment, position),
                    None => self.stop(reason, moment, position),
                }
            }
            Plan::Continue => match self.breakpoint(moment, position, true) {
                Some(reason) => self.stop(reason, moment, position),
                None => ControlFlow::Continue(()),
            },
            Plan::Step(from) => {
                let from = *from;
                match self.breakpoint(moment, position, true) {
                    Some(reason) => self.stop(reason, moment, position),
                    None if self.is_stepped(&from, moment, position) => {
                        self.stop(StopReason::Step, moment, position)
                    }
                    None => ControlFlow::Continue(()),
                }
            }
            Plan::Search { before, .. } => {
                let before = *before;
                self.search(moment, position, before)
            }
        }
    }

    /// True if no breakpoint can be at an instruction, and no write behind it.
    #[inline]
    fn is_plain(&self, moment: &Moment<'_, '_>, at: u64) -> bool {
        let breakpoints = &self.state.breakpoints;
        let is_possible = breakpoints.has_watches
            || breakpoints.has_maps
            || breakpoints.has_packets && at == 0
            || breakpoints.has_verdicts && moment.depth == 0
            || breakpoints.is_marked(moment.program.number(), moment.at);
        self.pending.is_empty() && !is_possible
    }

    /// True if a step ends at an instruction.
    fn is_stepped(&self, from: &StepFrom, moment: &Moment<'_, '_>, position: Position) -> bool {
        if position.packet != from.position.packet {
            return true;
        }
        let Some(frame) = self.scene.stack.top() else {
            return false;
        };
        let depth = moment.depth;
        let line = self.scene.line_number(moment);
        let is_other_line = line != from.line && line != 0 || from.line == 0;
        match (from.step.kind, from.step.is_insn) {
            (StepKind::Into, true) => true,
            (StepKind::Over, true) => depth <= from.depth,
            (StepKind::Out, _) if depth == from.depth && frame.entered == from.entered => {
                line != 0 && self.scene.inlined(moment) < from.inlined
            }
            (StepKind::Out, _) => depth < from.depth,
            (StepKind::Into | StepKind::Over, false) if depth <= from.depth => {
                let is_same = depth == from.depth && frame.entered == from.entered;
                !is_same || is_other_line
            }
            (StepKind::Into, false) => frame.entered == position.insn && line != 0,
            (StepKind::Over, false) => false,
        }
    }

    /// The stop of breakpoints at an instruction, if one is there.
    fn breakpoint(
        &mut self,
        moment: &Moment<'_, '_>,
        position: Position,
        is_forward: bool,
    ) -> Option<StopReason> {
        let written = self.written(moment);
        self.note_watches(moment, position);
        let mut change = None;
        for pending in written.into_iter().filter(|pending| pending.id != 0) {
            let mut list = self.state.breakpoints.list().iter();
            let watch = list.find(|breakpoint| breakpoint.id == pending.id);
            if let Some(watch) = watch.cloned()
                && self.is_stopped_by(&watch, moment, position, is_forward)
            {
                let text = self.change_text(&pending, moment);
                change = change.or(Some(StopReason::Watch(pending.id, text)));
            }
        }
        let breakpoints = &self.state.breakpoints;
        let is_marked = breakpoints.is_marked(moment.program.number(), moment.at);
        if !is_marked && !breakpoints.has_dynamic() {
            return change;
        }
        let list = breakpoints.list().iter();
        let hit = list.filter(|breakpoint| self.is_at(breakpoint, moment, position));
        let hit: Vec<Breakpoint> = hit.cloned().collect();
        let hit = hit.into_iter();
        let stops = hit.filter(|it| self.is_stopped_by(it, moment, position, is_forward));
        let stops: Vec<u32> = stops.map(|breakpoint| breakpoint.id).collect();
        change.or((!stops.is_empty()).then_some(StopReason::Breakpoint(stops)))
    }

    /// True if the run stops by a breakpoint that it hits: its condition holds, it has no message, and
    /// the hit is one that it chooses.
    fn is_stopped_by(
        &mut self,
        breakpoint: &Breakpoint,
        moment: &Moment<'_, '_>,
        position: Position,
        is_forward: bool,
    ) -> bool {
        let view = self.scene.view(moment, position);
        if let Some(condition) = &breakpoint.condition {
            // That of a variable is one of its frame.
            let frame = match &breakpoint.kind {
                BreakKind::Watch(watch) => watch.depth().map_or(0, |depth| view.row_at(depth)),
                BreakKind::Line { .. }
                | BreakKind::Function(_)
                | BreakKind::Helper(_)
                | BreakKind::Map(_)
                | BreakKind::Verdict(_)
                | BreakKind::Insn { .. }
                | BreakKind::Packet(_) => 0,
            };
            match view.is_true(frame, condition) {
                Ok(false) => return false,
                Ok(true) => {}
                Err(why) if is_forward => {
                    let line = format!("breakpoint {}: {condition}: {why}", breakpoint.id);
                    self.state.front.show(&line);
                }
                Err(_) => {}
            }
        }
        let is_chosen = self.state.breakpoints.count(breakpoint.id, is_forward);
        match &breakpoint.message {
            Some(message) if is_chosen && is_forward => {
                let line = view.message(message);
                self.state.front.show(&line);
                false
            }
            Some(_) => false,
            None => is_chosen,
        }
    }

    /// True if a breakpoint is at an instruction.
    fn is_at(&self, breakpoint: &Breakpoint, moment: &Moment<'_, '_>, position: Position) -> bool {
        match &breakpoint.kind {
            BreakKind::Line { .. } if self.scene.goes_on(moment) => false,
            BreakKind::Line { .. }
            | BreakKind::Function(_)
            | BreakKind::Helper(_)
            | BreakKind::Insn { .. } => {
                let place = (moment.program.number(), moment.at as u32);
                breakpoint.places.contains(&place)
            }
            BreakKind::Packet(packet) => position.insn == 0 && position.packet == *packet,
            BreakKind::Verdict(name) => {
                let is_end = moment.depth == 0
                    && matches!(moment.insn(), Insn::Exit)
                    && !self.scene.is_timer;
                is_end && {
                    let retval = moment.registers[0] as u32;
                    let verdict = verdict(self.scene.main().program.kind(), retval).name;
                    name.as_ref().is_none_or(|name| {
                        is_verdict(&verdict, name) || number_of(name) == Some(retval)
                    })
                }
            }
            BreakKind::Map(name) => self
                .accessed_map(moment)
                .is_some_and(|map| self.scene.map_name(map) == *name),
            BreakKind::Watch(_) => false,
        }
    }

    /// The map that an instruction calls a helper with, or a value of which it accesses.
    fn accessed_map(&self, moment: &Moment<'_, '_>) -> Option<u32> {
        use interp::checked::MemoryPlace;
        let insn = moment.insn();
        let address = match insn {
            // Registers behind the arguments hold what others left there.
            Insn::Call(callee) => {
                let count = match callee {
                    Callee::Helper(number) => {
                        self.scene.functions.get(&number).map_or(5, |it| it.1)
                    }
                    Callee::Local(_) | Callee::Kfunc { .. } => 0,
                };
                let mut arguments = moment.registers[1..=count.min(5)].iter();
                return arguments.find_map(|pointer| self.scene.map_at(*pointer, moment.memory));
            }
            Insn::Load { base, off, .. } | Insn::LoadAcquire { base, off, .. } => {
                isa::ebpf::eval::address(moment.registers[base.index()], off)
            }
            _ => store(&insn, moment)?.0,
        };
        match moment.memory.place(address)? {
            MemoryPlace::Value { map, .. } => Some(self.scene.first_of(map)),
            MemoryPlace::Packet(_)
            | MemoryPlace::Context(_)
            | MemoryPlace::Stack { .. }
            | MemoryPlace::Map(_)
            | MemoryPlace::Function(_)
            | MemoryPlace::Region { .. } => None,
        }
    }

    /// Notes the watched objects that an instruction writes or may change.
    fn note_watches(&mut self, moment: &Moment<'_, '_>, position: Position) {
        if !self.state.breakpoints.has_watches {
            return;
        }
        for breakpoint in self.state.breakpoints.list() {
            if let BreakKind::Watch(watch) = &breakpoint.kind {
                let noted = note(&self.scene, (breakpoint.id, watch), moment, position);
                self.pending.extend(noted);
            }
        }
    }

    /// The objects that the last instruction wrote.
    fn written(&mut self, moment: &Moment<'_, '_>) -> Vec<Pending> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let mut pending = std::mem::take(&mut self.pending);
        let packet = self.state.packet;
        pending.retain(|pending| match pending.touch {
            // A frame that ended left its bytes to others.
            _ if !pending.watch.is_there(packet, &self.scene) => false,
            Touch::Writes => true,
            Touch::MayChange | Touch::None => {
                let after = pending.watch.bytes(moment, &self.scene);
                (pending.watch).has_changed(pending.before.as_deref(), after.as_deref())
            }
        });
        pending
    }

    fn change_text(&self, pending: &Pending, moment: &Moment<'_, '_>) -> String {
        let after = pending.watch.bytes(moment, &self.scene);
        let text = |bytes: &Option<Vec<u8>>| {
            let run = (moment, &self.scene);
            pending.watch.show(bytes.as_deref(), run)
        };
        let (before, after) = (text(&pending.before), text(&after));
        format!("{}: {before} → {after}", pending.watch.name)
    }

    /// Looks for what is searched, and ends the pass where it ends.
    fn search(
        &mut self,
        moment: &Moment<'_, '_>,
        position: Position,
        end: Position,
    ) -> ControlFlow<()> {
        let found = self.match_of_search(moment, position, end);
        let Plan::Search {
            goal, before, best, ..
        } = &mut self.state.plan
        else {
            return ControlFlow::Continue(());
        };
        if let Some(found) = found {
            *best = Some(found);
        }
        if position < *before {
            return ControlFlow::Continue(());
        }
        let (goal, before, best) = (goal.clone(), *before, best.take());
        self.state.next = Some(self.state.plan_of_search(&goal, before, best));
        ControlFlow::Break(())
    }

    /// The match in front of an instruction that is found there.
    fn match_of_search(
        &mut self,
        moment: &Moment<'_, '_>,
        position: Position,
        end: Position,
    ) -> Option<(Position, StopReason)> {
        let Plan::Search { goal, .. } = &self.state.plan else {
            return None;
        };
        let last = Position {
            insn: position.insn.saturating_sub(1),
            ..position
        };
        match goal {
            Goal::Stops => {
                let is_end = position >= end;
                match self.breakpoint(moment, position, false) {
                    // The write was the last instruction.
                    Some(reason @ StopReason::Watch(..)) => Some((last, reason)),
                    Some(reason) if !is_end => Some((position, reason)),
                    _ => None,
                }
            }
            Goal::Step(from) => {
                let from = *from;
                let is_match = self.is_stepped_back(&from, moment) && position < end;
                is_match.then_some((position, StopReason::Step))
            }
            Goal::Write(watch) => {
                let noted = note(&self.scene, (0, watch), moment, position);
                let written = self.written(moment);
                let text = written.first().map(|it| self.change_text(it, moment));
                self.pending.extend(noted);
                text.map(|text| (last, StopReason::Write(text)))
            }
        }
    }

    /// True if a step back may end at an instruction.
    fn is_stepped_back(&mut self, from: &StepFrom, moment: &Moment<'_, '_>) -> bool {
        let Some(frame) = self.scene.stack.top() else {
            return false;
        };
        let (depth, entered) = (moment.depth, frame.entered);
        let line = self.scene.line_number(moment);
        let is_begin = match self.lines.get(depth) {
            Some((of, last)) if *of == entered => *last != line,
            _ => true,
        };
        self.lines.truncate(depth);
        // Frames that were entered are noted one by one.
        self.lines.push((entered, line));
        let is_around = depth < from.depth || (depth == from.depth && entered == from.entered);
        if from.step.kind == StepKind::Out {
            return depth < from.depth || is_around && self.scene.inlined(moment) < from.inlined;
        }
        let is_in_reach = from.step.kind == StepKind::Into || is_around;
        is_in_reach && (from.step.is_insn || is_begin && (line != 0 || from.line == 0))
    }

    /// Stops the run, and follows what it is to go on with.
    fn stop(
        &mut self,
        reason: StopReason,
        moment: &Moment<'_, '_>,
        position: Position,
    ) -> ControlFlow<()> {
        let mut reason = reason;
        loop {
            let is_at_end = matches!(reason, StopReason::End(_) | StopReason::Trap(_));
            let again = reason.clone();
            self.state.show_verdicts();
            let mut pause = Pause {
                view: self.scene.view(moment, position),
                breakpoints: &mut self.state.breakpoints,
                reason,
                is_at_end,
                first_packet: self.state.first_packet,
            };
            let resume = self.state.front.stopped(&mut pause);
            if resume == Resume::Begin {
                self.state.plan = Plan::Continue;
                if let Some(stop) = self.breakpoint(moment, position, true) {
                    reason = stop;
                    continue;
                }
                self.plan_is_new(position.insn);
                return ControlFlow::Continue(());
            }
            // Behind the end there is nothing; the past stays.
            if is_at_end && matches!(resume, Resume::Continue | Resume::Step(_)) {
                reason = again;
                continue;
            }
            let is_first = position.packet == self.state.first_packet && position.insn == 0;
            let is_forward = match &resume {
                Resume::Continue | Resume::Step(_) => true,
                Resume::To(to) => *to > position,
                Resume::Begin
                | Resume::BackContinue
                | Resume::BackStep(_)
                | Resume::BackToWrite(_)
                | Resume::Quit => false,
            };
            if self.state.breakpoints.is_stale && is_forward && !is_first {
                self.state.after = Some(resume);
                self.state.next = Some(Plan::To(position, StopReason::Reached));
                return ControlFlow::Break(());
            }
            return self.go_on(resume, moment, position);
        }
    }

    /// Goes on from an instruction, which is not looked at again: what is written here is noted.
    fn go_on(
        &mut self,
        resume: Resume,
        moment: &Moment<'_, '_>,
        position: Position,
    ) -> ControlFlow<()> {
        self.pending.clear();
        self.note_watches(moment, position);
        self.follow(resume, moment, position)
    }

    /// Follows what a front end says.
    fn follow(
        &mut self,
        resume: Resume,
        moment: &Moment<'_, '_>,
        position: Position,
    ) -> ControlFlow<()> {
        let state = &mut *self.state;
        let back = match resume {
            Resume::Continue | Resume::Begin => {
                state.plan = Plan::Continue;
                None
            }
            Resume::Step(step) => {
                state.plan = Plan::Step(self.scene.step_from(step, moment, position));
                None
            }
            Resume::To(to) if to > position => {
                state.plan = Plan::To(to, StopReason::Reached);
                None
            }
            Resume::To(to) => Some(Plan::To(to, StopReason::Reached)),
            Resume::BackContinue => Some(Plan::Search {
                goal: Goal::Stops,
                before: position,
                from: state.first_packet,
                best: None,
            }),
            Resume::BackStep(step) => Some(self.back_step(step, moment, position)),
            Resume::BackToWrite(watch) => {
                let from = match watch.spans_packets() {
                    true => state.first_packet,
                    false => position.packet,
                };
                Some(Plan::Search {
                    goal: Goal::Write(watch),
                    before: position,
                    from,
                    best: None,
                })
            }
            Resume::Quit => {
                state.quits = true;
                return ControlFlow::Break(());
            }
        };
        match back {
            None => {
                self.plan_is_new(position.insn);
                ControlFlow::Continue(())
            }
            Some(plan) => {
                self.state.next = Some(plan);
                ControlFlow::Break(())
            }
        }
    }

    fn back_step(&self, step: DebugStep, moment: &Moment<'_, '_>, position: Position) -> Plan {
        let from = self.scene.step_from(step, moment, position);
        match (step.kind, step.is_insn) {
            (StepKind::Into, true) => self.state.plan_to_insn_before(position),
            (StepKind::Out, _) if from.inlined == 0 => {
                // A helper may have called the function before, so that the call is further back.
                let frames = self.scene.stack.frames();
                let caller = frames.len().checked_sub(2).and_then(|at| frames.get(at));
                match caller.and_then(|caller| caller.call.as_ref()) {
                    Some(call) => {
                        let insn = call.number;
                        Plan::To(Position { insn, ..position }, StopReason::Step)
                    }
                    None => self.state.plan_to_insn_before(Position {
                        insn: from.entered,
                        ..position
                    }),
                }
            }
            (StepKind::Into | StepKind::Over | StepKind::Out, _) => Plan::Search {
                goal: Goal::Step(from),
                before: position,
                from: position.packet,
                best: None,
            },
        }
    }
}

/// What is noted of a watched object in front of an instruction.
fn note(
    scene: &Scene<'_>,
    (id, watch): (u32, &Watch),
    moment: &Moment<'_, '_>,
    position: Position,
) -> Option<Pending> {
    let touch = watch.touch(moment, position.packet, scene);
    (touch != Touch::None).then(|| Pending {
        id,
        watch: watch.clone(),
        touch,
        before: watch.bytes(moment, scene),
    })
}

impl Observer for DebugObserver<'_> {
    #[inline]
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()> {
        let at = self.state.executed;
        self.state.executed += 1;
        self.scene.follow(moment, at);
        if at < self.look_at {
            return ControlFlow::Continue(());
        }
        self.look(moment, at)
    }
}
