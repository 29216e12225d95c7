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
mod loop_entries;
mod main_loop;
mod marks;
mod outline;
mod scc;
mod visited;
mod widen;

pub(crate) use checkpoint::{Checkpoint, Explorer, Fork};
pub(crate) use dispatch::{refuse_fields, refuse_registers};
pub(crate) use ids::IdMap;
pub(crate) use main_loop::check_function;
pub(crate) use marks::Liveness;
pub(crate) use widen::widen_to_earlier;

use spec::behaviour::Behaviour;
use spec::limits;

use crate::env::Env;
use crate::state::State;
use crate::{Errno, Result, refuse, walk};

/// Forks off the path of a state at `insn_idx`, which is explored after the paths that follow
/// (`push_stack`): refuses the program if too many paths wait, with the error number of the check
/// on kernels where each has its own. The main loop pushes it when the check of the instruction is over.
pub(crate) fn fork<'w>(
    env: &'w mut Env<'_>,
    state: State,
    insn_idx: u32,
    errno: Errno,
) -> Result<&'w mut State> {
    let waiting = env.explorer.pending.len() + env.forked.len() + 1;
    if waiting > limits::JUMP_SEQUENCE as usize {
        let errno = match env.input.rules.has(Behaviour::JumpsTooMany) {
            true => Errno::E2BIG,
            false => errno,
        };
        return Err(refuse!(env => Flow::TooManyJumps { waiting }).with_errno(errno));
    }
    let fork = Fork {
        state,
        insn_idx,
        prev_insn_idx: env.sink.insn_idx as i32,
        log_position: env.sink.position(),
        trace_position: env.sink.traced(),
        step: (env.sink.walk.as_ref()).map_or(walk::NONE, |walk| walk.last_step()),
    };
    let at = env.forked.len();
    env.forked.push(fork);
    Ok(&mut env.forked[at].state)
}
