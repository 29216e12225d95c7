//! Allocated objects, lists, trees, kptrs and the fields that calls take the address of.

use btf::fields::FieldKind;
use isa::ebpf::Reg;
use spec::helpers::HelperId;

use super::{Finding, call, held, memory, number};
use crate::reason::cause::{Cause, LostObject, MapMisuse, NumberSource, ObjectFault as Fault};
use crate::reason::explanation::NoteKind;
use crate::reason::scene::Scene;
use crate::rejection::{Call, Mem, Rejection};
use crate::state::{RegKind, RegState};

/// The fault of an object, if the refusal is about one.
pub(super) fn find(scene: &Scene<'_>) -> Option<Finding> {
    let (index, fault) = fault(scene, &scene.refusal.rejection)?;
    let reg = match index {
        Some(index) => Reg::new(index as u8 + 1),
        None => scene.named_register(),
    };
    let state = reg.and_then(|reg| scene.reg(reg));
    if let Fault::NoField(name) | Fault::NoFieldInMap { name, .. } = &fault
        && let Some(finding) = without_types(scene, *name)
    {
        return Some(finding);
    }
    if fault == Fault::NotOwned
        && let (Some(reg), Some(state)) = (reg, state)
    {
        return Some(not_owned(scene, reg, state));
    }
    Some(with_cause(scene, reg, fault))
}

/// A field that the values of a map would have, if the kernel took its types.
fn without_types(scene: &Scene<'_>, field: FieldKind) -> Option<Finding> {
    let RegKind::MapValue { map, .. } = scene.reg(Reg::R1)?.kind else {
        return None;
    };
    let called = { scene.refusal.insn }.and_then(|insn| scene.callee_at(insn));
    let field = match called.and_then(HelperId::of_call) {
        Some(HelperId::KptrXchg) => FieldKind::KptrRef,
        _ => field,
    };
    let fault = call::without_field(scene, map, field.name());
    if let MapMisuse::Field(_) = fault {
        return None;
    }
    let (map, kind) = call::map_of(scene, map);
    let cause = Cause::Map { map, kind, fault };
    Some(Finding::about(scene, cause, &[Reg::R1]))
}

fn with_cause(scene: &Scene<'_>, reg: Option<Reg>, fault: Fault) -> Finding {
    let cause = Cause::AllocatedObject {
        callee: scene.callee(),
        number: reg.map(Reg::number),
        found: reg.map(|reg| scene.value_of(reg)),
        fault,
    };
    let is_about_lock = matches!(
        &cause,
        Cause::AllocatedObject {
            fault: Fault::LockNotHeld { .. } | Fault::LockedTwice,
            ..
        }
    );
    let mut finding = match reg {
        Some(reg) => Finding::about(scene, cause, &[reg]),
        None => Finding::new(cause),
    };
    if is_about_lock {
        let notes = held::locked(scene).into_iter().flatten();
        notes.for_each(|note| finding.add(note));
    }
    finding
}

/// An argument that is no object which the program owns: what it was, and which call took it.
fn not_owned(scene: &Scene<'_>, reg: Reg, state: &RegState) -> Finding {
    let (source, _) = match state.is_scalar() {
        true => number::source(scene, reg),
        false => (NumberSource::Unknown, Vec::new()),
    };
    match source {
        NumberSource::Released {
            callee,
            object: LostObject::Acquired,
        } => {
            let mut finding = with_cause(scene, Some(reg), Fault::GivenAway(callee));
            number::source(scene, reg)
                .1
                .into_iter()
                .for_each(|note| finding.add(note));
            finding
        }
        NumberSource::Unknown if state.may_be_null() => memory::null_pointer(scene, reg),
        NumberSource::Unknown if state.is_non_owning() => {
            let given = number::change(scene, scene.def(reg), |before, after| {
                !before.is_non_owning() && after.is_non_owning()
            });
            let Some(step) = given else {
                return with_cause(scene, Some(reg), Fault::NonOwning(None));
            };
            let callee = scene.called(scene.trace.steps()[step].insn);
            let callee = callee.unwrap_or_default();
            let mut finding = with_cause(scene, Some(reg), Fault::NonOwning(Some(callee.clone())));
            finding.add(scene.note(step, NoteKind::GivenAway { callee }));
            finding
        }
        NumberSource::Unknown => with_cause(scene, Some(reg), Fault::NotOwned),
        _ => memory::not_pointer(scene, reg),
    }
}

/// Index of the argument, and the fault.
fn fault(scene: &Scene<'_>, rejection: &Rejection) -> Option<(Option<i64>, Fault)> {
    let rejection = match rejection {
        Rejection::Call(rejection) => rejection,
        Rejection::Mem(Mem::ObjectSpecialField { name }) => {
            return Some((None, Fault::SpecialField(*name)));
        }
        _ => return None,
    };
    Some(match rejection {
        Call::NotAllocated { index } => (Some(*index), Fault::NotOwned),
        Call::ForObjDrop { index } => (Some(*index), Fault::OtherRelease("bpf_obj_drop")),
        Call::ForPercpuObjDrop { index } => {
            (Some(*index), Fault::OtherRelease("bpf_percpu_obj_drop"))
        }
        Call::NotRootOwner { index } | Call::NotLockOwner { index } => {
            (Some(*index), Fault::NoContainer)
        }
        Call::NeitherOwning { index } => (Some(*index), Fault::NotOwned),
        Call::ObjectNotReferenced => (None, Fault::NotOwned),
        Call::NodeNotOwned { .. } => (Some(1), Fault::NotOwned),
        Call::WithoutRefcount { index } => (Some(*index), Fault::WithoutCount),
        Call::FieldNotFound { name, .. } => {
            (Some(i64::from(name.is_node())), Fault::NoField(*name))
        }
        Call::FieldAbsentInObject { name } => (Some(0), Fault::NoField(*name)),
        Call::ExchangeWithoutBtf { map } => {
            let (map, name) = (map.clone(), FieldKind::KptrRef);
            (None, Fault::NoFieldInMap { map, name })
        }
        Call::FieldAbsent { map, name }
        | Call::FieldMissing { map, name }
        | Call::FieldWithoutBtf { map, name }
            if !locks(scene) =>
        {
            let (map, name) = (map.clone(), *name);
            (None, Fault::NoFieldInMap { map, name })
        }
        Call::FieldOffset {
            off,
            name,
            expected,
        } if !locks(scene) => {
            let fault = Fault::FieldAt {
                name: *name,
                off: *off,
                expected: *expected,
            };
            (None, fault)
        }
        Call::FieldVariable { name, .. } => (None, Fault::FieldVariable(*name)),
        Call::KptrNotReferenced { .. } => (Some(0), Fault::Unreferenced),
        Call::NoKptr { .. } | Call::NotAtKptr { .. } => {
            (Some(0), Fault::NoField(FieldKind::KptrRef))
        }
        Call::LockNotHeld { name, .. } => {
            let known = scene.trace.known(scene.last()?)?;
            let fault = Fault::LockNotHeld {
                name: *name,
                other: known.locks > 0,
            };
            (Some(0), fault)
        }
        Call::LockAgain => (Some(0), Fault::LockedTwice),
        Call::OtherNode { node, wanted, .. } | Call::NodeOffset { node, wanted, .. } => {
            (Some(1), Fault::OtherNode(*node, wanted.clone()))
        }
        Call::LockInCallback | Call::NotInCallback { .. } | Call::SectionInCallback => {
            (None, Fault::InCallback)
        }
        Call::LocalTypeRange
        | Call::AllocatesWithoutBtf
        | Call::AllocatesNoStruct
        | Call::PercpuTooLarge { .. }
        | Call::PercpuNotScalars
        | Call::PercpuSpecialFields => (Some(0), Fault::NotAllocatable),
        Call::NotMapValue { index } => (Some(*index), Fault::NotInValue),
        Call::WorkqueueOfOtherMap { .. } => (Some(1), Fault::OtherMap),
        Call::TaskWorkOfOtherMap { .. } => (Some(2), Fault::OtherMap),
        Call::TimerOfOtherMap { .. } => (Some(1), Fault::OtherMap),
        _ => return None,
    })
}

/// True if the refused call is `bpf_spin_lock` or `bpf_spin_unlock`, which have a rule of their own.
fn locks(scene: &Scene<'_>) -> bool {
    let callee = scene.refusal.insn.and_then(|insn| scene.callee_at(insn));
    callee
        .and_then(HelperId::of_call)
        .is_some_and(HelperId::is_of_lock)
}
