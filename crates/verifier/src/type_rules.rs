//! Rules of the verifier that go by the program type and by the hook: one row for each.

use spec::programs::{AttachType, HookKind, ProgramType};

/// Kind of attach target that is checked when a program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// No target.
    Nothing,
    /// Operation of a struct_ops structure.
    Operation,
    /// Function, tracepoint or iterator of the kernel.
    Function,
    /// LSM hook.
    Hook,
    /// Function of another program.
    Program,
}

/// Capabilities that loading a program needs (`is_net_admin_prog_type`,
/// `is_perfmon_prog_type`).
#[doc(alias = "is_net_admin_prog_type")]
#[doc(alias = "is_perfmon_prog_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loader {
    /// None.
    Anyone,
    /// CAP_BPF.
    Bpf,
    /// CAP_BPF and CAP_NET_ADMIN.
    NetAdmin,
    /// CAP_BPF and CAP_PERFMON.
    Perfmon,
    /// All three.
    NetAdminAndPerfmon,
}

/// What an argument tagged `arg:ctx` may point to beside the context's own structure
/// (`btf_validate_prog_ctx_type`).
#[doc(alias = "btf_validate_prog_ctx_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaggedContext {
    /// Nothing else.
    Context,
    /// `struct pt_regs` and `bpf_user_pt_regs_t`.
    Registers,
    /// Words of 64 bits.
    Words,
    /// What the attach type says.
    ByAttachType,
    /// Anything.
    Any,
}

/// Direct access to packets (`may_access_direct_pkt_data`).
#[doc(alias = "may_access_direct_pkt_data")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketAccess {
    /// None.
    None,
    /// Reads.
    Read,
    /// Reads and writes.
    Write,
    /// Reads and writes of a socket option's value, which is no packet.
    Optval,
}

/// Attach types that programs of a type may state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachTypes {
    /// Any number: the kernel looks at it when it attaches them.
    Any,
    /// Those that their attach target goes by (`bpf_check_attach_target`).
    #[doc(alias = "bpf_check_attach_target")]
    OfTarget,
    /// None.
    None,
    /// These, the oldest first, in kernels that have it.
    Listed(&'static [AttachType]),
}

impl AttachTypes {
    /// True if every release looks at the number at load.
    pub(crate) fn is_always_checked(self) -> bool {
        match self {
            AttachTypes::Any | AttachTypes::None => false,
            AttachTypes::OfTarget => true,
            AttachTypes::Listed(list) => !list.contains(&AttachType::SkReuseportSelect),
        }
    }
}

/// Rules of one program type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeRules {
    /// Kind of attach target (`check_attach_btf_id`).
    #[doc(alias = "check_attach_btf_id")]
    pub(crate) target: TargetKind,
    /// Capabilities that loading needs.
    pub(crate) loader: Loader,
    /// What an argument tagged `arg:ctx` may point to.
    pub(crate) tagged_context: TaggedContext,
    /// Direct access to packets.
    pub(crate) packet: PacketAccess,
    /// Programs whose functions have stacks of their own (`bpf_enable_priv_stack`): those that the
    /// kernel guards against recursion. Of tracing programs some have not ([`HookRules`]).
    #[doc(alias = "bpf_enable_priv_stack")]
    pub(crate) has_private_stack: bool,
    /// Programs may run in an NMI (`is_tracing_prog_type`).
    #[doc(alias = "is_tracing_prog_type")]
    pub(crate) is_tracing: bool,
    /// Packet loads of classic BPF are allowed (`may_access_skb`).
    #[doc(alias = "may_access_skb")]
    pub(crate) has_packet_loads: bool,
    /// Some objects of the kernel may be written (`btf_struct_access`).
    #[doc(alias = "btf_struct_access")]
    pub(crate) writes_objects: bool,
    /// Attach types that such programs may state (`bpf_prog_load_check_attach`).
    #[doc(alias = "bpf_prog_load_check_attach")]
    pub(crate) attach_types: AttachTypes,
}

macro_rules! type_rules {
    ($($kind:ident $target:ident $loader:ident $tagged:ident $packet:ident
        $private_stack:literal $tracing:literal $loads:literal $writes:literal $attach:tt;)*) => {
        impl TypeRules {
            /// Rules of a program type.
            pub(crate) const fn of(kind: ProgramType) -> TypeRules {
                match kind {
                    $(ProgramType::$kind => TypeRules {
                        target: TargetKind::$target,
                        loader: Loader::$loader,
                        tagged_context: TaggedContext::$tagged,
                        packet: PacketAccess::$packet,
                        has_private_stack: $private_stack,
                        is_tracing: $tracing,
                        has_packet_loads: $loads,
                        writes_objects: $writes,
                        attach_types: attach_types!($attach),
                    },)*
                }
            }
        }
    };
}

/// Attach types of a row.
macro_rules! attach_types {
    ([$($attach:ident)+]) => {
        AttachTypes::Listed(&[$(AttachType::$attach),+])
    };
    ($one:ident) => {
        AttachTypes::$one
    };
}

type_rules! {
    // type, attach target, loader, tagged context, packet; private stack, tracing, packet loads,
    // writes of objects, attach types
    SocketFilter          Nothing   Anyone             Context      None   false false true  false Any;
    Kprobe                Nothing   Perfmon            Registers    None   true  true  false false Any;
    SchedCls              Nothing   NetAdmin           Context      Write  false false true  true Any;
    SchedAct              Nothing   NetAdmin           Context      Write  false false true  true Any;
    Tracepoint            Nothing   Perfmon            Any          None   true  true  false false Any;
    Xdp                   Nothing   NetAdmin           Context      Write  false false false true  Any;
    PerfEvent             Nothing   Perfmon            Registers    None   true  true  false false Any;
    CgroupSkb             Nothing   Anyone             Context      Read   false false false false
        [CgroupInetIngress CgroupInetEgress];
    CgroupSock            Nothing   NetAdmin           Context      None   false false false false
        [CgroupInetSockCreate CgroupInet4PostBind CgroupInet6PostBind CgroupInetSockRelease];
    LwtIn                 Nothing   NetAdmin           Context      Read   false false false false Any;
    LwtOut                Nothing   NetAdmin           Context      Read   false false false false Any;
    LwtXmit               Nothing   NetAdmin           Context      Write  false false false false Any;
    SockOps               Nothing   NetAdmin           Context      None   false false false false Any;
    SkSkb                 Nothing   NetAdmin           Context      Write  false false false false Any;
    CgroupDevice          Nothing   NetAdmin           Context      None   false false false false Any;
    SkMsg                 Nothing   NetAdmin           Context      Write  false false false false Any;
    RawTracepoint         Nothing   Perfmon            Words        None   true  true  false false Any;
    CgroupSockAddr        Nothing   NetAdmin           Context      None   false false false false [
        CgroupInet4Bind CgroupInet6Bind CgroupInet4Connect CgroupInet6Connect CgroupUdp4Sendmsg
        CgroupUdp6Sendmsg CgroupUdp4Recvmsg CgroupUdp6Recvmsg CgroupInet4Getpeername
        CgroupInet6Getpeername CgroupInet4Getsockname CgroupInet6Getsockname CgroupUnixConnect
        CgroupUnixSendmsg CgroupUnixRecvmsg CgroupUnixGetpeername CgroupUnixGetsockname
    ];
    LwtSeg6local          Nothing   NetAdmin           Context      Read   false false false false Any;
    LircMode2             Nothing   Bpf                Context      None   false false false false Any;
    SkReuseport           Nothing   Bpf                Context      Read   false false false false
        [SkReuseportSelect SkReuseportSelectOrMigrate];
    FlowDissector         Nothing   NetAdmin           Context      Read   false false false false Any;
    CgroupSysctl          Nothing   NetAdmin           Context      None   false false false false Any;
    RawTracepointWritable Nothing   Perfmon            Words        None   false true  false false Any;
    CgroupSockopt         Nothing   NetAdmin           Context      Optval false false false false
        [CgroupGetsockopt CgroupSetsockopt];
    Tracing               Function  Perfmon            ByAttachType None   true  false false false OfTarget;
    StructOps             Operation Perfmon            Words        None   false false false true  Any;
    Ext                   Program   NetAdminAndPerfmon Any          None   false false false false None;
    Lsm                   Hook      Perfmon            Words        None   false false false false OfTarget;
    SkLookup              Nothing   Bpf                Context      None   false false false false
        [SkLookup];
    Syscall               Nothing   Bpf                Any          None   false false false false None;
    Netfilter             Nothing   NetAdmin           Context      None   false false false false
        [Netfilter];
}

/// Rules of the programs of one hook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookRules {
    /// Their functions have stacks of their own, where those of their type have.
    pub(crate) has_private_stack: bool,
    /// The arguments of tracing programs are trusted pointers (`prog_args_trusted`).
    pub(crate) has_trusted_args: bool,
    /// They run at a trampoline, which knows the function that is called.
    pub(crate) has_trampoline: bool,
    /// They see what the function returned behind its arguments.
    pub(crate) has_returned: bool,
    /// They need the function to return (`attach_uses_trampoline_retval`).
    #[doc(alias = "attach_uses_trampoline_retval")]
    pub(crate) uses_returned: bool,
}

macro_rules! hook_rules {
    ($($hook:ident $private_stack:literal $trusted:literal $trampoline:literal $has_returned:literal
        $uses_returned:literal;)*) => {
        impl HookRules {
            /// Rules of a hook.
            pub(crate) const fn of(hook: HookKind) -> HookRules {
                match hook {
                    $(HookKind::$hook => HookRules {
                        has_private_stack: $private_stack,
                        has_trusted_args: $trusted,
                        has_trampoline: $trampoline,
                        has_returned: $has_returned,
                        uses_returned: $uses_returned,
                    },)*
                }
            }
        }
    };
}

hook_rules! {
    // hook, private stack, trusted arguments, trampoline, has and uses the returned value
    Unnamed       true  false false false false;
    RawTracepoint true  true  false false false;
    Fentry        true  false true  false false;
    Fexit         true  false true  true  true;
    ModifyReturn  true  false true  true  true;
    Iterator      false true  false false false;
    Lsm           true  false false true  false;
    LsmCgroup     true  false false true  false;
    // Not of Linux 6.18.
    Fsession      true  false true  true  true;
    Multi         true  false true  false false;
}
