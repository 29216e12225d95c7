//! What lasts over the runs of a session.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use spec::Kernel;
use trace::dwarf::Debug;

use super::super::recording::functions;
use super::super::shared::Shared;
use super::super::{RunCaptureError, RunError};
use super::breakpoint::Breakpoints;
use super::known::Known;
use super::plan::{Goal, Plan, Position, Resume, StopReason};
use super::session::{DebugSetup, Outcome, Passed};
use super::source::Sources;
use super::{DebugError, FrontEnd};

/// Names of functions and how many arguments they take, by their numbers in resolved code.
pub(super) type FunctionNames = HashMap<i32, (String, usize)>;

/// What a run of a session is debugged with.
pub(in crate::internal::run) struct Debugging<'o> {
    pub(in crate::internal::run) state: Box<DebugState>,
    pub(super) debug: Option<&'o Debug>,
    pub(super) kernel: &'o Kernel,
}

impl fmt::Debug for Debugging<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debugging").finish_non_exhaustive()
    }
}

/// The state of a session.
pub(in crate::internal::run) struct DebugState {
    pub(super) front: Box<dyn FrontEnd>,
    pub(super) breakpoints: Breakpoints,
    pub(super) plan: Plan,
    /// What the next pass is up to, if this one is to end.
    pub(super) next: Option<Plan>,
    /// True if the session is to end.
    pub(super) quits: bool,
    /// The packet that is run, and the number of its instructions until now.
    pub(super) packet: u64,
    pub(super) executed: u64,
    /// The first packet of the session.
    pub(super) first_packet: u64,
    /// What the run goes on with where it is when the past is counted.
    pub(super) after: Option<Resume>,
    /// Instructions of the packets that were run, by number.
    lengths: HashMap<u64, u64>,
    /// The last packet whose verdict was shown, or is in `verdicts`.
    shown: u64,
    /// Packets one after the other with one verdict, which are shown when the next one differs or the
    /// run stops: the first one, the last one, and the verdict.
    verdicts: Option<(u64, u64, String)>,
    /// Source lines, and names of functions, once they are known.
    pub(super) sources: Arc<Sources>,
    pub(super) functions: Arc<FunctionNames>,
    /// What the verifier knew.
    pub(super) known: Known,
}

impl DebugState {
    pub(super) fn new(first_packet: u64, front: Box<dyn FrontEnd>) -> DebugState {
        let first = Position {
            packet: first_packet,
            insn: 0,
        };
        DebugState {
            front,
            breakpoints: Breakpoints::default(),
            plan: Plan::To(first, StopReason::Entry),
            next: None,
            quits: false,
            packet: 0,
            executed: 0,
            first_packet,
            after: None,
            lengths: HashMap::new(),
            shown: 0,
            verdicts: None,
            sources: Arc::default(),
            functions: Arc::default(),
            known: Known::default(),
        }
    }

    /// Learns the lines and functions of the object, which are those of each load.
    pub(super) fn learn(&mut self, shared: &Shared, setup: &DebugSetup<'_>) {
        if self.sources.is_empty() {
            let programs = shared.programs.iter();
            self.sources = Arc::new(Sources::new(
                programs.map(|prepared| &prepared.program),
                setup.folder,
            ));
            let programs = shared.programs.iter();
            let names = programs.flat_map(|prepared| functions(prepared, setup.kernel));
            self.functions = Arc::new(names.collect());
        }
    }

    /// Begins the run on a packet.
    pub(super) fn begin(&mut self, packet: u64) {
        self.packet = packet;
        self.executed = 0;
    }

    /// What a run that ended is followed by.
    ///
    /// # Errors
    /// For a run that did not begin.
    pub(super) fn passed(
        &mut self,
        outcome: Result<Outcome, RunError>,
    ) -> Result<Passed, DebugError> {
        if self.quits {
            return Ok(Passed::Quit);
        }
        if let Some(plan) = self.next.take() {
            return Ok(Passed::Again(plan));
        }
        let (packet, executed) = (self.packet, self.executed);
        self.lengths.insert(packet, executed);
        let insn = executed.checked_sub(1);
        let last = insn.map(|insn| Position { packet, insn });
        match outcome {
            Ok(outcome) => {
                if self.shown < packet {
                    self.shown = packet;
                    if !outcome.printed.is_empty() {
                        self.show_verdicts();
                    }
                    for text in &outcome.printed {
                        let text = text.trim_end();
                        self.front.show(&format!("packet {packet} printed: {text}"));
                    }
                    self.note_verdict(packet, &outcome.verdict);
                }
                let line = format!("packet {packet}: {}", outcome.verdict);
                Ok(Passed::End(last, line, false))
            }
            Err(error) if error.is_stop() && last.is_some() => {
                Ok(Passed::End(last, error.to_string(), true))
            }
            Err(error) => Err(DebugError::Run(RunCaptureError::Run { packet, error })),
        }
    }

    /// Notes the verdict of a packet.
    fn note_verdict(&mut self, packet: u64, verdict: &str) {
        if let Some((_, last, noted)) = &mut self.verdicts
            && *last + 1 == packet
            && noted == verdict
        {
            *last = packet;
            return;
        }
        self.show_verdicts();
        self.verdicts = Some((packet, packet, verdict.to_owned()));
    }

    /// Shows the verdicts that were noted.
    pub(super) fn show_verdicts(&mut self) {
        match self.verdicts.take() {
            None => {}
            Some((first, last, verdict)) if first == last => {
                self.front.show(&format!("packet {first}: {verdict}"));
            }
            Some((first, last, verdict)) => {
                self.front
                    .show(&format!("packets {first} to {last}: {verdict}"));
            }
        }
    }

    /// What follows the end of the input; `None` for the end of the session.
    pub(super) fn plan_behind_end(
        &self,
        last: Option<Position>,
        line: &str,
        is_trap: bool,
    ) -> Option<Plan> {
        let last = last?;
        match &self.plan {
            Plan::Search {
                goal, before, best, ..
            } => Some(self.plan_of_search(goal, *before, best.clone())),
            Plan::Continue | Plan::Step(_) | Plan::To(..) => Some(Plan::To(
                last,
                match is_trap {
                    true => StopReason::Trap(line.to_owned()),
                    false => StopReason::End(line.to_owned()),
                },
            )),
        }
    }

    /// Where a search that is done leads.
    pub(super) fn plan_of_search(
        &self,
        goal: &Goal,
        before: Position,
        best: Option<(Position, StopReason)>,
    ) -> Plan {
        match (best, goal) {
            (Some((position, reason)), _) => Plan::To(position, reason),
            (None, Goal::Stops) => self.plan_to_start(),
            (None, Goal::Write(watch)) => {
                Plan::To(before, StopReason::NotWritten(watch.not_written()))
            }
            (None, Goal::Step(_)) => self.plan_to_packet_before(before.packet),
        }
    }

    /// To the instruction in front of one.
    pub(super) fn plan_to_insn_before(&self, position: Position) -> Plan {
        match position.insn.checked_sub(1) {
            Some(insn) => Plan::To(Position { insn, ..position }, StopReason::Step),
            None => self.plan_to_packet_before(position.packet),
        }
    }

    /// To the last instruction of the packet in front of one.
    fn plan_to_packet_before(&self, packet: u64) -> Plan {
        let before = packet.saturating_sub(1);
        let length = self.lengths.get(&before).copied().unwrap_or(0);
        match length
            .checked_sub(1)
            .filter(|_| before >= self.first_packet)
        {
            Some(insn) => Plan::To(
                Position {
                    packet: before,
                    insn,
                },
                StopReason::Step,
            ),
            None => self.plan_to_start(),
        }
    }

    fn plan_to_start(&self) -> Plan {
        let first = Position {
            packet: self.first_packet,
            insn: 0,
        };
        Plan::To(first, StopReason::Start)
    }
}
