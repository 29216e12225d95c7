//! Why a packet got its verdict: one run with a record, told by the names of the object.

mod events;
#[cfg(test)]
mod tests;

use std::time::Instant;

use ::kernel::maps::RunGuard;
use ::kernel::programs::verdict;
use capture::Event;
use isa::ebpf::Flow;
use packet::{fields, summary};
use report::why::{CodeLine, FieldChange, Unseen, Why, WhyLine, WhyStep};
use trace::dwarf::Debug;
use trace::{Folded, Run, Visit, fold};

use super::capture::frame_time;
use super::{
    LoadOptions, PrintedText, RunCaptureError, RunError, RunnableProgram, TestRunOutput,
    packet_behind, redirect_json, redirect_text,
};
use crate::internal::captures::Input;
use crate::internal::maps_json::RecordTypes;
use events::Events;
use spec::Kernel;

/// What a run is told with.
#[derive(Clone, Copy)]
pub struct WhyOptions<'o> {
    /// The kernel that the object was loaded for.
    pub kernel: &'o Kernel,
    /// The debug information of the object.
    pub debug: Option<&'o Debug>,
    /// The types of records.
    pub types: &'o RecordTypes<'o>,
    /// The instruction from which the last lines of a long run are told.
    pub tail_from: Option<u64>,
    /// True if loops are folded; otherwise each line is told as often as it was executed.
    pub folds: bool,
}

/// Instructions at the end of a long run whose lines are told.
const TAIL_INSNS: u64 = 20_000;

/// The instruction from which the last lines of a run are told that was told without them; `None` if
/// it was told whole or did not end.
pub fn tail_from(why: &Why) -> Option<u64> {
    let is_long = why.omitted > 0 && why.stopped.is_none();
    is_long.then(|| why.executed.saturating_sub(TAIL_INSNS))
}

/// The run on a packet of a capture.
pub enum Explained {
    /// The run.
    Packet(Box<Why>),
    /// The capture has only so many packets.
    Fewer(u64),
}

impl<'o> RunnableProgram<'o> {
    /// Runs on the packets of a capture up to one of a number, and tells the run on that one.
    ///
    /// # Errors
    /// As [`RunnableProgram::run_capture`], but for what stops the run that is told.
    pub fn explain_captured(
        &mut self,
        mut input: Input,
        number: u64,
        with: WhyOptions<'o>,
    ) -> Result<Explained, RunCaptureError> {
        let mut packet = 0;
        while let Some(event) = input.next_event()? {
            let Event::Packet(record) = event else {
                continue;
            };
            packet += 1;
            let frame = record.data();
            let at = frame_time(&record).map_err(|stop| stop.after(packet - 1))?;
            if packet == number {
                self.record_with_tail(with.kernel, with.debug, with.tail_from);
                self.limit_told_run();
            }
            let result = self.run_captured(frame, at, &mut RunGuard::new());
            self.records();
            if packet < number {
                result.map_err(|error| RunCaptureError::Run { packet, error })?;
                continue;
            }
            let run = self.take_record().unwrap_or_default();
            let captured = self.captured();
            let after = captured.map(|input| input.kept_frame(usize::MAX).into_owned());
            let redirect = match (&result, captured) {
                (Ok(retval), Some(input)) => input.redirect(*retval),
                _ => None,
            };
            let (printed, frame) = (self.printed().clone(), frame.to_vec());
            let result = told(result).map_err(|error| RunCaptureError::Run { packet: 0, error })?;
            let mut why = self.tell(&run, (&frame, after.as_deref()), result, &printed, with);
            why.packet = Some(packet);
            why.redirect_text = redirect.map(redirect_text);
            why.redirect = redirect.map(redirect_json);
            return Ok(Explained::Packet(Box::new(why)));
        }
        Ok(Explained::Fewer(packet))
    }

    /// Runs on a packet and a context as
    /// [`test_run_with_context`](RunnableProgram::test_run_with_context) does, and tells the run.
    ///
    /// # Errors
    /// As there, but for what stops the run.
    pub fn explain_test_run(
        &mut self,
        packet: &[u8],
        context: Option<&[u8]>,
        with: WhyOptions<'o>,
    ) -> Result<Box<Why>, RunError> {
        self.explain_run(packet, with, |program| {
            program.test_run_with_context(packet, context, 1)
        })
    }

    /// Runs on the context of the model, and tells the run.
    ///
    /// # Errors
    /// But for what stops the run.
    pub(crate) fn explain_model_run(&mut self, with: WhyOptions<'o>) -> Result<Box<Why>, RunError> {
        self.explain_run(&[], with, RunnableProgram::model_run)
    }

    fn explain_run(
        &mut self,
        packet: &[u8],
        with: WhyOptions<'o>,
        run: impl FnOnce(&mut Self) -> Result<TestRunOutput, RunError>,
    ) -> Result<Box<Why>, RunError> {
        self.record_with_tail(with.kernel, with.debug, with.tail_from);
        self.limit_told_run();
        let result = run(self);
        let run = self.take_record().unwrap_or_default();
        let (result, output) = match result {
            Ok(output) => (Ok(output.retval), Some(output)),
            Err(error) => (Err(error), None),
        };
        let output: Option<TestRunOutput> = output;
        let printed = output
            .as_ref()
            .map_or_else(PrintedText::default, |output| output.printk.clone());
        let left = output.as_ref().map(|output| &output.data_out[..]);
        let after = left.and_then(|left| packet_behind(self.kind(), packet, left));
        let mut why = self.tell(
            &run,
            (packet, after.as_deref()),
            told(result)?,
            &printed,
            with,
        );
        let redirect = output.and_then(|output| output.redirect);
        why.redirect_text = redirect.map(redirect_text);
        why.redirect = redirect.map(redirect_json);
        Ok(Box::new(why))
    }

    /// Gives the run that is told the time that runs have, if there is no other limit.
    pub(super) fn limit_told_run(&mut self) {
        if self.limits.deadline.is_none() {
            let mut limits = self.limits;
            limits.deadline = Some(Instant::now() + LoadOptions::DEFAULT_TIMEOUT);
            self.set_limits(limits);
        }
    }

    /// Tells a run, which returned a value or was stopped by something.
    pub(super) fn tell(
        &self,
        run: &Run,
        (before, after): (&[u8], Option<&[u8]>),
        result: Result<u32, String>,
        printed: &PrintedText,
        with: WhyOptions<'_>,
    ) -> Why {
        let (retval, stopped) = match result {
            Ok(retval) => (Some(retval), None),
            Err(stopped) => (None, Some(stopped)),
        };
        let verdict = retval.map(|retval| verdict(self.kind(), retval).name.into_owned());
        let mut events = Events::new(self.shared, with.types, printed);
        let lines: Vec<WhyLine> = run
            .visits
            .iter()
            .map(|visit| self.line(visit, &mut events))
            .collect();
        let key = |visit: &Visit| {
            let source = self.source(visit.program, visit.first());
            let place = source.as_ref().map_or(visit.first(), |source| source.line);
            (
                visit.program,
                visit.function,
                visit.depth,
                visit.inlined.clone(),
                place,
                source.is_some(),
            )
        };
        let (head, tail) = run.visits.split_at(run.gap);
        let (head_lines, tail_lines) = lines.split_at(run.gap);
        let steps_of = |visits: &[Visit], lines: &[WhyLine]| match with.folds {
            true => steps(&fold(visits, key), lines),
            false => lines.iter().cloned().map(WhyStep::Line).collect(),
        };
        let mut steps = steps_of(head, head_lines);
        if run.left_out > 0 {
            steps.push(WhyStep::Omitted {
                omitted: run.left_out,
            });
        }
        steps.extend(steps_of(tail, tail_lines));
        let packet_changes = after.map_or_else(Vec::new, |after| changes(before, after));
        let text = match before.is_empty() {
            true => "no packet".to_owned(),
            false => summary(before, packet::FirstHeader::Link),
        };
        Why {
            packet: None,
            packet_text: text,
            bytes: before.len(),
            prog: self.prepared.program.name().to_owned(),
            verdict,
            retval,
            redirect: None,
            redirect_text: None,
            stopped,
            source: run.last.and_then(|last| {
                let mut lines = lines[..=last].iter().rev();
                lines.find_map(|line| line.source.clone())
            }),
            executed: run.instructions,
            steps,
            omitted: run.left_out,
            packet_changes,
            unseen_variables: run
                .unseen
                .iter()
                .map(|variable| Unseen {
                    function: variable.function.clone(),
                    name: variable.name.clone(),
                    reason: variable.why.clone(),
                })
                .collect(),
            lacks_debug_info: with.debug.is_none(),
        }
    }

    /// The source line of an instruction of a program.
    fn source(&self, program: u32, slot: u32) -> Option<CodeLine> {
        let prepared = self.shared.programs.get(program as usize)?;
        let (file, line, text) = prepared.line_at(slot as usize)?;
        Some(CodeLine {
            file,
            line,
            text: text.trim().to_owned(),
        })
    }

    /// The source lines of a run.
    pub(super) fn lines_of(&self, run: &Run) -> Vec<Option<CodeLine>> {
        let visits = run.visits.iter();
        let lines = visits.map(|visit| self.source(visit.program, visit.first()));
        lines.collect()
    }

    fn line(&self, visit: &Visit, events: &mut Events<'_>) -> WhyLine {
        let prepared = self.shared.programs.get(visit.program as usize);
        let program = prepared.map(|prepared| &prepared.program);
        let subprog = program.and_then(|program| program.subprog_at(visit.function));
        // What has no line goes on to what has one.
        let insns = prepared.map_or(&[][..], |prepared| prepared.checked.insns());
        let line = |slot: u32| {
            let mut next = slot;
            loop {
                if let Some(source) = self.source(visit.program, next) {
                    return Some(source.line);
                }
                next = match insns.get(next as usize)?.flow() {
                    Flow::Next | Flow::Call(_) => next + 1,
                    Flow::SkipOne => next + 2,
                    Flow::Goto(distance) if distance >= 0 => next + 1 + distance as u32,
                    Flow::Goto(_)
                    | Flow::Branch(_)
                    | Flow::GotoReg(_)
                    | Flow::Exit
                    | Flow::Nowhere => return None,
                };
            }
        };
        WhyLine {
            prog: program.map_or_else(String::new, |program| program.name().to_owned()),
            function: subprog.map_or_else(String::new, |subprog| subprog.name.clone()),
            inlined_names: visit.inlined.clone(),
            depth: visit.depth,
            source: self.source(visit.program, visit.first()),
            insn_ranges: visit.spans.clone(),
            insn_text: prepared.map_or_else(String::new, |prepared| {
                let insn = prepared.checked.insns().get(visit.first() as usize);
                insn.map(ToString::to_string).unwrap_or_default()
            }),
            events: events.of(visit, &line),
        }
    }
}

/// What a run returned, or what stopped it.
///
/// # Errors
/// Other errors than those that stop a program.
fn told(result: Result<u32, RunError>) -> Result<Result<u32, String>, RunError> {
    match result {
        Ok(retval) => Ok(Ok(retval)),
        Err(error) if error.is_stop() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Steps of folded lines.
fn steps(folded: &[Folded], lines: &[WhyLine]) -> Vec<WhyStep> {
    let step = |folded: &Folded| match folded {
        Folded::Line(index) => WhyStep::Line(lines[*index].clone()),
        Folded::Loop { times, first, last } => WhyStep::Loop {
            times: *times,
            first_steps: steps(first, lines),
            last_steps: steps(last, lines),
        },
    };
    folded.iter().map(step).collect()
}

/// The fields that differ between two packets.
fn changes(before: &[u8], after: &[u8]) -> Vec<FieldChange> {
    let of = |bytes: &[u8]| {
        let fields = fields(bytes, packet::FirstHeader::Link);
        let texts = fields
            .iter()
            .map(|field| (field.path(), field.text(&bytes[field.range()])));
        texts.collect::<Vec<_>>()
    };
    let (before, after) = (of(before), of(after));
    let find = |fields: &[(String, String)], name: &str| {
        let field = fields.iter().find(|(known, _)| known == name);
        field.map(|(_, text)| text.clone())
    };
    let names = before.iter().map(|(name, _)| name);
    let added = after
        .iter()
        .map(|(name, _)| name)
        .filter(|name| find(&before, name).is_none());
    let changes = names.chain(added).filter_map(|name| {
        let (text_before, text_after) = (find(&before, name), find(&after, name));
        (text_before != text_after).then(|| FieldChange {
            name: name.clone(),
            text_before,
            text_after,
        })
    });
    changes.collect()
}
