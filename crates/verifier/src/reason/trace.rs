//! The recorder: the steps of the current path with the frames before them.

use std::rc::Rc;

use crate::state::{Frame, Reference, RegState, Section, State};
use Section::{Irq, Lock, Preempt, Rcu};

/// Steps at the end of the path whose frames are kept.
pub(super) const KEPT_STATES: usize = 4096;

/// Steps at the start of the path whose frames are kept: programs read their context there.
const KEPT_AT_START: usize = 256;

/// The current path of a walk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    steps: Vec<Step>,
}

/// One instruction on a path.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) insn: u32,
    /// Number of the frame that executes it.
    pub(super) frame: u8,
    /// State before it, for the first and the last steps.
    state: Option<Box<StepState>>,
}

/// State before a step.
#[derive(Clone, Debug)]
pub(crate) struct StepState {
    pub(crate) frames: Vec<Rc<Frame>>,
    pub(crate) refs: Vec<Reference>,
    pub(crate) locks: u32,
    /// True inside an RCU section.
    pub(crate) rcu: u32,
    /// Sections without preemption.
    pub(crate) preempt: u32,
    /// The section that forbids sleeping.
    pub(super) section: Option<Section>,
}

impl StepState {
    /// The call instructions of the frames, outermost first.
    pub(super) fn starts(&self) -> impl Iterator<Item = u32> {
        let calls = self.frames.iter().filter(|frame| frame.callsite >= 0);
        calls.map(|frame| frame.callsite as u32)
    }
}

impl Trace {
    /// Adds the instruction that the walk stands at.
    pub(crate) fn push(&mut self, state: &State) {
        let old = self.steps.len().checked_sub(KEPT_STATES);
        if let Some(old) = old.filter(|old| *old >= KEPT_AT_START) {
            self.steps[old].state = None;
        }
        let frames = (0..=state.curframe).map(|number| state.frame_rc(number).clone());
        self.steps.push(Step {
            insn: state.insn_idx,
            frame: state.curframe as u8,
            state: Some(Box::new(StepState {
                frames: frames.collect(),
                refs: state.refs.clone(),
                locks: state.active_locks,
                rcu: state.active_rcu_locks,
                preempt: state.active_preempt_locks,
                section: state.first_of(&[Irq, Rcu, Preempt, Lock]),
            })),
        });
    }

    /// Adds the instruction at which the path ends, if it is not recorded: the walk refuses
    /// loops and its own length before it records the instruction. `loops` says that the
    /// refusal is of a loop, which may be one instruction long.
    pub(crate) fn end(&mut self, state: &State, loops: bool) {
        let last = self.steps.last();
        if last.is_some_and(|last| loops || last.insn != state.insn_idx) {
            self.push(state);
        }
    }

    /// Number of steps.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Keeps the first steps only.
    pub(crate) fn truncate(&mut self, steps: usize) {
        self.steps.truncate(steps);
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// State before a step; `None` in the middle of a long path.
    pub(crate) fn known(&self, step: usize) -> Option<&StepState> {
        self.steps.get(step)?.state.as_deref()
    }

    /// A frame before a step.
    pub(super) fn frame(&self, step: usize, number: usize) -> Option<&Frame> {
        self.known(step)?.frames.get(number).map(|frame| &**frame)
    }

    /// A register of the executing frame before a step.
    pub(crate) fn reg(&self, step: usize, reg: usize) -> Option<&RegState> {
        let number = self.steps.get(step)?.frame;
        Some(&self.frame(step, number.into())?.regs[reg])
    }
}
