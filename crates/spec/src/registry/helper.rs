//! Helper prototypes (`struct bpf_func_proto`) and reasons of refusal.

use std::borrow::Cow;
use std::fmt;

use super::ProgramTypes;
use super::types::{ArgType, RetType, TypeFlags};
use crate::helpers::HelperId;

/// Helper prototype (`struct bpf_func_proto`). A helper may have several, one for each
/// group of program types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperProto {
    /// Number of the helper.
    pub id: u32,
    /// Name; those of Linux have the prefix `bpf_`.
    pub name: Cow<'static, str>,
    /// Name of the kernel function that implements the helper for these programs.
    pub function: Box<str>,
    /// Types of the arguments; unused ones are [`super::types::ArgBase::DontCare`].
    pub args: [ArgType; 5],
    /// Size or BTF type of each argument.
    pub arg_details: [ArgDetail; 5],
    /// Type of the return value.
    pub ret: RetType,
    /// Structure that the returned pointer points to.
    pub ret_btf: Option<KernelType>,
    /// True if only programs with a GPL-compatible licence may call the helper.
    pub gpl_only: bool,
    /// True if arguments may point to packet memory.
    pub pkt_access: bool,
    /// True if the helper may sleep.
    pub might_sleep: bool,
    /// True if calls may be inlined without clobbering registers (`bpf_fastcall`).
    pub allow_fastcall: bool,
    /// Check of the attach target (`allowed`).
    pub restriction: Option<Restriction>,
}

/// Helper of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostHelper {
    /// Prototype.
    pub proto: HelperProto,
    /// Program types that may call it.
    pub programs: ProgramTypes,
}

/// Size or type of an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ArgDetail {
    /// Neither.
    #[default]
    None,
    /// Bytes of memory of fixed size.
    Size(u32),
    /// Structure that the pointer must point to.
    Btf(KernelType),
}

/// Structure of the kernel by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelType {
    /// Name, without `struct`.
    pub name: Box<str>,
    /// BTF id in the kernel that the registry is resolved for; 0 if it lacks the type.
    pub btf_id: u32,
}

/// Check of the attach target by a kernel function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Restriction {
    /// `bpf_d_path`: iterators, LSM hooks where programs may sleep, and the functions of
    /// [`super::Lists::d_path`].
    DPath,
    /// `bpf_ima_inode_hash`: LSM hooks where programs may sleep.
    SleepableHook,
    /// Socket storage from tracing programs: no functions named `bpf_sk_storage…`.
    SkStorageTracing,
}

impl HelperProto {
    /// The helper of Linux whose prototype it is; `None` for helpers of a host.
    pub fn helper(&self) -> Option<HelperId> {
        HelperId::from_number(i32::try_from(self.id).ok()?)
    }

    /// Number of arguments.
    pub fn arg_count(&self) -> usize {
        let used = |arg: &ArgType| arg.base != super::types::ArgBase::DontCare;
        self.args.iter().take_while(|arg| used(arg)).count()
    }

    /// Index of the argument whose reference the call releases (`check_proto_release_reg`).
    #[doc(alias = "check_proto_release_reg")]
    pub fn released_arg(&self) -> Option<usize> {
        self.args
            .iter()
            .position(|arg| arg.flags.has(TypeFlags::OBJ_RELEASE))
    }
}

/// Reason why a program may not call a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The number is no helper's: "invalid func %s#%d".
    Unknown,
    /// Programs of this type and attach type may not call it: "program of this type
    /// cannot use helper %s#%d".
    ForProgram,
    /// The caller lacks a capability; the kernel's message is that of
    /// [`Unavailable::ForProgram`].
    Privilege,
    /// The attach target is not allowed: "helper call is not allowed in probe".
    Hook,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unavailable::Unknown => "no helper has this number",
            Unavailable::ForProgram => "programs of this type do not have the helper",
            Unavailable::Privilege => "the helper needs a capability that the loader lacks",
            Unavailable::Hook => "the attach target does not allow the helper",
        })
    }
}

impl std::error::Error for Unavailable {}
