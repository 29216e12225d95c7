//! Stops, and what a run goes on with.

use std::ops::ControlFlow;

use interp::checked::Moment;

use super::observer::DebugObserver;
use super::plan::{DebugStep, Goal, Plan, Position, Resume, StepKind, StopReason};
use super::view::Pause;

impl DebugObserver<'_> {
    /// Stops the run, and follows what it is to go on with.
    pub(super) fn stop(
        &mut self,
        reason: StopReason,
        moment: &Moment<'_, '_>,
        position: Position,
    ) -> ControlFlow<()> {
        let mut reason = reason;
        let is_first = position.packet == self.state.first_packet && position.insn == 0;
        // Stops by breakpoints are counted as they are found.
        let mut is_counted = !matches!(self.state.plan, Plan::To(..));
        loop {
            let is_at_end = matches!(reason, StopReason::End(_) | StopReason::Trap(_));
            let reason_before = reason.clone();
            self.state.show_verdicts();
            let mut pause = Pause {
                view: self.scene.view(moment, position),
                breakpoints: &mut self.state.breakpoints,
                reason,
                is_at_end,
                first_packet: self.state.first_packet,
            };
            let resume = self.state.front.stopped(&mut pause);
            // A breakpoint at the begin of a run stops it that was gone to, not stopped at.
            let resume = match (&reason_before, resume) {
                (StopReason::Entry | StopReason::Reached, Resume::Continue)
                    if position.insn == 0 =>
                {
                    Resume::Begin
                }
                (_, resume) => resume,
            };
            self.state.breakpoints.is_stale &= !is_first;
            if resume == Resume::Begin && !self.state.breakpoints.is_stale {
                self.state.plan = Plan::Continue;
                if let Some(stop) = self.breakpoint(moment, position, true) {
                    reason = stop;
                    is_counted = true;
                    continue;
                }
                self.plan_is_new(position.insn);
                return ControlFlow::Continue(());
            }
            if !is_counted && resume != Resume::Begin {
                self.breakpoint(moment, position, false);
                is_counted = true;
            }
            // Behind the end there is nothing; the past stays.
            if is_at_end && matches!(resume, Resume::Continue | Resume::Step(_)) {
                reason = reason_before;
                continue;
            }
            let is_forward = match &resume {
                Resume::Begin | Resume::Continue | Resume::Step(_) => true,
                Resume::To(to) => *to > position,
                Resume::BackContinue
                | Resume::BackStep(_)
                | Resume::BackToWrite(_)
                | Resume::Quit => false,
            };
            if self.state.breakpoints.is_stale && is_forward {
                self.state.after = Some(resume);
                self.state.next = Some(Plan::To(position, StopReason::Reached));
                return ControlFlow::Break(());
            }
            return self.go_on(resume, moment, position);
        }
    }

    /// Goes on from an instruction, which is not looked at again: what is written here is noted.
    pub(super) fn go_on(
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
    pub(super) fn follow(
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
