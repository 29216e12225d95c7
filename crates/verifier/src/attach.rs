//! Checks of the attach target: what may sleep, and what tracing, LSM, struct_ops and
//! freplace programs attach to (`check_attach_btf_id`).

mod function;
mod load;
mod program;
mod struct_ops;

use ::program::AttachTarget;
use btf::{Btf, Kind, Shape, Type};
use spec::behaviour::Behaviour;
use spec::kernel::SymbolAddress;
use spec::programs::{AttachType, HookKind, LoadFlags, ProgramType, Sleeps};

use crate::analysis::{Analysis, check_func_proto};
use crate::input::Input;
use crate::log::Sink;
use crate::rejection::Program;
use crate::type_rules::{HookRules, TargetKind, TypeRules};
use crate::{RULES, Result, Stop, refuse, refuse_if};

pub(crate) use function::{
    ArgumentMark, AttachedFunction, ContextEntry, Returned, hook_range, returned,
};
pub(crate) use load::{check_flags, check_type};
pub(crate) use program::{LoadedTarget, context_type};

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
pub(crate) fn check_attach_target(
    input: &Input<'_>,
    analysis: &Analysis,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let check = sink.at(0);
    let program = input.program;
    let is_sleepable = program.flags().has(LoadFlags::SLEEPABLE);
    let sleeps = program.kind().sleeps();
    refuse_if!(sleeps == Sleeps::Always && !is_sleepable, check => Program::SleepableOnly);
    let is_of_cgroup = input.context.attach == Some(AttachType::LsmCgroup);
    let stays_awake = is_of_cgroup && input.rules.has(Behaviour::CgroupHooksStayAwake);
    let of_tracepoint = input.rules.has(Behaviour::TracepointsSleep) && is_of_tracepoint(input);
    let may_sleep = match input.rules.has(Behaviour::SleepsByHook) {
        true => may_sleep(sleeps, input.context.hook()) || of_tracepoint,
        false => may_sleep_by_type(input, sleeps),
    };
    if is_sleepable && stays_awake && !input.rules.has(Behaviour::SleepsByHook) {
        return Err(refuse!(check => Program::SleepableCgroupHook));
    }
    refuse_if!(is_sleepable && (stays_awake || !may_sleep), check => Program::NotSleepableType);
    match TypeRules::of(program.kind()).target {
        TargetKind::Operation => struct_ops::check_struct_ops(input, check),
        TargetKind::Function | TargetKind::Hook | TargetKind::Program => {
            check_target(input, analysis, check)
        }
        TargetKind::Nothing => Ok(()),
    }
}

/// True for programs of tracepoints, of the sessions of a function and of many functions.
fn is_of_tracepoint(input: &Input<'_>) -> bool {
    use HookKind::{Fsession, Multi, RawTracepoint};
    let kind = input.program.kind();
    kind == ProgramType::Tracepoint
        || kind == ProgramType::RawTracepoint
        || matches!(input.context.hook(), Fsession | Multi | RawTracepoint)
}

fn may_sleep(sleeps: Sleeps, hook: HookKind) -> bool {
    let feature = match sleeps {
        Sleeps::Never => None,
        Sleeps::Always => return true,
        Sleeps::Since(feature) => Some(feature),
        Sleeps::ByHook => hook.sleepable(),
    };
    feature.is_some_and(|feature| feature.since().release <= RULES)
}

/// True if programs of the type may sleep, whatever they attach to.
fn may_sleep_by_type(input: &Input<'_>, sleeps: Sleeps) -> bool {
    match sleeps {
        Sleeps::Never => false,
        Sleeps::Always | Sleeps::ByHook => true,
        Sleeps::Since(feature) => !input.lacks(feature),
    }
}

/// Checks a target in the kernel or in another program (`bpf_check_attach_target`).
#[doc(alias = "bpf_check_attach_target")]
fn check_target(input: &Input<'_>, analysis: &Analysis, check: &mut Sink<'_>) -> Result<()> {
    let target = input.program.attach_target();
    if of_many(input) && target.is_none_or(|target| target.module == 0) {
        return check_many(input);
    }
    let Some(target) = target.filter(|target| !target.btf_id.is_void()) else {
        return Err(refuse!(check => Program::NoAttachBtfId));
    };
    match &target.program {
        Some(other) => program::check_program_target(input, analysis, other, target.btf_id, check),
        None if input.program.kind() == ProgramType::Ext => {
            Err(refuse!(check => Program::ReplacesKernel))
        }
        None => check_kernel_target(input, target, check),
    }
}

/// True for programs of many functions, in kernels that have those.
fn of_many(input: &Input<'_>) -> bool {
    let since = input.context.attach.map(AttachType::since);
    let is_known = since.is_some_and(|since| input.is_in_kernel(since));
    input.context.hook() == HookKind::Multi
        && is_known
        && input.type_rules().target == TargetKind::Function
}

/// Programs of many functions are verified as those of `bpf_multi_func`, which takes nothing; which
/// functions they attach to, later calls say.
fn check_many(input: &Input<'_>) -> Result<()> {
    match AttachedFunction::of(input) {
        Some(_) => Ok(()),
        None => Err(Stop::unsupported("a kernel without bpf_multi_func")),
    }
}

/// Checks a target in the kernel.
fn check_kernel_target(
    input: &Input<'_>,
    target: &AttachTarget,
    check: &mut Sink<'_>,
) -> Result<()> {
    if target.module != 0 {
        return Err(Stop::unsupported("attach target in a module"));
    }
    let Some(types) = input.vmlinux else {
        return Ok(());
    };
    let ty = find(types, target, check)?;
    let id = target.btf_id.0;
    let name = ty.name().to_string_lossy();
    match input.context.hook() {
        HookKind::RawTracepoint => {
            refuse_if!(ty.kind() != Kind::Typedef, check => Program::NotTypedef { id });
            let Some(tracepoint) = name.strip_prefix(HookKind::RawTracepoint.target_prefix())
            else {
                return Err(refuse!(check => Program::WrongTypeName { id, name }));
            };
            let is_sleepable = input.program.flags().has(LoadFlags::SLEEPABLE)
                && input.rules.has(Behaviour::TracepointsSleep);
            let faults = &input.registry.lists.faultable_tracepoints;
            match is_sleepable && !faults.contains(tracepoint) {
                true => Err(refuse!(check => Program::TracepointFaultsNot { tracepoint })),
                false => Ok(()),
            }
        }
        HookKind::LsmCgroup
            if (input.context.attach).is_some_and(|attach| input.is_newer(attach.since())) =>
        {
            Err(refuse!(check => Program::SilentTarget))
        }
        HookKind::Iterator
        | HookKind::Fentry
        | HookKind::Fexit
        | HookKind::ModifyReturn
        | HookKind::Lsm
        | HookKind::LsmCgroup
            if !matches!(ty.shape(), Shape::Func(_)) =>
        {
            Err(refuse!(check => Program::NotFunction { id }))
        }
        HookKind::Iterator => check_iterator(input, check, types, ty),
        HookKind::Fentry
        | HookKind::Fexit
        | HookKind::ModifyReturn
        | HookKind::Lsm
        | HookKind::LsmCgroup => check_function(input, check, ty),
        HookKind::Fsession if input.rules.has(Behaviour::FunctionSessions) => match ty.shape() {
            Shape::Func(_) => check_function(input, check, ty),
            _ => Err(refuse!(check => Program::NotFunction { id })),
        },
        HookKind::Unnamed | HookKind::Fsession | HookKind::Multi => {
            Err(unknown_attach_type(input.program.expected_attach_type()))
        }
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

fn find<'b>(types: &'b Btf<'b>, target: &AttachTarget, check: &mut Sink<'_>) -> Result<Type<'b>> {
    types
        .get(target.btf_id)
        .ok_or_else(|| refuse!(check => Program::InvalidAttachBtfId { id: target.btf_id.0 }))
}

/// Checks that an iterator is registered under the name of the function
/// (`bpf_iter_prog_supported`).
#[doc(alias = "bpf_iter_prog_supported")]
fn check_iterator(
    input: &Input<'_>,
    check: &mut Sink<'_>,
    types: &Btf<'_>,
    function: Type<'_>,
) -> Result<()> {
    check_func_proto(check, types, function)?;
    let name = &*function.name().to_string_lossy();
    let target = name.strip_prefix(HookKind::Iterator.target_prefix());
    if target.is_some_and(|target| input.registry.iterators.contains_key(target)) {
        return Ok(());
    }
    let takes_meta =
        function::first_object(types, function).is_some_and(|ty| ty == "bpf_iter_meta");
    match target.is_some() && takes_meta {
        true => Err(Stop::unsupported(format!("iterator {name}"))),
        false => Err(no_iterator(name)),
    }
}

/// Refusal of a function that no iterator has. The kernel's log stays empty.
fn no_iterator(name: &str) -> Stop {
    let name = name.to_owned();
    Stop::refusal(Program::NoIterator { name }, None)
}

/// Checks the size of a result that the program sees or replaces
/// (`attach_uses_trampoline_retval`).
#[doc(alias = "attach_uses_trampoline_retval")]
fn check_returned(input: &Input<'_>, check: &mut Sink<'_>, name: &str, size: u32) -> Result<()> {
    let hook = HookKind::of(input.program.attach_type());
    match HookRules::of(hook).uses_returned && size > 8 {
        true => Err(refuse!(check => Program::LargeReturn { name })),
        false => Ok(()),
    }
}

/// Prefix of the functions that decide about security, whose results programs may replace
/// (`SECURITY_PREFIX`).
const SECURITY: &str = "security_";

/// Checks a function of the kernel that a program is attached to by trampoline
/// (`btf_id_allow_sleepable`). The running kernels of development refuse all of these: the lists
/// are their data, the order is that of the source.
#[doc(alias = "btf_id_allow_sleepable")]
fn check_function(input: &Input<'_>, check: &mut Sink<'_>, ty: Type<'_>) -> Result<()> {
    let Some(types) = input.vmlinux else {
        return Ok(());
    };
    let returned = check_func_proto(check, types, ty)?;
    let name = &*ty.name().to_string_lossy();
    check_returned(input, check, name, returned)?;
    let address = input.symbols.map(|symbols| symbols.address(name));
    refuse_if!(address == Some(SymbolAddress::Missing), check => Program::NoAddress { name });
    let lists = &input.registry.lists;
    let hook = input.context.hook();
    let is_lsm = TypeRules::of(input.program.kind()).target == TargetKind::Hook;
    if input.program.flags().has(LoadFlags::SLEEPABLE) {
        let sleeps = match is_lsm {
            true => lists.lsm_sleepable.contains(name),
            false => lists.traced_sleepable.contains(name),
        };
        refuse_if!(!sleeps, check => Program::NotSleepable { name });
    } else if hook == HookKind::ModifyReturn
        && !name.starts_with(SECURITY)
        && !lists.modify_return.contains(name)
    {
        return Err(refuse!(check => Program::NotModifiable { name }));
    }
    if is_lsm {
        return check_lsm_hook(input, check, name);
    }
    refuse_if!(lists.attach_denied.contains(name), check => Program::DeniedTarget { name });
    if HookRules::of(hook).uses_returned && lists.noreturn.contains(name) {
        return Err(match input.rules.has(Behaviour::NoreturnNamed) {
            true => refuse!(check => Program::NoreturnTarget { name }),
            false => refuse!(check => Program::NoreturnTargets),
        });
    }
    Ok(())
}

/// `bpf_lsm_verify_prog`.
#[doc(alias = "bpf_lsm_verify_prog")]
fn check_lsm_hook(input: &Input<'_>, check: &mut Sink<'_>, name: &str) -> Result<()> {
    let lists = &input.registry.lists;
    refuse_if!(!input.program.is_gpl_compatible(), check => Program::LsmLicense);
    let id = input
        .program
        .attach_target()
        .map_or(0, |target| target.btf_id.0);
    refuse_if!(lists.lsm_disabled.contains(name), check => Program::DisabledHook { id, name });
    refuse_if!(!lists.lsm_hooks.contains(name), check => Program::WrongTypeName { id, name });
    Ok(())
}
