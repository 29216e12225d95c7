//! Widening of loop states: scalars that changed since the last visit and that nothing
//! needs precisely become unknown, so that callbacks and `may_goto` loops converge.

use spec::behaviour::{Behaviour, Behaviours};

use super::checkpoint::{Checkpoint, Explorer};
use super::equal::is_reg_exact;
use crate::state::{RegState, State, StateId};

/// Widens a state by the newest checkpoint of an instruction on the way to `above`, or to the
/// state itself, if there is one.
pub(crate) fn widen_to_earlier(
    explorer: &Explorer,
    state: &mut State,
    above: Option<StateId>,
    insn_idx: u32,
    last_id: u32,
    rules: Behaviours,
) {
    let above = above.map_or(&*state, |above| explorer.state(above));
    if let Some(earlier) = find_prev_entry(explorer, state, above, insn_idx) {
        widen_imprecise_scalars(explorer.checkpoint(earlier), state, last_id, rules);
    }
}

/// The newest checkpoint of an instruction on the way to `above` (`find_prev_entry`); `state`
/// decides about the call site.
fn find_prev_entry(
    explorer: &Explorer,
    state: &State,
    above: &State,
    insn_idx: u32,
) -> Option<StateId> {
    let bucket = explorer.bucket(insn_idx, state.cur().callsite);
    let is_entry = |id: StateId| {
        let Checkpoint {
            state, branches, ..
        } = explorer.checkpoint(id);
        *branches != 0 && same_callsites(state, above) && state.dfs_depth < above.dfs_depth
    };
    let entries = explorer.buckets[bucket].iter().rev();
    entries
        .filter(|entry| entry.insn_idx == insn_idx)
        .map(|entry| entry.id)
        .find(|&id| is_entry(id))
}

/// True if the call chains are the same (`same_callsites`).
pub(super) fn same_callsites(a: &State, b: &State) -> bool {
    a.curframe == b.curframe
        && (0..=a.curframe).all(|number| a.frame(number).callsite == b.frame(number).callsite)
}

/// Makes scalars of `cur` unknown that differ from those of an earlier visit and are not precise
/// there (`widen_imprecise_scalars`, `maybe_widen_reg`, `scalars_exact_for_widen`).
#[doc(alias = "maybe_widen_reg")]
#[doc(alias = "scalars_exact_for_widen")]
fn widen_imprecise_scalars(old: &Checkpoint, cur: &mut State, last_id: u32, rules: Behaviours) {
    let precise = &old.precise;
    let old = &old.state;
    let mut ids = super::ids::IdMap::default();
    ids.reset(last_id);
    let by_bounds = rules.has(Behaviour::WidenedByBounds);
    let mut is_exact = |old: &RegState, current: &RegState| match by_bounds {
        true => old.num == current.num && old.off == current.off,
        false => is_reg_exact(old, current, &mut ids),
    };
    for number in (0..=old.curframe).rev() {
        let old_frame = old.frame(number);
        for reg in 0..10 {
            let is_precise = precise.has_reg(number, reg);
            let (old, current) = (&old_frame.regs[reg], &cur.frame(number).regs[reg]);
            if !is_precise && old.is_scalar() && current.is_scalar() && !is_exact(old, current) {
                cur.frame_mut(number).regs[reg] = RegState::UNKNOWN;
            }
        }
        for spi in 0..old_frame.stack.len().min(cur.frame(number).stack.len()) {
            let is_precise = precise.has_slot(number, spi);
            let (old, current) = (&old_frame.stack[spi], &cur.frame(number).stack[spi]);
            if !is_precise
                && old.is_spilled_scalar()
                && current.is_spilled_scalar()
                && !is_exact(&old.reg, &current.reg)
            {
                cur.frame_mut(number).stack.slot_mut(spi).reg = RegState::UNKNOWN;
            }
        }
    }
}
