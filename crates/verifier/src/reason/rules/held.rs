//! References, locks and sections: what a program holds where it must not.

use btf::{Btf, Shape, TypeId};
use isa::ebpf::{Callee, Insn, Reg};
use spec::helpers::HelperId;
use spec::registry::{KfuncFlags, SpecialKfunc, TypeFlags};

use super::{Finding, call, number};
use crate::attach::{AttachedFunction, ContextEntry};
use crate::reason::cause::{Acquired, Cause, LockFault, PathEnd};
use crate::reason::explanation::{Note, NoteKind};
use crate::reason::scene::Scene;
use crate::rejection::{Call, Rejection};
use crate::state::{MapRef, ReferenceKind, RegKind, RegRules, Section};

/// End of the refused path.
fn end(scene: &Scene<'_>) -> PathEnd {
    match scene.insn() {
        Some(Insn::Call(_)) => PathEnd::Call(scene.callee().unwrap_or_default()),
        Some(Insn::PacketAbs { .. } | Insn::PacketInd { .. }) => PathEnd::PacketLoad,
        _ => PathEnd::Exit,
    }
}

/// References that are left, or that are not there to be released.
pub(super) fn reference(scene: &Scene<'_>) -> Option<Finding> {
    let known = scene.trace.known(scene.last()?)?;
    match *scene.refusal.rejection {
        Rejection::Call(Call::ReferenceLeak { .. }) => {}
        Rejection::Call(Call::SecondReference { .. }) => {
            let callee = scene.callee()?;
            let cause = Cause::TwoReferences { callee };
            let reg = scene.named_register()?;
            return Some(Finding::about(scene, cause, &[reg]));
        }
        _ => return not_acquired(scene, released(scene)?),
    }
    let left = { known.refs.iter() }.filter(|held| held.kind == ReferenceKind::Pointer);
    let left: Vec<u32> = left.map(|held| held.insn_idx).collect();
    let mut given = arguments_with_reference(scene).into_iter();
    let mut acquired = Vec::new();
    let mut notes = Vec::new();
    for insn in left {
        let (origin, kind) = match scene.called(insn) {
            Some(callee) => {
                let origin = Acquired::Call {
                    callee: callee.clone(),
                    releases: releases(scene, insn),
                };
                (origin, NoteKind::Acquired { callee })
            }
            None => {
                let argument = given.next().unwrap_or_default();
                (Acquired::Argument(argument), NoteKind::Given)
            }
        };
        acquired.push(origin);
        notes.push(Note {
            place: scene.place(insn),
            step: scene.step_of(insn),
            kind,
        });
    }
    (!acquired.is_empty()).then(|| Finding {
        notes,
        ..Finding::new(Cause::Leak {
            acquired,
            end: end(scene),
        })
    })
}

/// The functions that release what a call returned, by its type: of a socket the helper, of a
/// kernel structure the kernel functions that take it and release their argument.
fn releases(scene: &Scene<'_>, insn: u32) -> Vec<String> {
    let returned = { scene.step_of(insn) }.and_then(|step| scene.trace.reg(step + 1, 0));
    let Some(kind) = returned.map(|reg| reg.kind) else {
        return Vec::new();
    };
    // Of maps, only those of sockets give references.
    if RegRules::of(kind.base()).is_socket || matches!(kind, RegKind::MapValue { .. }) {
        return vec![String::from("bpf_sk_release")];
    }
    let RegKind::BtfId { ty } = kind else {
        return Vec::new();
    };
    let name = scene.input.type_name(ty);
    let of_vmlinux = { scene.input.vmlinux.into_iter() }.flat_map(|btf| {
        scene
            .input
            .registry
            .kfuncs
            .values()
            .map(move |kfunc| (btf, kfunc))
    });
    let of_modules = { scene.input.modules.iter() }.flat_map(|module| {
        let kfuncs = module.kfuncs.iter().flat_map(|kfuncs| kfuncs.iter());
        kfuncs.map(|kfunc| (&*module.btf, kfunc))
    });
    let context = &scene.input.context;
    let mut found: Vec<String> = (of_vmlinux.chain(of_modules))
        .filter(|(_, kfunc)| kfunc.flags.has(KfuncFlags::RELEASE))
        .filter(|(_, kfunc)| kfunc.is_for(context.kind, context.attach))
        .filter(|(btf, kfunc)| takes(btf, kfunc.btf_id).is_some_and(|takes| takes == name))
        .map(|(_, kfunc)| kfunc.name.to_string())
        .collect();
    found.sort();
    found
}

/// Name of the structure that the first parameter of a function points to.
fn takes(btf: &Btf<'_>, function: u32) -> Option<String> {
    let Shape::Func(function) = btf.get(TypeId(function))?.shape() else {
        return None;
    };
    let Shape::Proto(proto) = btf.get(function.proto)?.shape() else {
        return None;
    };
    let pointer = btf.skip_modifiers(proto.params().next()?.ty)?;
    let pointee = btf.skip_modifiers(btf.get(pointer)?.referred()?)?;
    Some(btf.get(pointee)?.name().to_string_lossy().into_owned())
}

/// Names of the arguments that the kernel gives an operation with a reference.
fn arguments_with_reference(scene: &Scene<'_>) -> Vec<String> {
    let Some(function) = AttachedFunction::of(scene.input) else {
        return Vec::new();
    };
    let indices = function.referenced_args(scene.input);
    let names = { indices.into_iter() }.map(|index| match function.entry(index) {
        ContextEntry::Argument(_, name) => name.to_string_lossy().into_owned(),
        ContextEntry::Returned(_) | ContextEntry::Unknown(_) | ContextEntry::Nothing => {
            String::new()
        }
    });
    names.collect()
}

/// The argument that the refused call releases.
fn released(scene: &Scene<'_>) -> Option<Reg> {
    if scene.kfunc().is_some() {
        return scene.named_register().or(Some(Reg::R1));
    }
    let arguments = scene.prototype()?.args.iter();
    let index = { arguments }.position(|arg| arg.flags.has(TypeFlags::OBJ_RELEASE))?;
    Reg::new(index as u8 + 1)
}

/// An argument that is released and was not acquired, or is not held any more.
pub(super) fn not_acquired(scene: &Scene<'_>, reg: Reg) -> Option<Finding> {
    let mut notes = Vec::new();
    let released_by = number::lost_at(scene, scene.def(reg)).and_then(|(step, _)| {
        let callee = scene.called(scene.trace.steps()[step].insn)?;
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
    Some(finding)
}

/// The calls that took the locks which are held before the refused instruction.
pub(super) fn locked(scene: &Scene<'_>) -> Option<Vec<Note>> {
    let known = scene.trace.known(scene.last()?)?;
    let held = known.refs.iter().filter(|held| held.kind.is_lock());
    let notes = held.map(|held| Note {
        place: scene.place(held.insn_idx),
        step: scene.step_of(held.insn_idx),
        kind: NoteKind::Locked {
            callee: scene.called(held.insn_idx).unwrap_or_default(),
        },
    });
    Some(notes.collect())
}

/// Locks.
pub(super) fn lock(scene: &Scene<'_>) -> Option<Finding> {
    let known = scene.trace.known(scene.last()?)?;
    let notes = locked(scene)?;
    let callee = match scene.insn()? {
        Insn::Call(callee) => Some(callee),
        _ => None,
    };
    let is_held = known.locks > 0;
    let of_rejection = match *scene.refusal.rejection {
        Rejection::Call(Call::UnlockWithoutLock { .. }) => Some(LockFault::NotHeld),
        Rejection::Call(Call::UnlockOther { .. }) => Some(LockFault::Other {
            callee: scene.callee()?,
        }),
        Rejection::Call(Call::UnlockOrder { .. }) => Some(LockFault::Order),
        _ => None,
    };
    let fault = match callee.map(HelperId::of_call) {
        Some(Some(HelperId::SpinLock | HelperId::SpinUnlock)) if lock_map(scene).is_some() => {
            let (id, field) = (lock_map(scene)?, "struct bpf_spin_lock");
            let (map, kind) = call::map_of(scene, id);
            let fault = call::without_field(scene, id, field);
            return Some(Finding::about(
                scene,
                Cause::Map { map, kind, fault },
                &[Reg::R1],
            ));
        }
        Some(Some(HelperId::SpinLock)) if is_held => LockFault::Second,
        Some(Some(HelperId::SpinLock)) => LockFault::NotLock,
        Some(Some(HelperId::SpinUnlock)) if is_held => LockFault::Other {
            callee: scene.callee()?,
        },
        Some(Some(HelperId::SpinUnlock)) => LockFault::NotHeld,
        Some(None) if of_rejection.is_some() => of_rejection?,
        _ if !is_held => return None,
        Some(Some(HelperId::TailCall)) | None => LockFault::Held { end: end(scene) },
        Some(_) => {
            if let Some(Callee::Helper(number)) = callee
                && let Some(cause) = call::missing_kfunc(scene, number)
            {
                return Some(Finding::new(cause));
            }
            LockFault::Call {
                callee: scene.callee()?,
                is_own: matches!(callee, Some(Callee::Local(_))),
            }
        }
    };
    Some(Finding {
        notes,
        subjects: match fault {
            LockFault::Other { .. } | LockFault::NotLock => vec![Reg::R1],
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
        Rejection::Call(Call::UnmatchedPreemptEnable { .. }) => Some(Section::Preempt),
        Rejection::Call(
            Call::NestedRcuLock { .. } | Call::UnmatchedRcuUnlock { .. } | Call::RequiresRcu { .. },
        ) => Some(Section::Rcu),
        _ => None,
    };
    if let Some(section) = section {
        let is_nested = matches!(
            *scene.refusal.rejection,
            Rejection::Call(Call::NestedRcuLock { .. })
        );
        let cause = Cause::SectionCall {
            callee: scene.callee()?,
            section,
            is_nested,
        };
        return Some(Finding {
            notes: begun(scene, section),
            ..Finding::new(cause)
        });
    }
    let known = scene.trace.known(scene.last()?)?;
    let section = known.section;
    let ends = match *scene.refusal.rejection {
        Rejection::Call(Call::InsideSection { .. }) => true,
        _ => !matches!(scene.insn()?, Insn::Call(_)),
    };
    let cause = match section {
        Some(section) if ends => Cause::SectionOpen {
            section,
            end: end(scene),
        },
        _ => Cause::Sleeps {
            callee: scene.callee()?,
            section,
        },
    };
    Some(Finding {
        notes: section.map_or_else(Vec::new, |section| begun(scene, section)),
        ..Finding::new(cause)
    })
}

/// The calls that began the sections of a kind which are open before the refused instruction.
fn begun(scene: &Scene<'_>, section: Section) -> Vec<Note> {
    let (begin, end) = match section {
        Section::Rcu => (SpecialKfunc::RcuReadLock, SpecialKfunc::RcuReadUnlock),
        Section::Preempt => (SpecialKfunc::PreemptDisable, SpecialKfunc::PreemptEnable),
        Section::Irq => return begun_with_reference(scene, |kind| kind == ReferenceKind::Irq),
        Section::Lock => return begun_with_reference(scene, ReferenceKind::is_lock),
    };
    let mut open = Vec::new();
    for (step, at) in scene.trace.steps()[..scene.trace.len() - 1]
        .iter()
        .enumerate()
    {
        if scene.calls_kfunc(at.insn, begin) {
            open.push(step);
        } else if scene.calls_kfunc(at.insn, end) {
            open.pop();
        }
    }
    let notes = { open.into_iter() }.map(|step| {
        let callee = scene.called(scene.trace.steps()[step].insn);
        let callee = callee.unwrap_or_default();
        scene.note(step, NoteKind::SectionBegun { callee })
    });
    notes.collect()
}

/// As [`begun`], of sections that are references: saved IRQ flags and locks.
fn begun_with_reference(scene: &Scene<'_>, is_begun: impl Fn(ReferenceKind) -> bool) -> Vec<Note> {
    let known = scene.last().and_then(|last| scene.trace.known(last));
    let held = known.into_iter().flat_map(|known| &known.refs);
    let begun = held.filter(|held| is_begun(held.kind));
    let notes = begun.map(|held| Note {
        place: scene.place(held.insn_idx),
        step: scene.step_of(held.insn_idx),
        kind: NoteKind::SectionBegun {
            callee: scene.called(held.insn_idx).unwrap_or_default(),
        },
    });
    notes.collect()
}
