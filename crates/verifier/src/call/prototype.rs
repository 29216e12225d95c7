//! Arguments of subprograms by their BTF: what a global function may be called with,
//! and what it is verified with (`btf_prepare_func_args` in kernel/bpf/btf.c).
//!
//! Declaration tags `arg:ctx`, `arg:trusted`, `arg:untrusted`, `arg:nonnull`,
//! `arg:nullable` and `arg:arena` take precedence over the type. A refusal of a
//! static function is silent: its BTF merely counts as unreliable. Complexity:
//! linear in the types of the blob for each argument.

use btf::core::essential_name;
use btf::{Btf, Kind, Linkage, Shape, Type, TypeId};
use spec::behaviour::{Behaviour, Behaviours};
use spec::programs::{AttachType, HookKind, ProgramType};

use crate::input::Input;
use crate::reason::{ParameterFault, SignatureFault};
use crate::rejection::Signature;
use crate::type_rules::{TaggedContext, TypeRules};

/// The most arguments in registers.
const MAX_ARGS: usize = 5;

/// Type of a subprogram's argument by its BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubprogArg {
    /// A number.
    Scalar,
    /// The context of the program.
    Ctx,
    /// Memory of so many bytes.
    Mem {
        /// Bytes.
        size: u32,
        /// True if it may be null.
        nullable: bool,
    },
    /// Memory that is read with faults handled.
    UntrustedMem,
    /// A kernel object of this type of vmlinux.
    Btf {
        /// The type.
        id: TypeId,
        /// True for `arg:trusted`, false for `arg:untrusted`.
        trusted: bool,
        /// True if it may be null.
        nullable: bool,
    },
    /// A pointer into the arena, or a number.
    Arena,
    /// A dynptr.
    Dynptr,
}

/// Reason why a prototype cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrototypeError {
    pub(crate) rejection: Signature,
    /// The fault.
    pub(crate) fault: SignatureFault,
}

/// The arguments of a subprogram; `None` without BTF (`btf_prepare_func_args`).
#[doc(alias = "btf_prepare_func_args")]
pub(crate) fn arguments(
    input: &Input<'_>,
    subprog: u32,
) -> Option<Result<Vec<SubprogArg>, PrototypeError>> {
    let func = input.program.func_info().get(subprog as usize)?;
    let question = Question {
        btf: input.program.btf()?,
        vmlinux: input.vmlinux,
        func: func.type_id,
        subprog,
        kind: input.context.kind,
        attach: input.context.attach,
        rules: input.rules,
    };
    Some(question.arguments())
}

/// True if the BTF of a subprogram says that it returns nothing.
pub(crate) fn returns_void(input: &Input<'_>, subprog: u32) -> bool {
    let found = || {
        let func = input.program.func_info().get(subprog as usize)?;
        let btf = input.program.btf()?;
        let Shape::Func(func) = btf.get(func.type_id)?.shape() else {
            return None;
        };
        let Shape::Proto(proto) = btf.get(func.proto)?.shape() else {
            return None;
        };
        btf.get(btf.skip_modifiers(proto.returns)?)
    };
    found().is_some_and(|ty| ty.kind() == Kind::Void)
}

/// The function, and the program around it.
struct Question<'a> {
    /// The BTF of the program.
    pub btf: &'a Btf<'a>,
    /// The types of vmlinux.
    pub vmlinux: Option<&'a Btf<'a>>,
    /// The function's entry in func_info.
    pub func: TypeId,
    /// The number of the subprogram.
    pub subprog: u32,
    /// The program type.
    pub kind: ProgramType,
    /// The expected attach type.
    pub attach: Option<AttachType>,
    /// What the kernel's verifier does.
    rules: Behaviours,
}

/// Tags of an argument, as a set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tags(u8);

impl Tags {
    const NONE: Tags = Tags(0);
    const CTX: Tags = Tags(1);
    const NONNULL: Tags = Tags(2);
    const TRUSTED: Tags = Tags(4);
    const UNTRUSTED: Tags = Tags(8);
    const NULLABLE: Tags = Tags(16);
    const ARENA: Tags = Tags(32);

    /// The tag of a name behind `arg:`.
    fn named(name: &[u8]) -> Option<Tags> {
        Some(match name {
            b"ctx" => Tags::CTX,
            b"trusted" => Tags::TRUSTED,
            b"untrusted" => Tags::UNTRUSTED,
            b"nonnull" => Tags::NONNULL,
            b"nullable" => Tags::NULLABLE,
            b"arena" => Tags::ARENA,
            _ => return None,
        })
    }

    const fn has(self, tag: Tags) -> bool {
        self.0 & tag.0 != 0
    }

    /// True if a tag other than this one is set.
    const fn has_others(self, tag: Tags) -> bool {
        self.0 & !tag.0 != 0
    }
}

fn fail<T>(fault: SignatureFault, rejection: Signature) -> Result<T, PrototypeError> {
    Err(PrototypeError { rejection, fault })
}

/// A type as C has it, the names of modifiers and arguments left out.
pub(crate) fn type_text(btf: &Btf<'_>, id: TypeId) -> String {
    let mut stars = String::new();
    let mut ty = btf.at(strip_qualifiers(btf, id));
    // A chain of pointers is no longer than the types are many.
    for _ in 0..btf.len() {
        let Shape::Ptr(target) = ty.shape() else {
            break;
        };
        stars.push('*');
        ty = btf.at(strip_qualifiers(btf, target));
    }
    let word = match ty.kind() {
        Kind::Struct => "struct ",
        Kind::Union => "union ",
        Kind::Enum | Kind::Enum64 => "enum ",
        Kind::Fwd if ty.flag() => "union ",
        Kind::Fwd => "struct ",
        _ => "",
    };
    let name = match (ty.kind(), ty.name().to_string()) {
        (Kind::Void, _) => String::from("void"),
        (Kind::FuncProto, _) => String::from("function"),
        (kind, name) if name.is_empty() => kind.name().to_lowercase(),
        (_, name) => name,
    };
    match stars.is_empty() {
        true => format!("{word}{name}"),
        false => format!("{word}{name} {stars}"),
    }
}

/// The type below modifiers other than typedefs.
fn strip_qualifiers(btf: &Btf<'_>, id: TypeId) -> TypeId {
    let mut id = id;
    for _ in 0..btf.len() {
        let ty = btf.at(id);
        if ty.kind() == Kind::Typedef || !ty.kind().is_modifier() {
            break;
        }
        id = ty.referred().unwrap_or(TypeId::VOID);
    }
    id
}

impl Question<'_> {
    /// The arguments of the function (`btf_validate_return_type`).
    #[doc(alias = "btf_validate_return_type")]
    fn arguments(&self) -> Result<Vec<SubprogArg>, PrototypeError> {
        let subprog = self.subprog;
        let not_function = |rejection| fail(SignatureFault::NotFunction, rejection);
        let Some(func_type) = self.btf.get(self.func) else {
            return not_function(Signature::NotFunction { subprog });
        };
        let Shape::Func(func) = func_type.shape() else {
            return not_function(Signature::NotFunction { subprog });
        };
        let is_global = func.linkage == Linkage::GLOBAL;
        let name = func_type.name().to_string();
        let Some(Shape::Proto(proto)) = self.btf.get(func.proto).map(|ty| ty.shape()) else {
            return not_function(Signature::NotPrototype { name });
        };
        let of_global = |rejection| match is_global {
            true => rejection,
            false => Signature::Static,
        };
        let count = proto.params().len();
        if count > MAX_ARGS {
            let most = MAX_ARGS;
            let rejection = of_global(Signature::TooManyArguments { name, count, most });
            return fail(SignatureFault::TooManyArguments(count), rejection);
        }
        let may_be_void = is_global && self.rules.has(Behaviour::GlobalsReturnVoid);
        let is_void = may_be_void && self.btf.at(self.strip(proto.returns)).kind() == Kind::Void;
        let is_arena = self.subprog != 0 && self.points_to_arena(proto.returns);
        if !self.is_number(proto.returns) && !is_void && !is_arena {
            let fault = SignatureFault::Result(type_text(self.btf, proto.returns));
            return fail(fault, of_global(Signature::Return { name }));
        }
        let mut arguments = Vec::with_capacity(count);
        for (index, param) in proto.params().enumerate() {
            let tags = self.tags(param.ty, index, is_global)?;
            arguments.push(self.argument(param.ty, index, tags, is_global, &func_type)?);
        }
        Ok(arguments)
    }

    /// The type below all modifiers.
    fn strip(&self, id: TypeId) -> TypeId {
        self.btf.skip_modifiers(id).unwrap_or(TypeId::VOID)
    }

    fn is_number(&self, id: TypeId) -> bool {
        let kind = self.btf.at(self.strip(id)).kind();
        matches!(kind, Kind::Int | Kind::Enum | Kind::Enum64)
    }

    /// The fault of argument `index`.
    fn fault(&self, ty: TypeId, index: usize, fault: ParameterFault) -> SignatureFault {
        SignatureFault::Argument {
            number: index as u8 + 1,
            ty: type_text(self.btf, ty),
            fault,
        }
    }

    /// The tags of argument `index` (`btf_scan_decl_tags`).
    #[doc(alias = "btf_scan_decl_tags")]
    fn tags(&self, ty: TypeId, index: usize, is_global: bool) -> Result<Tags, PrototypeError> {
        let mut tags = Tags::NONE;
        if !self.rules.has(Behaviour::ArgumentsTagged) {
            // libbpf gives such arguments the type of the context, where it has a name.
            let mut names = self.btf.decl_tags(self.func, index as i32);
            let is_tagged = names.any(|name| name.as_bytes() == b"arg:ctx");
            return Ok(
                match is_tagged && is_global && self.kind.context().is_some() {
                    true => Tags::CTX,
                    false => Tags::NONE,
                },
            );
        }
        let bad = || self.fault(ty, index, ParameterFault::Tags);
        for name in self.btf.decl_tags(self.func, index as i32) {
            let Some(tag) = name.as_bytes().strip_prefix(b"arg:") else {
                continue;
            };
            if !is_global {
                return fail(bad(), Signature::StaticTag { index });
            }
            let is_known = |tag: &Tags| {
                *tag != Tags::UNTRUSTED || self.rules.has(Behaviour::UntrustedArguments)
            };
            let Some(tag) = Tags::named(tag).filter(is_known) else {
                return fail(bad(), Signature::UnsupportedTags { index });
            };
            tags.0 |= tag.0;
        }
        if self.points_to_arena(ty) {
            tags.0 |= Tags::ARENA.0;
        }
        Ok(tags)
    }

    /// True for a pointer into the arena, by the tag of its type (`btf_scan_type_tags`).
    #[doc(alias = "btf_scan_type_tags")]
    fn points_to_arena(&self, ty: TypeId) -> bool {
        let Shape::Ptr(target) = self.btf.at(self.strip(ty)).shape() else {
            return false;
        };
        let target = self.btf.at(target);
        self.rules.has(Behaviour::ArenaTags)
            && target.kind() == Kind::TypeTag
            && target.name() == "arena"
    }

    fn argument(
        &self,
        ty: TypeId,
        index: usize,
        tags: Tags,
        is_global: bool,
        func: &Type<'_>,
    ) -> Result<SubprogArg, PrototypeError> {
        let stripped = self.btf.at(self.strip(ty));
        let fault = |fault| self.fault(ty, index, fault);
        let Shape::Ptr(target) = stripped.shape() else {
            if tags != Tags::NONE {
                let rejection = Signature::TagOfNoPointer { index };
                return fail(fault(ParameterFault::Tags), rejection);
            }
            if self.is_number(ty) {
                return Ok(SubprogArg::Scalar);
            }
            let (kind, name) = (stripped.kind().name().to_owned(), func.name().to_string());
            let rejection = match is_global {
                true => Signature::Argument { index, kind, name },
                false => Signature::Static,
            };
            return fail(fault(ParameterFault::Kind), rejection);
        };
        let bad_tags = || {
            fail(
                fault(ParameterFault::Tags),
                Signature::InvalidTags { index },
            )
        };
        let only_tag = |tag: &str| {
            let tag = tag.to_owned();
            fail(
                fault(ParameterFault::Tags),
                Signature::OnlyTag { index, tag },
            )
        };
        if tags.has(Tags::CTX) || is_context(self.btf, self.kind, target) {
            if tags.has_others(Tags::CTX) {
                return bad_tags();
            }
            if tags.has(Tags::CTX) && self.rules.has(Behaviour::ArgumentsTagged) {
                self.check_context(ty, target, index)?;
            }
            return Ok(SubprogArg::Ctx);
        }
        if !self.rules.has(Behaviour::ArgumentsOfMemory) {
            let (kind, name) = (stripped.kind().name().to_owned(), func.name().to_string());
            return fail(
                fault(ParameterFault::Kind),
                Signature::Argument { index, kind, name },
            );
        }
        if self.is_dynptr(target) && self.rules.has(Behaviour::ArgumentsTagged) {
            if tags != Tags::NONE {
                return bad_tags();
            }
            return Ok(SubprogArg::Dynptr);
        }
        if tags.has(Tags::TRUSTED) {
            if tags.has(Tags::NONNULL) {
                return bad_tags();
            }
            return Ok(SubprogArg::Btf {
                id: self.kernel_type(ty, target, index)?,
                trusted: true,
                nullable: tags.has(Tags::NULLABLE),
            });
        }
        if tags.has(Tags::UNTRUSTED) {
            if tags.has_others(Tags::UNTRUSTED) {
                return only_tag("untrusted");
            }
            let pointee = self.btf.at(self.strip(target));
            if matches!(pointee.kind(), Kind::Void) || self.is_primitive(&pointee) {
                return Ok(SubprogArg::UntrustedMem);
            }
            return Ok(SubprogArg::Btf {
                id: self.kernel_type(ty, target, index)?,
                trusted: false,
                nullable: false,
            });
        }
        if tags.has(Tags::ARENA) {
            if tags.has_others(Tags::ARENA) {
                return only_tag("arena");
            }
            return Ok(SubprogArg::Arena);
        }
        if !is_global {
            return fail(fault(ParameterFault::Kind), Signature::Static);
        }
        if tags.has(Tags::NULLABLE) {
            return bad_tags();
        }
        let pointee = self.btf.at(self.strip(target));
        let Some(size) = self.btf.size_of(pointee.id()) else {
            let (kind, name) = (pointee.kind().name().to_owned(), pointee.name().to_string());
            let rejection = Signature::Unsized { index, kind, name };
            return fail(fault(ParameterFault::Unsized), rejection);
        };
        Ok(SubprogArg::Mem {
            size,
            nullable: !tags.has(Tags::NONNULL),
        })
    }

    /// Linux's `btf_type_is_primitive`.
    #[doc(alias = "btf_type_is_primitive")]
    fn is_primitive(&self, ty: &Type<'_>) -> bool {
        match ty.shape() {
            Shape::Int(int) => matches!(int.size, 1 | 2 | 4 | 8),
            Shape::Enum(_) => true,
            _ => false,
        }
    }

    /// Linux's `btf_is_dynptr_ptr`.
    #[doc(alias = "btf_is_dynptr_ptr")]
    fn is_dynptr(&self, target: TypeId) -> bool {
        let ty = self.btf.at(self.strip(target));
        let fits = match ty.shape() {
            Shape::Struct(_) | Shape::Union(_) => true,
            Shape::Fwd(_) => !ty.flag(),
            _ => false,
        };
        fits && ty.name() == "bpf_dynptr"
    }

    /// Checks the target of an argument tagged `arg:ctx`.
    fn check_context(
        &self,
        whole: TypeId,
        target: TypeId,
        index: usize,
    ) -> Result<(), PrototypeError> {
        let fault = |expected| self.fault(whole, index, ParameterFault::Context(expected));
        let rules = TypeRules::of(self.kind);
        let takes_regs = rules.tagged_context == TaggedContext::Registers;
        if takes_regs && is_user_regs(self.btf, target) {
            return Ok(());
        }
        let ty = self.btf.at(self.strip(target));
        if ty.kind() == Kind::Void {
            return Ok(());
        }
        let name = ty.name();
        if name.is_empty() {
            return fail(fault(self.kind.context()), Signature::Unnamed { index });
        }
        let is_struct = ty.kind() == Kind::Struct;
        let is_u64 = matches!(ty.shape(), Shape::Int(int) if int.size == 8);
        let fits = match rules.tagged_context {
            TaggedContext::Context => false,
            TaggedContext::Registers => is_struct && name == "pt_regs",
            TaggedContext::Words => is_u64,
            TaggedContext::ByAttachType => match HookKind::of(self.attach) {
                HookKind::RawTracepoint => is_u64 || is_struct && name == "bpf_raw_tracepoint_args",
                HookKind::Fentry | HookKind::Fexit | HookKind::ModifyReturn => is_u64,
                HookKind::Iterator => is_struct && name.as_bytes().starts_with(b"bpf_iter__"),
                HookKind::Unnamed
                | HookKind::Lsm
                | HookKind::LsmCgroup
                | HookKind::Fsession
                | HookKind::Multi => false,
            },
            TaggedContext::Any => true,
        };
        if fits {
            return Ok(());
        }
        let Some(wanted) = self.kind.context() else {
            return fail(fault(None), Signature::NotVoid { index });
        };
        if is_struct && name == *wanted {
            return Ok(());
        }
        let context = wanted.to_owned();
        fail(
            fault(Some(wanted)),
            Signature::NotContext { index, context },
        )
    }

    /// The one type of vmlinux with the name and kind of the target (`btf_get_ptr_to_btf_id`).
    #[doc(alias = "btf_get_ptr_to_btf_id")]
    fn kernel_type(
        &self,
        whole: TypeId,
        target: TypeId,
        index: usize,
    ) -> Result<TypeId, PrototypeError> {
        let ty = self.btf.at(self.strip(target));
        let name = ty.name();
        let essential = essential_name(name.as_bytes());
        let found: Vec<TypeId> = self
            .vmlinux
            .into_iter()
            .flat_map(|vmlinux| vmlinux.find_all(ty.kind(), essential))
            .map(|ty| ty.id())
            .collect();
        let (kind, name) = (ty.kind().name().to_owned(), name.to_string());
        match found[..] {
            [id] => Ok(id),
            [] => {
                let fault = self.fault(whole, index, ParameterFault::NoKernelType);
                fail(fault, Signature::NoMatch { index, kind, name })
            }
            _ => {
                let fault = self.fault(whole, index, ParameterFault::AmbiguousKernelType);
                fail(fault, Signature::Ambiguous { index, kind, name })
            }
        }
    }
}

/// True for the typedef that kprobe programs may name instead of a structure.
fn is_user_regs(btf: &Btf<'_>, target: TypeId) -> bool {
    let mut ty = btf.at(target);
    for _ in 0..btf.len() {
        if ty.kind() == Kind::Typedef || !ty.kind().is_modifier() {
            break;
        }
        ty = btf.at(ty.referred().unwrap_or(TypeId::VOID));
    }
    ty.kind() == Kind::Typedef && ty.name() == "bpf_user_pt_regs_t"
}

/// True if what a pointer points to has the name of the program type's context
/// (`btf_is_prog_ctx_type`).
#[doc(alias = "btf_is_prog_ctx_type")]
pub(crate) fn is_context(btf: &Btf<'_>, kind: ProgramType, target: TypeId) -> bool {
    let is_kprobe = kind == ProgramType::Kprobe;
    if is_kprobe && is_user_regs(btf, target) {
        return true;
    }
    let ty = btf.at(btf.skip_modifiers(target).unwrap_or(TypeId::VOID));
    if !matches!(ty.kind(), Kind::Struct | Kind::Union) {
        return false;
    }
    let name = ty.name();
    let Some(context) = kind.context() else {
        return false;
    };
    name == *context
        || is_projection(context, name.as_bytes())
        || is_kprobe && name == "bpf_user_pt_regs_t"
}

/// Contexts that BTF may name differently: `__sk_buff` is a projection of `sk_buff`
/// (`btf_is_projection_of`).
#[doc(alias = "btf_is_projection_of")]
pub(super) fn is_projection(context: &str, name: &[u8]) -> bool {
    match context {
        "__sk_buff" => name == b"sk_buff",
        "xdp_md" => name == b"xdp_buff",
        "bpf_sock" => name == b"sock",
        _ => false,
    }
}
