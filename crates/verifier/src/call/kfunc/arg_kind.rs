//! Kinds of arguments of kfuncs: the prototype's BTF, suffixes of parameters' names and what the
//! register holds decide how one is checked (`get_kfunc_ptr_arg_type`).

use btf::fields::FieldKind;
use btf::{Btf, Kind, ParamSuffix, Shape, TypeId};
use spec::behaviour::{Behaviour, Behaviours};
use spec::programs::ProgramType;
use spec::registry::{KfuncFlags, SpecialKfunc};

use super::Callee;
use crate::call::REGS;
use crate::call::prototype::is_context;
use crate::log::Sink;
use crate::state::{RegKind, RegRules, RegState, Registers};
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
    /// Bytes of the memory that is returned (`is_kfunc_arg_scalar_with_name`).
    #[doc(alias = "is_kfunc_arg_scalar_with_name")]
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
    /// A map of the program, by the parameter's name.
    ConstMap,
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
    /// A dynptr (`is_kfunc_arg_dynptr`).
    #[doc(alias = "is_kfunc_arg_dynptr")]
    Dynptr,
    /// An open-coded iterator (`is_kfunc_arg_iter`).
    #[doc(alias = "is_kfunc_arg_iter")]
    Iter,
    /// Saved IRQ flags.
    IrqFlag,
    /// A function of the program (`is_kfunc_arg_callback`).
    #[doc(alias = "is_kfunc_arg_callback")]
    Callback,
    /// The structure of the program, which Linux passes by itself (`is_kfunc_arg_prog_aux`).
    #[doc(alias = "is_kfunc_arg_prog_aux")]
    ProgramAux,
    /// The head of a list or the root of a tree (`is_kfunc_arg_list_head`,
    /// `is_kfunc_arg_rbtree_root`).
    #[doc(alias = "is_kfunc_arg_list_head")]
    #[doc(alias = "is_kfunc_arg_rbtree_root")]
    Root(FieldKind),
    /// A node of one (`is_kfunc_arg_list_node`, `is_kfunc_arg_rbtree_node`).
    #[doc(alias = "is_kfunc_arg_list_node")]
    #[doc(alias = "is_kfunc_arg_rbtree_node")]
    Node(FieldKind),
    /// A timer, a work queue or the work of a task, in the value of a map (`is_kfunc_arg_timer`,
    /// `is_kfunc_arg_wq`, `is_kfunc_arg_task_work`).
    #[doc(alias = "is_kfunc_arg_timer")]
    #[doc(alias = "is_kfunc_arg_wq")]
    #[doc(alias = "is_kfunc_arg_task_work")]
    InValue(FieldKind),
    /// A resilient lock (`is_kfunc_arg_res_spin_lock`).
    #[doc(alias = "is_kfunc_arg_res_spin_lock")]
    ResSpinLock,
}

impl KfuncArgKind {
    /// True for numbers.
    pub(super) const fn is_number(self) -> bool {
        matches!(
            self,
            KfuncArgKind::Scalar | KfuncArgKind::Constant | KfuncArgKind::ResultSize { .. }
        )
    }

    /// The kind of argument `index` of a call with these registers, in a program of that type;
    /// refuses what no kind is for (`check_kfunc_args`, `get_kfunc_ptr_arg_type`).
    #[doc(alias = "get_kfunc_ptr_arg_type")]
    pub(super) fn of(
        log: &mut Sink<'_>,
        callee: &Callee<'_>,
        program: ProgramType,
        index: usize,
        regs: &Registers,
    ) -> Result<KfuncArgKind> {
        let btf = callee.btf;
        let rules = log.rules;
        let by_type = rules.has(Behaviour::ArgumentsByType);
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
                (Some(ParamSuffix::ConstSize), _) if by_type => KfuncArgKind::Constant,
                (_, b"rdonly_buf_size") => KfuncArgKind::ResultSize { is_rdonly: true },
                (_, b"rdwr_buf_size") => KfuncArgKind::ResultSize { is_rdonly: false },
                _ => KfuncArgKind::Scalar,
            });
        }
        let Shape::Ptr(pointee) = ty.shape() else {
            let kind = ty.kind().name();
            return Err(refuse!(log => Call::UnrecognizedArgument { index, kind }));
        };
        let ptr = REGS[index];
        let reg = &regs[usize::from(ptr.number())];
        let may_be_null = reg.is_null() || reg.may_be_null();
        let is_nullable = suffix == Some(ParamSuffix::Nullable);
        if callee.must_trust(rules) && may_be_null && !is_nullable {
            return Err(refuse!(log => Call::TrustedMaybeNull { reg: ptr, index }));
        }
        if rules.has(Behaviour::ReleasedFirst) && callee.lacks_reference(ptr, reg) {
            let name = &callee.kfunc.name;
            return Err(refuse!(log => Call::ReleaseExpectsReference { name, reg: ptr }));
        }
        let takes_context = SESSION.contains(&&*callee.kfunc.name);
        let is_cast = callee.is(SpecialKfunc::CastToKernCtx) || takes_context;
        if is_cast || is_context(btf, program, pointee) {
            return Ok(KfuncArgKind::Ctx);
        }
        let has_size = is_size(callee, index + 1, (!by_type).then_some(regs));
        if is_nullable && reg.is_null() && (!has_size || by_type) {
            return Ok(KfuncArgKind::Null);
        }
        let target = btf.at(strip(btf, pointee));
        let is_struct = target.kind() == Kind::Struct;
        if index == 0 && callee.kfunc.flags.has_any(KfuncFlags::ITERATOR) {
            return Ok(KfuncArgKind::Iter);
        }
        let by_structure = || of_structure(target.name()).filter(|_| is_struct);
        if let Some(kind) = by_name.or_else(by_structure) {
            return Ok(kind);
        }
        if by_type && target.kind() != Kind::FuncProto {
            return of_pointee(log, callee, index, target, has_size, reg);
        }
        let (kind, name) = (target.kind().name(), target.name());
        if stands_for(reg).is_some() || matches!(reg.kind, RegKind::BtfId { .. }) {
            if target.kind().is_composite() {
                return Ok(KfuncArgKind::BtfId);
            }
            return Err(refuse!(log => Call::UnsupportedPointer {
                kfunc: &callee.kfunc.name, index, kind, name
            }));
        }
        if target.kind() == Kind::FuncProto {
            return Ok(KfuncArgKind::Callback);
        }
        let is_memory = is_scalar(btf, target.id())
            || is_scalar_struct(log, btf, target.id(), 0)
            || has_size && target.kind() == Kind::Void;
        if !is_memory {
            let or_void = if has_size { "void, " } else { "" };
            return Err(refuse!(log => Call::PointeeNotScalar { index, kind, name, or_void }));
        }
        Ok(match has_size {
            true => KfuncArgKind::MemSize,
            false => KfuncArgKind::Mem,
        })
    }
}

impl Callee<'_> {
    /// True if its pointers must be trusted.
    pub(super) fn must_trust(&self, rules: Behaviours) -> bool {
        const TRUSTING: KfuncFlags = KfuncFlags::TRUSTED_ARGS
            .with(KfuncFlags::RELEASE)
            .with(KfuncFlags::RCU);
        rules.has(Behaviour::KfuncsTrust) || self.kfunc.flags.has_any(TRUSTING)
    }
}

/// Kfuncs that take the context of the session, whatever their parameter's type.
const SESSION: [&str; 2] = ["bpf_session_cookie", "bpf_session_is_return"];

/// The kind of a pointer to memory or to an object, where the type that it points to decides
/// (`get_kfunc_arg_type`).
#[doc(alias = "get_kfunc_arg_type")]
fn of_pointee(
    log: &mut Sink<'_>,
    callee: &Callee<'_>,
    index: usize,
    target: btf::Type<'_>,
    has_size: bool,
    reg: &RegState,
) -> Result<KfuncArgKind> {
    let btf = callee.btf;
    let (kind, name) = (target.kind().name(), target.name());
    let is_memory = is_scalar(btf, target.id()) || is_scalar_struct(log, btf, target.id(), 0);
    if has_size {
        return match is_memory || target.kind() == Kind::Void {
            true => Ok(KfuncArgKind::MemSize),
            false => {
                let or_void = "void, ";
                Err(refuse!(log => Call::PointeeNotScalar { index, kind, name, or_void }))
            }
        };
    }
    let is_object = stands_for(reg).is_some() || matches!(reg.kind, RegKind::BtfId { .. });
    match target.kind().is_composite() {
        true if is_object => Ok(KfuncArgKind::BtfId),
        _ if is_memory => Ok(KfuncArgKind::Mem),
        true if log.rules.has(Behaviour::ArgumentsByType) => Ok(KfuncArgKind::BtfId),
        true => Err(refuse!(log => Call::NotStructure {
            index, found: reg.reg_type(), kind, name, or: ""
        })),
        false => {
            let or_void = "";
            Err(refuse!(log => Call::PointeeNotScalar { index, kind, name, or_void }))
        }
    }
}

/// The kind that a suffix of the parameter's name says.
fn of_suffix(suffix: ParamSuffix) -> Option<KfuncArgKind> {
    match suffix {
        ParamSuffix::ConstString => Some(KfuncArgKind::ConstStr),
        ParamSuffix::Map => Some(KfuncArgKind::Map),
        ParamSuffix::ConstMap => Some(KfuncArgKind::ConstMap),
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

/// The kind of a pointer to a structure that is more than memory (`__is_kfunc_ptr_arg_type`).
#[doc(alias = "__is_kfunc_ptr_arg_type")]
fn of_structure(name: btf::Name<'_>) -> Option<KfuncArgKind> {
    if name == "bpf_dynptr" || name == "bpf_dynptr_kern" {
        return Some(KfuncArgKind::Dynptr);
    }
    if name == "bpf_prog_aux" {
        return Some(KfuncArgKind::ProgramAux);
    }
    match FieldKind::of_structure(name)? {
        root @ (FieldKind::ListHead | FieldKind::RbRoot) => Some(KfuncArgKind::Root(root)),
        node @ (FieldKind::ListNode | FieldKind::RbNode) => Some(KfuncArgKind::Node(node)),
        field @ (FieldKind::Timer | FieldKind::Workqueue | FieldKind::TaskWork) => {
            Some(KfuncArgKind::InValue(field))
        }
        FieldKind::ResSpinLock => Some(KfuncArgKind::ResSpinLock),
        FieldKind::SpinLock
        | FieldKind::Refcount
        | FieldKind::KptrUnref
        | FieldKind::KptrRef
        | FieldKind::KptrPercpu
        | FieldKind::Uptr => None,
    }
}

/// True if parameter `index` is the size of the memory before it (`is_kfunc_arg_mem_size`).
#[doc(alias = "is_kfunc_arg_mem_size")]
fn is_size(callee: &Callee<'_>, index: usize, regs: Option<&Registers>) -> bool {
    let (Some((ty, name)), Some(reg)) = (callee.params.get(index), REGS.get(index)) else {
        return false;
    };
    let suffix = ParamSuffix::of(name);
    is_scalar(callee.btf, strip(callee.btf, *ty))
        && matches!(suffix, Some(ParamSuffix::Size | ParamSuffix::ConstSize))
        && regs.is_none_or(|regs| regs[usize::from(reg.number())].is_scalar())
}

/// The type below modifiers.
pub(super) fn strip(btf: &Btf<'_>, id: TypeId) -> TypeId {
    btf.skip_modifiers(id).unwrap_or(TypeId::VOID)
}

fn is_scalar(btf: &Btf<'_>, id: TypeId) -> bool {
    matches!(btf.at(id).kind(), Kind::Int | Kind::Enum | Kind::Enum64)
}

/// The structure that a register of another kind stands for.
pub(super) fn stands_for(reg: &RegState) -> Option<&'static str> {
    RegRules::of(reg.kind.base()).structure
}

/// True if a structure is made of numbers, nested at most four deep
/// (`__btf_type_is_scalar_struct`).
#[doc(alias = "__btf_type_is_scalar_struct")]
pub(super) fn is_scalar_struct(log: &mut Sink<'_>, btf: &Btf<'_>, id: TypeId, depth: u32) -> bool {
    let Some(composite) = btf.at(id).as_composite() else {
        return false;
    };
    composite.members().all(|member| {
        let ty = strip(btf, member.ty);
        if btf.at(ty).kind().is_composite() {
            if depth >= 3 {
                verbose!(log, "max struct nesting depth exceeded\n");
                return false;
            }
            return is_scalar_struct(log, btf, ty, depth + 1);
        }
        if let Shape::Array(array) = btf.at(ty).shape() {
            let element = btf.skip_modifiers(array.element);
            return array.count != 0 && element.is_some_and(|ty| is_scalar(btf, ty));
        }
        is_scalar(btf, ty)
    })
}

#[cfg(test)]
mod tests {
    use btf::{Builder, Encoding, Int, Member, StrOffset};
    use spec::registry::{Kfunc, ProgramTypes, TypeFlags};

    use super::*;
    use crate::log::Sink;
    use crate::state::{BtfRef, TypeRef};

    /// Structures of the types of the test.
    const STRUCTS: [&str; 16] = [
        "numbers",
        "task_struct",
        "__sk_buff",
        "bpf_dynptr",
        "bpf_prog_aux",
        "bpf_list_head",
        "bpf_list_node",
        "bpf_rb_root",
        "bpf_rb_node",
        "bpf_timer",
        "bpf_wq",
        "bpf_task_work",
        "bpf_res_spin_lock",
        "bpf_spin_lock",
        "bpf_refcount",
        "function",
    ];

    /// Types, and the ids of those with a name: `long`, `void*`, a pointer to each structure.
    fn types() -> (Btf<'static>, Vec<(&'static str, TypeId)>) {
        let mut builder = Builder::new();
        let name = builder.string("long");
        let encoding = Encoding::default();
        let long = builder.int(
            name,
            Int {
                size: 8,
                bits: 64,
                offset: 0,
                encoding,
            },
        );
        let pointer =
            |builder: &mut Builder, to| builder.reference(Kind::Ptr, StrOffset::EMPTY, to);
        let void = pointer(&mut builder, TypeId::VOID);
        let mut ids = vec![("long", long), ("void*", void)];
        for struct_name in STRUCTS {
            let name = builder.string(struct_name);
            let ty = if struct_name == "task_struct" {
                void
            } else {
                long
            };
            let member = Member {
                name,
                ty,
                bit_offset: 0,
                bits: 0,
            };
            let target = match struct_name {
                "function" => builder.proto(long, &[]),
                _ => builder.composite(Kind::Struct, name, 8, &[member]),
            };
            ids.push((struct_name, pointer(&mut builder, target)));
        }
        let name = builder.string("union");
        ids.push(("union", builder.composite(Kind::Union, name, 8, &[])));
        (Btf::parse(builder.finish()).expect("types"), ids)
    }

    #[test]
    fn arguments_have_the_kinds_of_linux() {
        use KfuncArgKind::*;
        let stack = RegState::pointer(RegKind::Stack { frame: 0 }, TypeFlags::NONE);
        let object = RegState::pointer(
            RegKind::BtfId {
                ty: TypeRef::vmlinux(1),
            },
            TypeFlags::NONE,
        );
        let maybe = RegState::pointer(object.kind, TypeFlags::PTR_MAYBE_NULL);
        let null = RegState::constant(0);
        let none = KfuncFlags::default();
        let trusted = KfuncFlags::TRUSTED_ARGS;
        // The type and name of a parameter, what the register holds, flags, and the kind.
        let rows = [
            ("long", "count", null, none, Ok(Scalar)),
            ("long", "count__k", null, none, Ok(Constant)),
            (
                "long",
                "rdonly_buf_size",
                null,
                none,
                Ok(ResultSize { is_rdonly: true }),
            ),
            (
                "long",
                "rdwr_buf_size",
                null,
                none,
                Ok(ResultSize { is_rdonly: false }),
            ),
            ("long", "aux__prog", null, none, Ok(Program)),
            ("void*", "aux__prog", null, trusted, Ok(Program)),
            ("void*", "any__ign", null, trusted, Ok(Ignored)),
            (
                "union",
                "value",
                null,
                none,
                Err("Unrecognized arg#0 type UNION\n"),
            ),
            (
                "task_struct",
                "task",
                null,
                trusted,
                Err("Possibly NULL pointer passed to trusted arg0\n"),
            ),
            (
                "task_struct",
                "task",
                maybe,
                KfuncFlags::RCU,
                Err("Possibly NULL pointer passed to trusted arg0\n"),
            ),
            ("task_struct", "task__nullable", null, trusted, Ok(Null)),
            ("task_struct", "task", object, trusted, Ok(BtfId)),
            (
                "task_struct",
                "task",
                stack,
                none,
                Err(
                    "arg#0 pointer type STRUCT task_struct must point to scalar, or struct with scalar\n",
                ),
            ),
            (
                "void*",
                "data",
                object,
                none,
                Err("kernel function bpf_test args#0 pointer type UNKNOWN  is not supported\n"),
            ),
            ("__sk_buff", "skb", stack, none, Ok(Ctx)),
            ("numbers", "text__str", stack, none, Ok(ConstStr)),
            ("numbers", "map__map", stack, none, Ok(Map)),
            ("numbers", "numbers", stack, none, Ok(Mem)),
            ("bpf_spin_lock", "lock", stack, none, Ok(Mem)),
            ("bpf_refcount", "count", stack, none, Ok(Mem)),
            ("numbers", "object__alloc", stack, none, Ok(AllocBtfId)),
            (
                "numbers",
                "object__refcounted_kptr",
                stack,
                none,
                Ok(RefcountedKptr),
            ),
            ("numbers", "it__iter", stack, none, Ok(Iter)),
            ("numbers", "it", stack, KfuncFlags::ITER_NEXT, Ok(Iter)),
            ("long", "flags__irq_flag", null, none, Ok(Scalar)),
            ("numbers", "flags__irq_flag", stack, none, Ok(IrqFlag)),
            ("bpf_dynptr", "ptr__uninit", stack, none, Ok(Dynptr)),
            ("bpf_dynptr", "ptr", stack, none, Ok(Dynptr)),
            ("function", "callback", stack, none, Ok(Callback)),
            ("bpf_prog_aux", "aux", stack, none, Ok(ProgramAux)),
            (
                "bpf_list_head",
                "head",
                stack,
                none,
                Ok(Root(FieldKind::ListHead)),
            ),
            (
                "bpf_list_node",
                "node",
                stack,
                none,
                Ok(Node(FieldKind::ListNode)),
            ),
            (
                "bpf_rb_root",
                "root",
                stack,
                none,
                Ok(Root(FieldKind::RbRoot)),
            ),
            (
                "bpf_rb_node",
                "node",
                stack,
                none,
                Ok(Node(FieldKind::RbNode)),
            ),
            (
                "bpf_timer",
                "timer",
                stack,
                none,
                Ok(InValue(FieldKind::Timer)),
            ),
            (
                "bpf_wq",
                "wq",
                stack,
                none,
                Ok(InValue(FieldKind::Workqueue)),
            ),
            (
                "bpf_task_work",
                "work",
                stack,
                none,
                Ok(InValue(FieldKind::TaskWork)),
            ),
            ("bpf_res_spin_lock", "lock", stack, none, Ok(ResSpinLock)),
        ];
        for (ty, name, reg, flags, expected) in rows {
            assert_eq!(
                kind(ty, name, reg, flags, "n"),
                expected.map_err(str::to_owned),
                "{ty} {name}"
            );
        }
        assert_eq!(kind("void*", "data", stack, none, "n__sz"), Ok(MemSize));
        assert_eq!(kind("numbers", "data", stack, none, "n__szk"), Ok(MemSize));
    }

    /// The kind of a parameter in front of a number of the name `next`, or the refusal's words.
    fn kind(
        ty: &str,
        name: &str,
        reg: RegState,
        flags: KfuncFlags,
        next: &str,
    ) -> std::result::Result<KfuncArgKind, String> {
        let (btf, ids) = types();
        let id = |wanted: &str| {
            let found = ids.iter().find(|(name, _)| *name == wanted);
            found.expect("a type of this name").1
        };
        let kfunc = Kfunc {
            name: "bpf_test".into(),
            btf_id: 1,
            flags,
            special: None,
            program_types: ProgramTypes::default(),
            exceptions: Vec::new(),
        };
        let callee = Callee {
            kfunc: &kfunc,
            btf: &btf,
            of: BtfRef::Vmlinux,
            params: vec![(id(ty), name.into()), (id("long"), next.into())],
            returns: id("long"),
        };
        let mut regs = Registers::not_init();
        regs[1] = reg;
        regs[2] = RegState::UNKNOWN;
        let mut sink = Sink::new(1);
        let kind = KfuncArgKind::of(&mut sink, &callee, ProgramType::SchedCls, 0, &regs);
        kind.map_err(|_| sink.into_text())
    }
}
