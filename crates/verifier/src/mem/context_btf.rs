//! Contexts typed by BTF: the arguments of the tracepoint or of the iterator's target that
//! the program is attached to (`btf_ctx_access` in kernel/bpf/btf.c).
//!
//! An argument takes eight bytes, a structure as many as it needs. A tracepoint's
//! prototype begins with `__data`, which the context leaves out: the kernel finds the
//! index of an argument in the whole prototype and the type behind that index.

use btf::{Btf, Kind, Shape, TypeId};
use spec::programs::{AttachType, ProgramType};
use spec::registry::{RegBase, TracepointArg};

use super::context::pointer_of;
use crate::env::Env;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};
use crate::{Result, Stop};

/// Prefix of the types of tracepoints.
const TRACEPOINT: &str = "btf_trace_";

/// Field of the context at `off`.
pub(super) enum Argument {
    /// A number.
    Scalar,
    /// A pointer.
    Pointer(RegState),
}

/// The function that the program is attached to.
struct Target {
    /// Name that the log has for it.
    name: String,
    /// Types and names of its parameters.
    params: Vec<(TypeId, String)>,
    /// Type that it returns.
    returns: TypeId,
    /// Parameters at the front that the context leaves out.
    skipped: usize,
}

/// Finds what a read of `size` bytes at `off` of the context yields (`btf_ctx_access`).
#[doc(alias = "btf_ctx_access")]
pub(super) fn read(env: &mut Env<'_>, off: i32, size: u32) -> Result<Argument> {
    let Some(vmlinux) = env.input.vmlinux else {
        return Err(Stop::unsupported(
            "context typed by BTF without vmlinux BTF",
        ));
    };
    let target = target(env, vmlinux)?;
    let name = &target.name;
    if off % 8 != 0 {
        verbose!(env, "func '{name}' offset {off} is not multiple of 8\n");
        return Err(refuse(env, off, size));
    }
    let index = target.index_of(vmlinux, off);
    let Some((param, param_name)) = target.params.get(index + target.skipped) else {
        let number = index + 1;
        verbose!(env, "func '{name}' doesn't have {number}-th argument\n");
        return Err(refuse(env, off, size));
    };
    let id = vmlinux.skip_modifiers(*param).unwrap_or(TypeId::VOID);
    let ty = vmlinux.at(id);
    let pointee = match ty.shape() {
        Shape::Int(int) if matches!(int.size, 1 | 2 | 4 | 8) => return Ok(Argument::Scalar),
        Shape::Enum(_) | Shape::Struct(_) | Shape::Union(_) => {
            return Ok(Argument::Scalar);
        }
        Shape::Ptr(pointee) => pointee,
        _ => {
            let (type_name, kind) = (ty.name(), ty.kind().name());
            verbose!(
                env,
                "func '{name}' arg{index} '{type_name}' has type {kind}. Only pointer access is allowed\n"
            );
            return Err(refuse(env, off, size));
        }
    };
    if size != 8 {
        verbose!(env, "func '{name}' size {size} must be 8\n");
        return Err(refuse(env, off, size));
    }
    let iterator = env.input.registry.iterator(&env.input.context);
    let described = iterator.and_then(|iterator| iterator.arg(index));
    let is_buffer = described.is_some_and(|arg| arg.value.base == RegBase::PtrToBuf);
    let object = vmlinux.skip_modifiers(pointee).unwrap_or(TypeId::VOID);
    if matches!(vmlinux.at(object).kind(), Kind::Void | Kind::Int) && !is_buffer {
        return Ok(Argument::Scalar);
    }
    if let Some(arg) = described {
        let pointer = pointer_of(arg.value, arg.btf.as_ref())?;
        return Ok(Argument::Pointer(pointer));
    }
    let mut flags = TypeFlags::PTR_TRUSTED;
    if param_name.ends_with("__nullable") {
        flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
    }
    let tracepoint = match env.input.context.attach {
        Some(AttachType::TraceRawTp) => env.input.registry.lists.tracepoint_arg(name, index),
        _ => TracepointArg::default(),
    };
    if tracepoint.may_be_null {
        flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
    }
    let tag = vmlinux.at(pointee);
    if tag.kind() == Kind::TypeTag && !tag.flag() {
        match tag.name().as_bytes() {
            b"user" => flags = flags.with(TypeFlags::MEM_USER),
            b"percpu" => flags = flags.with(TypeFlags::MEM_PERCPU),
            _ => {}
        }
    }
    let kind = vmlinux.at(object).kind().name();
    if !vmlinux.at(object).kind().is_composite() {
        verbose!(
            env,
            "func '{name}' arg{index} type {kind} is not a struct\n"
        );
        return Err(refuse(env, off, size));
    }
    let object_name = vmlinux.at(object).name();
    verbose!(
        env,
        "func '{name}' arg{index} has btf_id {} type {kind} '{object_name}'\n",
        object.0
    );
    if tracepoint.may_be_error {
        verbose!(
            env,
            "marking pointer arg{index} as scalar as it may encode error"
        );
        return Ok(Argument::Scalar);
    }
    let ty = TypeRef::vmlinux(object.0);
    let pointer = RegState::pointer(RegKind::BtfId { ty }, flags);
    Ok(Argument::Pointer(pointer))
}

fn refuse(env: &mut Env<'_>, off: i32, size: u32) -> Stop {
    refuse!(env => Mem::Context { off, size })
}

/// The tracepoint or iterator that the program is attached to. Other targets are
/// unsupported.
fn target(env: &Env<'_>, vmlinux: &Btf<'_>) -> Result<Target> {
    let attach = env.input.context.attach;
    let id = env
        .input
        .program
        .attach_target()
        .filter(|target| target.module == 0)
        .map(|target| target.btf_id);
    let (ProgramType::Tracing, Some(AttachType::TraceRawTp | AttachType::TraceIter), Some(id)) =
        (env.input.context.kind, attach, id)
    else {
        return Err(Stop::unsupported("context typed by BTF"));
    };
    let unknown = || Stop::unsupported("type of the attach target");
    let ty = vmlinux.get(id).ok_or_else(unknown)?;
    let proto = match ty.shape() {
        Shape::Func(func) => func.proto,
        _ => {
            let pointer = vmlinux.skip_modifiers(id).ok_or_else(unknown)?;
            let Shape::Ptr(proto) = vmlinux.at(pointer).shape() else {
                return Err(unknown());
            };
            proto
        }
    };
    let Shape::Proto(proto) = vmlinux.at(proto).shape() else {
        return Err(unknown());
    };
    let name = ty.name().to_string_lossy();
    let params = proto.params().map(|param| {
        let name = vmlinux.string(param.name).to_string_lossy();
        (param.ty, name.into_owned())
    });
    Ok(Target {
        name: name.strip_prefix(TRACEPOINT).unwrap_or(&name).to_owned(),
        params: params.collect(),
        returns: proto.returns,
        skipped: usize::from(attach == Some(AttachType::TraceRawTp)),
    })
}

impl Target {
    /// Index of the argument at an offset; that behind the last for the return value,
    /// one more for what lies behind it (`btf_ctx_arg_idx`).
    #[doc(alias = "btf_ctx_arg_idx")]
    fn index_of(&self, vmlinux: &Btf<'_>, off: i32) -> usize {
        let mut end = 0i64;
        let ids = self.params.iter().map(|(ty, _)| *ty).chain([self.returns]);
        for (id, index) in ids.zip(0..) {
            let id = vmlinux.skip_modifiers(id).unwrap_or(TypeId::VOID);
            let size = match vmlinux.at(id).kind() {
                Kind::Ptr => 8,
                _ => vmlinux.size_of(id).unwrap_or(0).next_multiple_of(8),
            };
            end += i64::from(size);
            if i64::from(off) < end {
                return index;
            }
        }
        self.params.len() + 1
    }
}
