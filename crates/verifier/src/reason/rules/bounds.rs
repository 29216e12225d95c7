//! Accesses outside of what a pointer points to, and sizes that are not bounded.

use isa::ebpf::{Insn, Reg, RegSet};
use spec::registry::ArgBase;

use super::check::find_check;
use super::{Finding, arithmetic, memory, packet};
use crate::mem::{MAX_STACK, MAX_VAR_OFF};
use crate::reason::cause::{BoundsFault, Cause, Check, MapPart, SizeFault};
use crate::reason::describe;
use crate::reason::origin;
use crate::reason::scene::Scene;
use crate::rejection::{Call, Mem, Rejection};
use crate::state::{RegKind, RegState};
use crate::verdict::RefusalKind;

/// An access outside, through a pointer or as an argument of a call.
pub(super) fn outside(scene: &Scene<'_>) -> Option<Finding> {
    let insn = scene.insn()?;
    if matches!(insn, Insn::Alu { .. }) {
        return arithmetic::unbounded(scene);
    }
    let access = insn.access();
    let reg = match access {
        Some(access) => access.base,
        None => scene.named_register().or_else(|| object_argument(scene))?,
    };
    let state = *scene.reg(reg)?;
    if state.is_scalar() {
        return size_argument(scene, reg, &state);
    }
    if let (Rejection::Mem(Mem::ObjectField { fault }), RegKind::BtfId { ty }) =
        (&*scene.refusal.rejection, state.kind)
    {
        let cause = Cause::Object {
            name: scene.input.type_name(ty),
            module: None,
            is_write: access.is_some_and(|access| access.writes),
            fault: Some(fault.clone()),
        };
        return Some(Finding::about(scene, cause, &[reg]));
    }
    let off = describe::fixed_offset(&state) + access.map_or(0, |access| access.off.into());
    let size = match access {
        Some(access) => access.size.bytes(),
        None => scene.argument_bytes(reg.number()).unwrap_or(0),
    };
    let is_in_frame = off >= -MAX_STACK && off + i64::from(size) <= 0;
    let is_stack = matches!(state.kind, RegKind::Stack { .. });
    // Without CAP_PERFMON, the stack ends where the function wrote last.
    if is_stack && access.is_some() && state.num.is_const() && is_in_frame {
        return memory::stack(scene);
    }
    Some(at(scene, reg, &state, off, size))
}

/// Memory of so many bytes that an argument does not point to.
pub(super) fn of_argument(scene: &Scene<'_>, reg: Reg, size: u32) -> Finding {
    let state = scene.reg(reg).copied().unwrap_or(RegState::UNKNOWN);
    at(scene, reg, &state, describe::fixed_offset(&state), size)
}

fn at(scene: &Scene<'_>, reg: Reg, state: &RegState, off: i64, size: u32) -> Finding {
    match state.kind.packet_range() {
        Some(range) if state.num.smin >= 0 => packet::outside(scene, reg, state, off, size, range),
        _ => region(scene, reg, state, off, size),
    }
}

/// The first argument of a call that points to an object of the kernel.
fn object_argument(scene: &Scene<'_>) -> Option<Reg> {
    let is_object = |reg: &Reg| {
        let state = scene.reg(*reg);
        state.is_some_and(|state| matches!(state.kind, RegKind::BtfId { .. }))
    };
    RegSet::ARGUMENTS.iter().find(is_object)
}

/// Bytes that may be accessed from the start of what a pointer points to.
fn limit(scene: &Scene<'_>, state: &RegState) -> Option<u32> {
    if let RegKind::MapValue { map, .. } = state.kind {
        return Some(scene.input.maps[map].value_size());
    }
    if let RegKind::MapKey { map, .. } = state.kind {
        return Some(scene.input.maps[map].key_size());
    }
    let RegKind::Mem { size, .. } = state.kind else {
        return None;
    };
    Some(size)
}

fn region(scene: &Scene<'_>, reg: Reg, state: &RegState, off: i64, size: u32) -> Finding {
    let limit = limit(scene, state);
    let is_stack = matches!(state.kind, RegKind::Stack { .. });
    let num = state.num;
    let (first, end) = match is_stack {
        true => (-MAX_STACK, 0),
        false => (0, limit.map_or(i64::MAX, i64::from)),
    };
    let least = off.saturating_add(num.smin);
    // As an unsigned number, a negative one is large.
    let most = match num.smin {
        ..0 => num.smax,
        0.. => i64::try_from(num.umax).unwrap_or(i64::MAX),
    };
    let greatest = off.saturating_add(most).saturating_add(size.into());
    let fault = if num.is_const() {
        BoundsFault::Constant
    } else if least < first {
        BoundsFault::Below
    } else if most >= MAX_VAR_OFF {
        BoundsFault::Unbounded
    } else if greatest > end {
        BoundsFault::Above
    } else {
        BoundsFault::Variable
    };
    let variable = origin::variable_part(scene, scene.def(reg));
    // The least and the greatest of both are added.
    let with_size = fault == BoundsFault::Above
        && off.saturating_add(most) < end
        && size_register(scene, reg)
            .and_then(|size| scene.reg(size))
            .is_some_and(|size| !size.num.is_const());
    let (check, notes) = match (fault, variable) {
        _ if with_size => (Check::WithSize, Vec::new()),
        (BoundsFault::Constant, _) | (_, None) => (Check::NotApplicable, Vec::new()),
        (_, Some((id, _))) => find_check(scene, id, fault),
    };
    let index = (!num.is_const()).then(|| (variable.map(|(_, reg)| reg.number()), num));
    let cause = Cause::Bounds {
        reg: reg.number(),
        kind: describe::pointer_kind(scene.input, scene.frame(), state),
        limit,
        off,
        size,
        index,
        fault,
        check,
        of_map: map_argument(scene, reg),
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    if let Some((id, _)) = variable {
        // The index is the offending value; of the pointer, the last step is enough.
        let pointer = finding.notes.pop();
        finding.notes = origin::of(scene, id);
        pointer.into_iter().for_each(|note| finding.add(note));
    }
    notes.into_iter().for_each(|note| finding.add(note));
    add_size_register(scene, &mut finding, reg);
    finding
}

/// Of an argument that is the key or value of a map, which of them and the map.
fn map_argument(scene: &Scene<'_>, reg: Reg) -> Option<(MapPart, String)> {
    let index = usize::from(reg.number()).checked_sub(1)?;
    let base = scene.prototype()?.args.get(index)?.base;
    let parts = [
        (ArgBase::PtrToMapKey, MapPart::Key),
        (ArgBase::PtrToMapValue, MapPart::Value),
    ];
    let (_, part) = parts.into_iter().find(|(of, _)| *of == base)?;
    let (_, map) = super::call::map_pointer(scene)?;
    Some((part, describe::map_name(scene.input, map)))
}

/// Of an argument that points to memory, the size argument behind it.
fn size_register(scene: &Scene<'_>, reg: Reg) -> Option<Reg> {
    let next = Reg::new(reg.number() + 1).filter(|_| scene.prototype().is_some())?;
    scene.reg(next)?.is_scalar().then_some(next)
}

/// Adds the size argument of an argument that points to memory.
pub(super) fn add_size_register(scene: &Scene<'_>, finding: &mut Finding, reg: Reg) {
    finding.subjects.extend(size_register(scene, reg));
}

/// The size argument of a helper.
fn size_argument(scene: &Scene<'_>, reg: Reg, state: &RegState) -> Option<Finding> {
    let num = state.num;
    let is_zero_refused = scene.refusal.kind == RefusalKind::Argument
        && !matches!(
            *scene.refusal.rejection,
            Rejection::Call(Call::SizedMemory { .. })
        );
    let fault = if num.smin < 0 {
        SizeFault::Negative
    } else if is_zero_refused && num.umin == 0 {
        SizeFault::Zero
    } else if num.umax >= MAX_VAR_OFF as u64 {
        SizeFault::Unbounded
    } else {
        return None;
    };
    let bounds_fault = match fault {
        SizeFault::Unbounded => BoundsFault::Unbounded,
        SizeFault::Negative | SizeFault::Zero => BoundsFault::Below,
    };
    let (check, notes) = match num.is_const() {
        true => (Check::NotApplicable, Vec::new()),
        false => find_check(scene, scene.def(reg), bounds_fault),
    };
    let cause = Cause::ArgumentSize {
        callee: scene.callee()?,
        number: reg.number(),
        fault,
        value: num,
        check,
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    notes.into_iter().for_each(|note| finding.add(note));
    Some(finding)
}

/// As a rule of its own, for the class of arguments.
pub(super) fn size(scene: &Scene<'_>, reg: Reg) -> Option<Finding> {
    let state = *scene.reg(reg)?;
    size_argument(scene, reg, &state)
}
