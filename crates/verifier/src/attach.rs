//! Checks of the attach target: what may sleep, and what tracing, LSM, struct_ops and
//! freplace programs attach to (`check_attach_btf_id`).

use btf::{Btf, Kind, Shape, Type};
use isa::ebpf::{Callee, Insn};
use program::AttachTarget;
use spec::programs::{AttachType, LoadFlags, ProgramType};

use crate::input::Input;
use crate::log::Sink;
use crate::rejection::Program;
use crate::type_rules::{Applies, TargetKind, TypeRules};
use crate::{RULES, Result, Stop, refuse};

/// The log, with no instruction at hand.
struct Check<'s, 'l> {
    sink: &'s mut Sink<'l>,
    insn_idx: u32,
}

/// The expected attach type that the kernel goes by, from its number. In programs of two types
/// 0 stands for the first that they had (`bpf_prog_load_fixup_attach_type`).
#[doc(alias = "bpf_prog_load_fixup_attach_type")]
pub(crate) fn effective_attach_type(kind: ProgramType, number: u32) -> Option<AttachType> {
    match (kind, number) {
        (ProgramType::CgroupSock, 0) => Some(AttachType::CgroupInetSockCreate),
        (ProgramType::SkReuseport, 0) => Some(AttachType::SkReuseportSelect),
        _ => AttachType::from_number(number),
    }
}

/// Checks what the program attaches to (`check_attach_btf_id`).
#[doc(alias = "check_attach_btf_id")]
pub(crate) fn check_attach_target(input: &Input<'_>, sink: &mut Sink<'_>) -> Result<()> {
    let mut check = Check { sink, insn_idx: 0 };
    let program = input.program;
    let is_sleepable = program.flags().has(LoadFlags::SLEEPABLE);
    let kind = program.kind();
    if kind == ProgramType::Syscall {
        if is_sleepable {
            return Ok(());
        }
        return Err(refuse!(check => Program::SleepableOnly));
    }
    if is_sleepable && !may_sleep(kind, input.context.attach) {
        return Err(refuse!(check => Program::NotSleepableType));
    }
    match TypeRules::of(kind).target {
        TargetKind::Operation => check_struct_ops(input, &mut check),
        TargetKind::Function | TargetKind::Hook => check_kernel_target(input, &mut check),
        TargetKind::Program => Err(Stop::unsupported("replacement of a function")),
        TargetKind::Nothing => Ok(()),
    }
}

fn may_sleep(kind: ProgramType, attach: Option<AttachType>) -> bool {
    match TypeRules::of(kind).sleepable {
        Applies::Never => false,
        Applies::Always => true,
        Applies::ByAttachType => matches!(
            attach,
            Some(
                AttachType::TraceFentry
                    | AttachType::TraceFexit
                    | AttachType::ModifyReturn
                    | AttachType::TraceIter
            )
        ),
    }
}

/// Operations that the kernel refuses to have as programs, by structure
/// (`bpf_struct_ops::check_member`).
const UNSUPPORTED_OPERATIONS: &[(&str, &str)] = &[("tcp_congestion_ops", "get_info")];

/// `check_struct_ops_btf_id`. Which helpers such programs have depends on the
/// structure, and the kernel cannot be asked for all: programs that call any are
/// unsupported.
#[doc(alias = "check_struct_ops_btf_id")]
fn check_struct_ops(input: &Input<'_>, check: &mut Check<'_, '_>) -> Result<()> {
    if !input.program.is_gpl_compatible() {
        return Err(refuse!(check => Program::StructOpsLicense));
    }
    let member = input
        .program
        .attach_target()
        .and_then(|target| target.member);
    let structure = input.context.attach_target.unwrap_or_default();
    if let (Some(types), Some(member)) = (input.vmlinux, member)
        && let Some(name) = member_name(types, structure, member)
        && UNSUPPORTED_OPERATIONS.contains(&(structure, name.as_str()))
    {
        return Err(refuse!(check => Program::UnsupportedMember { name, structure }));
    }
    if structure == "bpf_dummy_ops" && input.program.flags().has(LoadFlags::SLEEPABLE) {
        return Err(Stop::unsupported("sleepable member of bpf_dummy_ops"));
    }
    let calls_helper = |insn: &Insn| matches!(insn, Insn::Call(Callee::Helper(_)));
    match input.insns.iter().any(calls_helper) {
        true => Err(Stop::unsupported("helpers of struct_ops programs")),
        false => Ok(()),
    }
}

fn member_name(types: &Btf<'_>, structure: &str, member: u32) -> Option<String> {
    let ty = types.find(Kind::Struct, structure)?;
    let member = ty.as_composite()?.member(member as usize)?;
    Some(types.string(member.name).to_string_lossy().into_owned())
}

/// Constraint that the attach target puts on a program's return value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    /// The program type and attach type decide.
    ByProgramType,
    /// Nothing is returned.
    Nothing,
    /// Any value may be returned.
    Any,
    /// Unsupported.
    Unknown,
}

/// Constraint of the attach target of a struct_ops or LSM program on its return value.
pub(crate) fn returned(input: &Input<'_>) -> Returned {
    match input.type_rules().target {
        TargetKind::Operation => of_member(input).unwrap_or(Returned::Unknown),
        TargetKind::Hook => Returned::Unknown,
        TargetKind::Nothing | TargetKind::Function | TargetKind::Program => Returned::ByProgramType,
    }
}

fn of_member(input: &Input<'_>) -> Option<Returned> {
    let types = input.vmlinux?;
    let target = input.program.attach_target()?;
    let operations = types.get(target.btf_id)?.as_composite()?;
    let member = operations.member(target.member? as usize)?;
    let Shape::Ptr(function) = types.get(types.skip_modifiers(member.ty)?)?.shape() else {
        return None;
    };
    let Shape::Proto(proto) = types.get(types.skip_modifiers(function)?)?.shape() else {
        return None;
    };
    if proto.returns.is_void() {
        return Some(Returned::Nothing);
    }
    let returned = types.get(types.skip_modifiers(proto.returns)?)?;
    match returned.kind() {
        Kind::Ptr => Some(Returned::Unknown),
        _ => Some(Returned::Any),
    }
}

/// Checks a target in the kernel (`bpf_check_attach_target`, `check_attach_btf_id`).
#[doc(alias = "bpf_check_attach_target")]
#[doc(alias = "check_attach_btf_id")]
fn check_kernel_target(input: &Input<'_>, check: &mut Check<'_, '_>) -> Result<()> {
    let target = input.program.attach_target();
    let Some(target) = target.filter(|target| !target.btf_id.is_void()) else {
        return Err(refuse!(check => Program::NoAttachBtfId));
    };
    if target.program.is_some() {
        return Err(Stop::unsupported("tracing of another program"));
    }
    if target.module != 0 {
        return Err(Stop::unsupported("attach target in a module"));
    }
    let Some(types) = input.vmlinux else {
        return Ok(());
    };
    let ty = find(types, target, check)?;
    let id = target.btf_id.0;
    let name = ty.name().to_string_lossy();
    match input.context.attach {
        Some(AttachType::TraceRawTp) => {
            if ty.kind() != Kind::Typedef {
                return Err(refuse!(check => Program::NotTypedef { id }));
            }
            if !name.starts_with("btf_trace_") {
                return Err(refuse!(check => Program::WrongTypeName { id, name }));
            }
            Ok(())
        }
        Some(
            AttachType::TraceIter
            | AttachType::TraceFentry
            | AttachType::TraceFexit
            | AttachType::ModifyReturn
            | AttachType::LsmMac
            | AttachType::LsmCgroup,
        ) => {
            if !matches!(ty.shape(), Shape::Func(_)) {
                return Err(refuse!(check => Program::NotFunction { id }));
            }
            if input.context.attach == Some(AttachType::TraceIter) {
                return Ok(());
            }
            check_function(input, check, &name)
        }
        _ => Err(unknown_attach_type(input.program.expected_attach_type())),
    }
}

/// Refusal of an attach type that tracing programs of this kernel do not have. The kernel's log
/// stays empty.
fn unknown_attach_type(number: u32) -> Stop {
    let known = AttachType::from_number(number);
    let name = known.map_or_else(|| number.to_string(), |attach| attach.name().to_owned());
    let since = known.map(|attach| attach.since().release);
    let since = since.filter(|release| *release > RULES);
    let since = since.map_or_else(String::new, |release| format!(": it needs Linux {release}"));
    Stop::refusal(Program::UnknownAttachType { name, since }, None)
}

fn find<'b>(
    types: &'b Btf<'b>,
    target: &AttachTarget,
    check: &mut Check<'_, '_>,
) -> Result<Type<'b>> {
    types
        .get(target.btf_id)
        .ok_or_else(|| refuse!(check => Program::InvalidAttachBtfId { id: target.btf_id.0 }))
}

/// Checks a function of the kernel that a program is attached to by trampoline. The
/// running kernels of development refuse all of these: the lists are their data, the
/// order is that of the source.
fn check_function(input: &Input<'_>, check: &mut Check<'_, '_>, name: &str) -> Result<()> {
    let lists = &input.registry.lists;
    let is_sleepable = input.program.flags().has(LoadFlags::SLEEPABLE);
    let is_lsm = input.program.kind() == ProgramType::Lsm;
    if is_lsm && is_sleepable && !lists.lsm_sleepable.contains(name) {
        return Err(refuse!(check => Program::NotSleepable { name }));
    }
    if is_lsm {
        return check_lsm_hook(input, check, name);
    }
    if lists.attach_denied.contains(name) {
        return Err(refuse!(check => Program::DeniedTarget { name }));
    }
    let runs_after = matches!(
        input.context.attach,
        Some(AttachType::TraceFexit | AttachType::ModifyReturn)
    );
    if runs_after && lists.noreturn.contains(name) {
        return Err(refuse!(check => Program::NoreturnTarget { name }));
    }
    Ok(())
}

/// `bpf_lsm_verify_prog`.
#[doc(alias = "bpf_lsm_verify_prog")]
fn check_lsm_hook(input: &Input<'_>, check: &mut Check<'_, '_>, name: &str) -> Result<()> {
    let lists = &input.registry.lists;
    if !input.program.is_gpl_compatible() {
        return Err(refuse!(check => Program::LsmLicense));
    }
    let id = input
        .program
        .attach_target()
        .map_or(0, |target| target.btf_id.0);
    if lists.lsm_disabled.contains(name) {
        return Err(refuse!(check => Program::DisabledHook { id, name }));
    }
    if !lists.lsm_hooks.contains(name) {
        return Err(refuse!(check => Program::WrongTypeName { id, name }));
    }
    Ok(())
}
