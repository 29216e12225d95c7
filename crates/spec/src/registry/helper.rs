//! Prototypes of helpers and why a program may not call one.

use super::types::{ArgType, RetType, TypeFlags};

/// The prototype of a helper, `struct bpf_func_proto`. A helper may have several,
/// one for each group of program types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperProto {
    /// Number of the helper.
    pub id: u32,
    /// Its name, with `bpf_` in front.
    pub name: &'static str,
    /// Name of the kernel function that implements it for these programs.
    pub function: Box<str>,
    /// Types of the arguments; those behind the last are
    /// [`super::types::ArgBase::DontCare`].
    pub args: [ArgType; 5],
    /// What else the prototype says of each argument.
    pub arg_details: [ArgDetail; 5],
    /// Type of the return value.
    pub ret: RetType,
    /// The structure that it returns a pointer to.
    pub ret_btf: Option<KernelType>,
    /// Only programs of a GPL-compatible licence may call it.
    pub gpl_only: bool,
    /// It may be given packet memory.
    pub pkt_access: bool,
    /// It may sleep.
    pub might_sleep: bool,
    /// Calls may be inlined without clobbering registers (`bpf_fastcall`).
    pub allow_fastcall: bool,
    /// A check of the attach target that the kernel makes besides (`allowed`).
    pub restriction: Option<Restriction>,
}

/// Size or type of an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ArgDetail {
    /// Nothing.
    #[default]
    None,
    /// Bytes of memory of fixed size.
    Size(u32),
    /// The structure that a pointer must point to.
    Btf(KernelType),
}

/// A structure of the kernel by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelType {
    /// Its name, without `struct`.
    pub name: Box<str>,
    /// Its id in the BTF of the kernel that the registry was made for; 0 where
    /// that has no such type.
    pub btf_id: u32,
}

/// A check of the attach target by a function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restriction {
    /// `bpf_d_path`: iterators, and the hooks of [`super::Lists::d_path`].
    DPath,
    /// Socket storage from tracing programs: no functions named `bpf_sk_storage…`.
    SkStorageTracing,
}

impl HelperProto {
    /// Number of arguments.
    pub fn arg_count(&self) -> usize {
        let used = |arg: &ArgType| arg.base != super::types::ArgBase::DontCare;
        self.args.iter().take_while(|arg| used(arg)).count()
    }

    /// Index of the argument whose reference the call releases.
    pub fn released_arg(&self) -> Option<usize> {
        self.args
            .iter()
            .position(|arg| arg.flags.has(TypeFlags::OBJ_RELEASE))
    }
}

/// Why a program may not call a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No helper has the number: "invalid func %s#%d".
    Unknown,
    /// Programs of this type and attach type have it not: "program of this type
    /// cannot use helper %s#%d".
    ForProgram,
    /// The caller lacks a capability for it; the kernel's words are those of
    /// [`Unavailable::ForProgram`].
    Privilege,
    /// The attach target is not among the allowed: "helper call is not allowed in
    /// probe".
    Hook,
}
