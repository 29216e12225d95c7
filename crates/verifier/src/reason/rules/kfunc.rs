//! Arguments of kernel functions.

use isa::ebpf::Reg;
use spec::helpers::HelperId;
use spec::registry::{KfuncFlags, RegBase, SpecialKfunc, TypeFlags};

use super::{Finding, bounds, held, memory, number};
use crate::mem::{MAX_STACK, MAX_VAR_OFF};
use crate::reason::cause::{Cause, Expected, LostObject, LostTrust, NumberSource};
use crate::reason::describe;
use crate::reason::explanation::{KnownValue, Note, NoteKind, PointerTarget};
use crate::reason::scene::Scene;
use crate::reason::values::{DefId, DefKind};
use crate::rejection::{Call, Rejection};
use crate::state::{RegKind, RegState};

/// The fault of an argument of a kernel function, if the refusal is about one.
pub(super) fn find(scene: &Scene<'_>) -> Option<Finding> {
    let Rejection::Call(rejection) = &*scene.refusal.rejection else {
        return None;
    };
    let at = |index: &i64| Reg::new(*index as u8 + 1);
    match rejection {
        Call::PointeeNotScalar {
            index, kind, name, ..
        } => {
            let to = format!("{} {name}", kind.to_lowercase());
            let of_kernel = true;
            wrong_type(scene, at(index)?, Expected::Pointer { to, of_kernel })
        }
        Call::NotObject { index, .. } => {
            let reg = at(index)?;
            if matches!(scene.reg(reg)?.kind, RegKind::BtfId { .. }) {
                return Some(untrusted(scene, reg, false));
            }
            wrong_type(scene, reg, Expected::Object)
        }
        Call::OtherObject {
            wanted_kind,
            wanted,
            ..
        } => {
            let reg = scene.named_register()?;
            let found = scene.reg(reg)?;
            let is_same = matches!(found.kind, RegKind::BtfId { ty }
                if scene.input.type_name(ty) == *wanted);
            if is_same && describe::fixed_offset(found) != 0 {
                return memory::modified(scene);
            }
            let to = format!("{} {wanted}", wanted_kind.to_lowercase());
            let of_kernel = false;
            match scene.module_with_own(wanted) {
                Some(module) => {
                    let cause = Cause::ModuleType {
                        callee: scene.callee()?,
                        number: reg.number(),
                        structure: to,
                        module: module.to_owned(),
                    };
                    Some(Finding::about(scene, cause, &[reg]))
                }
                None => wrong_type(scene, reg, Expected::Pointer { to, of_kernel }),
            }
        }
        Call::NotTrusted { .. } | Call::NotRcu { .. } => {
            let takes_rcu = matches!(rejection, Call::NotRcu { .. });
            let reg = scene.named_register()?;
            match scene.reg(reg)?.is_scalar() {
                true => Some(lost(scene, reg).unwrap_or_else(|| memory::not_pointer(scene, reg))),
                false => Some(untrusted(scene, reg, takes_rcu)),
            }
        }
        Call::ReleaseExpectsReference { .. } => held::not_acquired(scene, Reg::R1),
        Call::TrustedMaybeNull { .. } => {
            let reg = scene.named_register()?;
            scene
                .reg(reg)?
                .is_scalar()
                .then(|| memory::not_pointer(scene, reg))
        }
        Call::NotContext { index, .. } => wrong_type(scene, at(index)?, RegBase::PtrToCtx),
        Call::NotMapPointer { .. } => {
            wrong_type(scene, scene.named_register()?, RegBase::ConstPtrToMap)
        }
        Call::NotScalar { .. } => wrong_type(scene, scene.named_register()?, RegBase::Scalar),
        Call::NotFunction { index } => wrong_type(scene, at(index)?, RegBase::PtrToFunc),
        Call::NotConstantString { index } => {
            let reg = at(index)?;
            let cause = Cause::ConstantString {
                callee: scene.callee()?,
                number: reg.number(),
                unterminated: super::call::is_unterminated(scene),
            };
            Some(Finding::about(scene, cause, &[reg]))
        }
        Call::UnknownConstant { .. } | Call::BufferSizeNotConst { .. } => {
            let reg = scene.named_register()?;
            let cause = Cause::ArgumentConstant {
                callee: scene.callee()?,
                number: reg.number(),
            };
            Some(Finding::about(scene, cause, &[reg]))
        }
        Call::SizedMemory { index, next } => sized_memory(scene, at(index)?, at(next)?),
        Call::CastOfNoStruct | Call::CastOfUnknownType { .. } => {
            wrong_type(scene, Reg::R2, Expected::TypeId)
        }
        Call::PacketReadOnly => {
            let kind = PointerTarget::Packet { range: 0 };
            let callee = scene.callee();
            Some(Finding::new(Cause::ReadOnly { kind, callee }))
        }
        _ => None,
    }
}

/// An argument of another type than the kernel function takes.
fn wrong_type(scene: &Scene<'_>, reg: Reg, expected: impl Into<Expected>) -> Option<Finding> {
    if let Some(finding) = lost(scene, reg) {
        return Some(finding);
    }
    let cause = Cause::ArgumentType {
        callee: scene.callee()?,
        number: reg.number(),
        found: scene.value_of(reg),
        expected: expected.into(),
    };
    Some(Finding::about(scene, cause, &[reg]))
}

/// A number that was a pointer, which a call made unusable, or a null.
fn lost(scene: &Scene<'_>, reg: Reg) -> Option<Finding> {
    if !scene.reg(reg)?.is_scalar() {
        return None;
    }
    let source = number::source(scene, reg).0;
    let is_released = matches!(
        source,
        NumberSource::Released { object, .. } if object != LostObject::Node
    );
    let releases = scene
        .kfunc()
        .is_some_and(|kfunc| kfunc.flags.has(KfuncFlags::RELEASE));
    if is_released && releases {
        return held::not_acquired(scene, reg);
    }
    let is_lost = number::is_lost(&source) || source == NumberSource::Constant(0);
    is_lost.then(|| memory::not_pointer(scene, reg))
}

/// A pointer to an object of the kernel that is not trusted.
pub(super) fn untrusted(scene: &Scene<'_>, reg: Reg, takes_rcu: bool) -> Finding {
    let (lost, note) = lost_trust(scene, reg);
    let structure = match scene.value_of(reg) {
        KnownValue::Pointer {
            kind: PointerTarget::Object { name, .. },
            ..
        } => name,
        _ => String::new(),
    };
    let cause = Cause::Untrusted {
        callee: scene.callee().unwrap_or_default(),
        number: reg.number(),
        structure,
        takes_rcu,
        lost,
    };
    let mut finding = Finding::about(scene, cause, &[reg]);
    note.into_iter().for_each(|note| finding.add(note));
    finding
}

/// What took the trust from a pointer, or why it never had it.
fn lost_trust(scene: &Scene<'_>, reg: Reg) -> (LostTrust, Option<Note>) {
    let is_untrusted = |reg: &RegState| reg.flags.has(TypeFlags::PTR_UNTRUSTED);
    let id = scene.def(reg);
    let ended = number::change(scene, id, |before, after| {
        !before.is_scalar() && !is_untrusted(before) && is_untrusted(after)
    });
    if let Some(step) = ended
        && let Some(callee) = scene.called(scene.trace.steps()[step].insn)
    {
        let kind = NoteKind::Distrusted {
            callee: callee.clone(),
        };
        return (LostTrust::SectionEnd(callee), Some(scene.note(step, kind)));
    }
    let def = scene.values.defs[root(scene, id)];
    let insn = scene.trace.steps()[def.step].insn;
    let lost = match def.kind {
        DefKind::Loaded(_) => {
            let access = scene.input.insns[insn as usize].access();
            let base = access.and_then(|access| scene.trace.reg(def.step, access.base.index()));
            let base = base.map(|base| base.kind);
            if let Some(RegKind::BtfId { ty }) = base {
                LostTrust::Member(scene.input.type_name(ty))
            } else if matches!(base, Some(RegKind::MapValue { .. })) {
                LostTrust::Kptr
            } else if matches!(base, Some(RegKind::Ctx)) {
                LostTrust::Traced
            } else {
                LostTrust::Unknown
            }
        }
        DefKind::Returned if scene.calls_kfunc(insn, SpecialKfunc::RdonlyCast) => LostTrust::Cast,
        _ if !matches!(
            scene.reg(reg).map(|reg| reg.kind),
            Some(RegKind::BtfId { .. })
        ) =>
        {
            LostTrust::Number
        }
        _ => LostTrust::Unknown,
    };
    let is_rcu = { scene.reg(reg) }.is_some_and(|reg| reg.flags.has(TypeFlags::MEM_RCU));
    let lost = match is_rcu {
        true => LostTrust::Rcu {
            from_map: lost == LostTrust::Kptr,
        },
        false => lost,
    };
    (lost, None)
}

/// The pointer that offsets were added to.
fn root(scene: &Scene<'_>, mut id: DefId) -> DefId {
    loop {
        id = scene.values.base(id);
        let DefKind::Computed(left, Some(right)) = scene.values.defs[id].kind else {
            return id;
        };
        let is_number = scene.defined(left).is_some_and(RegState::is_scalar);
        id = if is_number { right } else { left };
    }
}

/// Memory of a size that the next argument states: which of both is wrong.
fn sized_memory(scene: &Scene<'_>, ptr: Reg, size: Reg) -> Option<Finding> {
    let bytes = *scene.reg(size)?;
    if bytes.is_scalar() && (bytes.num.smin < 0 || bytes.num.umax >= MAX_VAR_OFF as u64) {
        return bounds::size(scene, size);
    }
    let memory = *scene.reg(ptr)?;
    if !bytes.is_scalar() {
        return wrong_type(scene, size, RegBase::Scalar);
    }
    if memory.is_scalar() {
        return wrong_type(scene, ptr, RegBase::PtrToStack);
    }
    let bytes = u32::try_from(bytes.num.umax).unwrap_or(u32::MAX);
    let off = describe::fixed_offset(&memory);
    let is_stack = matches!(memory.kind, RegKind::Stack { .. }) && memory.num.is_const();
    if is_stack && off >= -MAX_STACK && off + i64::from(bytes) <= 0 {
        let cause = Cause::StackUnwritten {
            off,
            size: bytes,
            callee: scene.callee(),
        };
        return Some(Finding {
            subjects: vec![ptr, size],
            ..Finding::new(cause)
        });
    }
    if matches!(memory.kind, RegKind::BtfId { .. } | RegKind::Ctx) {
        return wrong_type(scene, ptr, RegBase::PtrToStack);
    }
    Some(bounds::of_argument(scene, ptr, bytes))
}

/// True for a pointer to an object that is not trusted.
pub(super) fn is_plain_object(state: &RegState) -> bool {
    let is_trusted = state.flags.has(TypeFlags::PTR_TRUSTED) || state.ref_obj_id != 0;
    let is_object = matches!(state.kind, RegKind::BtfId { .. });
    let is_plain = !state.flags.has(TypeFlags::MEM_PERCPU) && !state.may_be_null();
    is_object && is_plain && !is_trusted
}

/// True for the helper that exchanges kptrs.
pub(super) fn exchanges(scene: &Scene<'_>) -> bool {
    let callee = scene.refusal.insn.and_then(|insn| scene.callee_at(insn));
    callee.and_then(HelperId::of_call) == Some(HelperId::KptrXchg)
}
