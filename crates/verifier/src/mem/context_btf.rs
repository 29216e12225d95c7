//! Contexts typed by BTF: the arguments of the function, tracepoint, hook, operation or iterator's
//! target that the program is attached to, and what it returned (`btf_ctx_access` in
//! kernel/bpf/btf.c).

use btf::{Btf, Kind, Shape, TypeId};
use program::Program;
use spec::behaviour::Behaviour;
use spec::programs::HookKind;
use spec::registry::{RegBase, TracepointArg};

use super::context::pointer_of;
use crate::attach::{self, ArgumentMark, AttachedFunction, ContextEntry, Returned};
use crate::call::prototype;
use crate::env::Check;
use crate::input::Input;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};
use crate::type_rules::{HookRules, TargetKind, TypeRules};
use crate::{Result, Stop};

/// Field of the context at `off`.
pub(super) enum Argument {
    /// A number.
    Scalar,
    /// What the hook returned so far: a number from the first to the second.
    ReturnedByHook(i32, i32),
    /// A pointer.
    Pointer(RegState),
}

/// Finds what a read of `size` bytes at `off` of the context yields (`btf_ctx_access`).
#[doc(alias = "btf_ctx_access")]
pub(super) fn read(env: &mut Check<'_>, off: i32, size: u32) -> Result<Argument> {
    let function = AttachedFunction::of(env.input);
    let function = function.ok_or_else(|| Stop::unsupported("type of the attach target"))?;
    let (types, name) = (function.btf, &function.name);
    if off % 8 != 0 {
        verbose!(
            env.sink,
            "func '{name}' offset {off} is not multiple of 8\n"
        );
        return Err(refuse(env, off, size));
    }
    let index = function.index_at(off);
    let hook = env.input.context.hook();
    let has_returned = HookRules::of(hook).has_returned;
    let (param, param_name) = match function.entry(index) {
        ContextEntry::Argument(ty, name) => (ty, Some(name)),
        ContextEntry::Returned(ty) if has_returned => (ty, None),
        ContextEntry::Unknown(is_returned) if !is_returned || has_returned => {
            return Ok(Argument::Scalar);
        }
        ContextEntry::Returned(_) | ContextEntry::Unknown(_) | ContextEntry::Nothing => {
            let number = index + 1;
            verbose!(
                env.sink,
                "func '{name}' doesn't have {number}-th argument\n"
            );
            return Err(refuse(env, off, size));
        }
    };
    let id = types.skip_modifiers(param).unwrap_or(TypeId::VOID);
    let ty = types.at(id);
    let is_small_int = matches!(ty.shape(), Shape::Int(int) if matches!(int.size, 1 | 2 | 4 | 8));
    if param_name.is_none() && hook == HookKind::ModifyReturn && !is_small_int {
        let kind = ty.kind().name();
        verbose!(env.sink, "ret type {kind} not allowed for fmod_ret\n");
        return Err(refuse(env, off, size));
    }
    let pointee = match ty.shape() {
        Shape::Int(_) if is_small_int => return Ok(number(env.input, param_name.is_none())),
        Shape::Enum(_) | Shape::Struct(_) | Shape::Union(_) => {
            return Ok(number(env.input, param_name.is_none()));
        }
        Shape::Ptr(pointee) => pointee,
        _ => {
            let type_name = match ty.name() {
                name if name.is_empty() => "(anon)".into(),
                name => name.to_string_lossy(),
            };
            let kind = ty.kind().name();
            verbose!(
                env.sink,
                "func '{name}' arg{index} '{type_name}' has type {kind}. Only pointer access is allowed\n"
            );
            return Err(refuse(env, off, size));
        }
    };
    if size != 8 && env.input.rules.has(Behaviour::PointersWhole) {
        verbose!(env.sink, "func '{name}' size {size} must be 8\n");
        return Err(refuse(env, off, size));
    }
    if let Some(object) = object_of_operation(env.input, &function, index) {
        let pointer = pointer_to(env.input, &function, object, TypeFlags::PTR_TRUSTED);
        return Ok(Argument::Pointer(pointer));
    }
    let iterator = env.input.registry.iterator(&env.input.context);
    let described = iterator.and_then(|iterator| iterator.arg(index));
    let is_buffer = described.is_some_and(|arg| arg.value.base == RegBase::PtrToBuf);
    let object = types.skip_modifiers(pointee).unwrap_or(TypeId::VOID);
    let as_number = match types.at(object).kind() {
        Kind::Void => true,
        Kind::Int => env.input.rules.has(Behaviour::IntPointersRead) || is_text(types, pointee),
        Kind::Ptr => env.input.rules.has(Behaviour::PointersAsNumbers),
        _ => false,
    };
    if as_number && !is_buffer {
        return Ok(Argument::Scalar);
    }
    if let Some(arg) = described {
        let pointer = pointer_of(arg.value, arg.btf.as_ref())?;
        return Ok(Argument::Pointer(pointer));
    }
    if let Some(mark) = param_name.and(function.mark(env.input, index)) {
        return Ok(Argument::Pointer(marked(
            env, &function, object, index, mark,
        )));
    }
    let mut flags = match has_trusted_args(env.input, name) {
        true => TypeFlags::PTR_TRUSTED,
        false => TypeFlags::NONE,
    };
    if param_name.is_some_and(|name| name.as_bytes().ends_with(b"__nullable")) {
        flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
    }
    let tracepoint = match hook == HookKind::RawTracepoint {
        true => env.input.registry.lists.tracepoint_arg(name, index),
        false => TracepointArg::default(),
    };
    if tracepoint.may_be_null {
        flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
    }
    if let Some(program) = function.program {
        return match context_of_program(env.input, program, pointee) {
            Some(ty) => Ok(Argument::Pointer(RegState::pointer(
                RegKind::BtfId { ty },
                flags,
            ))),
            None => Err(refuse(env, off, size)),
        };
    }
    let tag = types.at(pointee);
    if tag.kind() == Kind::TypeTag && !tag.flag() {
        match tag.name().as_bytes() {
            b"user" => flags = flags.with(TypeFlags::MEM_USER),
            b"percpu" => flags = flags.with(TypeFlags::MEM_PERCPU),
            _ => {}
        }
    }
    let kind = types.at(object).kind().name();
    if !types.at(object).kind().is_composite() {
        verbose!(
            env.sink,
            "func '{name}' arg{index} type {kind} is not a struct\n"
        );
        return Err(refuse(env, off, size));
    }
    let object_name = types.at(object).name();
    verbose!(
        env.sink,
        "func '{name}' arg{index} has btf_id {} type {kind} '{object_name}'\n",
        object.0
    );
    if tracepoint.may_be_error {
        verbose!(
            env.sink,
            "marking pointer arg{index} as scalar as it may encode error"
        );
        return Ok(Argument::Scalar);
    }
    Ok(Argument::Pointer(pointer_to(
        env.input, &function, object, flags,
    )))
}

/// True for what a pointer to text points to: a character, which may be constant, and has no other
/// name (`is_string_ptr`).
#[doc(alias = "is_string_ptr")]
fn is_text(types: &Btf<'_>, pointee: TypeId) -> bool {
    let direct = match types.at(pointee).shape() {
        Shape::Const(plain) => plain,
        _ => pointee,
    };
    matches!(types.at(direct).shape(), Shape::Int(int) if int.size == 1)
}

/// A number, which hooks that return one know more about (`bpf_lsm_get_retval_range`,
/// `get_func_retval_range`).
#[doc(alias = "get_func_retval_range")]
fn number(input: &Input<'_>, is_returned: bool) -> Argument {
    match attach::returned(input) {
        Returned::OfHook(min, max) if is_returned => Argument::ReturnedByHook(min, max),
        _ => Argument::Scalar,
    }
}

/// True if the arguments are trusted pointers (`prog_args_trusted`, `bpf_lsm_is_trusted`).
#[doc(alias = "prog_args_trusted")]
#[doc(alias = "bpf_lsm_is_trusted")]
fn has_trusted_args(input: &Input<'_>, function: &str) -> bool {
    match TypeRules::of(input.program.kind()).target {
        TargetKind::Function => HookRules::of(input.context.hook()).has_trusted_args,
        TargetKind::Hook => !input.registry.lists.lsm_untrusted.contains(function),
        TargetKind::Operation => true,
        TargetKind::Nothing | TargetKind::Program => false,
    }
}

/// What a function of a program gets as its context: the kernel's structure behind it
/// (`btf_translate_to_vmlinux`).
#[doc(alias = "btf_translate_to_vmlinux")]
fn context_of_program(input: &Input<'_>, program: &Program, pointee: TypeId) -> Option<TypeRef> {
    let kind = attach::context_type(program);
    let is_it = prototype::is_context(program.btf()?, kind, pointee);
    let vmlinux = input.vmlinux.filter(|_| is_it)?;
    let ty = vmlinux.kernel_context(kind.name())?;
    Some(TypeRef::vmlinux(ty.0))
}

/// The structure that an argument of an operation is given as, whatever its type
/// (`bpf_qdisc_is_valid_access`).
#[doc(alias = "bpf_qdisc_is_valid_access")]
fn object_of_operation(
    input: &Input<'_>,
    function: &AttachedFunction<'_>,
    index: usize,
) -> Option<TypeId> {
    let mut objects = input.struct_ops()?.objects.iter();
    let is_it = |row: &&(&str, usize, &str)| row.0 == function.name && row.1 == index;
    let (_, _, structure) = objects.find(is_it)?;
    Some(function.btf.find(Kind::Struct, structure)?.id())
}

/// An argument of an operation whose stub says more of it.
fn marked(
    env: &Check<'_>,
    function: &AttachedFunction<'_>,
    object: TypeId,
    index: usize,
    mark: ArgumentMark,
) -> RegState {
    let flags = match mark {
        ArgumentMark::Nullable => TypeFlags::PTR_TRUSTED.with(TypeFlags::PTR_MAYBE_NULL),
        ArgumentMark::Referenced => TypeFlags::PTR_TRUSTED,
    };
    let mut pointer = pointer_to(env.input, function, object, flags);
    let mut held = env.referenced_args.iter();
    pointer.ref_obj_id = held
        .find(|(held, _)| *held == index)
        .map_or(0, |(_, id)| *id);
    pointer
}

/// A pointer to an object of a type. Operations of a TCP congestion control get sockets of TCP
/// (`bpf_tcp_ca_is_valid_access`).
#[doc(alias = "bpf_tcp_ca_is_valid_access")]
fn pointer_to(
    input: &Input<'_>,
    function: &AttachedFunction<'_>,
    object: TypeId,
    flags: TypeFlags,
) -> RegState {
    let narrowed = input.struct_ops().and_then(|operations| {
        let (from, to) = operations.narrows?;
        let is_it = function.btf.at(object).name() == from;
        let is_safe = flags.without(TypeFlags::PTR_TRUSTED).is_empty();
        function
            .btf
            .find(Kind::Struct, to)
            .filter(|_| is_it && is_safe)
    });
    let ty = TypeRef::vmlinux(narrowed.map_or(object, |ty| ty.id()).0);
    RegState::pointer(RegKind::BtfId { ty }, flags)
}

fn refuse(env: &mut Check<'_>, off: i32, size: u32) -> Stop {
    refuse!(env => Mem::Context { off, size })
}
