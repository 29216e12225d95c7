//! Kinds of arguments of kfuncs: the prototype's BTF, suffixes of parameters' names and what the
//! register holds decide how one is checked (`get_kfunc_ptr_arg_type`).

use btf::fields::FieldKind;
use btf::{Btf, Kind, ParamSuffix, Shape, TypeId};
use spec::programs::ProgramType;
use spec::registry::{KfuncFlags, SpecialKfunc};

use super::Callee;
use crate::call::REGS;
use crate::call::prototype::is_context;
use crate::log::LogAt;
use crate::state::{RegKind, RegState, Registers};
use crate::{Result, refuse, verbose};

/// Kind of an argument of a kfunc (`enum kfunc_ptr_arg_type`, and numbers).
#[doc(alias = "kfunc_ptr_arg_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KfuncArgKind {
    /// Anything, by the parameter's name.
    Ignored,
    /// The program, which the verifier passes.
    Program,
    /// A number.
    Scalar,
    /// A number that is known.
    Constant,
    /// Bytes of the memory that is returned.
    ResultSize {
        /// The memory may only be read.
        is_rdonly: bool,
    },
    /// The context.
    Ctx,
    /// Null, where the parameter may be.
    Null,
    /// A string that nothing changes.
    ConstStr,
    /// A map, by the parameter's name.
    Map,
    /// An object of the kernel, or a map.
    BtfId,
    /// Memory of the size of its type.
    Mem,
    /// Memory whose size is the next argument.
    MemSize,
    /// An object that the program allocated.
    AllocBtfId,
    /// One with a reference count.
    RefcountedKptr,
    /// A dynptr.
    Dynptr,
    /// An open-coded iterator.
    Iter,
    /// Saved IRQ flags.
    IrqFlag,
    /// A function of the program.
    Callback,
    /// The structure of the program, which Linux passes by itself.
    ProgramAux,
    /// The head of a list.
    ListHead,
    /// A node of a list.
    ListNode,
    /// The root of a tree.
    RbRoot,
    /// A node of a tree.
    RbNode,
    /// A timer.
    Timer,
    /// A work queue.
    Workqueue,
    /// Work of a task.
    TaskWork,
    /// A resilient lock.
    ResSpinLock,
}

impl KfuncArgKind {
    /// The kind of argument `index` of a call with these registers, in a program of that type;
    /// refuses what no kind is for (`check_kfunc_args`, `get_kfunc_ptr_arg_type`).
    #[doc(alias = "get_kfunc_ptr_arg_type")]
    pub(super) fn of(
        at: &mut LogAt<'_, '_>,
        callee: &Callee<'_>,
        program: ProgramType,
        index: usize,
        regs: &Registers,
    ) -> Result<KfuncArgKind> {
        let btf = callee.btf;
        let (param, name) = &callee.params[index];
        let suffix = ParamSuffix::of(name);
        let by_name = suffix.and_then(of_suffix);
        if let Some(kind @ (KfuncArgKind::Program | KfuncArgKind::Ignored)) = by_name {
            return Ok(kind);
        }
        let ty = btf.at(strip(btf, *param));
        if is_scalar(btf, ty.id()) {
            return Ok(match (suffix, &name[..]) {
                (Some(ParamSuffix::Constant), _) => KfuncArgKind::Constant,
                (_, b"rdonly_buf_size") => KfuncArgKind::ResultSize { is_rdonly: true },
                (_, b"rdwr_buf_size") => KfuncArgKind::ResultSize { is_rdonly: false },
                _ => KfuncArgKind::Scalar,
            });
        }
        let Shape::Ptr(pointee) = ty.shape() else {
            let kind = ty.kind().name();
            return Err(refuse!(at => Call::UnrecognizedArgument { index, kind }));
        };
        let ptr = REGS[index];
        let reg = &regs[usize::from(ptr.number())];
        let may_be_null = reg.is_null() || reg.may_be_null();
        let is_nullable = suffix == Some(ParamSuffix::Nullable);
        if callee.must_trust() && may_be_null && !is_nullable {
            return Err(refuse!(at => Call::TrustedMaybeNull { reg: ptr, index }));
        }
        let is_cast = callee.is(SpecialKfunc::CastToKernCtx);
        if is_cast || is_context(btf, program, pointee) {
            return Ok(KfuncArgKind::Ctx);
        }
        let has_size = is_size(callee, index + 1, regs);
        if is_nullable && reg.is_null() && !has_size {
            return Ok(KfuncArgKind::Null);
        }
        let target = btf.at(strip(btf, pointee));
        let is_struct = target.kind() == Kind::Struct;
        let by_type = || of_structure(target.name()).filter(|_| is_struct);
        if let Some(kind) = by_name.or_else(by_type) {
            return Ok(kind);
        }
        if target.kind() == Kind::FuncProto {
            return Ok(KfuncArgKind::Callback);
        }
        let (kind, name) = (target.kind().name(), target.name());
        if stands_for(reg).is_some() || matches!(reg.kind, RegKind::BtfId { .. }) {
            if target.kind().is_composite() {
                return Ok(KfuncArgKind::BtfId);
            }
            return Err(refuse!(at => Call::UnsupportedPointer {
                kfunc: &callee.kfunc.name, index, kind, name
            }));
        }
        let is_memory = is_scalar(btf, target.id())
            || is_scalar_struct(at, btf, target.id(), 0)
            || has_size && target.kind() == Kind::Void;
        if !is_memory {
            let or_void = if has_size { "void, " } else { "" };
            return Err(refuse!(at => Call::PointeeNotScalar { index, kind, name, or_void }));
        }
        Ok(match has_size {
            true => KfuncArgKind::MemSize,
            false => KfuncArgKind::Mem,
        })
    }
}

impl Callee<'_> {
    /// True if its pointers must be trusted.
    pub(super) fn must_trust(&self) -> bool {
        const TRUSTING: KfuncFlags = KfuncFlags::TRUSTED_ARGS
            .with(KfuncFlags::RELEASE)
            .with(KfuncFlags::RCU);
        self.kfunc.flags.has_any(TRUSTING)
    }
}

/// The kind that a suffix of the parameter's name says.
fn of_suffix(suffix: ParamSuffix) -> Option<KfuncArgKind> {
    match suffix {
        ParamSuffix::ConstString => Some(KfuncArgKind::ConstStr),
        ParamSuffix::Map => Some(KfuncArgKind::Map),
        ParamSuffix::Alloc => Some(KfuncArgKind::AllocBtfId),
        ParamSuffix::RefcountedKptr => Some(KfuncArgKind::RefcountedKptr),
        ParamSuffix::IrqFlag => Some(KfuncArgKind::IrqFlag),
        ParamSuffix::Iterator => Some(KfuncArgKind::Iter),
        // Of dynptrs that the call makes.
        ParamSuffix::Uninit => Some(KfuncArgKind::Dynptr),
        ParamSuffix::Program => Some(KfuncArgKind::Program),
        ParamSuffix::Ignored => Some(KfuncArgKind::Ignored),
        ParamSuffix::Size
        | ParamSuffix::ConstSize
        | ParamSuffix::Constant
        | ParamSuffix::Optional
        | ParamSuffix::Nullable => None,
    }
}

/// The kind of a pointer to a structure that is more than memory.
fn of_structure(name: btf::Name<'_>) -> Option<KfuncArgKind> {
    if name == "bpf_dynptr" {
        return Some(KfuncArgKind::Dynptr);
    }
    if name == "bpf_prog_aux" {
        return Some(KfuncArgKind::ProgramAux);
    }
    match FieldKind::of_structure(name)? {
        FieldKind::ListHead => Some(KfuncArgKind::ListHead),
        FieldKind::ListNode => Some(KfuncArgKind::ListNode),
        FieldKind::RbRoot => Some(KfuncArgKind::RbRoot),
        FieldKind::RbNode => Some(KfuncArgKind::RbNode),
        FieldKind::Timer => Some(KfuncArgKind::Timer),
        FieldKind::Workqueue => Some(KfuncArgKind::Workqueue),
        FieldKind::TaskWork => Some(KfuncArgKind::TaskWork),
        FieldKind::ResSpinLock => Some(KfuncArgKind::ResSpinLock),
        FieldKind::SpinLock
        | FieldKind::Refcount
        | FieldKind::KptrUnref
        | FieldKind::KptrRef
        | FieldKind::KptrPercpu
        | FieldKind::Uptr => None,
    }
}

/// True if parameter `index` is the size of the memory before it.
fn is_size(callee: &Callee<'_>, index: usize, regs: &Registers) -> bool {
    let (Some((ty, name)), Some(reg)) = (callee.params.get(index), REGS.get(index)) else {
        return false;
    };
    let suffix = ParamSuffix::of(name);
    is_scalar(callee.btf, strip(callee.btf, *ty))
        && matches!(suffix, Some(ParamSuffix::Size | ParamSuffix::ConstSize))
        && regs[usize::from(reg.number())].is_scalar()
}

/// The type below modifiers.
pub(super) fn strip(btf: &Btf<'_>, id: TypeId) -> TypeId {
    btf.skip_modifiers(id).unwrap_or(TypeId::VOID)
}

fn is_scalar(btf: &Btf<'_>, id: TypeId) -> bool {
    matches!(btf.at(id).kind(), Kind::Int | Kind::Enum | Kind::Enum64)
}

/// The structure that a register of another kind stands for (`reg2btf_ids`).
#[doc(alias = "reg2btf_ids")]
pub(super) fn stands_for(reg: &RegState) -> Option<&'static str> {
    Some(match reg.kind {
        RegKind::Socket => "sock",
        RegKind::SockCommon => "sock_common",
        RegKind::TcpSock => "tcp_sock",
        RegKind::MapPtr { .. } => "bpf_map",
        RegKind::NotInit
        | RegKind::Scalar
        | RegKind::Ctx
        | RegKind::MapValue { .. }
        | RegKind::MapKey { .. }
        | RegKind::Stack { .. }
        | RegKind::PacketMeta { .. }
        | RegKind::Packet { .. }
        | RegKind::PacketEnd
        | RegKind::FlowKeys
        | RegKind::TpBuffer
        | RegKind::XdpSock
        | RegKind::BtfId { .. }
        | RegKind::Mem { .. }
        | RegKind::Arena
        | RegKind::Buf
        | RegKind::Func { .. }
        | RegKind::ConstDynptr { .. }
        | RegKind::Dynptr { .. }
        | RegKind::Iter { .. }
        | RegKind::Irq { .. } => return None,
    })
}

/// True if a structure is made of numbers, nested at most four deep
/// (`__btf_type_is_scalar_struct`).
#[doc(alias = "__btf_type_is_scalar_struct")]
fn is_scalar_struct(at: &mut LogAt<'_, '_>, btf: &Btf<'_>, id: TypeId, depth: u32) -> bool {
    let Some(composite) = btf.at(id).as_composite() else {
        return false;
    };
    composite.members().all(|member| {
        let ty = strip(btf, member.ty);
        if btf.at(ty).kind().is_composite() {
            if depth >= 3 {
                verbose!(at, "max struct nesting depth exceeded\n");
                return false;
            }
            return is_scalar_struct(at, btf, ty, depth + 1);
        }
        if let Shape::Array(array) = btf.at(ty).shape() {
            let element = btf.skip_modifiers(array.element);
            return array.count != 0 && element.is_some_and(|ty| is_scalar(btf, ty));
        }
        is_scalar(btf, ty)
    })
}
