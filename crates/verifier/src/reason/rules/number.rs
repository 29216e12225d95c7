//! Numbers that are used as pointers: what they are, or were.

use isa::ebpf::{Insn, Reg};

use crate::reason::cause::{LostObject, NumberSource};
use crate::reason::describe;
use crate::reason::explanation::{Note, NoteKind};
use crate::reason::scene::Scene;
use crate::reason::values::{DefId, DefKind, Holder};
use crate::state::{RegKind, RegState, TypeFlags};

/// Place where a pointer became a number: the step and the pointer.
pub(super) fn lost_at(scene: &Scene<'_>, id: DefId) -> Option<(usize, RegState)> {
    let mut end = scene.last()?;
    let mut id = id;
    loop {
        let def = scene.values.defs[id];
        if let Some(step) = scene.type_change(def.from, end, def.holder) {
            let before = *scene.holder(step, def.holder)?;
            let is_pointer = !matches!(before.kind, RegKind::Scalar | RegKind::NotInit);
            return is_pointer.then_some((step, before));
        }
        end = def.step;
        id = made_of(def.kind)?;
    }
}

/// The value that another is, what was added to it left out.
fn made_of(kind: DefKind) -> Option<DefId> {
    match kind {
        DefKind::Copy(from)
        | DefKind::Passed(from)
        | DefKind::Spill(from)
        | DefKind::Fill(from)
        | DefKind::Computed(from, _) => Some(from),
        _ => None,
    }
}

/// The last step at which a value, or what it is a copy of, changed so.
pub(super) fn change(
    scene: &Scene<'_>,
    id: DefId,
    changes: impl Fn(&RegState, &RegState) -> bool,
) -> Option<usize> {
    let mut end = scene.last()?;
    let mut id = id;
    loop {
        let def = scene.values.defs[id];
        let is_change = |step: &usize| {
            let before = scene.holder(*step, def.holder);
            let after = scene.holder(*step + 1, def.holder);
            matches!((before, after), (Some(before), Some(after)) if changes(before, after))
        };
        if let Some(step) = (def.from..end).rev().find(is_change) {
            return Some(step);
        }
        end = def.step;
        id = made_of(def.kind)?;
    }
}

/// True for a pointer that a comparison, a call or a store has made a number.
pub(super) fn is_lost(source: &NumberSource) -> bool {
    matches!(
        source,
        NumberSource::ShownNull
            | NumberSource::PacketMoved { .. }
            | NumberSource::Released { .. }
            | NumberSource::Overwritten
            | NumberSource::DynptrOverwritten
    )
}

/// Origin of a number that is used as a pointer, with notes beyond its definition.
pub(super) fn source(scene: &Scene<'_>, reg: Reg) -> (NumberSource, Vec<Note>) {
    let id = scene.def(reg);
    if let Some((step, before)) = lost_at(scene, id) {
        let insn = scene.trace.steps()[step].insn;
        if matches!(scene.input.insns[insn as usize], Insn::Jump { .. }) {
            let note = scene.note(step, NoteKind::ShownNull);
            return (NumberSource::ShownNull, vec![note]);
        }
        let Some(callee) = scene.called(insn) else {
            let source = match is_slice(&before) {
                true => NumberSource::DynptrOverwritten,
                false => NumberSource::Overwritten,
            };
            return (source, vec![scene.note(step, NoteKind::PartStored)]);
        };
        let note = scene.note(
            step,
            NoteKind::Invalidated {
                callee: callee.clone(),
            },
        );
        let source = match before.kind {
            kind if kind.is_packet() || kind == RegKind::PacketEnd => {
                NumberSource::PacketMoved { callee }
            }
            _ => NumberSource::Released {
                callee,
                object: match before.is_non_owning() {
                    true => LostObject::Node,
                    false if is_slice(&before) => LostObject::Slice,
                    false => LostObject::Acquired,
                },
            },
        };
        return (source, vec![note]);
    }
    (of_definition(scene, reg, id), Vec::new())
}

/// True for a pointer to bytes of a dynptr.
fn is_slice(reg: &RegState) -> bool {
    matches!(reg.kind, RegKind::Mem { .. }) && !reg.flags.has(TypeFlags::MEM_RINGBUF)
}

fn of_definition(scene: &Scene<'_>, reg: Reg, id: DefId) -> NumberSource {
    let def = scene.values.defs[scene.values.same(id)];
    match def.kind {
        DefKind::Immediate => {
            let value = scene.reg(reg).map_or(0, |reg| reg.num.var_off.value) as i64;
            let set = scene.defined(scene.values.same(id));
            match set.is_some_and(RegState::is_null) && value != 0 {
                true => NumberSource::NullPlus(value),
                false => NumberSource::Constant(value),
            }
        }
        DefKind::Loaded(_) => {
            let insn = scene.trace.steps()[def.step].insn;
            let access = scene.input.insns[insn as usize].access();
            let frame = usize::from(scene.trace.steps()[def.step].frame);
            let base = access.and_then(|access| scene.trace.reg(def.step, access.base.index()));
            match base {
                Some(base) if base.kind == RegKind::Ctx => {
                    let off = access.map_or(0, |access| i64::from(access.off));
                    NumberSource::ContextField(scene.context_field(off))
                }
                Some(base) => {
                    NumberSource::Memory(describe::pointer_kind(scene.input, frame, base))
                }
                None => NumberSource::Unknown,
            }
        }
        DefKind::Returned => {
            let insn = scene.trace.steps()[def.step].insn;
            match scene.called(insn) {
                Some(callee) => NumberSource::Result { callee },
                None => NumberSource::Unknown,
            }
        }
        DefKind::Narrowed(from) | DefKind::Computed(from, None) => {
            let from_pointer = scene.defined(from);
            let is_pointer = from_pointer
                .is_some_and(|from| !matches!(from.kind, RegKind::Scalar | RegKind::NotInit));
            match is_pointer {
                true => NumberSource::Narrowed,
                false => of_definition(scene, reg, from),
            }
        }
        DefKind::Computed(..) => NumberSource::Arithmetic,
        DefKind::StackBytes { call, .. } => {
            let insn = call.map(|step| scene.trace.steps()[step].insn);
            match insn.and_then(|insn| scene.called(insn)) {
                Some(callee) => NumberSource::WrittenByCall { callee },
                None => NumberSource::StackBytes,
            }
        }
        DefKind::Argument => match def.holder {
            Holder::Reg { reg, .. } => NumberSource::Argument { number: reg as u8 },
            Holder::Slot { .. } => NumberSource::Unknown,
        },
        _ => NumberSource::Unknown,
    }
}
