//! Loops of kernels without strongly connected components: the state that a loop was entered by,
//! which is found while paths end.
//!
//! A path that ends at a state above it is in a loop with that state. When the last path below a
//! checkpoint ends, the checkpoint above is in the same loop, if that was entered at it or before. As
//! long as paths of the entry are open, states of its loop are compared by ranges.

use super::checkpoint::Explorer;
use super::scc;
use crate::env::Env;
use crate::state::StateId;

/// How the walk finds loops; chosen once, by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LoopTracking {
    /// By strongly connected components, whose marks are completed over back edges.
    #[default]
    Components,
    /// By the states that loops were entered by.
    Entries,
}

impl Explorer {
    /// True if states of the checkpoint's loop are open.
    pub(super) fn is_in_open_loop(&mut self, id: StateId) -> bool {
        match self.tracking {
            LoopTracking::Components => self.has_incomplete_marks(id),
            LoopTracking::Entries => {
                let entry = self.loop_entry(id);
                entry.is_some_and(|entry| self.checkpoint(entry).branches != 0)
            }
        }
    }

    /// True if an evicted checkpoint is still needed to tell loops.
    pub(super) fn is_needed_by_loop(&self, id: StateId) -> bool {
        match self.tracking {
            LoopTracking::Components => self.has_incomplete_marks(id),
            LoopTracking::Entries => self.checkpoint(id).heads_loop,
        }
    }

    /// The outermost entry that is known of a checkpoint's loop (`get_loop_entry`).
    #[doc(alias = "get_loop_entry")]
    fn loop_entry(&mut self, id: StateId) -> Option<StateId> {
        let first = self.checkpoint(id).loop_entry?;
        let outermost = self.outermost(first);
        self.checkpoint_mut(id).loop_entry = Some(outermost);
        Some(outermost)
    }

    /// The end of a chain of entries; those on the way point to it from then on.
    fn outermost(&mut self, first: StateId) -> StateId {
        let mut last = first;
        while let Some(next) = self
            .checkpoint(last)
            .loop_entry
            .filter(|next| *next != last)
        {
            last = next;
        }
        let mut at = first;
        while at != last {
            let next = self.checkpoint(at).loop_entry.unwrap_or(last);
            self.checkpoint_mut(at).loop_entry = Some(last);
            at = next;
        }
        last
    }

    /// The entry of a state at a depth whose loop has that header, or the one that it had
    /// (`update_loop_entry`).
    #[doc(alias = "update_loop_entry")]
    fn joined(&mut self, known: Option<StateId>, depth: u32, header: StateId) -> Option<StateId> {
        let depth = match known {
            Some(known) => {
                let outermost = self.outermost(known);
                self.checkpoint(outermost).state.dfs_depth
            }
            None => depth,
        };
        let outermost = self.loop_entry(header).unwrap_or(header);
        let outermost = self.checkpoint(outermost);
        if outermost.branches == 0 || outermost.state.dfs_depth > depth {
            return known;
        }
        self.checkpoint_mut(header).heads_loop = true;
        Some(header)
    }
}

/// Notes that the current path ends in a loop, at a checkpoint that covers it.
pub(super) fn note_loop(env: &mut Env<'_>, id: StateId) {
    let depth = env.state.dfs_depth;
    let explorer = &mut env.explorer;
    let header = match explorer.checkpoint(id).branches {
        0 => explorer.loop_entry(id).unwrap_or(id),
        _ => id,
    };
    explorer.path_entry = explorer.joined(explorer.path_entry, depth, header);
}

/// Ends the current path: checkpoints above it whose last path this was are finished
/// (`update_branch_counts`).
pub(super) fn finish_path(env: &mut Env<'_>) {
    let mut header = env.explorer.path_entry.take();
    let mut next = env.state.parent;
    while let Some(id) = next {
        if let Some(header) = header {
            let (known, depth) = {
                let checkpoint = env.explorer.checkpoint(id);
                (checkpoint.loop_entry, checkpoint.state.dfs_depth)
            };
            let entry = env.explorer.joined(known, depth, header);
            env.explorer.checkpoint_mut(id).loop_entry = entry;
        }
        let checkpoint = env.explorer.checkpoint_mut(id);
        checkpoint.branches -= 1;
        if checkpoint.branches != 0 {
            break;
        }
        (next, header) = (checkpoint.state.parent, checkpoint.loop_entry);
        scc::free_if_unused(env, id);
    }
}
