//! Origin of a value: its definition and later changes, oldest first.

use isa::ebpf::{Insn, Reg};

use super::explanation::{KnownValue, Note, NoteKind, PointerTarget};
use super::scene::Scene;
use super::values::{DefId, DefKind, Holder};
use crate::state::RegKind;

/// Notes of one value at most.
const MOST_NOTES: usize = 5;

/// Changes of the value of a definition, oldest first.
pub(super) fn of(scene: &Scene<'_>, id: DefId) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut next = Some(id);
    while let Some(id) = next {
        next = step_back(scene, id, &mut notes);
    }
    if notes.len() > MOST_NOTES {
        // The definition itself comes last here, the latest changes first.
        notes.drain(MOST_NOTES - 1..notes.len() - 1);
    }
    notes.reverse();
    notes
}

/// Adds the note of a definition; the definition that it was made of.
fn step_back(scene: &Scene<'_>, id: DefId, notes: &mut Vec<Note>) -> Option<DefId> {
    let def = scene.values.defs[id];
    let is_known = scene.trace.known(def.step).is_some();
    let frame = match def.holder {
        Holder::Reg { frame, .. } | Holder::Slot { frame, .. } => frame,
    };
    let value = match scene.defined(id) {
        Some(reg) => super::describe::value(scene.input, frame, reg),
        None => KnownValue::Unwritten,
    };
    // In the middle of a long path values are not known any more.
    let mut note = |kind| notes.extend(is_known.then(|| scene.note(def.step, kind)));
    match def.kind {
        DefKind::Unwritten => None,
        DefKind::Argument => {
            // What the context is needs no telling.
            let is_context = matches!(
                value,
                KnownValue::Pointer {
                    kind: PointerTarget::Context,
                    ..
                }
            );
            if let Holder::Reg { reg, .. } = def.holder
                && !is_context
                && value != KnownValue::Unwritten
            {
                let number = reg as u8;
                note(NoteKind::Argument { number, value });
            }
            None
        }
        DefKind::Immediate => {
            let is_frame_pointer = matches!(def.holder, Holder::Reg { reg: 10, .. });
            if !is_frame_pointer {
                note(NoteKind::Set { value });
            }
            None
        }
        DefKind::Copy(from) => Some(from),
        DefKind::Passed(from) => {
            note(NoteKind::Passed);
            Some(from)
        }
        DefKind::Spill(from) => {
            let offset = match def.holder {
                Holder::Slot { spi, .. } => -8 * (spi as i32 + 1),
                Holder::Reg { .. } => 0,
            };
            note(NoteKind::Spilled { offset });
            Some(from)
        }
        DefKind::Fill(from) => {
            note(NoteKind::Filled { value });
            Some(from)
        }
        DefKind::Narrowed(from) => {
            note(NoteKind::Narrowed { value });
            Some(from)
        }
        DefKind::StackBytes { latest, call, .. } => {
            note(NoteKind::Filled { value });
            if let Some(latest) = latest {
                let step = scene.values.defs[latest].step;
                notes.push(scene.note(step, NoteKind::PartStored));
            }
            if let Some(step) = call {
                let callee = scene.called(scene.trace.steps()[step].insn);
                let callee = callee.unwrap_or_default();
                notes.push(scene.note(step, NoteKind::WrittenByCall { callee }));
            }
            None
        }
        DefKind::Computed(left, right) => {
            let is_pointer = |id| {
                let reg = scene.defined(id);
                reg.is_some_and(|reg| !matches!(reg.kind, RegKind::Scalar | RegKind::NotInit))
            };
            note(NoteKind::Computed { value });
            match right {
                Some(right) if is_pointer(right) && !is_pointer(left) => Some(right),
                _ => Some(left),
            }
        }
        DefKind::Loaded(from) => {
            let insn = scene.trace.steps()[def.step].insn;
            let access = scene.input.insns[insn as usize].access();
            let base = access.and_then(|access| scene.trace.reg(def.step, access.base.index()));
            let from = match base {
                Some(base) => super::describe::value(scene.input, frame, base),
                None => match scene.defined(from) {
                    Some(reg) => super::describe::value(scene.input, frame, reg),
                    None => KnownValue::Unwritten,
                },
            };
            let is_context = matches!(
                from,
                KnownValue::Pointer {
                    kind: PointerTarget::Context,
                    ..
                }
            );
            let field = access
                .filter(|_| is_context)
                .and_then(|access| scene.context_field(access.off.into()));
            note(NoteKind::Loaded { from, field, value });
            None
        }
        DefKind::Returned => {
            let insn = scene.trace.steps()[def.step].insn;
            match scene.called(insn) {
                Some(callee) => note(NoteKind::Returned { callee, value }),
                None => note(NoteKind::Set { value }),
            }
            None
        }
        DefKind::Clobbered => {
            let insn = scene.trace.steps()[def.step].insn;
            let callee = scene.called(insn).unwrap_or_default();
            note(NoteKind::Clobbered { callee });
            None
        }
    }
}

/// The constant part that the offset of a pointer has where its variable part is added.
pub(super) fn variable_base(scene: &Scene<'_>, pointer: DefId) -> Option<i64> {
    let mut id = scene.values.same(pointer);
    while let DefKind::Computed(left, None) = scene.values.defs[id].kind {
        id = scene.values.same(left);
    }
    let pointer = scene.defined(id)?;
    let is_variable = !pointer.is_scalar() && !pointer.num.is_const();
    is_variable.then(|| super::describe::fixed_offset(pointer))
}

/// The scalar that makes the offset of a pointer variable: the definition of the widest
/// one that was added, and the register that held it then.
pub(super) fn variable_part(scene: &Scene<'_>, pointer: DefId) -> Option<(DefId, Reg)> {
    let mut found: Option<(u64, DefId, Reg)> = None;
    let mut id = scene.values.same(pointer);
    while let DefKind::Computed(left, right) = scene.values.defs[id].kind {
        let step = scene.values.defs[id].step;
        let insn = scene.input.insns[scene.trace.steps()[step].insn as usize];
        let Insn::Alu { dst, src, .. } = insn else {
            break;
        };
        let mut pointer = left;
        if let (Some(right), isa::ebpf::Operand::Reg(src)) = (right, src) {
            let left_reg = scene.trace.reg(step, dst.index());
            let is_swapped = left_reg.is_some_and(|reg| reg.is_scalar());
            let (scalar, holder) = match is_swapped {
                true => (left, dst),
                false => (right, src),
            };
            if is_swapped {
                pointer = right;
            }
            let reg = scene.trace.reg(step, holder.index());
            if let Some(reg) = reg
                && reg.is_scalar()
                && !reg.num.is_const()
            {
                let width = reg.num.umax.wrapping_sub(reg.num.umin);
                if found.is_none_or(|(widest, ..)| width > widest) {
                    found = Some((width, scalar, holder));
                }
            }
        }
        id = scene.values.same(pointer);
    }
    found.map(|(_, id, reg)| (id, reg))
}
