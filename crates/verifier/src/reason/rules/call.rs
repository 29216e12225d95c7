//! Calls: availability, arguments, maps, licence.

use isa::ebpf::{Callee, Imm64, Insn, Reg};
use spec::helpers::HelperId;
use spec::registry::{ArgBase, ProgramContext};

use super::{Finding, bounds, kfunc, memory, number};
use crate::call::prototype::{self, PrototypeError, SubprogArg};
use crate::log::TypeText;
use crate::reason::calls;
use crate::reason::cause::{Cause, Expected, KfuncRule, MapMisuse, Parameter};
use crate::reason::describe;
use crate::reason::scene::Scene;
use crate::rejection::{Call as Rejected, Mem, Program, Rejection};
use crate::state::{MapRef, RegBase, RegKind, RegState, RegType, TypeFlags, TypeRef};

/// A helper or kernel function that the program cannot call.
pub(super) fn unavailable(scene: &Scene<'_>) -> Option<Finding> {
    let cause = match scene.callee_at(scene.refusal.insn?) {
        Some(Callee::Helper(number)) => {
            if spec::helpers::helper(number).is_none() {
                let insn = scene.refusal.insn?;
                let mut failed = scene.input.program.failed_relocations().iter();
                if let Some(failed) = failed.find(|failed| failed.insn == insn) {
                    return Some(Finding::new(Cause::Relocation {
                        access: failed.access.clone(),
                        absence: failed.absence.clone(),
                    }));
                }
                let missing = missing_kfunc(scene, number);
                return Some(Finding::new(
                    missing.unwrap_or(Cause::HelperUnknown { number }),
                ));
            }
            let (types, other_attach) = types_with_helper(scene, number as u32);
            Cause::HelperUnavailable {
                helper: scene.callee()?,
                types,
                other_attach,
            }
        }
        Some(Callee::Kfunc { .. }) => match &*scene.refusal.rejection {
            Rejection::Call(Rejected::Trap) => Cause::Trap,
            rejection => Cause::KfuncUnavailable {
                kfunc: scene.callee()?,
                rule: match rejection {
                    Rejection::Call(Rejected::CssTaskIterator) => KfuncRule::Sleepable,
                    Rejection::Program(Program::MetadataKfunc) => KfuncRule::DeviceBound,
                    _ => KfuncRule::Types(types_with_kfunc(scene)),
                },
            },
        },
        _ => Cause::PacketLoad,
    };
    Some(Finding::new(cause))
}

/// The kernel function that a call of a placeholder stands for.
pub(super) fn missing_kfunc(scene: &Scene<'_>, number: i32) -> Option<Cause> {
    let index = usize::try_from(number.checked_sub(program::KFUNC_POISON)?).ok()?;
    let symbol = scene.input.program.externs().get(index)?;
    let is_one = matches!(symbol.kind, program::ExternSymbolKind::Kfunc(_));
    is_one.then(|| Cause::KfuncMissing {
        kfunc: symbol.name.clone(),
        has_other: scene.input.vmlinux.is_some_and(|types| {
            let name = btf::core::essential_name(symbol.name.as_bytes());
            types.find_all(btf::Kind::Func, name).next().is_some()
        }),
    })
}

/// The program types that have a helper, and true if the program's own has it for another
/// attach type.
fn types_with_helper(scene: &Scene<'_>, id: u32) -> (Vec<&'static str>, bool) {
    let registry = scene.input.registry;
    let own = scene.input.context.kind;
    let mut types = Vec::new();
    let mut other_attach = false;
    for &(kind, attach) in registry.programs.keys() {
        let program = ProgramContext {
            kind,
            attach,
            attach_target: None,
            ..scene.input.context
        };
        if registry.helper(&program, id).is_err() {
            continue;
        }
        other_attach |= kind == own;
        if !types.contains(&kind.name()) {
            types.push(kind.name());
        }
    }
    (types, other_attach)
}

/// The program types that have the refused kernel function.
fn types_with_kfunc(scene: &Scene<'_>) -> Vec<&'static str> {
    let Some(kfunc) = scene.kfunc() else {
        return Vec::new();
    };
    let mut types = Vec::new();
    for &(kind, attach) in scene.input.registry.programs.keys() {
        if kfunc.is_for(kind, attach) && !types.contains(&kind.name()) {
            types.push(kind.name());
        }
    }
    types
}

/// The function or type that needs a GPL-compatible licence.
pub(super) fn license(scene: &Scene<'_>) -> Option<Finding> {
    let what = match scene.insn() {
        Some(Insn::Call(_)) => scene.callee()?.name,
        _ if scene.last().is_none() => scene.input.program.kind().name().to_owned() + " programs",
        insn => {
            let base =
                { insn.and_then(|insn| insn.access()) }.and_then(|access| scene.reg(access.base));
            if let Some(RegKind::BtfId { ty }) = base.map(|base| base.kind) {
                format!("struct {}", scene.input.type_name(ty))
            } else {
                String::from("kernel structures")
            }
        }
    };
    let license = scene.input.program.license().to_owned();
    Some(Finding::new(Cause::License { what, license }))
}

/// An argument that the callee does not take.
pub(super) fn argument(scene: &Scene<'_>) -> Option<Finding> {
    if !matches!(scene.insn()?, Insn::Call(_)) {
        return super::memory::stack(scene);
    }
    if let Some(Callee::Local(_)) = scene.callee_at(scene.refusal.insn?) {
        return global_function(scene);
    }
    if let Some(finding) = no_keys(scene) {
        return Some(finding);
    }
    let string = || {
        let args = scene.prototype()?.args.iter();
        let index = { args }.position(|arg| arg.base == ArgBase::PtrToConstStr)?;
        Reg::new(index as u8 + 1)
    };
    let called = scene.callee_at(scene.refusal.insn?);
    if called.and_then(HelperId::of_call) == Some(HelperId::GetLocalStorage) {
        let (callee, number) = (scene.callee()?, Reg::R2.number());
        let cause = Cause::ArgumentNotZero { callee, number };
        return Some(Finding::about(scene, cause, &[Reg::R2]));
    }
    let reg = scene.named_register().or_else(string)?;
    let state = *scene.reg(reg)?;
    let callee = scene.callee()?;
    let number = reg.number();
    if let Rejection::Call(Rejected::WritesObject { .. }) = &*scene.refusal.rejection {
        return Some(memory::read_only(scene, reg));
    }
    if let Some(expected) = expected(&scene.refusal.rejection) {
        return Some(wrong_type(scene, reg, &state, expected));
    }
    let base = scene
        .prototype()
        .map(|proto| proto.args[usize::from(number) - 1].base);
    let cause = match base {
        Some(ArgBase::ConstAllocSizeOrZero) => Cause::ArgumentConstant { callee, number },
        Some(ArgBase::PtrToConstStr) => Cause::ConstantString {
            callee,
            number,
            unterminated: is_unterminated(scene),
        },
        Some(ArgBase::ConstSize | ArgBase::ConstSizeOrZero) => return bounds::size(scene, reg),
        _ if !state.is_scalar() && describe::fixed_offset(&state) != 0 => {
            return memory::modified(scene);
        }
        _ => return None,
    };
    Some(Finding::about(scene, cause, &[reg]))
}

/// A call that takes a key of a map whose kind has none.
fn no_keys(scene: &Scene<'_>) -> Option<Finding> {
    let mut args = scene.prototype()?.args.iter();
    args.find(|arg| arg.base == ArgBase::PtrToMapKey)?;
    let (reg, map) = map_pointer(scene)?;
    if scene.input.maps[map].key_size() != 0 {
        return None;
    }
    let (map, kind) = map_of(scene, map);
    let fault = MapMisuse::NoKeys(scene.callee()?);
    Some(Finding::about(
        scene,
        Cause::Map { map, kind, fault },
        &[reg],
    ))
}

/// The first argument of the refused call that is a map, and the map.
pub(super) fn map_pointer(scene: &Scene<'_>) -> Option<(Reg, MapRef)> {
    calls::map_argument(scene.trace, scene.last()?)
}

/// A call of a global function, whose signature or arguments are refused.
fn global_function(scene: &Scene<'_>) -> Option<Finding> {
    let at = scene.refusal.insn?;
    let Some(Callee::Local(off)) = scene.callee_at(at) else {
        return None;
    };
    let subprog = scene.analysis.subprog_at(at.wrapping_add_signed(off + 1))?;
    let function = scene.callee()?.name;
    let args = match prototype::arguments(scene.input, subprog as u32)? {
        Ok(args) => args,
        Err(error) => return Some(unsupported_signature(scene, subprog, error)),
    };
    let misfit = || {
        let Rejection::Call(Rejected::GlobalArguments { number, .. }) = *scene.refusal.rejection
        else {
            return None;
        };
        let number = number?;
        let arg = args.get(usize::from(number) - 1)?;
        let reg = Reg::new(number)?;
        Some((number, scene.value_of(reg), parameter(scene, *arg)))
    };
    let misfit = misfit();
    let subject = misfit.as_ref().and_then(|(number, ..)| Reg::new(*number));
    let read_only = subject.and_then(|reg| scene.reg(reg)).is_some_and(|state| {
        matches!(state.kind, RegKind::MapValue { map, .. } if !scene.input.maps[map].can_write())
    });
    let cause = Cause::GlobalArguments {
        function,
        misfit,
        read_only,
    };
    Some(match subject {
        Some(reg) => Finding::about(scene, cause, &[reg]),
        None => Finding {
            subjects: arguments(scene),
            ..Finding::new(cause)
        },
    })
}

/// A function that is verified on its own, and has a signature for which that is not done.
pub(super) fn signature(scene: &Scene<'_>) -> Option<Finding> {
    let at = scene.refusal.insn?;
    let subprog = { scene.analysis.subprogs.iter() }
        .position(|subprog| (subprog.start..subprog.end).contains(&at))?;
    let error = prototype::arguments(scene.input, subprog as u32)?.err()?;
    let is_meant = *scene.refusal.rejection == Rejection::Signature(error.rejection.clone());
    is_meant.then(|| unsupported_signature(scene, subprog, error))
}

fn unsupported_signature(scene: &Scene<'_>, subprog: usize, error: PrototypeError) -> Finding {
    let start = scene.analysis.subprogs[subprog].start;
    Finding {
        place: Some(scene.place(start)),
        ..Finding::new(Cause::GlobalSignature {
            function: scene.function_at(start),
            fault: error.fault,
        })
    }
}

/// What a global function takes as an argument.
fn parameter(scene: &Scene<'_>, arg: SubprogArg) -> Parameter {
    match arg {
        SubprogArg::Scalar => Parameter::Number,
        SubprogArg::Ctx => Parameter::Context,
        SubprogArg::Mem { size, nullable } => Parameter::Memory { size, nullable },
        SubprogArg::UntrustedMem => Parameter::Untrusted,
        SubprogArg::Btf { id, nullable, .. } => Parameter::Object {
            name: scene.input.type_name(TypeRef::vmlinux(id.0)),
            nullable,
        },
        SubprogArg::Arena => Parameter::Arena,
        SubprogArg::Dynptr => Parameter::Dynptr,
    }
}

/// The argument registers that hold something.
fn arguments(scene: &Scene<'_>) -> Vec<Reg> {
    let is_set = |reg: &Reg| {
        scene
            .reg(*reg)
            .is_some_and(|reg| reg.kind != RegKind::NotInit)
    };
    isa::ebpf::RegSet::ARGUMENTS.iter().filter(is_set).collect()
}

/// The types that the check expects of an argument.
fn expected(rejection: &Rejection) -> Option<Expected> {
    Some(match rejection {
        Rejection::Call(Rejected::ArgumentType { expected, .. }) => {
            Expected::Types(expected.clone())
        }
        Rejection::Mem(Mem::ArgumentType { expected, .. }) => Expected::Types(vec![*expected]),
        Rejection::Call(Rejected::ObjectType { wanted, .. }) => Expected::Structure(wanted.clone()),
        _ => return None,
    })
}

fn wrong_type(scene: &Scene<'_>, reg: Reg, state: &RegState, expected: Expected) -> Finding {
    let flags = state.flags.without(TypeFlags::PTR_MAYBE_NULL);
    let takes = |ty: RegType| {
        let ty = TypeText::from(ty).named();
        matches!(&expected, Expected::Types(types) if types.iter().any(|one| one.named() == ty))
    };
    if state.may_be_null() && takes(state.kind.base().with(flags)) {
        return memory::null_pointer(scene, reg);
    }
    let object = |flag| RegBase::PtrToBtfId.with(flag);
    let takes_trusted = takes(object(TypeFlags::PTR_TRUSTED));
    if takes_trusted && kfunc::is_plain_object(state) && !kfunc::exchanges(scene) {
        return kfunc::untrusted(scene, reg, takes(object(TypeFlags::MEM_RCU)));
    }
    if state.is_scalar() {
        let lost = number::is_lost(&number::source(scene, reg).0);
        let releases = { scene.prototype() }
            .is_some_and(|proto| proto.released_arg() == Some(usize::from(reg.number()) - 1));
        if lost
            && releases
            && let Some(finding) = super::held::reference(scene)
        {
            return finding;
        }
        if lost {
            return memory::not_pointer(scene, reg);
        }
    }
    let base = scene
        .prototype()
        .map(|proto| proto.args[usize::from(reg.number()) - 1].base);
    if base == Some(ArgBase::PtrToConstStr) {
        let cause = Cause::ConstantString {
            callee: scene.callee().unwrap_or_default(),
            number: reg.number(),
            unterminated: is_unterminated(scene),
        };
        return Finding::about(scene, cause, &[reg]);
    }
    let cause = Cause::ArgumentType {
        callee: scene.callee().unwrap_or_default(),
        number: reg.number(),
        found: scene.value(state),
        expected,
    };
    Finding::about(scene, cause, &[reg])
}

/// True if the refused string has no 0 at its end.
pub(super) fn is_unterminated(scene: &Scene<'_>) -> bool {
    *scene.refusal.rejection == Rejection::Call(Rejected::NotTerminated)
}

/// Name and kind of a map.
pub(super) fn map_of(scene: &Scene<'_>, map: MapRef) -> (String, String) {
    let kind = scene.input.maps[map].kind();
    let kind = kind.map_or_else(String::new, |kind| kind.name().to_owned());
    (describe::map_name(scene.input, map), kind)
}

/// Why the values of a map have no such field.
pub(super) fn without_field(scene: &Scene<'_>, map: MapRef, field: &str) -> MapMisuse {
    let map = &scene.input.maps[map];
    let field = field.to_owned();
    if let Some(refusal) = map.types_refusal() {
        let refusal = Box::new(refusal.clone());
        return MapMisuse::WithoutBtf { field, refusal };
    }
    let Some(types) = scene.input.program.btf() else {
        return MapMisuse::NoBtf(field);
    };
    match program::creation::field_fault(&map.def().params, types, scene.input.vmlinux) {
        Some(fault) => MapMisuse::UnusableFields { field, fault },
        None => MapMisuse::Field(field),
    }
}

/// Maps that the program or the helper may not use.
pub(super) fn map(scene: &Scene<'_>) -> Option<Finding> {
    let insn = scene.insn()?;
    let (reg, fault) = match insn {
        Insn::LoadImm64 { imm, .. } => return map_load(scene, imm),
        Insn::Call(_) => {
            let Some((reg, map)) = map_pointer(scene) else {
                return value_argument(scene);
            };
            let kinds = kinds_taken(scene);
            let is_taken =
                { scene.input.maps[map].kind() }.is_some_and(|kind| kinds.contains(&kind.name()));
            let fault = match is_taken && !scene.input.maps[map].can_write() {
                true => MapMisuse::WriteForbidden,
                false => MapMisuse::Helper {
                    helper: scene.callee()?,
                    kinds,
                },
            };
            (reg, fault)
        }
        _ => {
            let access = insn.access()?;
            let fault = match access.writes {
                true => MapMisuse::WriteForbidden,
                false => MapMisuse::ReadForbidden,
            };
            (access.base, fault)
        }
    };
    let state = scene.reg(reg)?;
    let (RegKind::MapPtr { map, .. } | RegKind::MapValue { map, .. }) = state.kind else {
        return None;
    };
    let (map, kind) = map_of(scene, map);
    Some(Finding::about(
        scene,
        Cause::Map { map, kind, fault },
        &[reg],
    ))
}

/// The kinds of maps that the called helper takes.
fn kinds_taken(scene: &Scene<'_>) -> Vec<&'static str> {
    let called = scene.refusal.insn.and_then(|at| scene.callee_at(at));
    let Some(Callee::Helper(number)) = called else {
        return Vec::new();
    };
    let maps = scene.input.registry.maps.iter();
    let taken = maps.filter(|(_, traits)| traits.allows_helper(number as u32));
    taken.map(|(kind, _)| kind.name()).collect()
}

/// A map value that is passed to a helper which reads or writes it, and may not.
fn value_argument(scene: &Scene<'_>) -> Option<Finding> {
    for reg in isa::ebpf::RegSet::ARGUMENTS.iter() {
        let Some(&RegState {
            kind: RegKind::MapValue { map, .. },
            ..
        }) = scene.reg(reg)
        else {
            continue;
        };
        let fault = match (
            scene.input.maps[map].can_read(),
            scene.input.maps[map].can_write(),
        ) {
            (true, true) => continue,
            (true, false) => MapMisuse::WriteForbidden,
            (false, _) => MapMisuse::ReadForbidden,
        };
        let (map, kind) = map_of(scene, map);
        return Some(Finding::about(
            scene,
            Cause::Map { map, kind, fault },
            &[reg],
        ));
    }
    None
}

/// A map that is refused where the program loads its address, before the walk.
fn map_load(scene: &Scene<'_>, imm: Imm64) -> Option<Finding> {
    let index = match imm {
        Imm64::MapFd { fd: index, .. }
        | Imm64::MapIndex { index, .. }
        | Imm64::MapValue { fd: index, .. }
        | Imm64::MapIndexValue { index, .. } => u32::try_from(index).ok()?,
        _ => return None,
    };
    scene.input.program.maps().get(index as usize)?;
    let (map, kind) = map_of(scene, MapRef(index));
    let fault = match &*scene.refusal.rejection {
        Rejection::Program(Program::NotMap { .. }) => MapMisuse::None,
        Rejection::Program(Program::ValuePointer { .. } | Program::ValueOffset { .. }) => {
            MapMisuse::Offset
        }
        Rejection::Program(Program::NoDirectValue | Program::ValuePointerUnsupported { .. }) => {
            MapMisuse::DirectValue
        }
        Rejection::Program(Program::FieldForType { field, .. }) => {
            MapMisuse::FieldForType(field.clone())
        }
        Rejection::Program(Program::MapForSleepable) => MapMisuse::Sleepable,
        Rejection::Program(Program::SecondArena | Program::SecondCgroupStorage) => {
            MapMisuse::Second
        }
        _ => MapMisuse::ProgramType,
    };
    Some(Finding::new(Cause::Map { map, kind, fault }))
}
