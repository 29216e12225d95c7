//! Checkpoints, pending paths and counters.
//!
//! Checkpoints live in an arena; buckets list them by instruction and call site as the
//! kernel's hash table does, because `max_states_per_insn` counts the length of a bucket.

use spec::behaviour::{Behaviour, Behaviours};

use super::ids::IdMap;
use super::loop_entries::LoopTracking;
use super::marks::Liveness;
use super::outline::Outlines;
use super::scc::Visits;
use crate::Statistics;
use crate::env::Observers;
use crate::state::{MAX_CALL_FRAMES, PreciseMask, PreciseMasks, State, StateId};

/// A state that later states are compared with (kernel: `struct
/// bpf_verifier_state_list`).
#[derive(Debug)]
pub struct Checkpoint {
    /// The state.
    pub(super) state: State,
    /// Precise scalars by frame.
    pub(super) precise: PreciseMasks,
    /// What is read below it, where liveness goes by marks.
    pub(super) reads: PreciseMasks,
    /// Paths from here that are not finished.
    pub(super) branches: u32,
    /// Every scalar of it and of the checkpoints above it was made precise.
    pub(super) is_all_precise: bool,
    /// Dead slots and precise marks were removed (`clean_verifier_state`).
    pub(super) is_cleaned: bool,
    /// Comparisons that failed.
    pub(super) misses: u32,
    /// Comparisons that succeeded.
    pub(super) hits: u32,
    /// No longer compared, kept for its children.
    pub(super) is_evicted: bool,
    /// The visit of a strongly connected component that the state is in.
    pub(super) visit: Option<u32>,
    /// The state that the loop was entered by, where loops are told so.
    pub(super) loop_entry: Option<StateId>,
    /// It is the entry of a loop of others.
    pub(super) heads_loop: bool,
    /// Slots by frame that are not read from here on; they compare as never written.
    pub(super) dead_slots: Option<Box<[u64; MAX_CALL_FRAMES]>>,
    /// The register of the innermost frame that differed in the last comparison.
    pub(super) hint: u8,
    /// Index of its state in [`Observers::recorder`].
    pub(super) recorded: u32,
    /// Index of its step in a recorded walk.
    pub(crate) step: u32,
}

impl Checkpoint {
    /// A checkpoint of a state, with the path that goes on below it.
    pub(super) fn new(state: State) -> Checkpoint {
        Checkpoint {
            state,
            precise: PreciseMasks::default(),
            reads: PreciseMasks::default(),
            branches: 1,
            is_all_precise: false,
            is_cleaned: false,
            misses: 0,
            hits: 0,
            is_evicted: false,
            visit: None,
            loop_entry: None,
            heads_loop: false,
            dead_slots: None,
            hint: 0,
            recorded: crate::recorded::NONE,
            step: crate::walk::NONE,
        }
    }

    /// The state.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Precise scalars by frame.
    pub(crate) fn precise(&self) -> &PreciseMasks {
        &self.precise
    }

    /// What is read below it.
    pub(crate) fn reads(&self) -> &PreciseMasks {
        &self.reads
    }

    /// Sets the precise scalars of a frame.
    pub(crate) fn set_precise(&mut self, frame: usize, mask: PreciseMask) {
        self.precise.set(frame, mask);
    }

    /// Notes that every scalar of it and of the checkpoints above it is precise; true if that was noted
    /// before.
    pub(crate) fn note_all_precise(&mut self) -> bool {
        std::mem::replace(&mut self.is_all_precise, true)
    }

    /// True if dead slots and precise marks were removed.
    pub(crate) fn is_cleaned(&self) -> bool {
        self.is_cleaned
    }

    /// Index of its state in [`Observers::recorder`].
    pub(crate) fn recorded(&self) -> u32 {
        self.recorded
    }

    /// As [`Checkpoint::recorded`]; `index` from now on if there is none.
    pub(crate) fn recorded_or(&mut self, index: u32) -> u32 {
        if self.recorded == crate::recorded::NONE {
            self.recorded = index;
        }
        self.recorded
    }

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

/// A path to explore later (`bpf_verifier_stack_elem`).
#[doc(alias = "bpf_verifier_stack_elem")]
#[derive(Debug)]
pub(crate) struct Fork {
    /// Its state.
    pub(crate) state: State,
    /// The instruction that it begins with.
    pub(crate) insn_idx: u32,
    pub(super) prev_insn_idx: i32,
    pub(super) log_position: usize,
    pub(super) trace_position: usize,
    /// Index of the step that it branches off behind, in a recorded walk.
    pub(super) step: u32,
}

/// Checkpoints, pending paths and counters.
#[derive(Debug, Default)]
pub struct Explorer {
    checkpoints: Vec<Option<Box<Checkpoint>>>,
    vacant: Vec<u32>,
    pub(super) buckets: Vec<Vec<Entry>>,
    pub(super) pending: Vec<Fork>,
    pub(super) visits: Visits,
    /// How loops are found.
    pub(super) tracking: LoopTracking,
    /// How it is told what is live.
    pub(crate) liveness: Liveness,
    /// The entry of the loop that the current path ends in.
    pub(super) path_entry: Option<StateId>,
    pub(super) ids: IdMap,
    pub(super) outlines: Outlines,
    pub(super) statistics: Statistics,
    /// Jumps, calls and exits walked over.
    pub(super) jmps_processed: u32,
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
    /// An empty explorer for a program of so many slots, and a kernel's rules.
    pub fn new(slots: usize, rules: Behaviours) -> Explorer {
        Explorer {
            tracking: match rules.has(Behaviour::LoopsByComponents) {
                true => LoopTracking::Components,
                false => LoopTracking::Entries,
            },
            liveness: match rules.has(Behaviour::StackLiveness) {
                true => Liveness::Flow,
                false => Liveness::Marks,
            },
            buckets: vec![Vec::new(); slots],
            ..Explorer::default()
        }
    }

    /// Counts for the statistics.
    pub fn statistics(&self) -> Statistics {
        self.statistics
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
    pub(crate) fn checkpoint_mut(&mut self, id: StateId) -> &mut Checkpoint {
        self.checkpoints[id.0 as usize]
            .as_mut()
            .expect("checkpoints outlive their children")
    }

    /// Pushes a path on the stack of pending ones; the checkpoint above it waits for it.
    pub(super) fn push(&mut self, fork: Fork) {
        if let Some(parent) = fork.state.parent {
            self.checkpoint_mut(parent).branches += 1;
        }
        self.pending.push(fork);
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
    pub(super) fn remove(&mut self, id: StateId, observers: &mut Observers) {
        let freed = self.checkpoints[id.0 as usize].take();
        if let (Some(recorder), Some(freed)) = (&mut observers.recorder, freed) {
            recorder.finish_checkpoint(&freed);
        }
        self.vacant.push(id.0);
    }

    /// Bucket of an instruction that a frame with that call site reaches (`explored_state`,
    /// `bpf_explored_state`).
    #[doc(alias = "explored_state")]
    #[doc(alias = "bpf_explored_state")]
    pub(super) fn bucket(&self, insn_idx: u32, callsite: i32) -> usize {
        (insn_idx ^ callsite as u32) as usize % self.buckets.len()
    }

    /// Keeps an evicted checkpoint for its children alone.
    pub(super) fn reduce(&mut self, id: StateId) {
        if let Some(checkpoint) = &mut self.checkpoints[id.0 as usize] {
            self.outlines.reduce(&mut checkpoint.state);
            checkpoint.dead_slots = None;
        }
    }

    /// Raises the peak to the states that are kept now (`update_peak_states`).
    #[doc(alias = "update_peak_states")]
    pub(super) fn update_peak(&mut self) {
        let now = self
            .kept
            .wrapping_add(self.evicted)
            .wrapping_add(self.backedges);
        self.statistics.peak_states = self.statistics.peak_states.max(now);
    }

    /// Frees every state, when a function is verified (`free_states`). The counters go on, as the
    /// kernel's do.
    #[doc(alias = "free_states")]
    pub(super) fn clear(&mut self, observers: &mut Observers) {
        if let Some(recorder) = &mut observers.recorder {
            for checkpoint in self.checkpoints.iter().flatten() {
                recorder.finish_checkpoint(checkpoint);
            }
        }
        self.checkpoints.clear();
        self.vacant.clear();
        self.pending.clear();
        self.buckets.iter_mut().for_each(Vec::clear);
        self.visits.clear();
        self.path_entry = None;
        self.outlines.clear();
    }
}
