//! Loads, stores and atomic instructions.

use btf::fields::FieldKind;
use isa::ebpf::{Insn, Operand, Reg};
use spec::registry::KfuncFlags;

use super::{Finding, arithmetic, bounds, number};
use crate::reason::cause::{AccessKind, Cause, NullCheck, NumberSource};
use crate::reason::describe;
use crate::reason::explanation::{Called, Note, NoteKind, PointerTarget};
use crate::reason::scene::Scene;
use crate::reason::values::{DefId, DefKind};
use crate::reason::{merged, origin, places};
use crate::rejection::{Mem, Rejection};
use crate::state::{RegBase, RegKind, RegState, SlotKind, TypeFlags};

/// Pointee of a register of the refused instruction.
pub(super) fn kind_of(scene: &Scene<'_>, reg: Reg) -> PointerTarget {
    match scene.reg(reg) {
        Some(state) => describe::pointer_kind(scene.input, scene.frame(), state),
        None => PointerTarget::Other(RegBase::NotInit.plain().into()),
    }
}

/// The pointer that the instruction goes through, or the register that the reason names.
fn pointer(scene: &Scene<'_>) -> Option<Reg> {
    match scene.access() {
        Some(access) => Some(access.base),
        None => scene.named_register(),
    }
}

/// Use of a pointer by the refused instruction.
pub(super) fn access_kind(scene: &Scene<'_>, reg: Reg) -> AccessKind {
    match scene.insn() {
        Some(Insn::Call(_)) => AccessKind::Argument {
            callee: scene.callee().unwrap_or_default(),
            number: reg.number(),
        },
        Some(insn) => match insn.access() {
            Some(access) if access.writes => AccessKind::Write,
            Some(_) => AccessKind::Read,
            None => AccessKind::Arithmetic,
        },
        None => AccessKind::Read,
    }
}

/// A pointer that may be null.
pub(super) fn maybe_null(scene: &Scene<'_>) -> Option<Finding> {
    if let Some(finding) = arithmetic::impossible(scene) {
        return Some(finding);
    }
    let reg = match scene.insn()? {
        Insn::Alu { dst, src, .. } => {
            let is_null = |reg: &Reg| scene.reg(*reg).is_some_and(RegState::may_be_null);
            let src = match src {
                Operand::Reg(src) => Some(src),
                Operand::Imm(_) => None,
            };
            [Some(dst), src].into_iter().flatten().find(is_null)?
        }
        Insn::Call(_) => scene.named_register()?,
        _ => pointer(scene)?,
    };
    Some(null_pointer(scene, reg))
}

/// A pointer in a register that may be null, and the checks that are not of it.
pub(super) fn null_pointer(scene: &Scene<'_>, reg: Reg) -> Finding {
    let root = match scene.last() {
        Some(_) => scene.values.same(scene.def(reg)),
        None => 0,
    };
    let made_at = scene.values.defs.get(root).map(|def| def.step);
    let callee = made_at
        .filter(|_| matches!(scene.values.defs[root].kind, DefKind::Returned))
        .and_then(|step| scene.called(scene.trace.steps()[step].insn));
    let (check, note) = match scene.last() {
        Some(_) => null_check(scene, root, callee.as_ref()),
        None => (NullCheck::Missing, None),
    };
    let cause = Cause::MaybeNull {
        reg: reg.number(),
        kind: kind_of(scene, reg),
        callee,
        access: access_kind(scene, reg),
        check,
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    note.into_iter().for_each(|note| finding.add(note));
    finding
}

/// The last comparison with null on the path that was meant for a pointer.
fn null_check(
    scene: &Scene<'_>,
    root: DefId,
    callee: Option<&Called>,
) -> (NullCheck, Option<Note>) {
    for branch in scene.values.branches.iter().rev() {
        let is_null_check = matches!(scene.compared(branch), Some((_, None)));
        let compared = scene.values.same(branch.dst);
        if !is_null_check || compared == root {
            continue;
        }
        if places::is_reread(scene, root, compared) {
            let note = scene.note(branch.step, NoteKind::EarlierNullCheck);
            return (NullCheck::Reread, Some(note));
        }
        let def = scene.values.defs[compared];
        let insn = scene.trace.steps()[def.step].insn;
        if matches!(def.kind, DefKind::Returned)
            && callee.is_some()
            && scene.called(insn).as_ref() == callee
        {
            let note = scene.note(branch.step, NoteKind::OtherNullCheck);
            return (NullCheck::OtherResult, Some(note));
        }
    }
    (NullCheck::Missing, None)
}

/// A number, or a pointer of a kind that is not accessed so.
pub(super) fn wrong_type(scene: &Scene<'_>) -> Option<Finding> {
    let reg = pointer(scene)?;
    let state = *scene.reg(reg)?;
    if matches!(
        scene.insn()?,
        Insn::Atomic { .. } | Insn::LoadAcquire { .. } | Insn::StoreRelease { .. }
    ) && !state.is_scalar()
    {
        let kind = kind_of(scene, reg);
        return Some(Finding::about(scene, Cause::Atomic { kind }, &[reg]));
    }
    if state.is_scalar() {
        return Some(not_pointer(scene, reg));
    }
    if let (Rejection::Mem(Mem::KptrType { .. }), Some(Insn::Call(_))) =
        (&*scene.refusal.rejection, scene.insn())
    {
        let cause = Cause::FieldType {
            field: FieldKind::KptrRef,
            found: scene.value(&state),
            expected: kptr_type(scene),
        };
        return Some(Finding::about(scene, cause, &[reg]));
    }
    let stored = scene.named_register().filter(|named| *named != reg);
    if let (Some(stored), Some(field)) = (stored, special_field(scene, reg, &state)) {
        let expected = kptr_type(scene);
        let cause = Cause::FieldType {
            field,
            found: scene.value_of(stored),
            expected,
        };
        return Some(Finding::about(scene, cause, &[stored, reg]));
    }
    if scene.refusal.errno == crate::Errno::EINVAL {
        return Some(Finding::about(scene, Cause::MixedPointers, &[reg]));
    }
    let cause = Cause::NotAccessible {
        reg: reg.number(),
        value: scene.value(&state),
    };
    Some(Finding::about(scene, cause, &[reg]))
}

/// Structure that a kptr points to, if the refusal tells it.
fn kptr_type(scene: &Scene<'_>) -> Option<String> {
    match &*scene.refusal.rejection {
        Rejection::Mem(Mem::KptrType { wanted, .. }) => Some(wanted.clone()),
        _ => None,
    }
}

/// A number that is used as a pointer.
pub(super) fn not_pointer(scene: &Scene<'_>, reg: Reg) -> Finding {
    let (source, notes) = number::source(scene, reg);
    let is_null = scene
        .reg(reg)
        .is_some_and(|reg| reg.num.as_const() == Some(0));
    if let NumberSource::Result { callee } = &source
        && is_null
        && callee.flags.has(KfuncFlags::ITER_NEXT)
    {
        // At the end of an iterator, on a path of its own.
        return null_pointer(scene, reg);
    }
    let cause = Cause::NotPointer {
        reg: reg.number(),
        source,
        access: access_kind(scene, reg),
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    notes.into_iter().for_each(|note| finding.add(note));
    finding
}

pub(super) fn misaligned(scene: &Scene<'_>) -> Option<Finding> {
    let reg = pointer(scene).or_else(|| misaligned_argument(scene))?;
    let state = *scene.reg(reg)?;
    if state.is_scalar() {
        return Some(not_pointer(scene, reg));
    }
    if !scene.input.strict_alignment
        && let Some(field) = special_field(scene, reg, &state)
    {
        let by_helper = matches!(scene.insn()?, Insn::Call(_));
        let cause = Cause::SpecialField { field, by_helper };
        return Some(Finding::about(scene, cause, &[reg]));
    }
    let access = scene.access();
    let off = describe::fixed_offset(&state) + access.map_or(0, |access| access.off.into());
    let cause = Cause::Misaligned {
        reg: reg.number(),
        kind: kind_of(scene, reg),
        off,
        size: match access {
            Some(access) => access.size.bytes(),
            None => scene.argument_bytes(reg.number()).unwrap_or(0),
        },
    };
    Some(Finding::about(scene, cause, &[reg]))
}

/// The first argument of a call that must be aligned to its size and is not.
fn misaligned_argument(scene: &Scene<'_>) -> Option<Reg> {
    let prototype = scene.prototype()?;
    let mut arguments = isa::ebpf::RegSet::ARGUMENTS.iter().zip(&prototype.args);
    let found = arguments.find(|(reg, arg)| {
        let Some(state) = scene.reg(*reg) else {
            return false;
        };
        let size = i64::from(scene.argument_bytes(reg.number()).unwrap_or(1)).max(1);
        let is_fixed = state.num.is_const() && describe::fixed_offset(state) % size == 0;
        arg.flags.has(TypeFlags::MEM_ALIGNED) && !state.is_scalar() && !is_fixed
    });
    Some(found?.0)
}

/// Accesses that what a pointer points to does not allow.
pub(super) fn forbidden(scene: &Scene<'_>) -> Option<Finding> {
    let insn = scene.insn()?;
    if insn.writes().contains(Reg::R10) {
        return Some(Finding::new(Cause::FramePointer));
    }
    let is_call = matches!(insn, Insn::Call(_));
    let reg = match insn.access() {
        Some(access) => access.base,
        None if is_call => call_pointer(scene)?,
        None => return None,
    };
    let state = *scene.reg(reg)?;
    let is_write = insn.access().is_some_and(|access| access.writes);
    let cause = if let RegKind::MapValue { .. } = state.kind {
        Cause::SpecialField {
            field: special_field(scene, reg, &state)?,
            by_helper: is_call,
        }
    } else if state.kind.is_packet() && is_call {
        Cause::PacketArgument {
            callee: scene.callee()?,
            number: reg.number(),
        }
    } else if let RegKind::BtfId { ty } = state.kind {
        Cause::Object {
            name: scene.input.type_name(ty),
            module: scene.input.module_with_copy(ty).map(str::to_owned),
            is_write,
            fault: None,
        }
    } else if is_write || is_call {
        return Some(read_only(scene, reg));
    } else {
        return None;
    };
    Some(Finding::about(scene, cause, &[reg]))
}

/// Memory that the refused instruction may only read.
pub(super) fn read_only(scene: &Scene<'_>, reg: Reg) -> Finding {
    let (kind, callee) = (kind_of(scene, reg), scene.callee());
    Finding::about(scene, Cause::ReadOnly { kind, callee }, &[reg])
}

/// The argument that the refusal is about: the named one, or the one into the packet.
fn call_pointer(scene: &Scene<'_>) -> Option<Reg> {
    if let Some(named) = scene.named_register() {
        return Some(named);
    }
    let is_meant = |reg: &Reg| {
        let state = scene.reg(*reg);
        state.is_some_and(|state| {
            state.kind.is_packet() || matches!(state.kind, RegKind::MapValue { .. })
        })
    };
    isa::ebpf::RegSet::ARGUMENTS.iter().find(is_meant)
}

/// The special field that an access to a map value touches.
fn special_field(scene: &Scene<'_>, reg: Reg, state: &RegState) -> Option<FieldKind> {
    let RegKind::MapValue { map, .. } = state.kind else {
        return None;
    };
    let access = scene.access();
    let first = describe::fixed_offset(state) + access.map_or(0, |access| access.off.into());
    let first = first.saturating_add(match state.num.is_const() {
        true => 0,
        false => state.num.smin,
    });
    let size = match access {
        Some(access) => access.size.bytes(),
        None => scene.argument_bytes(reg.number()).unwrap_or(u32::MAX),
    };
    let end = first.saturating_add(size.into());
    let fields = scene.input.maps[map].record().fields().iter();
    let mut touched = fields.filter(|field| {
        let start = i64::from(field.offset);
        start < end && first < start + i64::from(field.kind.size())
    });
    touched.next().map(|field| field.kind)
}

/// A pointer that must be passed or accessed without an offset.
pub(super) fn modified(scene: &Scene<'_>) -> Option<Finding> {
    let mut reg = pointer(scene).or_else(|| modified_argument(scene))?;
    let is_plain = |state: &RegState| state.num.is_const() && describe::fixed_offset(state) == 0;
    if scene.reg(reg).is_some_and(is_plain)
        && let Some(Insn::Store {
            src: Operand::Reg(src),
            ..
        }) = scene.insn()
    {
        // A pointer that is stored where the kernel keeps pointers.
        reg = src;
    }
    let state = *scene.reg(reg)?;
    if state.may_be_null() {
        return Some(null_pointer(scene, reg));
    }
    let is_call = matches!(scene.insn()?, Insn::Call(_));
    let (merged, branch) = match scene.access() {
        Some(access) if state.kind == RegKind::Ctx && access.base == reg => {
            merged::members(scene, access, &state)
        }
        _ => (None, None),
    };
    let cause = Cause::Modified {
        reg: reg.number(),
        kind: kind_of(scene, reg),
        is_variable: !state.num.is_const(),
        off: describe::fixed_offset(&state),
        callee: scene.callee().filter(|_| is_call),
        merged,
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    branch.into_iter().for_each(|note| finding.add(note));
    if let Some((id, _)) = origin::variable_part(scene, scene.def(reg)) {
        origin::of(scene, id)
            .into_iter()
            .for_each(|note| finding.add(note));
    }
    Some(finding)
}

/// The first argument of a call that is a pointer with an offset, other than into memory.
fn modified_argument(scene: &Scene<'_>) -> Option<Reg> {
    let is_modified = |reg: &Reg| {
        scene.reg(*reg).is_some_and(|state| {
            let is_object = matches!(state.kind, RegKind::Ctx | RegKind::BtfId { .. });
            is_object && !(state.num.is_const() && describe::fixed_offset(state) == 0)
        })
    };
    isa::ebpf::RegSet::ARGUMENTS.iter().find(is_modified)
}

/// Stack whose contents were dropped.
fn poisoned(scene: &Scene<'_>) -> Option<Finding> {
    let (reg, at) = match *scene.refusal.rejection {
        Rejection::Mem(Mem::StackPoisoned { off, index, .. }) => (None, off + index),
        Rejection::Mem(Mem::ArgumentPoisoned {
            reg, min, index, ..
        }) => (Reg::new(reg.number()), min + index),
        _ => return None,
    };
    let reg = reg.or_else(|| pointer(scene));
    let varies = |reg: Reg| scene.reg(reg).is_some_and(|state| !state.num.is_const());
    let proto = scene.prototype();
    let by_prototype = proto.is_some_and(|proto| {
        reg.and_then(|reg| proto.args.get(usize::from(reg.number()).checked_sub(1)?))
            .is_some_and(|ty| ty.flags.has(TypeFlags::MEM_UNINIT))
    });
    let cause = Cause::StackPoisoned {
        off: Some(at).filter(|_| !reg.is_some_and(varies)),
        callee: scene.callee(),
        by_prototype,
    };
    Some(Finding {
        subjects: reg.into_iter().collect(),
        ..Finding::new(cause)
    })
}

/// Stack that was not written, or holds a pointer that is accessed in part.
pub(super) fn stack(scene: &Scene<'_>) -> Option<Finding> {
    if let Some(finding) = poisoned(scene) {
        return Some(finding);
    }
    let insn = scene.insn()?;
    let access = insn.access();
    let reg = pointer(scene).or_else(|| {
        let is_stack = |reg: &Reg| {
            let state = scene.reg(*reg);
            state.is_some_and(|state| matches!(state.kind, RegKind::Stack { .. }))
        };
        isa::ebpf::RegSet::ARGUMENTS.iter().find(is_stack)
    })?;
    let state = *scene.reg(reg)?;
    let RegKind::Stack { frame } = state.kind else {
        return None;
    };
    if !state.num.is_const() {
        return bounds::outside(scene);
    }
    let off = describe::fixed_offset(&state) + access.map_or(0, |access| access.off.into());
    let is_write = access.is_some_and(|access| access.writes);
    let slot = usize::try_from(-off - 1).ok().and_then(|below| {
        let last = scene.last()?;
        scene
            .trace
            .frame(last, frame as usize)?
            .stack
            .get(below / 8)
            .copied()
    });
    let is_spilled = slot.is_some_and(|slot| slot.kinds.contains(&SlotKind::Spill));
    let size = match access {
        Some(access) => access.size.bytes(),
        None => scene.argument_bytes(reg.number()).unwrap_or(0),
    };
    if !is_write && let Some(finding) = super::stack_object::read(scene, reg, off, size) {
        return Some(finding);
    }
    let cause = match access {
        Some(_) if is_write => Cause::SpillPart { is_read: false },
        Some(_) if is_spilled => Cause::SpillPart { is_read: true },
        _ => Cause::StackUnwritten {
            off,
            size,
            callee: scene.callee(),
        },
    };
    Some(Finding {
        subjects: vec![reg],
        ..Finding::new(cause)
    })
}
