//! Checkpoints, pending paths and counters.
//!
//! Checkpoints live in an arena; buckets list them by instruction and call site as the
//! kernel's hash table does, because `max_states_per_insn` counts the length of a bucket.

use super::ids::IdMap;
use super::outline::Outlines;
use super::scc::Visits;
use crate::Statistics;
use crate::insn_facts::Collector;
use crate::recorded::Recorder;
use crate::state::{MAX_CALL_FRAMES, State, StateId};

/// A state that later states are compared with (kernel: `struct
/// bpf_verifier_state_list`).
#[derive(Debug)]
pub struct Checkpoint {
    /// The state.
    pub state: State,
    /// Comparisons that failed.
    pub misses: u32,
    /// Comparisons that succeeded.
    pub hits: u32,
    /// No longer compared, kept for its children.
    pub is_evicted: bool,
    /// The visit of a strongly connected component that the state is in.
    pub(super) visit: Option<u32>,
    /// Slots by frame that are not read from here on; they compare as never written.
    pub(crate) dead_slots: Option<Box<[u64; MAX_CALL_FRAMES]>>,
    /// The register of the innermost frame that differed in the last comparison.
    pub(super) hint: u8,
    /// Index of its state in [`Explorer::recorder`].
    pub(crate) recorded: u32,
}

impl Checkpoint {
    /// Slots of a frame that are not read from here on.
    pub(crate) fn dead_slots(&self, frame: usize) -> u64 {
        self.dead_slots.as_ref().map_or(0, |dead| dead[frame])
    }
}

/// An entry of a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) id: StateId,
    pub(super) insn_idx: u32,
}

/// A path to explore later (kernel: `struct bpf_verifier_stack_elem`).
#[derive(Debug)]
pub struct Pending {
    /// Its state.
    pub state: State,
    pub(super) insn_idx: u32,
    pub(super) prev_insn_idx: i32,
    pub(super) log_position: usize,
    pub(super) trace_position: usize,
}

/// Checkpoints, pending paths and counters.
#[derive(Debug, Default)]
pub struct Explorer {
    checkpoints: Vec<Option<Box<Checkpoint>>>,
    vacant: Vec<u32>,
    pub(super) buckets: Vec<Vec<Entry>>,
    pub(super) pending: Vec<Pending>,
    pub(super) visits: Visits,
    pub(super) ids: IdMap,
    pub(super) outlines: Outlines,
    /// Counts for the statistics.
    pub statistics: Statistics,
    /// Cost of instructions and call chains, if it is requested.
    pub(crate) cost: Option<Box<crate::cost::CostCounter>>,
    /// Collects facts, if they are requested.
    pub(crate) collector: Option<Box<Collector>>,
    /// Keeps states, if they are requested.
    pub(crate) recorder: Option<Box<Recorder>>,
    /// Counts of precision tracking.
    pub precision: crate::precise::PrecisionCounts,
    /// Jumps, calls and exits walked over.
    pub jmps_processed: u32,
    pub(super) jmps_at_checkpoint: u32,
    pub(super) insns_at_checkpoint: u32,
    /// Checkpoints in buckets.
    pub(super) kept: u32,
    /// Evicted checkpoints that are not freed.
    pub(super) evicted: u32,
    /// Back edges that wait for marks.
    pub(super) backedges: u32,
}

impl Explorer {
    /// An empty explorer for a program of so many slots.
    pub fn new(slots: usize) -> Explorer {
        Explorer {
            buckets: vec![Vec::new(); slots],
            ..Explorer::default()
        }
    }

    /// The state of a checkpoint.
    pub fn state(&self, id: StateId) -> &State {
        &self.checkpoint(id).state
    }

    /// A checkpoint.
    pub fn checkpoint(&self, id: StateId) -> &Checkpoint {
        self.checkpoints[id.0 as usize]
            .as_ref()
            .expect("checkpoints outlive their children")
    }

    /// A checkpoint, for writing.
    pub fn checkpoint_mut(&mut self, id: StateId) -> &mut Checkpoint {
        self.checkpoints[id.0 as usize]
            .as_mut()
            .expect("checkpoints outlive their children")
    }

    /// Changes the newest pending path, with the checkpoints at hand.
    pub fn change_last_pending(&mut self, change: impl FnOnce(&Explorer, &mut State)) {
        if let Some(mut pending) = self.pending.pop() {
            change(self, &mut pending.state);
            self.pending.push(pending);
        }
    }

    /// The state of the newest pending path.
    pub(crate) fn last_pending(&self) -> Option<&State> {
        self.pending.last().map(|pending| &pending.state)
    }

    /// Number of pending paths.
    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Takes the newest pending path off the stack, to change it beside the current path.
    pub fn take_last_pending(&mut self) -> Option<Pending> {
        self.pending.pop()
    }

    /// Puts a path back that [`Explorer::take_last_pending`] gave.
    pub fn put_last_pending(&mut self, pending: Pending) {
        self.pending.push(pending);
    }

    /// Adds a checkpoint to the arena.
    pub(super) fn insert(&mut self, checkpoint: Checkpoint) -> StateId {
        let checkpoint = Some(Box::new(checkpoint));
        match self.vacant.pop() {
            Some(id) => {
                self.checkpoints[id as usize] = checkpoint;
                StateId(id)
            }
            None => {
                self.checkpoints.push(checkpoint);
                StateId(self.checkpoints.len() as u32 - 1)
            }
        }
    }

    /// Frees a checkpoint.
    pub(super) fn remove(&mut self, id: StateId) {
        let freed = self.checkpoints[id.0 as usize].take();
        if let (Some(recorder), Some(freed)) = (&mut self.recorder, freed) {
            recorder.finish_checkpoint(&freed);
        }
        self.vacant.push(id.0);
    }

    /// Bucket of an instruction that a frame with that call site reaches.
    pub(super) fn bucket(&self, insn_idx: u32, callsite: i32) -> usize {
        (insn_idx ^ callsite as u32) as usize % self.buckets.len()
    }

    /// Keeps an evicted checkpoint for its children alone. States that are recorded or whose
    /// facts are collected stay whole.
    pub(super) fn reduce(&mut self, id: StateId) {
        if self.collector.is_some() || self.recorder.is_some() {
            return;
        }
        if let Some(checkpoint) = &mut self.checkpoints[id.0 as usize] {
            self.outlines.reduce(&mut checkpoint.state);
            checkpoint.dead_slots = None;
        }
    }

    /// Raises the peak to the states that are kept now.
    pub(super) fn update_peak(&mut self) {
        let now = self
            .kept
            .wrapping_add(self.evicted)
            .wrapping_add(self.backedges);
        self.statistics.peak_states = self.statistics.peak_states.max(now);
    }

    /// Frees every state, when a function is verified. The counters go on, as the
    /// kernel's do.
    pub(super) fn clear(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            for checkpoint in self.checkpoints.iter().flatten() {
                recorder.finish_checkpoint(checkpoint);
            }
        }
        self.checkpoints.clear();
        self.vacant.clear();
        self.pending.clear();
        self.buckets.iter_mut().for_each(Vec::clear);
        self.visits.clear();
        self.outlines.clear();
    }
}
