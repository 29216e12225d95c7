//! Contexts typed by BTF: the arguments of the kernel function or tracepoint that the
//! program is attached to (`btf_ctx_access` in kernel/bpf/btf.c).

use btf::{Btf, Kind, Shape, TypeId};
use spec::programs::ProgramType;

use crate::call::kind_name;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};
use crate::walk::Walk;
use crate::{Result, Stop};

/// `BPF_TRACE_RAW_TP`.
const RAW_TP: u32 = 23;
/// Prefix of the types of tracepoints.
const TRACEPOINT: &str = "btf_trace_";

/// What the context holds at `off`.
pub(super) enum Argument {
    /// A number.
    Scalar,
    /// An object of the kernel.
    Object(RegState),
}

/// The function that the program is attached to.
struct Target {
    /// Its name, or that of the tracepoint's type.
    name: String,
    /// Its arguments; a tracepoint's without the first.
    args: Vec<TypeId>,
    names: Vec<String>,
}

/// Finds what a read of `size` bytes at `off` of the context yields.
pub(super) fn read(walk: &mut Walk<'_>, off: i32, size: u32) -> Result<Argument> {
    let Some(vmlinux) = walk.env.vmlinux else {
        return Err(Stop::unsupported(
            "context typed by BTF without vmlinux BTF",
        ));
    };
    let target = target(walk, vmlinux)?;
    let name = &target.name;
    if off % 8 != 0 {
        verbose!(walk, "func '{name}' offset {off} is not multiple of 8\n");
        return Err(refuse(walk, off, size));
    }
    let Some(index) = argument_index(vmlinux, &target.args, off) else {
        let number = target.args.len() + 1;
        verbose!(walk, "func '{name}' doesn't have {number}-th argument\n");
        return Err(refuse(walk, off, size));
    };
    let id = vmlinux
        .skip_modifiers(target.args[index])
        .unwrap_or(TypeId::VOID);
    let ty = vmlinux.at(id);
    let pointee = match ty.shape() {
        Shape::Int(int) if matches!(int.size, 1 | 2 | 4 | 8) => return Ok(Argument::Scalar),
        Shape::Enum(_) | Shape::Struct(_) | Shape::Union(_) => return Ok(Argument::Scalar),
        Shape::Ptr(pointee) => pointee,
        _ => {
            let (type_name, kind) = (ty.name(), kind_name(ty.kind()));
            verbose!(
                walk,
                "func '{name}' arg{index} '{type_name}' has type {kind}. Only pointer access is allowed\n"
            );
            return Err(refuse(walk, off, size));
        }
    };
    if size != 8 {
        verbose!(walk, "func '{name}' size {size} must be 8\n");
        return Err(refuse(walk, off, size));
    }
    let object = vmlinux.skip_modifiers(pointee).unwrap_or(TypeId::VOID);
    if matches!(vmlinux.at(object).kind(), Kind::Void | Kind::Int) {
        return Ok(Argument::Scalar);
    }
    let mut flags = TypeFlags::PTR_TRUSTED;
    if target.names[index].ends_with("__nullable") {
        flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
    }
    let tracepoint = name.strip_prefix(TRACEPOINT).unwrap_or(name);
    let nullable = &walk.env.registry.lists.nullable_tracepoint_args;
    if nullable.is_empty() {
        // Without the kernel's list the pointer could be taken for one that is never null.
        return Err(Stop::unsupported("pointer arguments of tracepoints"));
    }
    let mask = nullable.get(tracepoint).copied().unwrap_or(0) >> (index * 4);
    if mask & 1 != 0 {
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
    let kind = kind_name(vmlinux.at(object).kind());
    if !vmlinux.at(object).kind().is_composite() {
        verbose!(
            walk,
            "func '{name}' arg{index} type {kind} is not a struct\n"
        );
        return Err(refuse(walk, off, size));
    }
    let object_name = vmlinux.at(object).name();
    verbose!(
        walk,
        "func '{name}' arg{index} has btf_id {} type {kind} '{object_name}'\n",
        object.0
    );
    if mask & 2 != 0 {
        verbose!(
            walk,
            "marking pointer arg{index} as scalar as it may encode error"
        );
        return Ok(Argument::Scalar);
    }
    let ty = TypeRef {
        btf: TypeRef::VMLINUX,
        id: object.0,
    };
    Ok(Argument::Object(RegState::pointer(
        RegKind::BtfId { ty },
        flags,
    )))
}

fn refuse(walk: &mut Walk<'_>, off: i32, size: u32) -> Stop {
    refuse!(
        walk,
        EACCES,
        Context,
        "invalid bpf_context access off={off} size={size}"
    )
}

/// The tracepoint that the program is attached to. Other targets are not judged yet.
fn target(walk: &Walk<'_>, vmlinux: &Btf<'_>) -> Result<Target> {
    let is_tracepoint =
        walk.env.context.kind == ProgramType::Tracing && walk.env.context.attach == RAW_TP;
    let id = walk
        .env
        .program
        .attach_target()
        .filter(|target| target.module == 0)
        .map(|target| target.btf_id);
    let (true, Some(id)) = (is_tracepoint, id) else {
        return Err(Stop::unsupported("context typed by BTF"));
    };
    let unknown = || Stop::unsupported("type of the tracepoint");
    let ty = vmlinux.get(id).ok_or_else(unknown)?;
    let pointer = vmlinux.skip_modifiers(id).ok_or_else(unknown)?;
    let Shape::Ptr(proto) = vmlinux.at(pointer).shape() else {
        return Err(unknown());
    };
    let Shape::Proto(proto) = vmlinux.at(proto).shape() else {
        return Err(unknown());
    };
    let params: Vec<_> = proto.params().skip(1).collect();
    Ok(Target {
        name: ty.name().to_string_lossy().into_owned(),
        args: params.iter().map(|param| param.ty).collect(),
        names: params
            .iter()
            .map(|param| vmlinux.string(param.name).to_string_lossy().into_owned())
            .collect(),
    })
}

/// The argument at an offset: each takes eight bytes, structures as many as they need.
fn argument_index(vmlinux: &Btf<'_>, args: &[TypeId], off: i32) -> Option<usize> {
    let mut end = 0i64;
    args.iter().position(|arg| {
        let id = vmlinux.skip_modifiers(*arg).unwrap_or(TypeId::VOID);
        let size = match vmlinux.at(id).kind() {
            Kind::Ptr => 8,
            _ => vmlinux.size_of(id).unwrap_or(8).next_multiple_of(8),
        };
        end += i64::from(size);
        i64::from(off) < end
    })
}
