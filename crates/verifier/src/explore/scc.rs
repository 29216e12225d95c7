//! Visits of strongly connected components: loops whose marks are complete only when
//! every path from the entry is explored.
//!
//! A path that ends inside a loop because its state is within the range of a checkpoint
//! with open branches leaves a back edge. When the state that entered the component has
//! no branches left, precision marks travel over the back edges to a fixpoint.
//!
//! A visit is identified by the call sites that lead to the component and the
//! component's number (kernel: `struct bpf_scc_callchain`).

use super::checkpoint::Explorer;
use super::loop_entries::{self, LoopTracking};
use crate::analysis::Analysis;
use crate::env::Env;
use crate::precise;
use crate::state::{MAX_CALL_FRAMES, State, StateId};
use crate::{Result, Stop, refuse, verbose};

/// Rounds of propagation before every scalar becomes precise.
const MAX_ROUNDS: u32 = 64;

/// Call sites that lead to a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Callchain {
    callsites: [u32; MAX_CALL_FRAMES - 1],
    scc: u32,
}

/// One visit (kernel: `struct bpf_scc_visit`).
#[derive(Debug, Default)]
struct Visit {
    callchain: Callchain,
    entry: Option<StateId>,
    /// Oldest first; the kernel's list has the newest first.
    backedges: Vec<BackEdge>,
    /// Back edges that are counted as kept.
    counted: u32,
}

/// The outline of a state in which a path ended, and the checkpoint that it equals (kernel:
/// `struct bpf_scc_backedge`).
#[derive(Debug)]
struct BackEdge {
    state: State,
    equal: StateId,
}

/// All visits of the function that is verified.
#[derive(Debug, Default)]
pub(super) struct Visits {
    list: Vec<Visit>,
}

impl Visits {
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// The visit of a component with these call sites (`scc_visit_lookup`).
    #[doc(alias = "scc_visit_lookup")]
    fn find(&self, callchain: &Callchain) -> Option<u32> {
        self.list
            .iter()
            .position(|visit| visit.callchain == *callchain)
            .map(|index| index as u32)
    }
}

impl Explorer {
    /// True if marks of a checkpoint may be incomplete (`incomplete_read_marks`).
    #[doc(alias = "incomplete_read_marks")]
    pub(super) fn has_incomplete_marks(&self, id: StateId) -> bool {
        match self.checkpoint(id).visit {
            Some(visit) => !self.visits.list[visit as usize].backedges.is_empty(),
            None => false,
        }
    }
}

/// The component that a state is in, with the call sites that lead there
/// (`compute_scc_callchain`).
#[doc(alias = "compute_scc_callchain")]
fn callchain(analysis: &Analysis, state: &State) -> Option<Callchain> {
    if analysis.scc_count == 0 {
        return None;
    }
    let mut chain = Callchain::default();
    for number in 0..=state.curframe {
        let insn_idx = state.frame_insn_idx(number);
        let scc = analysis.insns[insn_idx as usize].scc;
        if scc != 0 {
            chain.scc = scc;
            return Some(chain);
        }
        if number < state.curframe {
            chain.callsites[number] = insn_idx;
        }
    }
    None
}

/// The kernel's text of a call chain (`format_callchain`).
fn format_callchain(chain: &Callchain) -> String {
    let sites = chain.callsites.iter().take_while(|&&site| site != 0);
    let sites: String = sites.map(|site| format!("{site},")).collect();
    format!("({sites}{})", chain.scc)
}

/// Notes that a new checkpoint is in a component, and that it is the entry if the visit
/// has none (`maybe_enter_scc`).
#[doc(alias = "maybe_enter_scc")]
pub(super) fn enter(env: &mut Env<'_>, id: StateId) {
    if env.explorer.tracking == LoopTracking::Entries {
        return;
    }
    let Some(chain) = callchain(env.analysis, env.explorer.state(id)) else {
        return;
    };
    let visits = &mut env.explorer.visits;
    let index = visits.find(&chain).unwrap_or_else(|| {
        visits.list.push(Visit {
            callchain: chain,
            ..Visit::default()
        });
        visits.list.len() as u32 - 1
    });
    let visit = &mut visits.list[index as usize];
    let is_entry = visit.entry.is_none();
    if is_entry {
        visit.entry = Some(id);
    }
    env.explorer.checkpoint_mut(id).visit = Some(index);
    if is_entry && env.sink.is_full() {
        verbose!(env.sink, "SCC enter {}\n", format_callchain(&chain));
    }
}

/// Completes the visit that a finished checkpoint entered (`maybe_exit_scc`).
#[doc(alias = "maybe_exit_scc")]
fn leave(env: &mut Env<'_>, id: StateId) -> Result<()> {
    let Some(index) = env.explorer.checkpoint(id).visit else {
        return Ok(());
    };
    let explorer = &mut env.explorer;
    let visit = &mut explorer.visits.list[index as usize];
    if visit.entry != Some(id) {
        return Ok(());
    }
    let chain = visit.callchain;
    visit.entry = None;
    explorer.backedges -= visit.counted;
    visit.counted = 0;
    explorer.update_peak();
    if env.sink.is_full() {
        verbose!(env.sink, "SCC exit {}\n", format_callchain(&chain));
    }
    propagate(env, index)
}

/// Carries precision over the back edges of a visit until nothing changes, then drops
/// them (`propagate_backedges`).
#[doc(alias = "propagate_backedges")]
fn propagate(env: &mut Env<'_>, visit: u32) -> Result<()> {
    let backedges = std::mem::take(&mut env.explorer.visits.list[visit as usize].backedges);
    let mut round = 0;
    loop {
        round += 1;
        if round > MAX_ROUNDS + 1 {
            if env.sink.is_full() {
                verbose!(env.sink, "propagate_backedges: too many iterations\n");
            }
            for BackEdge { state, .. } in backedges.iter().rev() {
                precise::mark_all_scalars_precise(env, state);
            }
            return Ok(());
        }
        let mut changed = false;
        for BackEdge { state, equal } in backedges.iter().rev() {
            changed |= precise::propagate_precision_of(env, *equal, state)?;
        }
        if !changed {
            return Ok(());
        }
    }
}

/// Keeps the current state as a back edge to a checkpoint (`add_scc_backedge`).
#[doc(alias = "add_scc_backedge")]
pub(super) fn add_backedge(env: &mut Env<'_>, checkpoint: StateId) -> Result<()> {
    let Some(index) = env.explorer.checkpoint(checkpoint).visit else {
        return Err(Stop::Bug(
            "back edge outside of strongly connected components".into(),
        ));
    };
    let mut state = env.state.clone();
    state.insn_idx = env.sink.insn_idx;
    let explorer = &mut env.explorer;
    explorer.outlines.reduce(&mut state);
    let visit = &mut explorer.visits.list[index as usize];
    visit.backedges.push(BackEdge {
        state,
        equal: checkpoint,
    });
    visit.counted += 1;
    let chain = visit.callchain;
    explorer.backedges += 1;
    explorer.update_peak();
    if env.sink.is_full() {
        verbose!(env.sink, "SCC backedge {}\n", format_callchain(&chain));
    }
    Ok(())
}

/// Ends the current path: checkpoints above it whose last path this was are finished
/// (`update_branch_counts`, `bpf_update_branch_counts`).
#[doc(alias = "update_branch_counts")]
#[doc(alias = "bpf_update_branch_counts")]
pub(super) fn finish_path(env: &mut Env<'_>) -> Result<()> {
    if env.explorer.tracking == LoopTracking::Entries {
        loop_entries::finish_path(env);
        return Ok(());
    }
    if !env.state.speculative
        && let Some(chain) = callchain(env.analysis, &env.state)
        && env.explorer.visits.find(&chain).is_none()
    {
        let chain = format_callchain(&chain);
        return Err(refuse!(env => Flow::NoVisit { chain }));
    }
    let mut next = env.state.parent;
    while let Some(id) = next {
        let checkpoint = env.explorer.checkpoint_mut(id);
        checkpoint.branches -= 1;
        if checkpoint.branches != 0 {
            break;
        }
        next = checkpoint.state.parent;
        leave(env, id)?;
        free_if_unused(env, id);
    }
    Ok(())
}

/// Frees an evicted checkpoint that nothing refers to (`maybe_free_verifier_state`).
#[doc(alias = "maybe_free_verifier_state")]
pub(super) fn free_if_unused(env: &mut Env<'_>, id: StateId) {
    let explorer = &mut env.explorer;
    let checkpoint = explorer.checkpoint(id);
    if checkpoint.is_evicted && checkpoint.branches == 0 && !explorer.is_needed_by_loop(id) {
        explorer.remove(id, &mut env.observers);
        explorer.evicted -= 1;
    }
}
