//! The abstract states of a verification, kept so that a concrete run can be held to them.
//!
//! One state is kept for each visit of an instruction that was not pruned. The claim of an
//! accepted program is that whenever a run reaches an instruction, one of its states
//! contains the run:
//!
//! * with every scalar precise ([`Stress::all_precise`](crate::Stress)) in all live
//!   registers and slots of all frames;
//! * otherwise in pointers, and in those scalars that the states of checkpoints have
//!   marked precise. A path that was pruned may have any value in another scalar.
//!
//! A slot is live in a state if the analysis of live slots says so when the walk is over,
//! and if no checkpoint above the state, whose slot was the same, was compared without it:
//! a slot that was dead there may have become live by a later path, which the pruned one
//! did not take.

use crate::analysis::{Analysis, LiveStack};
use crate::env::Env;
use crate::explore::Checkpoint;
use crate::state::{MAX_CALL_FRAMES, PreciseMasks, State};

/// No state.
pub(crate) const NONE: u32 = u32::MAX;

/// The state before one visit of an instruction.
#[derive(Clone, Debug)]
pub struct RecordedState {
    /// The state.
    pub state: State,
    /// Scalars of a checkpoint that are precise, by frame; `None` for other states.
    pub precise: Option<PreciseMasks>,
    /// Live registers by frame, one bit each.
    pub live_regs: [u16; MAX_CALL_FRAMES],
    /// Live slots by frame, one bit each.
    pub live_slots: [u64; MAX_CALL_FRAMES],
    /// The state of the checkpoint above it: index into the recorder's list.
    parent: u32,
    /// Of a checkpoint, slots that comparisons left out.
    dead_slots: [u64; MAX_CALL_FRAMES],
}

/// The states of a verification.
#[derive(Clone, Debug)]
pub struct RecordedStates {
    states: Vec<RecordedState>,
    by_insn: Vec<Vec<u32>>,
}

impl RecordedStates {
    /// The states before an instruction, in the order of the walk. None if the walk never
    /// came there.
    pub fn at(&self, insn: usize) -> impl ExactSizeIterator<Item = &RecordedState> {
        let indices = self.by_insn.get(insn).map_or(&[][..], |indices| indices);
        indices.iter().map(|&index| &self.states[index as usize])
    }

    /// The states before an instruction for writing: a test narrows one to see that a
    /// check finds it.
    pub fn at_mut(&mut self, insn: usize) -> impl Iterator<Item = &mut RecordedState> {
        let wanted = self.by_insn.get(insn).cloned().unwrap_or_default();
        let states = self.states.iter_mut().enumerate();
        let is_wanted = move |index: usize| wanted.binary_search(&(index as u32)).is_ok();
        states.filter_map(move |(index, state)| is_wanted(index).then_some(state))
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// True if the walk never began.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
}

/// Keeps states while the walk goes on.
#[derive(Debug)]
pub(crate) struct Recorder {
    states: Vec<RecordedState>,
    limit: usize,
}

impl Recorder {
    /// A recorder of at most so many states.
    pub(crate) fn new(limit: usize) -> Recorder {
        Recorder {
            states: Vec::new(),
            limit: limit.min(NONE as usize),
        }
    }

    /// Keeps what a checkpoint says when its marks are complete.
    pub(crate) fn finish_checkpoint(&mut self, checkpoint: &Checkpoint) {
        if let Some(recorded) = self.states.get_mut(checkpoint.recorded() as usize) {
            recorded.precise = Some(*checkpoint.precise());
            recorded.dead_slots = std::array::from_fn(|frame| checkpoint.dead_slots(frame));
        }
    }

    /// The states, once the walk is over; `None` if there were more than the limit.
    pub(crate) fn finish(
        mut self,
        analysis: &Analysis,
        live: &mut LiveStack,
    ) -> Option<RecordedStates> {
        if self.states.len() >= self.limit {
            return None;
        }
        let mut by_insn = vec![Vec::new(); analysis.insns.len()];
        for index in 0..self.states.len() {
            let (above, rest) = self.states.split_at_mut(index);
            let recorded = &mut rest[0];
            by_insn[recorded.state.insn_idx as usize].push(index as u32);
            if let Some(parent) = above.get(recorded.parent as usize) {
                recorded.inherit_dead_slots(parent);
            }
            recorded.set_live(analysis, live);
        }
        Some(RecordedStates {
            states: self.states,
            by_insn,
        })
    }
}

impl RecordedState {
    /// Marks as dead the slots that were dead in the checkpoint above and are the same here.
    fn inherit_dead_slots(&mut self, parent: &RecordedState) {
        for number in 0..=self.state.curframe.min(parent.state.curframe) {
            let (own, above) = (self.state.frame(number), parent.state.frame(number));
            if own.callsite != above.callsite {
                break;
            }
            for (spi, (own, above)) in own.stack.iter().zip(above.stack.iter()).enumerate() {
                if parent.dead_slots[number] >> spi & 1 != 0 && own == above {
                    self.dead_slots[number] |= 1 << spi;
                }
            }
        }
    }

    fn set_live(&mut self, analysis: &Analysis, live: &mut LiveStack) {
        live.query_init(analysis, &self.state);
        for number in 0..=self.state.curframe {
            let insn = self.state.frame_insn_idx(number) as usize;
            self.live_regs[number] = analysis.insns[insn].live_regs & 0x7ff;
            self.live_slots[number] = live.alive_slots(number) & !self.dead_slots[number];
        }
    }
}

/// Keeps the state before the instruction that the walk stands at, which was not pruned.
pub(crate) fn record(env: &mut Env<'_>) {
    let Some(mut recorder) = env.observers.recorder.take() else {
        return;
    };
    if recorder.states.len() < recorder.limit {
        let index = recorder.states.len() as u32;
        let parent = parent_of(env, index);
        let history = std::mem::take(&mut env.state.history);
        let mut state = env.state.clone();
        env.state.history = history;
        state.insn_idx = env.sink.insn_idx;
        recorder.states.push(RecordedState {
            state,
            precise: None,
            live_regs: [0; MAX_CALL_FRAMES],
            live_slots: [0; MAX_CALL_FRAMES],
            parent: parent.unwrap_or(NONE),
            dead_slots: [0; MAX_CALL_FRAMES],
        });
    }
    env.observers.recorder = Some(recorder);
}

/// The index of the checkpoint's state above the one that is recorded now. A checkpoint without
/// one was just made of this state; then it is that of the checkpoint before.
fn parent_of(env: &mut Env<'_>, index: u32) -> Option<u32> {
    let id = env.state.parent?;
    let claimed = env.explorer.checkpoint_mut(id).recorded_or(index);
    if claimed != index {
        return Some(claimed);
    }
    let above = env.explorer.state(id).parent?;
    Some(env.explorer.checkpoint(above).recorded())
}
