//! Order of the walk, checkpoints, pruning.

mod dispatch;

use crate::state::{State, StateId};
use crate::walk::Walk;
use crate::{Result, Stop};

pub use dispatch::check_insn;

/// Work list, checkpoints and counters.
#[derive(Debug, Default)]
pub struct Explorer {
    states: Vec<Option<Box<State>>>,
    pending: Vec<Pending>,
    /// Counts for the statistics.
    pub statistics: crate::Statistics,
    /// Jumps, calls and exits walked over.
    pub jmps_processed: u32,
}

/// A path to explore later.
#[derive(Debug)]
struct Pending {
    state: State,
    #[allow(dead_code)]
    insn_idx: u32,
    #[allow(dead_code)]
    prev_insn_idx: u32,
}

impl Explorer {
    /// A checkpoint that is kept.
    pub fn state(&self, id: StateId) -> &State {
        self.states[id.0 as usize]
            .as_deref()
            .expect("kept checkpoint")
    }
}

/// Puts a copy of the current state on the work list.
pub fn push_branch<'w>(
    walk: &'w mut Walk<'_>,
    insn_idx: u32,
    prev_insn_idx: u32,
) -> Result<&'w mut State> {
    let state = walk.state.clone();
    let pending = &mut walk.explorer.pending;
    pending.push(Pending {
        state,
        insn_idx,
        prev_insn_idx,
    });
    pending
        .last_mut()
        .map(|pending| &mut pending.state)
        .ok_or_else(|| Stop::Bug("empty work list".into()))
}
