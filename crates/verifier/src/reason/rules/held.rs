//! References, locks and sections: what a program holds where it must not.

use isa::ebpf::{Callee, Insn, Reg};
use spec::helpers::HelperId;
use spec::registry::TypeFlags;

use super::{Finding, call, number};
use crate::reason::cause::{Cause, LockFault, MapMisuse};
use crate::reason::explanation::{Note, NoteKind};
use crate::reason::scene::Scene;
use crate::rejection::{Call, Rejection};
use crate::state::{MapRef, ReferenceKind, RegKind};

/// End of a path: `exit` or the callee.
fn end(scene: &Scene<'_>) -> String {
    match scene.insn() {
        Some(Insn::Call(_)) => scene.callee().unwrap_or_default(),
        Some(Insn::PacketAbs { .. } | Insn::PacketInd { .. }) => String::from("packet load"),
        _ => String::from("exit"),
    }
}

/// References that are left, or that are not there to be released.
pub(super) fn reference(scene: &Scene<'_>) -> Option<Finding> {
    let known = scene.trace.known(scene.last()?)?;
    let released = scene.prototype().and_then(|proto| {
        let is_released = |arg: &spec::registry::ArgType| arg.flags.has(TypeFlags::OBJ_RELEASE);
        proto.args.iter().position(is_released)
    });
    if let Some(index) = released {
        let reg = Reg::new(index as u8 + 1)?;
        let mut notes = Vec::new();
        let released_by = number::lost_at(scene, scene.def(reg)).and_then(|(step, _)| {
            let insn = scene.trace.steps()[step].insn;
            let callee = scene.callee_name(insn)?;
            notes.push(scene.note(
                step,
                NoteKind::Invalidated {
                    callee: callee.clone(),
                },
            ));
            Some(callee)
        });
        let cause = Cause::NotAcquired {
            callee: scene.callee()?,
            number: reg.number(),
            released_by,
        };
        let mut finding = Finding::about(scene, cause, &[reg]);
        notes.into_iter().for_each(|note| finding.add(note));
        return Some(finding);
    }
    let left = { known.refs.iter() }.filter(|held| held.kind == ReferenceKind::Pointer);
    let left: Vec<u32> = left.map(|held| held.insn_idx).collect();
    if left.is_empty() {
        return None;
    }
    let acquired = |&insn: &u32| scene.callee_name(insn).unwrap_or_default();
    let notes = left.iter().map(|insn| Note {
        place: scene.place(*insn),
        step: scene.step_of(*insn),
        kind: NoteKind::Acquired {
            callee: acquired(insn),
        },
    });
    Some(Finding {
        notes: notes.collect(),
        ..Finding::new(Cause::Leak {
            acquired: left.iter().map(acquired).collect(),
            end: end(scene),
        })
    })
}

/// Locks.
pub(super) fn lock(scene: &Scene<'_>) -> Option<Finding> {
    let known = scene.trace.known(scene.last()?)?;
    let held = known.refs.iter().filter(|held| held.kind.is_lock());
    let notes: Vec<Note> = held
        .map(|held| Note {
            place: scene.place(held.insn_idx),
            step: scene.step_of(held.insn_idx),
            kind: NoteKind::Locked {
                callee: scene.callee_name(held.insn_idx).unwrap_or_default(),
            },
        })
        .collect();
    let callee = match scene.insn()? {
        Insn::Call(callee) => Some(callee),
        _ => None,
    };
    let is_held = known.locks > 0;
    let of_rejection = match *scene.refusal.rejection {
        Rejection::Call(Call::UnlockWithoutLock { .. }) => Some(LockFault::NotHeld),
        Rejection::Call(Call::UnlockOther { .. } | Call::UnlockOrder { .. }) => {
            Some(LockFault::Other)
        }
        _ => None,
    };
    let fault = match callee.map(HelperId::of_call) {
        Some(Some(HelperId::SpinLock | HelperId::SpinUnlock)) if lock_map(scene).is_some() => {
            let (id, field) = (lock_map(scene)?, "struct bpf_spin_lock");
            let (map, kind) = call::map_of(scene, id);
            let fault = match scene.input.maps[id].types_refusal() {
                Some(refusal) => MapMisuse::WithoutBtf {
                    field,
                    refusal: Box::new(refusal.clone()),
                },
                None => MapMisuse::Field(field),
            };
            return Some(Finding::about(
                scene,
                Cause::Map { map, kind, fault },
                &[Reg::R1],
            ));
        }
        Some(Some(HelperId::SpinLock)) if is_held => LockFault::Second,
        Some(Some(HelperId::SpinLock)) => LockFault::NotLock,
        Some(Some(HelperId::SpinUnlock)) if is_held => LockFault::Other,
        Some(Some(HelperId::SpinUnlock)) => LockFault::NotHeld,
        Some(None) if of_rejection.is_some() => of_rejection?,
        _ if !is_held => return None,
        Some(Some(HelperId::TailCall)) | None => LockFault::Held { end: end(scene) },
        Some(_) => LockFault::Call {
            callee: scene.callee()?,
        },
    };
    Some(Finding {
        notes,
        subjects: match fault {
            LockFault::Other | LockFault::NotLock => vec![Reg::R1],
            _ => Vec::new(),
        },
        ..Finding::new(Cause::Lock { fault })
    })
}

/// The map of the lock argument, if its values have no lock.
fn lock_map(scene: &Scene<'_>) -> Option<MapRef> {
    let RegKind::MapValue { map, .. } = scene.reg(Reg::R1)?.kind else {
        return None;
    };
    let record = scene.input.maps[map].record();
    let has_lock = record.has(btf::fields::FieldKind::SpinLock);
    (!has_lock).then_some(map)
}

/// Sections in which calls must not sleep and the program must not end, and calls that are in none
/// or in a second one.
pub(super) fn section(scene: &Scene<'_>) -> Option<Finding> {
    let section = match *scene.refusal.rejection {
        Rejection::Call(Call::UnmatchedPreemptEnable { .. }) => Some("bpf_preempt_disable"),
        Rejection::Call(
            Call::NestedRcuLock { .. } | Call::UnmatchedRcuUnlock { .. } | Call::RequiresRcu { .. },
        ) => Some("bpf_rcu_read_lock"),
        _ => None,
    };
    if let Some(section) = section {
        let is_nested = matches!(
            *scene.refusal.rejection,
            Rejection::Call(Call::NestedRcuLock { .. })
        );
        return Some(Finding::new(Cause::SectionCall {
            callee: scene.callee()?,
            section,
            is_nested,
        }));
    }
    let known = scene.trace.known(scene.last()?)?;
    let section = known.section;
    let is_call = matches!(scene.insn()?, Insn::Call(callee) if !is_tail_call(callee));
    let cause = match section {
        Some(section) if !is_call => Cause::SectionOpen {
            section,
            end: end(scene),
        },
        _ => Cause::Sleeps {
            callee: scene.callee()?,
            section,
        },
    };
    Some(Finding::new(cause))
}

fn is_tail_call(callee: Callee) -> bool {
    HelperId::of_call(callee) == Some(HelperId::TailCall)
}
