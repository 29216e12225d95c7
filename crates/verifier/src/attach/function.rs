//! The function that a program is attached to, by BTF (`attach_func_proto`, `attach_func_name`).

use std::borrow::Cow;

use btf::{Btf, Kind, Member, Name, Proto, Shape, Type, TypeId};
use program::Program;
use spec::programs::HookKind;

use crate::Errno;
use crate::input::Input;
use crate::state::TypeRef;
use crate::type_rules::{TargetKind, TypeRules};

/// Prefix of the types of tracepoints.
pub(super) const TRACEPOINT: &str = "btf_trace_";

/// The function that stands for all that a program of many attaches to (`bpf_multi_func`).
const MULTI: &str = "bpf_multi_func";

/// Arguments of a function of another program whose BTF says nothing of them
/// (`MAX_BPF_FUNC_REG_ARGS`).
const UNKNOWN_ARGS: usize = 5;

/// A function, tracepoint, iterator, hook or operation of vmlinux, or a function of a program.
pub(crate) struct AttachedFunction<'a> {
    /// Name that the log has for it.
    pub(crate) name: Cow<'a, str>,
    /// Its BTF.
    pub(crate) btf: &'a Btf<'static>,
    /// `None` for a function of a program whose BTF does not say what its arguments are.
    proto: Option<Proto<'a>>,
    /// Parameters at the front that the context leaves out.
    skipped: usize,
    /// The program that it is of.
    pub(crate) program: Option<&'a Program>,
}

/// What stands at some place of a context typed by BTF.
pub(crate) enum ContextEntry<'a> {
    /// An argument, with its type and the name of the parameter.
    Argument(TypeId, btf::Name<'a>),
    /// The value that the function returned or will return.
    Returned(TypeId),
    /// A number of a function whose arguments are unknown; what it returned, if it is true.
    Unknown(bool),
    /// Neither.
    Nothing,
}

impl<'a> AttachedFunction<'a> {
    /// The function that a program is attached to; `None` if its type is unknown.
    pub(crate) fn of(input: &Input<'a>) -> Option<AttachedFunction<'a>> {
        if super::of_many(input) {
            let btf = input.vmlinux?;
            let function = btf.find(Kind::Func, MULTI)?;
            let Shape::Func(func) = function.shape() else {
                return None;
            };
            let proto = prototype(btf, func.proto)?;
            return Some(AttachedFunction::new(MULTI.into(), btf, Some(proto), None));
        }
        let target = input.program.attach_target()?;
        if let Some(program) = &target.program {
            return AttachedFunction::of_program(input, program, target.btf_id);
        }
        let btf = input.vmlinux.filter(|_| target.module == 0)?;
        let ty = btf.get(target.btf_id)?;
        if let Some(index) = target.member {
            let member = ty.as_composite()?.member(index as usize)?;
            let name = btf.string(member.name).to_string_lossy();
            let proto = operation(btf, &member)?;
            return Some(AttachedFunction::new(name, btf, Some(proto), None));
        }
        let name = ty.name().to_string_lossy();
        if let Shape::Func(func) = ty.shape() {
            let proto = prototype(btf, func.proto)?;
            return Some(AttachedFunction::new(name, btf, Some(proto), None));
        }
        // A tracepoint's prototype begins with `__data`, which the context leaves out.
        let name = match name {
            Cow::Borrowed(name) => Cow::Borrowed(name.strip_prefix(TRACEPOINT).unwrap_or(name)),
            Cow::Owned(name) => Cow::Owned(name.replacen(TRACEPOINT, "", 1)),
        };
        let proto = pointer_to_function(btf, target.btf_id)?;
        let mut tracepoint = AttachedFunction::new(name, btf, Some(proto), None);
        tracepoint.skipped = 1;
        Some(tracepoint)
    }

    pub(super) fn new(
        name: Cow<'a, str>,
        btf: &'a Btf<'static>,
        proto: Option<Proto<'a>>,
        program: Option<&'a Program>,
    ) -> AttachedFunction<'a> {
        AttachedFunction {
            name,
            btf,
            proto,
            skipped: 0,
            program,
        }
    }

    /// The type that it returns.
    pub(crate) fn returns(&self) -> TypeId {
        self.proto.map_or(TypeId::VOID, |proto| proto.returns)
    }

    /// Index of the argument at an offset of the context; that behind the last for the return
    /// value, one more for what lies behind it (`btf_ctx_arg_idx`, `get_ctx_arg_idx`). An argument
    /// takes eight bytes, a structure as many as it needs. The kernel finds the index in the whole
    /// prototype.
    #[doc(alias = "btf_ctx_arg_idx")]
    #[doc(alias = "get_ctx_arg_idx")]
    pub(crate) fn index_at(&self, off: i32) -> usize {
        let Some(proto) = self.proto else {
            return off as usize / 8;
        };
        let mut end = 0u64;
        let params = proto.params().map(|param| param.ty);
        for (id, index) in params.chain([proto.returns]).zip(0..) {
            let id = self.btf.skip_modifiers(id).unwrap_or(TypeId::VOID);
            let size = match self.btf.at(id).kind() {
                Kind::Ptr => 8,
                _ => u64::from(self.btf.size_of(id).unwrap_or(0)).next_multiple_of(8),
            };
            end += size;
            if i64::from(off) < end as i64 {
                return index;
            }
        }
        proto.params().len() + 1
    }

    /// What argument `index` of the context is.
    pub(crate) fn entry(&self, index: usize) -> ContextEntry<'a> {
        let Some(proto) = self.proto else {
            return match index {
                0..UNKNOWN_ARGS => ContextEntry::Unknown(false),
                UNKNOWN_ARGS => ContextEntry::Unknown(true),
                _ => ContextEntry::Nothing,
            };
        };
        let mut params = proto.params().skip(self.skipped);
        let count = params.len();
        match params.nth(index) {
            Some(param) => ContextEntry::Argument(param.ty, self.btf.string(param.name)),
            None if index == count => ContextEntry::Returned(proto.returns),
            None => ContextEntry::Nothing,
        }
    }

    /// What the stub of an operation says of an argument beyond its type (`prepare_arg_info`).
    #[doc(alias = "prepare_arg_info")]
    pub(crate) fn mark(&self, input: &Input<'_>, index: usize) -> Option<ArgumentMark> {
        let structure = input
            .context
            .attach_target
            .filter(|_| input.struct_ops().is_some())?;
        let stub = format!("{structure}__{}", self.name);
        let stub = self.btf.find(Kind::Func, &stub)?;
        let Shape::Func(func) = stub.shape() else {
            return None;
        };
        let param = prototype(self.btf, func.proto)?.params().nth(index)?;
        ArgumentMark::of(self.btf.string(param.name).as_bytes())
    }

    /// Indices of arguments that hold a reference.
    pub(crate) fn referenced_args(&self, input: &Input<'_>) -> Vec<usize> {
        let is_referenced =
            |index: &usize| self.mark(input, *index) == Some(ArgumentMark::Referenced);
        let count = self.proto.map_or(0, |proto| proto.params().len());
        (0..count).filter(is_referenced).collect()
    }

    /// The structure that a pointer that it returns points to.
    fn returned_structure(&self) -> Option<TypeId> {
        let btf = self.btf;
        match btf.get(btf.skip_modifiers(self.returns())?)?.shape() {
            Shape::Ptr(target) => btf.skip_modifiers(target),
            _ => None,
        }
    }
}

/// What the name of a parameter of a stub says of the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentMark {
    /// It may be null.
    Nullable,
    /// It holds a reference that the program must release or return.
    Referenced,
}

impl ArgumentMark {
    fn of(param: &[u8]) -> Option<ArgumentMark> {
        if param.ends_with(b"__nullable") {
            return Some(ArgumentMark::Nullable);
        }
        param
            .ends_with(b"__ref")
            .then_some(ArgumentMark::Referenced)
    }
}

/// The prototype that a member of a struct_ops structure points to; `None` for members that are
/// no functions (`btf_type_resolve_func_ptr`).
#[doc(alias = "btf_type_resolve_func_ptr")]
pub(super) fn operation<'a>(btf: &'a Btf<'static>, member: &Member) -> Option<Proto<'a>> {
    pointer_to_function(btf, member.ty)
}

fn pointer_to_function<'a>(btf: &'a Btf<'static>, id: TypeId) -> Option<Proto<'a>> {
    match btf.get(btf.skip_modifiers(id)?)?.shape() {
        Shape::Ptr(target) => prototype(btf, btf.skip_modifiers(target)?),
        _ => None,
    }
}

/// The prototype of a function, by its type (`btf_attach_func_proto`).
#[doc(alias = "btf_attach_func_proto")]
pub(super) fn prototype<'a>(btf: &'a Btf<'_>, id: TypeId) -> Option<Proto<'a>> {
    match btf.get(id)?.shape() {
        Shape::Proto(proto) => Some(proto),
        _ => None,
    }
}

/// Name of the structure that the first argument of a function points to.
pub(super) fn first_object<'b>(btf: &'b Btf<'_>, function: Type<'_>) -> Option<Name<'b>> {
    let Shape::Func(func) = function.shape() else {
        return None;
    };
    let first = prototype(btf, func.proto)?.params().next()?.ty;
    let Shape::Ptr(to) = btf.at(btf.skip_modifiers(first)?).shape() else {
        return None;
    };
    Some(btf.at(btf.skip_modifiers(to)?).name())
}

/// What the attach target lets a program return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    /// The program type and attach type decide.
    ByProgramType,
    /// Nothing is returned.
    Nothing,
    /// Any value may be returned.
    Any,
    /// What the hook of a program of type LSM returns, a number of 32 bits from the first to the
    /// second (`bpf_lsm_get_retval_range`).
    OfHook(i32, i32),
    /// Whether the program of a cgroup refuses what its hook is about; 1 where the hook returns
    /// nothing that the program could change.
    OfCgroup {
        /// The hook returns nothing.
        is_void: bool,
    },
    /// A referenced object of this type, or null.
    Object(TypeRef),
    /// It is unknown.
    Unknown,
}

/// What the attach target of a struct_ops or LSM program lets it return (in `check_return_code`)
/// (`bpf_lsm_get_retval_range`, `program_returns_void`).
#[doc(alias = "bpf_lsm_get_retval_range")]
#[doc(alias = "program_returns_void")]
pub(crate) fn returned(input: &Input<'_>) -> Returned {
    let is_hook = match TypeRules::of(input.context.kind).target {
        TargetKind::Hook => true,
        // Linux 6.18 reads types that a replacement does not have.
        TargetKind::Operation if input.context.of_program => return Returned::Unknown,
        TargetKind::Operation => false,
        TargetKind::Nothing | TargetKind::Function | TargetKind::Program => {
            return Returned::ByProgramType;
        }
    };
    let Some(function) = AttachedFunction::of(input) else {
        return Returned::Unknown;
    };
    let is_void = function.returns().is_void();
    if is_hook && input.context.hook() == HookKind::LsmCgroup {
        Returned::OfCgroup { is_void }
    } else if is_void {
        Returned::Nothing
    } else if !is_hook {
        let object = function.returned_structure();
        object.map_or(Returned::Any, |id| Returned::Object(TypeRef::vmlinux(id.0)))
    } else {
        let (min, max) = range_of_hook(input, &function);
        Returned::OfHook(min, max)
    }
}

/// Results of the hook that a program is attached to (`bpf_lsm_get_retval_range`).
#[doc(alias = "bpf_lsm_get_retval_range")]
pub(crate) fn hook_range(input: &Input<'_>) -> Option<(i32, i32)> {
    AttachedFunction::of(input).map(|function| range_of_hook(input, &function))
}

fn range_of_hook(input: &Input<'_>, function: &AttachedFunction<'_>) -> (i32, i32) {
    match input.registry.lists.lsm_bool.contains(&*function.name) {
        true => (0, 1),
        false => (-Errno::MAX, 0),
    }
}
