//! Saved IRQ flags: an object of one slot on the stack, which a kfunc of the same class restores.

use isa::ebpf::Reg;
use spec::registry::SpecialKfunc;

use super::Callee;
use crate::call::REGS;
use crate::call::stack_slots::{self, Place};
use crate::env::{Check, Env};
use crate::state::{IrqClass, RegBase, SlotKind, StackObject, StackObjectKind};
use crate::{Result, Stop, refuse, refuse_if};

/// Checks the IRQ flags that a kfunc saves or restores (`process_irq_flag`).
#[doc(alias = "process_irq_flag")]
pub(super) fn check_irq_flag(env: &mut Env<'_>, callee: &Callee<'_>, index: usize) -> Result<()> {
    let ptr = REGS[index];
    refuse_if!(!env.reg(ptr).is_plain(RegBase::PtrToStack), env => Call::NotIrqFlag { index });
    match callee.kfunc.special {
        Some(SpecialKfunc::LocalIrqSave) => save(env, ptr, IrqClass::Native),
        Some(SpecialKfunc::ResSpinLockIrqsave) => save(env, ptr, IrqClass::Lock),
        Some(SpecialKfunc::LocalIrqRestore) => restore(env, ptr, IrqClass::Native),
        Some(SpecialKfunc::ResSpinUnlockIrqrestore) => restore(env, ptr, IrqClass::Lock),
        _ => Err(callee.unsupported()),
    }
}

/// Saves the flags (`mark_stack_slot_irq_flag`, `is_irq_flag_reg_valid_uninit`).
#[doc(alias = "mark_stack_slot_irq_flag")]
#[doc(alias = "is_irq_flag_reg_valid_uninit")]
fn save(env: &mut Env<'_>, ptr: Reg, class: IrqClass) -> Result<()> {
    let is_free = match place_of(env, ptr) {
        Place::At(frame, spi) => !env.state.frame(frame).stack[spi]
            .kinds
            .contains(&SlotKind::IrqFlag),
        Place::Unallocated => true,
        Place::Misplaced => false,
    };
    refuse_if!(!is_free, env => Call::IrqFlagNotUninit { index: ptr.number() - 1 });
    stack_slots::write_slots(env, ptr, 1)?;
    let Place::At(frame, first_slot) = place_of(env, ptr) else {
        return Err(Stop::Bug("the slot of IRQ flags was written".into()));
    };
    let object = StackObject {
        kind: StackObjectKind::IrqFlag(class),
        first_slot,
        id: 0,
        ref_obj_id: stack_slots::acquire_irq_state(env),
    };
    stack_slots::create(env, frame, object);
    stack_slots::mark_scratched(env, &object);
    Ok(())
}

/// Restores the flags that were saved last (`unmark_stack_slot_irq_flag`).
#[doc(alias = "unmark_stack_slot_irq_flag")]
fn restore(env: &mut Env<'_>, ptr: Reg, class: IrqClass) -> Result<()> {
    let found = match place_of(env, ptr) {
        Place::At(frame, spi) => {
            let object = env.state.frame(frame).stack.whole_object(spi);
            object.map(|object| (frame, *object))
        }
        Place::Unallocated | Place::Misplaced => None,
    };
    let Some((frame, object, saved)) = found.and_then(|(frame, object)| match object.kind {
        StackObjectKind::IrqFlag(saved) => Some((frame, object, saved)),
        StackObjectKind::Dynptr(_) | StackObjectKind::Iter { .. } => None,
    }) else {
        return Err(refuse!(env => Call::IrqFlagNotInit { index: ptr.number() - 1 }));
    };
    stack_slots::note_above(env, ptr);
    stack_slots::mark_read(env, frame, &object);
    if saved != class {
        let (saved, used) = (name(saved), name(class));
        return Err(refuse!(env => Call::IrqFlagClass { saved, used }));
    }
    if !stack_slots::release_irq_state(&mut env.state, object.ref_obj_id) {
        let id = env.state.active_irq_id;
        let innermost = env.state.refs.iter().find(|saved| saved.id == id);
        let insn = innermost.map_or(0, |saved| saved.insn_idx);
        return Err(refuse!(env => Call::IrqFlagOrder { id, insn }));
    }
    stack_slots::destroy(env, frame, object.first_slot);
    Ok(())
}

/// Place of the flags that a register points to (`irq_flag_get_spi`).
#[doc(alias = "irq_flag_get_spi")]
fn place_of(env: &mut Check<'_>, ptr: Reg) -> Place {
    stack_slots::place_of(env, ptr, "irq_flag", 1)
}

/// Name of a class in refusals.
const fn name(class: IrqClass) -> &'static str {
    match class {
        IrqClass::Native => "native",
        IrqClass::Lock => "lock",
    }
}
