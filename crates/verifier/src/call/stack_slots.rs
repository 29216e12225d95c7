//! Slots of objects on the stack that are arguments of calls.

use isa::ebpf::Reg;
use spec::behaviour::Behaviour;

use crate::env::{Check, Env};
use crate::mem::{Access, MemAccess, check_mem_access};
use crate::state::{LockOwner, Reference, ReferenceKind, RegKind, StackObject, State};
use crate::{Result, insn_facts, verbose};

/// Where an object on the stack is, by the pointer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It begins in that slot of that frame.
    At(usize, usize),
    /// The function has not used its stack so far (`-ERANGE`).
    Unallocated,
    /// No object can begin there, which the log says.
    Misplaced,
}

/// The slot in which an object of so many slots begins, which `ptr` points to
/// (`stack_slot_obj_get_spi`); `what` names it in the log (`iter_get_spi`, `is_spi_bounds_valid`,
/// `__get_spi`).
#[doc(alias = "stack_slot_obj_get_spi")]
#[doc(alias = "iter_get_spi")]
#[doc(alias = "is_spi_bounds_valid")]
#[doc(alias = "__get_spi")]
pub(super) fn place_of(env: &mut Check<'_>, ptr: Reg, what: &str, slots: usize) -> Place {
    let reg = *env.reg(ptr);
    let RegKind::Stack { frame } = reg.kind else {
        return Place::Misplaced;
    };
    let is_tracked = env.input.rules.has(Behaviour::DynptrsTracked);
    // Before, Linux looks at the fixed offset alone.
    let var_off = reg.num.as_const().or((!is_tracked).then_some(0));
    let Some(var_off) = var_off else {
        verbose!(env.sink, "{what} has to be at a constant offset\n");
        return Place::Misplaced;
    };
    let off = reg.off.wrapping_add(var_off as i32);
    // Before, Linux takes an offset of 0 for the slot below it.
    let spi = i64::from(off).wrapping_neg().wrapping_sub(1) / 8;
    let is_above = off >= 0 && env.input.rules.has(Behaviour::ObjectsBelowFrame);
    if off % 8 != 0 || spi + 1 < slots as i64 || is_above {
        if is_tracked {
            verbose!(env.sink, "cannot pass in {what} at an offset={off}\n");
        }
        return Place::Misplaced;
    }
    let (frame, spi) = (frame as usize, spi as usize);
    match spi < env.state.frame(frame).stack.len() {
        true => Place::At(frame, spi),
        false => Place::Unallocated,
    }
}

/// Checks that the program may write so many slots, which it does.
pub(super) fn write_slots(env: &mut Env<'_>, ptr: Reg, slots: usize) -> Result<()> {
    (0..slots as i32)
        .try_for_each(|slot| check_mem_access(env, MemAccess::new(ptr, 8 * slot, 8, Access::Write)))
}

/// Puts an object into its slots.
pub(super) fn create(env: &mut Env<'_>, frame: usize, object: StackObject) {
    env.state.frame_mut(frame).stack.create_object(object);
    env.mark_slots_written(frame, object.mask());
    insn_facts::note_addresses(env, frame, object.mask());
}

/// Destroys the object that a slot belongs to (`invalidate_dynptr`).
#[doc(alias = "invalidate_dynptr")]
pub(super) fn destroy(env: &mut Env<'_>, frame: usize, spi: usize) {
    if let Some(object) = env.state.frame_mut(frame).stack.destroy_object(spi) {
        env.mark_slots_written(frame, object.mask());
    }
}

/// Notes that a call reads an object (`mark_stack_slot_obj_read`, `mark_dynptr_read`,
/// `mark_iter_read`).
#[doc(alias = "mark_stack_slot_obj_read")]
#[doc(alias = "mark_dynptr_read")]
#[doc(alias = "mark_iter_read")]
pub(super) fn mark_read(env: &mut Env<'_>, frame: usize, object: &StackObject) {
    env.mark_slots_read(frame, object.mask());
    mark_scratched(env, object);
}

/// Notes that a call may take an object above the frame for one in it, as Linux does: the program
/// is not for native code.
pub(super) fn note_above(env: &mut Env<'_>, ptr: Reg) {
    let reg = *env.reg(ptr);
    if i64::from(reg.off).wrapping_add(reg.num.var_off.value as i64) == 0 {
        insn_facts::note_object(env);
    }
}

/// Notes for the log that the slots of an object were written (`mark_stack_slots_scratched`).
#[doc(alias = "mark_stack_slots_scratched")]
pub(super) fn mark_scratched(env: &mut Check<'_>, object: &StackObject) {
    object.slots().for_each(|spi| env.mark_slot_scratched(spi));
}

/// Saves the IRQ state, and returns its identity (`acquire_irq_state`).
pub(super) fn acquire_irq_state(env: &mut Check<'_>) -> u32 {
    let (id, insn_idx) = (env.new_id(), env.sink.insn_idx);
    env.state.refs.push(Reference {
        kind: ReferenceKind::Irq,
        id,
        insn_idx,
        owner: LockOwner::None,
        callback: None,
    });
    env.state.active_irq_id = id;
    id
}

/// Restores the innermost saved IRQ state (`release_irq_state`); false if it is another.
pub(super) fn release_irq_state(state: &mut State, id: u32) -> bool {
    let is_irq = |found: &Reference| found.kind == ReferenceKind::Irq;
    let is_it = |found: &Reference| is_irq(found) && found.id == id;
    let Some(index) = state.refs.iter().position(is_it) else {
        return false;
    };
    if id != state.active_irq_id {
        return false;
    }
    let before = state.refs[..index].iter().rev().find(|found| is_irq(found));
    state.active_irq_id = before.map_or(0, |saved| saved.id);
    state.refs.remove(index);
    true
}
