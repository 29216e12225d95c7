//! Order of the walk, checkpoints, pruning, loops.
//!
//! Depth-first exploration of all paths in the kernel's order: the fall-through path
//! first, the other branch from a stack of pending paths. At prune points the current
//! state is compared with the checkpoints of the instruction; a path whose state is
//! covered by a checkpoint that is proven safe ends there.
//!
//! Invariants: `branches` of a checkpoint counts the paths below it that are not
//! finished; a checkpoint is freed only when it is evicted, has no branches, and no back
//! edge waits for its marks.
//!
//! Complexity: exponential in branches at worst, bounded by the instruction limit; a
//! comparison costs the live registers and slots.

mod checkpoint;
mod dispatch;
mod equal;
mod ids;
mod main_loop;
mod outline;
mod scc;
mod visited;
mod widen;

pub use checkpoint::{Checkpoint, Explorer, Pending};
pub(crate) use ids::IdMap;
pub use main_loop::check_function;
pub use widen::{find_prev_entry, widen_imprecise_scalars};

use crate::env::VerifierEnv;
use crate::state::State;
use crate::{LIMITS, Result, refuse};

/// Puts a copy of the current state on the stack of pending paths (`push_stack`).
#[doc(alias = "push_stack")]
pub fn push_branch<'w>(
    env: &'w mut VerifierEnv<'_>,
    insn_idx: u32,
    prev_insn_idx: u32,
) -> Result<&'w mut State> {
    let state = env.state.clone();
    let pending = Pending {
        state,
        insn_idx,
        prev_insn_idx: prev_insn_idx as i32,
        log_position: env.sink.position(),
        trace_position: env.sink.traced(),
    };
    push_pending(env, pending)
}

/// Puts a path that starts in a state of its own on the stack of pending paths, as
/// asynchronous callbacks need it (`push_async_cb`). The state's parent must be `None`.
#[doc(alias = "push_async_cb")]
pub fn push_state<'w>(
    env: &'w mut VerifierEnv<'_>,
    state: State,
    insn_idx: u32,
    prev_insn_idx: u32,
) -> Result<&'w mut State> {
    let pending = Pending {
        state,
        insn_idx,
        prev_insn_idx: prev_insn_idx as i32,
        log_position: env.sink.position(),
        trace_position: env.sink.traced(),
    };
    push_pending(env, pending)
}

fn push_pending<'w>(env: &'w mut VerifierEnv<'_>, pending: Pending) -> Result<&'w mut State> {
    let parent = pending.state.parent;
    env.explorer.pending.push(pending);
    let waiting = env.explorer.pending.len();
    if waiting > LIMITS.jump_sequence as usize {
        return Err(refuse!(env => Flow::TooManyJumps { waiting }));
    }
    if let Some(parent) = parent {
        env.explorer.checkpoint_mut(parent).state.branches += 1;
    }
    match env.explorer.pending.last_mut() {
        Some(pending) => Ok(&mut pending.state),
        None => Err(crate::Stop::Bug("empty stack of pending paths".into())),
    }
}
