//! The walk over a program, step by step, to be looked at: the state at each step, why a path ended, and
//! which precise scalars were asked for by what.
//!
//! A step is an instruction that the walk came to. States are differences: the first step of a path, and
//! one of [`WHOLE_EVERY`], has all of its state, every other one what is unlike the step before it. Of a
//! long walk the first and the last steps are kept; verification is deterministic, so that a first walk
//! without steps says how many there are.
//!
//! Nothing of it is kept unless it is asked for.

mod recorder;

use crate::state::MAX_CALL_FRAMES;

pub(crate) use recorder::{NONE, WalkRecorder};

/// A step with its whole state comes after so many without.
const WHOLE_EVERY: usize = 1000;

/// The steps that are kept of a walk, by their numbers from 0.
#[derive(Clone, Copy, Debug)]
pub struct KeptSteps {
    /// Those before this one.
    pub first: u32,
    /// Those from this one on.
    pub from: u32,
}

impl KeptSteps {
    /// At most so many steps of a walk of `total`: half from its start, half from its end.
    pub fn of(total: u32, most: u32) -> KeptSteps {
        match total <= most {
            true => KeptSteps {
                first: u32::MAX,
                from: 0,
            },
            false => KeptSteps {
                first: most / 2,
                from: total - most.div_ceil(2),
            },
        }
    }

    fn has(self, number: u32) -> bool {
        number < self.first || number >= self.from
    }
}

/// What a walk did.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// Texts of the instructions, as in the kernel's log.
    pub insns: Vec<String>,
    /// Live registers in front of each instruction, one bit each.
    pub live_regs: Vec<u16>,
    /// The steps.
    pub steps: Vec<WalkStep>,
    /// Index of the step in front of which steps are left out, and their number.
    pub gap: Option<(usize, u32)>,
    /// Texts of values, to which steps refer.
    pub values: Vec<String>,
    /// Requests that made scalars of checkpoints precise.
    pub requests: Vec<PrecisionRequest>,
}

/// A step.
#[derive(Clone, Debug)]
pub struct WalkStep {
    /// Its number among all steps, from 0.
    pub number: u32,
    /// The instruction.
    pub insn: u32,
    /// Index of the step before it on its path; none where a function is entered on its own, or where
    /// that step is left out.
    pub before: Option<u32>,
    /// Number of the frame that executes.
    pub frame: u8,
    /// True on a path that only speculative execution takes.
    pub is_speculative: bool,
    /// True if the state became a checkpoint.
    pub is_checkpoint: bool,
    /// True if `changes` are the whole state.
    pub is_whole: bool,
    /// Places with the numbers of their new values; none for what is gone.
    pub changes: Vec<(StatePlace, Option<u32>)>,
    /// Checkpoints that did not cover the state, by the indexes of their steps: the last ones.
    pub missed: Vec<u32>,
    /// How the path goes on.
    pub end: StepEnd,
}

/// A place of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatePlace {
    /// A frame: its function.
    Frame(u8),
    /// A register of a frame.
    Reg(u8, u8),
    /// A stack slot of a frame.
    Slot(u8, u8),
    /// The references that are held.
    References,
}

/// How a path goes on behind a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// With the next step.
    GoesOn,
    /// The program ends, or a function that is verified on its own.
    Exits,
    /// A checkpoint covers the state: the index of its step, if it is kept, and whether the path closes
    /// a loop.
    Pruned(Option<u32>, bool),
    /// A barrier ends speculative execution.
    Barrier,
    /// The program is refused.
    Refused,
}

/// A request for precise scalars.
#[derive(Clone, Debug)]
pub struct PrecisionRequest {
    /// Index of the step that made it.
    pub step: u32,
    /// What was asked for, by frame: registers and slots, one bit each.
    pub asked: Vec<(u8, u16, u64)>,
    /// The instructions that it was carried back over and that changed it, with what was asked for in
    /// front of them; the first ones.
    pub carried: Vec<(u32, u8, u16, u64)>,
    /// What became precise: the index of the checkpoint's step, if it is kept, frame, registers and slots.
    pub marked: Vec<(Option<u32>, u8, u16, u64)>,
}

/// Registers and slots by frame.
pub(crate) type Masks = ([u16; MAX_CALL_FRAMES], [u64; MAX_CALL_FRAMES]);
