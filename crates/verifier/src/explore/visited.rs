//! Pruning: compares the current state with the checkpoints of the instruction, and
//! decides whether it becomes a checkpoint itself (`is_state_visited`).

use super::checkpoint::Checkpoint;
use super::equal::{Comparison, Exactness, may_be_looping};
use super::{scc, widen};
use crate::state::{HistoryFlags, LinkedRegs, MAX_CALL_FRAMES, PreciseMasks, StateId};
use crate::walk::Walk;
use crate::{Result, insn_facts, log, precise, refuse, verbose};
use isa::ebpf::Insn;

/// Entries of the history that force a checkpoint.
const MAX_HISTORY: usize = 40;

/// Result of comparing one checkpoint with the current state.
enum Answer {
    /// It covers the current state; `loops` if the marks are not complete yet.
    Hit { loops: bool },
    /// It does not.
    Miss,
}

/// True if a checkpoint covers the current state, so that the path ends (`is_state_visited`).
#[doc(alias = "is_state_visited")]
pub(super) fn is_visited(walk: &mut Walk<'_>) -> Result<bool> {
    let insn_idx = walk.insn_idx;
    let facts = walk.facts.insns[insn_idx as usize];
    let options = walk.env.options;
    let explorer = &walk.explorer;
    let force = walk.env.test_state_freq
        || facts.force_checkpoint
        || options.stress.checkpoint_everywhere
        || walk.state.history.len() > MAX_HISTORY;
    let jumps = explorer.jmps_processed - explorer.jmps_at_checkpoint;
    let insns = explorer.statistics.insns_processed - explorer.insns_at_checkpoint;
    let mut is_new = force || jumps >= 2 && insns >= 8;
    let is_recent = !force && jumps < 20 && insns < 100;

    let bucket = explorer.bucket(insn_idx, walk.state.cur().callsite);
    clean_checkpoints(walk, bucket);

    let comparison = Comparison {
        facts: walk.facts,
        allow_uninit_stack: walk.env.allow_uninit_stack,
        last_id: walk.id_gen,
        all_precise: options.stress.all_precise || !walk.env.bpf_capable,
        is_strict: walk.explore_alu_limits,
    };
    // The kernel keeps this across the checkpoints of a bucket.
    let mut loops = false;
    let mut position = walk.explorer.buckets[bucket].len();
    let states = position as u32;
    while position > 0 {
        position -= 1;
        let entry = walk.explorer.buckets[bucket][position];
        if entry.insn_idx != insn_idx {
            continue;
        }
        let id = entry.id;
        let is_open = walk.explorer.checkpoint(id).state.branches != 0;
        let answer = if is_open {
            compare_open(walk, &comparison, id, loops)?
        } else {
            loops = walk.explorer.has_incomplete_marks(id);
            let exact = if loops {
                Exactness::RangeWithin
            } else {
                Exactness::Covers
            };
            let is_equal = !options.stress.no_pruning && compare(walk, &comparison, id, exact);
            if is_equal {
                Answer::Hit { loops }
            } else {
                Answer::Miss
            }
        };
        if let Answer::Hit { loops } = answer {
            prune(walk, id, loops)?;
            return Ok(true);
        }
        if is_open && is_recent {
            is_new = false;
        }
        let checkpoint = walk.explorer.checkpoint_mut(id);
        if is_new {
            checkpoint.misses += 1;
        }
        let patience = if facts.force_checkpoint && is_open {
            64
        } else {
            3
        };
        if checkpoint.misses > checkpoint.hits * patience + patience {
            checkpoint.is_evicted = true;
            walk.explorer.buckets[bucket].remove(position);
            walk.explorer.evicted += 1;
            walk.explorer.kept = walk.explorer.kept.wrapping_sub(1);
            scc::free_if_unused(walk, id);
            // The log prints whole states.
            if !walk.sink.observes() {
                walk.explorer.reduce(id);
            }
        }
    }
    let statistics = &mut walk.explorer.statistics;
    statistics.max_states_per_insn = statistics.max_states_per_insn.max(states);
    let limit = walk.env.registry.limits.states_unprivileged;
    if is_new && (walk.env.bpf_capable || states <= limit) {
        add_checkpoint(walk, bucket);
    }
    Ok(false)
}

fn compare(
    walk: &mut Walk<'_>,
    comparison: &Comparison<'_>,
    id: StateId,
    exact: Exactness,
) -> bool {
    let mut ids = std::mem::take(&mut walk.explorer.ids);
    let old = walk.explorer.checkpoint_mut(id);
    let is_equal = comparison.states_equal(old, &walk.state, &mut ids, exact);
    walk.explorer.ids = ids;
    is_equal
}

/// Compares with a checkpoint on the current path: a loop.
fn compare_open(
    walk: &mut Walk<'_>,
    comparison: &Comparison<'_>,
    id: StateId,
    loops: bool,
) -> Result<Answer> {
    let insn_idx = walk.insn_idx;
    let (old, cur) = (walk.explorer.state(id), &walk.state);
    let old_frame = old.cur();
    if old_frame.in_async_callback_fn && old_frame.async_entry_cnt != cur.cur().async_entry_cnt {
        return Ok(Answer::Miss);
    }
    if walk.aux[insn_idx as usize].is_iter_next {
        return Err(crate::Stop::unsupported("open-coded iterator"));
    }
    if matches!(walk.env.insns[insn_idx as usize], Insn::MayGoto { .. })
        && old.may_goto_depth != cur.may_goto_depth
        && compare(walk, comparison, id, Exactness::RangeWithin)
    {
        return Ok(Answer::Hit { loops: true });
    }
    if walk.facts.insns[insn_idx as usize].calls_callback {
        let is_equal = compare(walk, comparison, id, Exactness::RangeWithin);
        return Ok(if is_equal {
            Answer::Hit { loops }
        } else {
            Answer::Miss
        });
    }
    if may_be_looping(walk.explorer.state(id), &walk.state)
        && compare(walk, comparison, id, Exactness::Exact)
    {
        let (old, cur) = (walk.explorer.state(id), &walk.state);
        if old.may_goto_depth == cur.may_goto_depth
            && old.callback_unroll_depth == cur.callback_unroll_depth
        {
            return Err(refuse_loop(walk, id));
        }
    }
    Ok(Answer::Miss)
}

/// The refusal of a loop whose state repeats. Its last line is the state of the
/// checkpoint.
fn refuse_loop(walk: &mut Walk<'_>, id: StateId) -> crate::Stop {
    let insn_idx = walk.insn_idx;
    let frame = walk.state.curframe;
    if walk.sink.is_on() {
        log::verbose_linfo(walk.env, &mut walk.sink, insn_idx, "; ");
        verbose!(
            walk,
            "infinite loop detected at insn {insn_idx}\ncur state:"
        );
        log::print_verifier_state(walk.env, &mut walk.sink, &walk.state, frame, true);
    }
    let mut line = log::Sink::new(1);
    let old = walk.explorer.state(id);
    log::print_verifier_state(walk.env, &mut line, old, frame, true);
    let line = line.into_text();
    refuse!(walk => Flow::InfiniteLoop { state: line.trim_end_matches('\n') })
}

/// Ends the current path at a checkpoint that covers it: what the checkpoint needs
/// precisely, the current path needs too.
fn prune(walk: &mut Walk<'_>, id: StateId, loops: bool) -> Result<()> {
    walk.explorer.checkpoint_mut(id).hits += 1;
    if walk.facts.insns[walk.insn_idx as usize].jmp_point {
        walk.push_history(HistoryFlags::NONE, LinkedRegs::default())?;
    }
    if walk.explorer.collector.is_some() && !walk.state.speculative {
        insn_facts::pruned(walk, id);
    }
    precise::propagate_precision(walk, id)?;
    if loops {
        scc::add_backedge(walk, id)?;
    }
    Ok(())
}

/// Removes from finished checkpoints what is not read after them (`clean_live_states`).
#[doc(alias = "clean_live_states")]
fn clean_checkpoints(walk: &mut Walk<'_>, bucket: usize) {
    for position in (0..walk.explorer.buckets[bucket].len()).rev() {
        let entry = walk.explorer.buckets[bucket][position];
        if entry.insn_idx != walk.insn_idx {
            continue;
        }
        let state = &walk.explorer.checkpoint(entry.id).state;
        if state.branches != 0
            || state.cleaned
            || !widen::same_callsites(state, &walk.state)
            || walk.explorer.has_incomplete_marks(entry.id)
        {
            continue;
        }
        clean_checkpoint(walk, entry.id);
    }
}

/// Notes which slots and precise marks of a checkpoint are dead (`clean_verifier_state`).
/// Dead registers need no mark: comparisons look at live ones only.
#[doc(alias = "clean_verifier_state")]
fn clean_checkpoint(walk: &mut Walk<'_>, id: StateId) {
    let checkpoint = walk.explorer.checkpoint_mut(id);
    let state = &mut checkpoint.state;
    state.cleaned = true;
    if (0..=state.curframe).any(|number| !state.frame(number).stack.is_empty()) {
        walk.live.query_init(walk.facts, state);
    }
    let mut dead_slots = [0; MAX_CALL_FRAMES];
    for (number, dead_slots) in dead_slots.iter_mut().enumerate().take(state.curframe + 1) {
        let live = walk.facts.insns[state.frame_insn_idx(number) as usize].live_regs;
        let slots = state.frame(number).stack.len();
        let dead = if slots == 0 {
            0
        } else {
            !walk.live.alive_slots(number)
        };
        *dead_slots = dead;
        let mut precise = state.precise.of(number);
        precise.regs &= live;
        precise.slots &= !dead;
        state.precise.set(number, precise);
    }
    let has_dead = dead_slots.iter().any(|&dead| dead != 0);
    checkpoint.dead_slots = has_dead.then(|| Box::new(dead_slots));
}

/// Makes a checkpoint of the current state, which goes on below it.
fn add_checkpoint(walk: &mut Walk<'_>, bucket: usize) {
    let insn_idx = walk.insn_idx;
    let explorer = &mut walk.explorer;
    explorer.statistics.total_states += 1;
    if let Some(cost) = &mut explorer.cost {
        cost.count_state(&walk.state, walk.facts, insn_idx);
    }
    explorer.kept = explorer.kept.wrapping_add(1);
    explorer.update_peak();
    explorer.jmps_at_checkpoint = explorer.jmps_processed;
    explorer.insns_at_checkpoint = explorer.statistics.insns_processed;
    walk.state.precise = PreciseMasks::default();
    walk.state.propagated = 0;
    let mut state = walk.state.clone();
    walk.state.history.clear();
    state.insn_idx = insn_idx;
    let dfs_depth = state.dfs_depth;
    let id = walk.explorer.insert(Checkpoint {
        state,
        misses: 0,
        hits: 0,
        is_evicted: false,
        visit: None,
        dead_slots: None,
        hint: 0,
        recorded: crate::recorded::NONE,
    });
    scc::enter(walk, id);
    walk.state.parent = Some(id);
    walk.state.first_insn_idx = insn_idx;
    walk.state.dfs_depth = dfs_depth + 1;
    walk.cur_history = None;
    walk.explorer.buckets[bucket].push(super::checkpoint::Entry { id, insn_idx });
}
