//! Pruning: compares the current state with the checkpoints of the instruction, and
//! decides whether it becomes a checkpoint itself (`is_state_visited`).

use super::checkpoint::Checkpoint;
use super::equal::{Comparison, Exactness, may_be_looping};
use super::loop_entries::{self, LoopTracking};
use super::marks::{self, Liveness};
use super::{scc, widen};
use crate::env::{Check, Env};
use crate::state::{
    HistoryFlags, IterState, LinkedRegs, MAX_CALL_FRAMES, RegKind, RegState, SlotKind, StackObject,
    StackObjectKind, StackSlot, State, StateId,
};
use crate::{Result, insn_facts, log, precise, refuse, verbose};
use isa::ebpf::{Insn, Reg};
use spec::behaviour::Behaviour;
use spec::limits;

/// Entries of the history that force a checkpoint.
const MAX_HISTORY: usize = 40;

/// Result of comparing one checkpoint with the current state.
enum Answer {
    /// It covers the current state; `loops` if the marks are not complete yet.
    Hit { loops: bool },
    /// It does not.
    Miss,
}

/// True if a checkpoint covers the current state, so that the path ends (`is_state_visited`,
/// `bpf_is_state_visited`).
#[doc(alias = "is_state_visited")]
#[doc(alias = "bpf_is_state_visited")]
pub(super) fn is_visited(env: &mut Env<'_>) -> Result<bool> {
    let insn_idx = env.sink.insn_idx;
    let info = env.analysis.insns[insn_idx as usize];
    let options = env.input.options;
    let explorer = &env.explorer;
    let force = env.input.test_state_freq
        || info.force_checkpoint
        || options.stress.checkpoint_everywhere
        || env.state.history.len() > MAX_HISTORY && env.input.rules.has(Behaviour::LongHistories);
    let jumps = explorer.jmps_processed - explorer.jmps_at_checkpoint;
    let insns = explorer.statistics.insns_processed - explorer.insns_at_checkpoint;
    let mut is_new = force || jumps >= 2 && insns >= 8;
    let is_recent = !force && jumps < 20 && insns < 100;

    let bucket = explorer.bucket(insn_idx, env.state.cur().callsite);
    if env.input.rules.has(Behaviour::DeadForgotten) {
        forget_dead(env);
    }
    clean_checkpoints(env, bucket);

    let comparison = Comparison {
        analysis: env.analysis,
        allow_uninit_stack: env.input.allow_uninit_stack,
        last_id: env.id_gen,
        all_precise: options.stress.all_precise || !env.input.bpf_capable,
        rules: env.input.rules,
        is_strict: env.explore_alu_limits,
    };
    // Linux 6.18 keeps this across the checkpoints of a bucket.
    let mut loops = false;
    let mut position = env.explorer.buckets[bucket].len();
    let states = position as u32;
    while position > 0 {
        position -= 1;
        let entry = env.explorer.buckets[bucket][position];
        if entry.insn_idx != insn_idx {
            continue;
        }
        let id = entry.id;
        let is_open = env.explorer.checkpoint(id).branches != 0;
        let answer = if is_open {
            compare_open(env, &comparison, id, loops)?
        } else {
            loops = env.explorer.is_in_open_loop(id);
            let exact = if loops {
                Exactness::RangeWithin
            } else {
                Exactness::Covers
            };
            let is_equal = !options.stress.no_pruning && compare(env, &comparison, id, exact);
            if is_equal {
                Answer::Hit { loops }
            } else {
                Answer::Miss
            }
        };
        if let Answer::Hit { loops } = answer {
            prune(env, id, loops)?;
            return Ok(true);
        }
        if is_open && is_recent {
            is_new = false;
        }
        if let Some(walk) = &mut env.check.sink.walk {
            walk.note_missed(env.explorer.checkpoint(id).step);
        }
        let checkpoint = env.explorer.checkpoint_mut(id);
        if is_new {
            checkpoint.misses += 1;
        }
        let patience = if info.force_checkpoint && is_open {
            64
        } else {
            3
        };
        if checkpoint.misses > checkpoint.hits * patience + patience {
            checkpoint.is_evicted = true;
            env.explorer.buckets[bucket].remove(position);
            env.explorer.evicted += 1;
            env.explorer.kept = env.explorer.kept.wrapping_sub(1);
            scc::free_if_unused(env, id);
            // The log prints whole states, and facts and records are taken of them.
            let observers = &env.observers;
            let is_watched = observers.collector.is_some() || observers.recorder.is_some();
            if !env.sink.observes() && !is_watched {
                env.explorer.reduce(id);
            }
        }
    }
    let statistics = &mut env.explorer.statistics;
    statistics.max_states_per_insn = statistics.max_states_per_insn.max(states);
    let limit = limits::STATES_UNPRIVILEGED;
    if is_new && (env.input.bpf_capable || states <= limit) {
        add_checkpoint(env, bucket);
    }
    Ok(false)
}

fn compare(env: &mut Env<'_>, comparison: &Comparison<'_>, id: StateId, exact: Exactness) -> bool {
    let mut ids = std::mem::take(&mut env.explorer.ids);
    let old = env.explorer.checkpoint_mut(id);
    let is_equal = comparison.states_equal(old, &env.check.state, &mut ids, exact);
    env.explorer.ids = ids;
    is_equal
}

/// Compares with a checkpoint on the current path: a loop.
fn compare_open(
    env: &mut Env<'_>,
    comparison: &Comparison<'_>,
    id: StateId,
    loops: bool,
) -> Result<Answer> {
    let insn_idx = env.sink.insn_idx;
    let (old, cur) = (env.explorer.state(id), &env.state);
    let old_frame = old.cur();
    if old_frame.in_async_callback_fn && old_frame.async_entry_cnt != cur.cur().async_entry_cnt {
        return Ok(Answer::Miss);
    }
    if env.aux[insn_idx as usize].is_iter_next {
        let is_loop =
            compare(env, comparison, id, Exactness::RangeWithin) && is_iterating(&env.state);
        return Ok(match is_loop {
            true => Answer::Hit { loops: true },
            false => Answer::Miss,
        });
    }
    if matches!(env.input.insns[insn_idx as usize], Insn::MayGoto { .. })
        && old.may_goto_depth != cur.may_goto_depth
        && compare(env, comparison, id, Exactness::RangeWithin)
    {
        return Ok(Answer::Hit { loops: true });
    }
    let iterates = env.input.rules.has(Behaviour::CallbacksIterate);
    if env.analysis.insns[insn_idx as usize].calls_callback && iterates {
        let is_equal = compare(env, comparison, id, Exactness::RangeWithin);
        let kept = loops && env.explorer.tracking == LoopTracking::Components;
        let loops = kept || env.input.rules.has(Behaviour::CallbacksAreLoops);
        return Ok(if is_equal {
            Answer::Hit { loops }
        } else {
            Answer::Miss
        });
    }
    let exact = match env.input.rules.has(Behaviour::LoopsCompareExactly) {
        true => Exactness::Exact,
        false => Exactness::Covers,
    };
    if may_be_looping(env.explorer.state(id), &env.state) && compare(env, comparison, id, exact) {
        let (old, cur) = (env.explorer.state(id), &env.state);
        if !have_other_depths(old, cur)
            && old.may_goto_depth == cur.may_goto_depth
            && old.callback_unroll_depth == cur.callback_unroll_depth
        {
            return Err(refuse_loop(env, id));
        }
    }
    Ok(Answer::Miss)
}

/// True if the iterator that the call is about to advance is not at its end (`is_iter_next_insn`).
#[doc(alias = "is_iter_next_insn")]
fn is_iterating(state: &State) -> bool {
    let reg = state.reg(Reg::R1);
    let (RegKind::Stack { frame }, Some(var_off)) = (reg.kind, reg.num.as_const()) else {
        return false;
    };
    let spi = (-i64::from(reg.off.wrapping_add(var_off as i32)) - 1) / 8;
    let object = state.frame(frame as usize).stack.object_at(spi as usize);
    let is_active = |kind| {
        matches!(
            kind,
            StackObjectKind::Iter {
                state: IterState::Active,
                ..
            }
        )
    };
    object.is_some_and(|object| is_active(object.kind))
}

/// True if an iterator that is not at its end has another depth (`iter_active_depths_differ`).
#[doc(alias = "iter_active_depths_differ")]
fn have_other_depths(old: &State, cur: &State) -> bool {
    let depth = |object: &StackObject| match object.kind {
        StackObjectKind::Iter { depth, .. } => Some(depth),
        StackObjectKind::Dynptr(_) | StackObjectKind::IrqFlag(_) => None,
    };
    (0..=old.curframe).any(|number| {
        let cur = &cur.frame(number).stack;
        old.frame(number).stack.objects().any(|object| {
            let is_active = matches!(
                object.kind,
                StackObjectKind::Iter {
                    state: IterState::Active,
                    ..
                }
            );
            let now = cur.object_at(object.first_slot).and_then(depth);
            is_active && now != depth(object)
        })
    })
}

/// The refusal of a loop whose state repeats. Its last line is the state of the
/// checkpoint.
fn refuse_loop(env: &mut Env<'_>, id: StateId) -> crate::Stop {
    let insn_idx = env.sink.insn_idx;
    let frame = env.state.curframe;
    if env.sink.is_on() {
        log::verbose_linfo(env.input, &mut env.sink, "; ");
    }
    if env.sink.is_on() && env.input.rules.has(Behaviour::OldStateShown) {
        verbose!(
            env.sink,
            "infinite loop detected at insn {insn_idx}\ncur state:"
        );
        env.print_state(frame);
    }
    if !env.input.rules.has(Behaviour::OldStateShown) {
        return refuse!(env => Flow::LoopDetected { insn: insn_idx });
    }
    let mut line = log::Sink::new(1);
    let old = env.explorer.checkpoint(id);
    log::print_checkpoint(env.input, &mut line, old, frame);
    let line = line.into_text();
    refuse!(env => Flow::InfiniteLoop { state: line.trim_end_matches('\n') })
}

/// Ends the current path at a checkpoint that covers it: what the checkpoint needs
/// precisely, the current path needs too.
fn prune(env: &mut Env<'_>, id: StateId, loops: bool) -> Result<()> {
    env.explorer.checkpoint_mut(id).hits += 1;
    if let Some(walk) = &mut env.check.sink.walk {
        let by = env.explorer.checkpoint(id).step;
        walk.pruned(
            env.check.input,
            &env.check.state,
            (env.check.sink.insn_idx, by),
            loops,
        );
    }
    if env.explorer.liveness == Liveness::Marks {
        env.explorer.propagate_reads(&env.check.state, id);
    }
    if env.analysis.insns[env.sink.insn_idx as usize].jmp_point {
        env.push_history(HistoryFlags::NONE, LinkedRegs::default())?;
    }
    if env.observers.collector.is_some() && !env.state.speculative {
        insn_facts::pruned(env, id);
    }
    precise::propagate_precision(env, id)?;
    match env.explorer.tracking {
        LoopTracking::Components if loops => scc::add_backedge(env, id),
        LoopTracking::Entries if loops => {
            loop_entries::note_loop(env, id);
            Ok(())
        }
        LoopTracking::Components | LoopTracking::Entries => Ok(()),
    }
}

/// Forgets the registers and halves of stack slots of the current state that no instruction reads
/// any more (`clean_verifier_state`).
#[doc(alias = "clean_verifier_state")]
#[inline(never)]
fn forget_dead(env: &mut Check<'_>) {
    let analysis = env.analysis;
    let Some(liveness) = &analysis.stack_liveness else {
        return;
    };
    let alive = liveness.alive(analysis, &env.state);
    for (number, alive) in alive.iter().enumerate().take(env.state.curframe + 1) {
        for spi in 0..env.state.frame(number).stack.len() {
            let live = (*alive >> (2 * spi)) as u8 & 3;
            let slot = &env.state.frame(number).stack[spi];
            if live != 3
                && let Some(slot) = without_dead(slot, live & 1 != 0, live & 2 != 0)
            {
                *env.state.frame_mut(number).stack.slot_mut(spi) = slot;
            }
        }
        let live = env.analysis.insns[env.state.frame_insn_idx(number) as usize].live_regs;
        let regs = &env.state.frame(number).regs;
        let is_dead = |reg: &usize| live & 1 << reg == 0 && regs[*reg].kind != RegKind::NotInit;
        let dead: u16 = (0..10).filter(is_dead).fold(0, |dead, reg| dead | 1 << reg);
        for reg in (0..10).filter(|reg| dead & 1 << reg != 0) {
            env.state.frame_mut(number).regs[reg] = RegState::NOT_INIT;
        }
    }
}

/// A slot without the halves that are dead, `low` being that at the higher address; `None` if it stays
/// as it is (`__clean_func_state`).
#[doc(alias = "__clean_func_state")]
fn without_dead(slot: &StackSlot, low: bool, high: bool) -> Option<StackSlot> {
    if slot.is_special() {
        return None;
    }
    let mut new = *slot;
    if !high {
        if low && slot.is_spilled() {
            if !slot.reg.is_scalar() || slot.reg.is_null() {
                return None;
            }
            for kind in new.kinds[..4]
                .iter_mut()
                .filter(|kind| **kind == SlotKind::Spill)
            {
                *kind = SlotKind::Misc;
            }
        }
        new.reg = RegState::NOT_INIT;
        new.kinds[4..].fill(SlotKind::Poison);
    }
    if !low {
        new.kinds[..4].fill(SlotKind::Poison);
    }
    (new != *slot).then_some(new)
}

/// Removes from finished checkpoints what is not read after them (`clean_live_states`).
#[doc(alias = "clean_live_states")]
fn clean_checkpoints(env: &mut Env<'_>, bucket: usize) {
    for position in (0..env.explorer.buckets[bucket].len()).rev() {
        let entry = env.explorer.buckets[bucket][position];
        if entry.insn_idx != env.sink.insn_idx {
            continue;
        }
        let checkpoint = env.explorer.checkpoint(entry.id);
        if checkpoint.branches != 0
            || checkpoint.is_cleaned
            || !widen::same_callsites(&checkpoint.state, &env.state)
            || env.explorer.is_in_open_loop(entry.id)
        {
            continue;
        }
        clean_checkpoint(env, entry.id);
    }
}

/// Notes which slots and precise marks of a checkpoint are dead (`clean_verifier_state`,
/// `clean_func_state`). Dead registers need no mark: comparisons look at live ones only.
#[doc(alias = "clean_verifier_state")]
#[doc(alias = "clean_func_state")]
fn clean_checkpoint(env: &mut Env<'_>, id: StateId) {
    let liveness = env.explorer.liveness;
    let checkpoint = env.explorer.checkpoint_mut(id);
    checkpoint.is_cleaned = true;
    let state = &checkpoint.state;
    if (0..=state.curframe).any(|number| !state.frame(number).stack.is_empty()) {
        env.live.query_init(env.check.analysis, state);
    }
    let mut dead_slots = [0; MAX_CALL_FRAMES];
    for (number, dead_slots) in dead_slots.iter_mut().enumerate().take(state.curframe + 1) {
        let live = env.check.analysis.insns[state.frame_insn_idx(number) as usize].live_regs;
        let slots = state.frame(number).stack.len();
        let dead = if slots == 0 || env.check.input.rules.has(Behaviour::DeadForgotten) {
            0
        } else {
            !env.live.alive_slots(number)
        };
        let reads = checkpoint.reads.of(number);
        let (live, dead) = match liveness {
            Liveness::Flow => (live, dead),
            Liveness::Marks if env.check.input.rules.has(Behaviour::LivenessBeforeWalk) => {
                (live, !reads.slots)
            }
            Liveness::Marks => (reads.regs, !reads.slots),
        };
        *dead_slots = dead;
        let mut precise = checkpoint.precise.of(number);
        precise.regs &= live;
        precise.slots &= !dead;
        checkpoint.precise.set(number, precise);
    }
    let has_dead = dead_slots.iter().any(|&dead| dead != 0);
    checkpoint.dead_slots = has_dead.then(|| Box::new(dead_slots));
}

/// Makes a checkpoint of the current state, which goes on below it (`mark_all_scalars_imprecise`,
/// `bpf_clear_jmp_history`).
#[doc(alias = "mark_all_scalars_imprecise")]
#[doc(alias = "bpf_clear_jmp_history")]
fn add_checkpoint(env: &mut Env<'_>, bucket: usize) {
    let insn_idx = env.sink.insn_idx;
    let explorer = &mut env.explorer;
    explorer.statistics.total_states += 1;
    if let Some(cost) = &mut env.observers.cost {
        cost.count_state(&env.check.state, env.check.analysis, insn_idx);
    }
    explorer.kept = explorer.kept.wrapping_add(1);
    explorer.update_peak();
    explorer.jmps_at_checkpoint = explorer.jmps_processed;
    explorer.insns_at_checkpoint = explorer.statistics.insns_processed;
    env.state.propagated = 0;
    env.state.stack_zeros = 0;
    if env.input.rules.has(Behaviour::FillsLinked) {
        env.check.state.clear_singular_ids(env.check.input.rules);
    }
    let mut state = env.state.clone();
    env.state.history.clear();
    state.insn_idx = insn_idx;
    let dfs_depth = state.dfs_depth;
    let mut checkpoint = Checkpoint::new(state);
    if let Some(walk) = &mut env.sink.walk {
        checkpoint.step = walk.note_checkpoint();
    }
    let id = env.explorer.insert(checkpoint);
    scc::enter(env, id);
    env.state.parent = Some(id);
    env.state.first_insn_idx = insn_idx;
    env.state.dfs_depth = dfs_depth + 1;
    if env.explorer.liveness == Liveness::Marks {
        marks::connect(&mut env.state);
    }
    env.has_history = false;
    env.explorer.buckets[bucket].push(super::checkpoint::Entry { id, insn_idx });
}
