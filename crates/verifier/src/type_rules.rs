//! Rules of the verifier that go by the program type: one row for each type.

use spec::programs::ProgramType;

/// Programs of a type to which a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applies {
    /// No program.
    Never,
    /// Every program.
    Always,
    /// Programs of some attach types.
    ByAttachType,
}

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

/// Rules that a type has or has not.
#[derive(Clone, Copy)]
enum Trait {
    /// Programs get the context as it stands, so that helpers may use it as memory
    /// (`convert_ctx_access` is missing).
    #[doc(alias = "convert_ctx_access")]
    PlainContext,
    /// Packet loads of classic BPF are allowed (`may_access_skb`).
    #[doc(alias = "may_access_skb")]
    PacketLoads,
    /// Some objects of the kernel may be written (`btf_struct_access`).
    #[doc(alias = "btf_struct_access")]
    WritesObjects,
    /// Every release looks at the attach type of such programs at load
    /// (`bpf_prog_load_check_attach`, `bpf_check_attach_target`); other types take any number, and
    /// SkReuseport since the release that brought its attach types.
    #[doc(alias = "bpf_prog_load_check_attach")]
    AttachTypeChecked,
}

/// Rules of one program type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeRules {
    /// Programs that may sleep (`can_be_sleepable`); syscall programs always do.
    #[doc(alias = "can_be_sleepable")]
    pub(crate) sleepable: Applies,
    /// Programs whose functions have stacks of their own (`bpf_enable_priv_stack`): those
    /// that the kernel guards against recursion.
    #[doc(alias = "bpf_enable_priv_stack")]
    pub(crate) private_stack: Applies,
    /// Kind of attach target (`check_attach_btf_id`).
    #[doc(alias = "check_attach_btf_id")]
    pub(crate) target: TargetKind,
    /// Capabilities that loading needs.
    pub(crate) loader: Loader,
    /// Structure that BTF has for the context (include/linux/bpf_types.h); `None` where a
    /// context is `void *` or a number.
    pub(crate) context: Option<&'static str>,
    /// What an argument tagged `arg:ctx` may point to.
    pub(crate) tagged_context: TaggedContext,
    /// Direct access to packets.
    pub(crate) packet: PacketAccess,
    traits: u8,
}

impl TypeRules {
    /// True if programs get the context as it stands, so that helpers may use it as memory.
    pub(crate) const fn has_plain_context(self) -> bool {
        self.has(Trait::PlainContext)
    }

    /// True if packet loads of classic BPF are allowed.
    pub(crate) const fn has_packet_loads(self) -> bool {
        self.has(Trait::PacketLoads)
    }

    /// True if some objects of the kernel may be written.
    pub(crate) const fn writes_objects(self) -> bool {
        self.has(Trait::WritesObjects)
    }

    /// True if every release looks at the attach type of such programs at load.
    pub(crate) const fn is_attach_type_checked(self) -> bool {
        self.has(Trait::AttachTypeChecked)
    }

    const fn has(self, one: Trait) -> bool {
        self.traits & 1 << one as u8 != 0
    }
}

macro_rules! type_rules {
    ($($kind:ident $sleepable:ident $private_stack:ident $target:ident $loader:ident
        $context:tt $tagged:ident $packet:ident [$($trait:ident)*];)*) => {
        impl TypeRules {
            /// Rules of a program type.
            pub(crate) const fn of(kind: ProgramType) -> TypeRules {
                match kind {
                    $(ProgramType::$kind => TypeRules {
                        sleepable: Applies::$sleepable,
                        private_stack: Applies::$private_stack,
                        target: TargetKind::$target,
                        loader: Loader::$loader,
                        context: structure!($context),
                        tagged_context: TaggedContext::$tagged,
                        packet: PacketAccess::$packet,
                        traits: 0 $(| 1 << Trait::$trait as u8)*,
                    },)*
                }
            }
        }
    };
}

/// A structure by name, or `_` for none.
macro_rules! structure {
    (_) => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

type_rules! {
    // type, sleepable, private stack, attach target, loader, context, tagged context, packet,
    // traits
    SocketFilter          Never        Never        Nothing   Anyone             "__sk_buff"               Context      None   [PacketLoads];
    Kprobe                Always       Always       Nothing   Perfmon            "pt_regs"                 Registers    None   [PlainContext];
    SchedCls              Never        Never        Nothing   NetAdmin           "__sk_buff"               Context      Write  [PacketLoads WritesObjects];
    SchedAct              Never        Never        Nothing   NetAdmin           "__sk_buff"               Context      Write  [PacketLoads WritesObjects];
    Tracepoint            Never        Always       Nothing   Perfmon            _                         Any          None   [PlainContext];
    Xdp                   Never        Never        Nothing   NetAdmin           "xdp_md"                  Context      Write  [WritesObjects];
    PerfEvent             Never        Always       Nothing   Perfmon            "bpf_perf_event_data"     Registers    None   [];
    CgroupSkb             Never        Never        Nothing   Anyone             "__sk_buff"               Context      Read   [AttachTypeChecked];
    CgroupSock            Never        Never        Nothing   NetAdmin           "bpf_sock"                Context      None   [AttachTypeChecked];
    LwtIn                 Never        Never        Nothing   NetAdmin           "__sk_buff"               Context      Read   [];
    LwtOut                Never        Never        Nothing   NetAdmin           "__sk_buff"               Context      Read   [];
    LwtXmit               Never        Never        Nothing   NetAdmin           "__sk_buff"               Context      Write  [];
    SockOps               Never        Never        Nothing   NetAdmin           "bpf_sock_ops"            Context      None   [];
    SkSkb                 Never        Never        Nothing   NetAdmin           "__sk_buff"               Context      Write  [];
    CgroupDevice          Never        Never        Nothing   NetAdmin           "bpf_cgroup_dev_ctx"      Context      None   [PlainContext];
    SkMsg                 Never        Never        Nothing   NetAdmin           "sk_msg_md"               Context      Write  [];
    RawTracepoint         Never        Always       Nothing   Perfmon            "bpf_raw_tracepoint_args" Words        None   [PlainContext];
    CgroupSockAddr        Never        Never        Nothing   NetAdmin           "bpf_sock_addr"           Context      None   [AttachTypeChecked];
    LwtSeg6local          Never        Never        Nothing   NetAdmin           "__sk_buff"               Context      Read   [];
    LircMode2             Never        Never        Nothing   Bpf                _                         Context      None   [PlainContext];
    SkReuseport           Never        Never        Nothing   Bpf                "sk_reuseport_md"         Context      Read   [];
    FlowDissector         Never        Never        Nothing   NetAdmin           "__sk_buff"               Context      Read   [];
    CgroupSysctl          Never        Never        Nothing   NetAdmin           "bpf_sysctl"              Context      None   [];
    RawTracepointWritable Never        Never        Nothing   Perfmon            "bpf_raw_tracepoint_args" Words        None   [PlainContext];
    CgroupSockopt         Never        Never        Nothing   NetAdmin           "bpf_sockopt"             Context      Optval [AttachTypeChecked];
    Tracing               ByAttachType ByAttachType Function  Perfmon            _                         ByAttachType None   [PlainContext AttachTypeChecked];
    StructOps             Always       Never        Operation Perfmon            _                         Words        None   [PlainContext WritesObjects];
    Ext                   Never        Never        Program   NetAdminAndPerfmon _                         Any          None   [];
    Lsm                   Always       Never        Hook      Perfmon            _                         Words        None   [PlainContext AttachTypeChecked];
    SkLookup              Never        Never        Nothing   Bpf                "bpf_sk_lookup"           Context      None   [];
    Syscall               Never        Never        Nothing   Bpf                _                         Any          None   [PlainContext];
    Netfilter             Never        Never        Nothing   NetAdmin           "bpf_nf_ctx"              Context      None   [PlainContext];
}
