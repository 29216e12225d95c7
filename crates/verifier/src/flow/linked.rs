//! Linked scalars: copies of one value, or values that differ by a constant, learn from a
//! comparison of one of them.

use spec::behaviour::{Behaviour, Behaviours};

use crate::analysis::Analysis;
use crate::state::{ADD_CONST, ADD_CONST32, LinkedReg, LinkedRegs, State};

/// Adds the live registers and the spilled scalars of an identity to the set; what finds no room
/// loses its identity (`collect_linked_regs`, `__collect_linked_regs`).
#[doc(alias = "collect_linked_regs")]
#[doc(alias = "__collect_linked_regs")]
pub(super) fn collect(
    analysis: &Analysis,
    rules: Behaviours,
    state: &mut State,
    id: u32,
    linked: &mut LinkedRegs,
) {
    let id = id & !ADD_CONST;
    for number in (0..=state.curframe).rev() {
        let live = match rules.has(Behaviour::LiveLinks) {
            true => analysis.insns[state.frame_insn_idx(number) as usize].live_regs,
            false => u16::MAX,
        };
        for reg in (0..10).filter(|reg| live & 1 << reg != 0) {
            let reg_state = &state.frame(number).regs[reg];
            if reg_state.is_scalar()
                && reg_state.id & !ADD_CONST == id
                && !linked.push(LinkedReg::Reg { frame: number, reg })
            {
                let reg_state = &mut state.frame_mut(number).regs[reg];
                *reg_state = reg_state.without_link(rules);
            }
        }
        for spi in 0..state.frame(number).stack.len() {
            let slot = &state.frame(number).stack[spi];
            let is_whole =
                slot.is_spilled_scalar_whole() || rules.has(Behaviour::NarrowSpillsLinked);
            if slot.is_spilled_scalar()
                && is_whole
                && slot.reg.id & !ADD_CONST == id
                && !linked.push(LinkedReg::Slot { frame: number, spi })
            {
                let reg_state = &mut state.frame_mut(number).stack.slot_mut(spi).reg;
                *reg_state = reg_state.without_link(rules);
            }
        }
    }
}

/// Gives linked scalars what is known of a register of the executing frame
/// (`sync_linked_regs`).
#[doc(alias = "sync_linked_regs")]
pub(super) fn sync(state: &mut State, rules: Behaviours, reg: usize, linked: LinkedRegs) {
    let curframe = state.curframe;
    let known = state.frame(curframe).regs[reg];
    for entry in linked.iter() {
        let old = match entry {
            LinkedReg::Reg { frame, reg: other } if frame == curframe && other == reg => continue,
            LinkedReg::Reg { frame, reg } => state.frame(frame).regs[reg],
            LinkedReg::Slot { frame, spi } => state.frame(frame).stack[spi].reg,
        };
        let differing = old.id ^ known.id;
        if !old.is_scalar() || differing & !ADD_CONST != 0 || differing & ADD_CONST == ADD_CONST {
            continue;
        }
        let mut new = known;
        if (old.id | known.id) & ADD_CONST != 0 && old.off != known.off {
            (new.id, new.off) = (old.id, old.off);
            let delta = i64::from(old.off) - i64::from(known.off);
            new.num = known
                .num
                .offset_by(delta, (old.id | known.id) & ADD_CONST32 != 0, rules);
        }
        if new == old {
            continue;
        }
        match entry {
            LinkedReg::Reg { frame, reg } => state.frame_mut(frame).regs[reg] = new,
            LinkedReg::Slot { frame, spi } => state.frame_mut(frame).stack.slot_mut(spi).reg = new,
        }
    }
}
