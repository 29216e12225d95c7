//! Outlines of states that are no longer compared.
//!
//! An evicted checkpoint stays for its children: precision requests walk back through it. A
//! back edge stays for the requests that begin there. They ask which registers and slots hold
//! scalars, and for call sites. The frames are replaced by outlines with nothing else, which
//! all states share that have the same one. Cost: linear in the registers and slots of the
//! state, once for each.

use std::collections::HashMap;
use std::rc::Rc;

use isa::ebpf::Reg;

use crate::state::{Frame, RegState, SlotKind, State};

/// Outline of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Outline {
    callsite: i32,
    frameno: u32,
    subprogno: u32,
    slots: usize,
    /// Registers and slots with scalars, one bit each.
    scalar_regs: u16,
    scalar_slots: u64,
}

impl Outline {
    fn of(frame: &Frame) -> Outline {
        let scalar_regs = (0..Reg::COUNT).filter(|&reg| frame.regs[reg].is_scalar());
        let slots = frame.stack.iter().enumerate();
        let scalar_slots = slots.filter(|(_, slot)| slot.is_spilled_scalar());
        Outline {
            callsite: frame.callsite,
            frameno: frame.frameno,
            subprogno: frame.subprogno,
            slots: frame.stack.len(),
            scalar_regs: scalar_regs.fold(0, |mask, reg| mask | 1 << reg),
            scalar_slots: scalar_slots.fold(0, |mask, (spi, _)| mask | 1 << spi),
        }
    }

    fn frame(&self) -> Frame {
        let mut frame = Frame::new(self.callsite, self.frameno, self.subprogno);
        for reg in (0..Reg::COUNT).filter(|reg| self.scalar_regs >> reg & 1 != 0) {
            frame.regs[reg] = RegState::UNKNOWN;
        }
        frame.grow_stack(8 * self.slots);
        for spi in (0..self.slots).filter(|spi| self.scalar_slots >> spi & 1 != 0) {
            let slot = frame.stack.slot_mut(spi);
            slot.reg = RegState::UNKNOWN;
            slot.kinds = [SlotKind::Spill; 8];
        }
        frame
    }
}

/// The outlines of a verification.
#[derive(Debug, Default)]
pub(super) struct Outlines(HashMap<Outline, Rc<Frame>>);

impl Outlines {
    /// Replaces the frames of a state by their outlines.
    pub(super) fn reduce(&mut self, state: &mut State) {
        for number in 0..=state.curframe {
            let outline = Outline::of(state.frame(number));
            let shared = self.0.entry(outline);
            let shared = shared.or_insert_with(|| Rc::new(outline.frame()));
            state.share_frame(number, shared);
        }
        state.refs = Vec::new();
        state.history.shrink_to_fit();
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::Outlines;
    use crate::state::{Frame, MAIN_CALLSITE, RegKind, RegState, SlotKind, State, TypeFlags};
    use isa::ebpf::Reg;
    use std::rc::Rc;

    fn state(number: u64) -> State {
        let mut state = State::new(Frame::new(MAIN_CALLSITE, 0, 0), 0, false);
        *state.reg_mut(Reg::R3) = RegState::constant(number);
        *state.reg_mut(Reg::R6) = RegState::pointer(RegKind::Ctx, TypeFlags::NONE);
        state.cur_mut().grow_stack(24);
        let slot = state.cur_mut().stack.slot_mut(1);
        slot.reg = RegState::constant(number);
        slot.kinds = [SlotKind::Spill; 8];
        state
    }

    #[test]
    fn states_with_scalars_in_the_same_places_share_an_outline() {
        let (mut outlines, mut one, mut other) = (Outlines::default(), state(1), state(2));
        outlines.reduce(&mut one);
        outlines.reduce(&mut other);
        assert!(Rc::ptr_eq(one.frame_rc(0), other.frame_rc(0)));
        let frame = one.cur();
        assert!(frame.regs[3].is_scalar() && !frame.regs[6].is_scalar());
        assert!(frame.stack[1].is_spilled_scalar() && !frame.stack[2].is_spilled());
        assert_eq!(frame.stack.len(), 3);
        let mut third = state(3);
        *third.reg_mut(Reg::R7) = RegState::constant(3);
        outlines.reduce(&mut third);
        assert!(!Rc::ptr_eq(one.frame_rc(0), third.frame_rc(0)));
    }
}
