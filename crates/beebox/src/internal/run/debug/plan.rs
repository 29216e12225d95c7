//! What a run of a session is up to: to an instruction by number, to the next stop, or through all of
//! the past for the last match.

use super::watch::Watch;

/// An instruction of a session: the packet of a number, from 1, and the number of the instruction in
/// the run on it, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Number of the packet.
    pub packet: u64,
    /// Number of the instruction.
    pub insn: u64,
}

/// What a stopped run goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Runs to the next stop.
    Continue,
    /// As [`Resume::Continue`], and stops at once if this instruction has a breakpoint.
    Begin,
    /// Takes a step.
    Step(DebugStep),
    /// Goes back to the last stop.
    BackContinue,
    /// Takes a step back.
    BackStep(DebugStep),
    /// Goes back to the last write.
    BackToWrite(Watch),
    /// Runs to an instruction, which may be a past one.
    To(Position),
    /// Ends the session.
    Quit,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugStep {
    /// Which one.
    pub kind: StepKind,
    /// True for one by instructions in place of lines.
    pub is_insn: bool,
}

/// Kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Into functions that are called.
    Into,
    /// Over them.
    Over,
    /// Out of the function; back, to the call of it.
    Out,
}

/// Why a run is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The session begins.
    Entry,
    /// A step is done.
    Step,
    /// Breakpoints of these numbers.
    Breakpoint(Vec<u32>),
    /// A watched object was written: which one, and how.
    Watch(u32, String),
    /// The instruction that writes what was asked for.
    Write(String),
    /// What was asked for was not written before.
    NotWritten(String),
    /// The front end asked for it.
    Pause,
    /// The instruction of [`Resume::To`].
    Reached,
    /// The program is stopped here by a trap or a limit.
    Trap(String),
    /// The last instruction of the input.
    End(String),
    /// The first instruction of the session: there is no past before it.
    Start,
}

/// The frame of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepFrom {
    pub(super) step: DebugStep,
    /// Where it began.
    pub(super) position: Position,
    /// Call depth there, and the instruction that the frame was entered with.
    pub(super) depth: usize,
    pub(super) entered: u64,
    /// Number of functions that are inlined there.
    pub(super) inlined: usize,
    /// Number of the line; 0 for none.
    pub(super) line: u64,
}

/// What is looked for in the past.
#[derive(Clone, Debug)]
pub(super) enum Goal {
    /// Breakpoints.
    Stops,
    /// The begin of a line, or an instruction, of the frame or those around it.
    Step(StepFrom),
    /// A write.
    Write(Watch),
}

/// What a run is up to.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    /// Runs to the next stop.
    Continue,
    /// Takes a step.
    Step(StepFrom),
    /// Runs to an instruction, without stops.
    To(Position, StopReason),
    /// Looks for the last match in front of an instruction.
    Search {
        goal: Goal,
        before: Position,
        /// The first packet that is looked at.
        from: u64,
        best: Option<(Position, StopReason)>,
    },
}

impl Plan {
    /// The first instruction of a packet at which the observer has to look.
    pub(super) fn quiet_until(&self, packet: u64) -> u64 {
        match self {
            Plan::Continue | Plan::Step(_) => 0,
            Plan::To(position, _) if position.packet == packet => position.insn,
            Plan::To(..) => u64::MAX,
            Plan::Search { before, from, .. } => match (packet < *from, packet < before.packet) {
                (true, true) => u64::MAX,
                (true, false) => before.insn,
                (false, _) => 0,
            },
        }
    }
}
