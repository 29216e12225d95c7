//! Matches in the past: the last breakpoint, write, or begin of a line in front of an instruction.

use std::ops::ControlFlow;

use interp::checked::Moment;

use super::breakpoint::BreakKind;
use super::observer::{DebugObserver, Pending};
use super::plan::{Goal, Plan, Position, StepFrom, StepKind, StopReason};
use super::scene::Scene;
use super::watch::{Touch, Watch};

impl DebugObserver<'_> {
    /// Notes the watched objects that an instruction writes or may change.
    pub(super) fn note_watches(&mut self, moment: &Moment<'_, '_>, position: Position) {
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
    pub(super) fn written(&mut self, moment: &Moment<'_, '_>) -> Vec<Pending> {
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

    pub(super) fn change_text(&self, pending: &Pending, moment: &Moment<'_, '_>) -> String {
        let after = pending.watch.bytes(moment, &self.scene);
        let text = |bytes: &Option<Vec<u8>>| {
            let run = (moment, &self.scene);
            pending.watch.show(bytes.as_deref(), run)
        };
        let (before, after) = (text(&pending.before), text(&after));
        format!("{}: {before} → {after}", pending.watch.name)
    }

    /// Looks for what is searched, and ends the pass where it ends.
    pub(super) fn search(
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
