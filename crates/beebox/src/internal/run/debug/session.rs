//! A session: runs on the packets of an input, and runs anew to go back.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

use ::kernel::maps::RunGuard;
use ::kernel::programs::verdict;
use capture::Event;
use spec::Kernel;
use spec::programs::ProgramType;
use trace::dwarf::Debug;

use super::super::capture::frame_time;
use super::super::{LoadedObject, RunCaptureError, RunnableProgram};
use super::FrontEnd;
use super::plan::{Plan, Position};
use super::state::{DebugState, Debugging};
use crate::internal::captures::Input;

/// What a session is on.
pub struct DebugSetup<'s> {
    /// Loads the object anew, with the same maps each time.
    pub load: &'s dyn Fn() -> Result<LoadedObject, String>,
    /// Sets up the program of an object that was loaded.
    pub set_up: &'s dyn Fn(&mut RunnableProgram<'_>),
    /// The program.
    pub program: &'s str,
    /// The packets.
    pub input: DebugInput<'s>,
    /// Number of the packet at which the session begins, from 1.
    pub first_packet: u64,
    /// The kernel that the object is loaded for.
    pub kernel: &'s Kernel,
    /// The debug information of the object.
    pub debug: Option<&'s Debug>,
    /// The directory of the object, in which source files may be.
    pub folder: &'s Path,
}

/// The packets of a session.
pub enum DebugInput<'s> {
    /// A packet and a context, as a test run gets them.
    TestRun {
        /// The packet; empty for programs that get none.
        packet: Vec<u8>,
        /// The context.
        context: Option<Vec<u8>>,
    },
    /// Opens a capture from its start.
    Capture(&'s dyn Fn() -> Result<Input, RunCaptureError>),
}

/// Reason why a session cannot begin or go on.
#[derive(Debug)]
pub enum DebugError {
    /// The object cannot be loaded.
    Load(String),
    /// The capture has only so many packets.
    Fewer(u64),
    /// The run in front of the first packet of the session, or the capture.
    Run(RunCaptureError),
    /// The program is not one of the object.
    NoProgram(String),
    /// What controls the session says nothing that is understood.
    FrontEnd(String),
    /// What the session shows cannot be written.
    Output(io::Error),
}

impl fmt::Display for DebugError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DebugError::Load(why) | DebugError::FrontEnd(why) => f.write_str(why),
            DebugError::Fewer(0) => f.write_str("the capture has no packet"),
            DebugError::Fewer(packets) => {
                write!(f, "the capture has packets 1 to {packets} only")
            }
            DebugError::Run(error) => write!(f, "{error}"),
            DebugError::Output(error) => error.fmt(f),
            DebugError::NoProgram(name) => write!(f, "program {name} is not loaded"),
        }
    }
}

impl Error for DebugError {}

impl From<RunCaptureError> for DebugError {
    fn from(error: RunCaptureError) -> DebugError {
        DebugError::Run(error)
    }
}

/// What ended a pass over the packets.
pub(super) enum Passed {
    /// The front end ends the session.
    Quit,
    /// The past is to be run anew.
    Again(Plan),
    /// A run ended: its last instruction, what came out, and true for a trap.
    End(Option<Position>, String, bool),
}

/// What a run gave.
pub(super) struct Outcome {
    /// Its verdict.
    pub(super) verdict: String,
    /// Texts that it printed.
    pub(super) printed: Vec<String>,
}

/// Holds a session with a front end, until it or the input ends.
///
/// # Errors
/// For an object or an input that cannot be run.
pub fn debug(setup: &DebugSetup<'_>, front: Box<dyn FrontEnd>) -> Result<(), DebugError> {
    let mut state = Box::new(DebugState::new(setup.first_packet, front));
    loop {
        let (passed, back) = pass(setup, state)?;
        state = back;
        match passed {
            Passed::Quit => {
                let failure = state.front.failure();
                return failure.map_or(Ok(()), |why| Err(DebugError::FrontEnd(why)));
            }
            Passed::Again(plan) => state.plan = plan,
            Passed::End(last, line, is_trap) => match state.plan_behind_end(last, &line, is_trap) {
                Some(plan) => state.plan = plan,
                None => {
                    state.show_verdicts();
                    return Ok(());
                }
            },
        }
    }
}

/// Runs all packets from the first one on, until the plan or the input ends.
fn pass(
    setup: &DebugSetup<'_>,
    mut state: Box<DebugState>,
) -> Result<(Passed, Box<DebugState>), DebugError> {
    let loaded = (setup.load)().map_err(DebugError::Load)?;
    state.learn(&loaded.shared, setup);
    state.breakpoints.begin_counts();
    let program = loaded.program_of(setup.program);
    let mut program = program.ok_or_else(|| DebugError::NoProgram(setup.program.to_owned()))?;
    (setup.set_up)(&mut program);
    let known = |state| Debugging {
        state,
        debug: setup.debug,
        kernel: setup.kernel,
    };
    let mut input = match &setup.input {
        DebugInput::TestRun { packet, context } => {
            state.begin(1);
            program.attached.watchers.debugging = Some(Box::new(known(state)));
            let result = program.test_run_with_context(packet, context.as_deref(), 1);
            state = program.take_debug_state();
            let outcome = result.map(|output| Outcome {
                verdict: verdict_text(program.kind(), output.retval),
                printed: output.printk.texts,
            });
            return Ok((state.passed(outcome)?, state));
        }
        DebugInput::Capture(open) => open()?,
    };
    let mut packet = 0;
    let mut last = Passed::End(None, String::new(), false);
    while let Some(event) = input.next_event().map_err(RunCaptureError::from)? {
        let Event::Packet(record) = event else {
            continue;
        };
        packet += 1;
        let time = frame_time(&record).map_err(|stop| stop.after(packet - 1))?;
        let frame = record.data();
        if packet < setup.first_packet {
            let result = program.run_captured(frame, time, &mut RunGuard::new());
            result.map_err(|error| RunCaptureError::Run { packet, error })?;
            program.records();
            continue;
        }
        state.begin(packet);
        program.attached.watchers.debugging = Some(Box::new(known(state)));
        let result = program.run_captured(frame, time, &mut RunGuard::new());
        state = program.take_debug_state();
        program.records();
        let outcome = result.map(|retval| Outcome {
            verdict: verdict_text(program.kind(), retval),
            printed: program.printed().texts.clone(),
        });
        match state.passed(outcome)? {
            Passed::End(position, line, false) => last = Passed::End(position, line, false),
            other => return Ok((other, state)),
        }
    }
    match packet < setup.first_packet {
        true => Err(DebugError::Fewer(packet)),
        false => Ok((last, state)),
    }
}

/// A verdict in words.
fn verdict_text(kind: ProgramType, retval: u32) -> String {
    format!("{} ({retval})", verdict(kind, retval).name)
}

impl<'o> RunnableProgram<'o> {
    /// The state of the session, after a run.
    fn take_debug_state(&mut self) -> Box<DebugState> {
        let debugging = self.attached.watchers.debugging.take();
        debugging.expect("a run gives it back").state
    }
}
