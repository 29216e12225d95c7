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
use super::plan::{Goal, Plan, Position, Resume, StepFrom, StepKind, StopReason};
use super::resolve::{is_verdict, number_of};
use super::scene::Scene;
use super::state::DebugState;
use super::watch::{Touch, Watch, store};

/// Instructions between two questions to the front end.
const POLL_INTERVAL: u64 = 1 << 14;

/// The observer.
pub(in crate::internal::run) struct DebugObserver<'r> {
    pub(super) state: &'r mut DebugState,
    pub(super) scene: Scene<'r>,
    /// The instruction at which a stop is possible next, and at which the front end is asked.
    quiet_until: u64,
    look_at: u64,
    poll_at: u64,
    /// By depth: the instruction that the frame was entered with, and its last line.
    pub(super) lines: Vec<(u64, u64)>,
    /// Objects that the last instruction writes or may change.
    pub(super) pending: Vec<Pending>,
}

/// A watched object that the last instruction writes or may change.
pub(super) struct Pending {
    /// The breakpoint; 0 in a search.
    pub(super) id: u32,
    pub(super) watch: Watch,
    pub(super) touch: Touch,
    pub(super) before: Option<Vec<u8>>,
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
    pub(super) fn plan_is_new(&mut self, at: u64) {
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
                match self.state.after.take() {
                    Some(Resume::Begin) => {
                        self.state.plan = Plan::Continue;
                        self.plan_is_new(at);
                        match self.breakpoint(moment, position, true) {
                            Some(stop) => self.stop(stop, moment, position),
                            None => ControlFlow::Continue(()),
                        }
                    }
                    Some(resume) => {
                        self.breakpoint(moment, position, false);
                        self.go_on(resume, moment, position)
                    }
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
    pub(super) fn breakpoint(
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
