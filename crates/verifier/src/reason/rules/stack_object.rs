//! Dynptrs, iterators and saved IRQ flags on the stack.

use isa::ebpf::{Insn, Reg, RegSet};

use super::Finding;
use crate::reason::cause::{Cause, OnStack, StackObjectFault as Fault};
use crate::reason::describe;
use crate::reason::explanation::{Note, NoteKind};
use crate::reason::scene::Scene;
use crate::rejection::{Call, Mem, Rejection};
use crate::state::{RegKind, StackObjectKind};

/// The fault of an object on the stack, if the refusal is about one.
pub(super) fn find(scene: &Scene<'_>) -> Option<Finding> {
    let (object, index, fault) = match &*scene.refusal.rejection {
        Rejection::Call(rejection) => fault(rejection)?,
        Rejection::Mem(Mem::DynptrWrite { .. }) => (OnStack::Dynptr, None, Fault::WrittenByCall),
        _ => return None,
    };
    let named = index.and_then(|index| Reg::new(index as u8 + 1));
    let reg = named.or_else(|| implied(scene));
    let slot = reg.and_then(|reg| slot(scene, reg));
    let (fault, notes) = match slot {
        Some(slot) => with_history(
            scene,
            slot,
            of_other_object(scene, reg, slot, object, fault),
        ),
        None => (fault, Vec::new()),
    };
    let number = match fault {
        Fault::Overwritten | Fault::WrittenByCall => None,
        _ => reg.map(Reg::number),
    };
    let notes = match *scene.refusal.rejection {
        Rejection::Call(Call::IrqFlagOrder { insn, .. }) => vec![Note {
            place: scene.place(insn as u32),
            step: scene.step_of(insn as u32),
            kind: NoteKind::SectionBegun {
                callee: scene.called(insn as u32).unwrap_or_default(),
            },
        }],
        _ => notes,
    };
    Some(Finding {
        notes,
        ..Finding::new(Cause::StackObject {
            callee: scene.callee(),
            number,
            object,
            fault,
        })
    })
}

/// A read of so many bytes from an offset, which are those of an object or run into one, by the
/// instruction or through an argument of its call.
pub(super) fn read(scene: &Scene<'_>, reg: Reg, off: i64, size: u32) -> Option<Finding> {
    let first = slot(scene, reg)?;
    let start = off.div_euclid(8) * 8;
    let inside = (1..)
        .take_while(|next| start + 8 * next < off + i64::from(size))
        .filter_map(|next| Some((first.0, first.1.checked_sub(next as usize)?)));
    let mut slots = std::iter::once(first).chain(inside);
    let (slot, object) = slots.find_map(|slot| Some((slot, object_in(scene, slot)?)))?;
    let fault = match slot == first {
        true => Fault::Read,
        false => Fault::ReadInto { off, size },
    };
    let (fault, notes) = with_history(scene, slot, fault);
    let callee = scene.callee();
    let number = callee.is_some().then_some(reg.number());
    Some(Finding {
        notes,
        ..Finding::new(Cause::StackObject {
            callee,
            number,
            object,
            fault,
        })
    })
}

/// The object, index of the argument and fault.
fn fault(rejection: &Call) -> Option<(OnStack, Option<i64>, Fault)> {
    Some(match rejection {
        Call::DynptrNotUninit => (OnStack::Dynptr, None, Fault::NotFree),
        Call::DynptrConst => (OnStack::Dynptr, None, Fault::Constant),
        Call::ReleasesConstDynptr => (OnStack::Dynptr, None, Fault::ReleasesGiven),
        Call::DynptrNotInit { index } => (OnStack::Dynptr, Some(*index), Fault::NotMade),
        Call::DynptrOther { kind, index } => {
            (OnStack::Dynptr, Some(*index), Fault::NotOfKind(*kind))
        }
        Call::ExpectsDynptr { index } => (OnStack::Dynptr, Some(*index), Fault::NotOnStack),
        Call::DynptrMemory { kind } => (OnStack::Dynptr, Some(0), Fault::Memory(kind.to_string())),
        Call::UnacquiredDynptr { number } => {
            (OnStack::Dynptr, Some(*number - 1), Fault::NotHeld(None))
        }
        Call::OverwritesDynptr => (OnStack::Dynptr, None, Fault::Overwritten),
        Call::NotIterator { index } | Call::InvalidIterator { index } => {
            (OnStack::Iterator, Some(*index), Fault::NotOnStack)
        }
        Call::IteratorNotUninit { index, .. } => (OnStack::Iterator, Some(*index), Fault::NotFree),
        Call::IteratorNotInit { index, .. } => (OnStack::Iterator, Some(*index), Fault::NotMade),
        Call::IteratorOutsideRcu { .. } => (OnStack::Iterator, Some(0), Fault::OutsideRcu),
        Call::NotIrqFlag { index } => (OnStack::IrqFlags, Some(*index), Fault::NotOnStack),
        Call::IrqFlagNotUninit { index } => (OnStack::IrqFlags, Some(*index), Fault::NotFree),
        Call::IrqFlagNotInit { index } => (OnStack::IrqFlags, Some(*index), Fault::NotMade),
        Call::IrqFlagClass { .. } => (OnStack::IrqFlags, None, Fault::OtherCalls),
        Call::IrqFlagOrder { .. } => (OnStack::IrqFlags, None, Fault::Order),
        _ => return None,
    })
}

/// The argument, or base of a store, that leads to an object where the check names none.
fn implied(scene: &Scene<'_>) -> Option<Reg> {
    match scene.insn()? {
        Insn::Call(_) => {
            let has_object = |reg: &Reg| {
                let slot = slot(scene, *reg);
                slot.is_some_and(|slot| is_there(scene, scene.last(), slot, |_| true))
            };
            RegSet::ARGUMENTS.iter().filter(has_object).last()
        }
        insn => Some(insn.access()?.base),
    }
}

/// The object to which a slot belongs before the refused instruction.
fn object_in(scene: &Scene<'_>, (frame, spi): Slot) -> Option<OnStack> {
    let stack = &scene.trace.frame(scene.last()?, frame)?.stack;
    Some(match stack.object_at(spi)?.kind {
        StackObjectKind::Dynptr(_) => OnStack::Dynptr,
        StackObjectKind::Iter { .. } => OnStack::Iterator,
        StackObjectKind::IrqFlag(_) => OnStack::IrqFlags,
    })
}

/// The fault, where none of the kind was made at the address: an object of another kind may be
/// there, or the address be inside of one.
fn of_other_object(
    scene: &Scene<'_>,
    reg: Option<Reg>,
    slot: Slot,
    object: OnStack,
    fault: Fault,
) -> Fault {
    let state = reg.and_then(|reg| scene.reg(reg));
    let is_start = state.is_none_or(|state| describe::fixed_offset(state) % 8 == 0);
    match (fault, object_in(scene, slot)) {
        (Fault::NotMade, Some(there)) if there != object => Fault::IsOther(there),
        (Fault::NotMade, Some(_)) if !is_start => Fault::Middle,
        (fault, _) => fault,
    }
}

/// A slot of the stack: frame and number.
type Slot = (usize, usize);

/// The slot of the stack that a register leads to, with the offset of the instruction.
fn slot(scene: &Scene<'_>, reg: Reg) -> Option<Slot> {
    let state = scene.reg(reg)?;
    let RegKind::Stack { frame } = state.kind else {
        return None;
    };
    let off = scene.access().map_or(0, |access| access.off.into());
    let off = describe::fixed_offset(state) + off;
    let below = usize::try_from(-off - 1).ok()?;
    state.num.is_const().then_some((frame as usize, below / 8))
}

/// True if an object of the slot is there before a step, with a property of its first slot.
fn is_there(
    scene: &Scene<'_>,
    step: Option<usize>,
    (frame, spi): Slot,
    is_meant: impl Fn(usize) -> bool,
) -> bool {
    let stack = step.and_then(|step| scene.trace.frame(step, frame));
    let object = stack.and_then(|frame| {
        let object = frame.stack.object_at(spi)?;
        frame.stack.whole_object(object.first_slot)
    });
    object.is_some_and(|object| is_meant(object.first_slot))
}

/// The fault with what the path did to the object in a slot, and that as notes.
fn with_history(scene: &Scene<'_>, slot: Slot, fault: Fault) -> (Fault, Vec<Note>) {
    let Some(last) = scene.last() else {
        return (fault, Vec::new());
    };
    let is_middle = |first| first != slot.1;
    if fault == Fault::NotMade && is_there(scene, Some(last), slot, is_middle) {
        return (Fault::Middle, Vec::new());
    }
    let is_before = |step: usize| is_there(scene, Some(step), slot, |_| true);
    let find = |end: usize, becomes: bool| {
        let changes = |step: &usize| is_before(*step) != becomes && is_before(*step + 1) == becomes;
        (0..end).rev().find(changes)
    };
    let callee = |step: usize| scene.called(scene.trace.steps()[step].insn);
    let ended = match is_before(last) {
        true => None,
        false => find(last, false),
    };
    let made = find(ended.unwrap_or(last), true);
    let mut notes = Vec::new();
    if let Some((step, callee)) = made.and_then(|step| Some((step, callee(step)?))) {
        notes.push(scene.note(step, NoteKind::Made { callee }));
    }
    let Some(ended) = ended else {
        return (fault, notes);
    };
    let by = callee(ended);
    notes.push(scene.note(ended, NoteKind::Ended { callee: by.clone() }));
    let fault = match fault {
        Fault::NotMade => Fault::Ended(by),
        Fault::NotHeld(_) => Fault::NotHeld(by),
        fault => {
            notes.clear();
            fault
        }
    };
    (fault, notes)
}
