//! Widening of loop states: scalars that changed since the last visit and that nothing
//! needs precisely become unknown, so that callbacks and `may_goto` loops converge.

use super::checkpoint::Explorer;
use super::equal::is_reg_exact;
use crate::state::{RegState, State, StateId};

/// The newest checkpoint of an instruction on the current path (`find_prev_entry`).
/// `current` is the current state, which decides about the call site.
pub fn find_prev_entry(
    explorer: &Explorer,
    current: &State,
    above: &State,
    insn_idx: u32,
) -> Option<StateId> {
    let bucket = explorer.bucket(insn_idx, current.cur().callsite);
    let is_entry = |id: StateId| {
        let state = explorer.state(id);
        state.branches != 0 && same_callsites(state, above) && state.dfs_depth < above.dfs_depth
    };
    let entries = explorer.buckets[bucket].iter().rev();
    entries
        .filter(|entry| entry.insn_idx == insn_idx)
        .map(|entry| entry.id)
        .find(|&id| is_entry(id))
}

/// True if the call chains are the same.
pub(super) fn same_callsites(a: &State, b: &State) -> bool {
    a.curframe == b.curframe
        && (0..=a.curframe).all(|number| a.frame(number).callsite == b.frame(number).callsite)
}

/// Makes scalars of `cur` unknown that differ from those of an earlier visit and are not
/// precise there (`widen_imprecise_scalars`).
pub fn widen_imprecise_scalars(old: &State, cur: &mut State, last_id: u32) {
    let mut ids = super::ids::IdMap::default();
    ids.reset(last_id);
    for number in (0..=old.curframe).rev() {
        let old_frame = old.frame(number);
        for reg in 0..10 {
            let is_precise = old.is_precise_reg(number, reg);
            let (old, current) = (&old_frame.regs[reg], &cur.frame(number).regs[reg]);
            if !is_precise
                && old.is_scalar()
                && current.is_scalar()
                && !is_reg_exact(old, current, &mut ids)
            {
                cur.frame_mut(number).regs[reg] = RegState::UNKNOWN;
            }
        }
        for spi in 0..old_frame.stack.len().min(cur.frame(number).stack.len()) {
            let is_precise = old.is_precise_slot(number, spi);
            let (old, current) = (&old_frame.stack[spi], &cur.frame(number).stack[spi]);
            if !is_precise
                && old.is_spilled_scalar()
                && current.is_spilled_scalar()
                && !is_reg_exact(&old.reg, &current.reg, &mut ids)
            {
                cur.frame_mut(number).stack.slot_mut(spi).reg = RegState::UNKNOWN;
            }
        }
    }
}
