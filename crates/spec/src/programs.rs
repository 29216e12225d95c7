//! Program types, attach types and load flags: numbers and names
//! (`include/uapi/linux/bpf.h`; names are bpftool's), and libbpf's section definitions.
//!
//! Numbers newer than 6.18 are included, because objects state them; the kernel refuses
//! them at load time.

pub(crate) mod sections;

pub use sections::{SectionDef, SectionFlags, SectionPattern};

use crate::since::{Feature, Since, since};

macro_rules! numbered {
    (
        $(#[$about:meta])* $name:ident:
        $($(#[$doc:meta])* $variant:ident = $number:literal, $text:literal, $since:tt;)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// Every value, by number.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Value with this number.
            pub const fn from_number(number: u32) -> Option<$name> {
                Some(match number {
                    $($number => $name::$variant,)*
                    _ => return None,
                })
            }

            /// Value with this name in bpftool's listings.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|one| one.name() == name)
            }

            /// Number in the kernel's enumeration.
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// Name in bpftool's listings.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// Release that introduced it.
            #[doc(hidden)]
            pub const fn since(self) -> Since {
                match self {
                    $($name::$variant => since!$since,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

macro_rules! program_types {
    ($(
        $(#[$doc:meta])* $variant:ident = $number:literal, $text:literal, $since:tt,
        $returns:ident, $test_run:expr, $sleeps:expr, $form:ident $context:tt;
    )*) => {
        numbered! {
            /// Program type (`enum bpf_prog_type`): decides context, helpers and return values.
            ProgramType:
            $($(#[$doc])* $variant = $number, $text, $since;)*
        }

        impl ProgramType {
            /// Meaning of its return values.
            #[doc(hidden)]
            pub const fn returns(self) -> Returns {
                match self {
                    $(ProgramType::$variant => Returns::$returns,)*
                }
            }

            /// Its test run; `None` if it has none.
            #[doc(hidden)]
            pub const fn test_run(self) -> Option<TestRunKind> {
                use TestRunKind::{
                    FlowDissector, Netfilter, RawTracepoint, SkLookup, Skb, Syscall, Xdp,
                };
                match self {
                    $(ProgramType::$variant => $test_run,)*
                }
            }

            /// Which of its programs may sleep (`can_be_sleepable`).
            #[doc(alias = "can_be_sleepable")]
            #[doc(hidden)]
            pub const fn sleeps(self) -> Sleeps {
                use Sleeps::{Always, ByHook, Never, Since};
                match self {
                    $(ProgramType::$variant => $sleeps,)*
                }
            }

            /// Structure that BTF has for the context (include/linux/bpf_types.h); `None` where a
            /// context is `void *` or a number (`find_canonical_prog_ctx_type`).
            #[doc(alias = "find_canonical_prog_ctx_type")]
            #[doc(hidden)]
            pub const fn context(self) -> Option<&'static str> {
                match self {
                    $(ProgramType::$variant => structure!($context),)*
                }
            }

            /// True if programs get the context as it stands, so that helpers may use it as memory
            /// (`convert_ctx_access` is missing).
            #[doc(alias = "convert_ctx_access")]
            #[doc(hidden)]
            pub const fn has_plain_context(self) -> bool {
                match self {
                    $(ProgramType::$variant => matches!(ContextForm::$form, ContextForm::Plain),)*
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

macro_rules! attach_types {
    ($($variant:ident = $number:literal, $text:literal, $since:tt, $hook:ident;)*) => {
        numbered! {
            /// Attach type (`enum bpf_attach_type`). Number 0 is also the value of
            /// `expected_attach_type` for programs that need none.
            #[allow(missing_docs)]
            AttachType:
            $($variant = $number, $text, $since;)*
        }

        impl AttachType {
            /// Hook of its programs.
            #[doc(hidden)]
            pub const fn hook(self) -> HookKind {
                match self {
                    $(AttachType::$variant => HookKind::$hook,)*
                }
            }

            /// The attach type of programs of one function; of those of many, what they have is
            /// that of these.
            #[must_use]
            pub const fn single(self) -> AttachType {
                match self {
                    AttachType::TraceFentryMulti => AttachType::TraceFentry,
                    AttachType::TraceFexitMulti => AttachType::TraceFexit,
                    AttachType::TraceFsessionMulti => AttachType::TraceFsession,
                    single => single,
                }
            }
        }
    };
}

/// Meaning of the return values of a program type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// `enum xdp_action`.
    Xdp,
    /// Actions of tc (`TC_ACT_*`).
    Tc,
    /// Verdicts of netfilter (`NF_*`).
    Netfilter,
    /// `enum sk_action`.
    SkLookup,
    /// Drop or pass, with a bit for congestion.
    Cgroup,
    /// `enum bpf_ret_code`.
    RetCode,
    /// Bytes of the packet that are kept.
    Length,
    /// A number without names here; what Linux makes of it goes by the type.
    Number,
}

/// Programs of a type that may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleeps {
    /// None.
    Never,
    /// All that say so, in kernels with a feature.
    Since(Feature),
    /// Those of some hooks ([`HookKind::sleepable`]).
    ByHook,
    /// All: they must say so.
    Always,
}

/// What becomes of a program's accesses of its context.
enum ContextForm {
    /// They become accesses of the kernel's own structure.
    Converted,
    /// They stay.
    Plain,
}

/// Test run of a program type (`BPF_PROG_TEST_RUN`): its packet and context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestRunKind {
    /// A frame and a `struct xdp_md`.
    Xdp,
    /// A frame and a `struct __sk_buff`.
    Skb(SkbRun),
    /// A frame and a `struct bpf_flow_keys`.
    FlowDissector,
    /// A packet and a `struct nf_hook_state`.
    Netfilter,
    /// A `struct bpf_sk_lookup`.
    SkLookup,
    /// A context of up to 64 KiB less one byte, which the kernel returns.
    Syscall,
    /// Up to 12 numbers, which the kernel keeps.
    RawTracepoint,
    /// None in Linux: a context of a model of the kernel.
    Model,
}

/// The packet of a test run with a `struct __sk_buff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkbRun {
    /// It begins with the link-layer header.
    pub has_link_header: bool,
    /// It is on its way out, which counts for lightweight tunnels.
    pub is_sent: bool,
    /// Programs only read it.
    pub is_read_only: bool,
}

impl SkbRun {
    const TC: SkbRun = SkbRun {
        has_link_header: true,
        is_sent: false,
        is_read_only: false,
    };
    const READ: SkbRun = SkbRun {
        has_link_header: false,
        is_sent: false,
        is_read_only: true,
    };
    const SENT: SkbRun = SkbRun {
        has_link_header: false,
        is_sent: true,
        is_read_only: false,
    };
}

// Number, name, first release with the commit, return values, test run, sleep, context.
program_types! {
    /// Filters packets of a socket.
    SocketFilter = 1, "socket_filter", (3, 19, "ddd872bc3098"), Length, Some(Skb(SkbRun::READ)), Never, Converted "__sk_buff";
    /// Runs at kprobes and uprobes.
    Kprobe = 2, "kprobe", (4, 1, "2541517c32be"), Number, None, Since(Feature::SleepableUprobes), Plain "pt_regs";
    /// Classifies packets of a network device (tc, tcx, netkit).
    SchedCls = 3, "sched_cls", (4, 1, "96be4325f443"), Tc, Some(Skb(SkbRun::TC)), Never, Converted "__sk_buff";
    /// Runs as an action of tc.
    SchedAct = 4, "sched_act", (4, 1, "94caee8c312d"), Tc, Some(Skb(SkbRun::TC)), Never, Converted "__sk_buff";
    /// Runs at a tracepoint, with its formatted record.
    Tracepoint = 5, "tracepoint", (4, 7, "98b5c2c65c29"), Number, None, Since(Feature::SleepableTracepoints), Plain _;
    /// Runs on frames in the driver, before the network stack.
    Xdp = 6, "xdp", (4, 8, "6a773a15a1e8"), Xdp, Some(Xdp), Never, Converted "xdp_md";
    /// Runs on perf samples.
    PerfEvent = 7, "perf_event", (4, 9, "0515e5999a46"), Number, None, Never, Converted "bpf_perf_event_data";
    /// Filters packets of a control group.
    CgroupSkb = 8, "cgroup_skb", (4, 10, "0e33661de493"), Cgroup, Some(Skb(SkbRun::READ)), Never, Converted "__sk_buff";
    /// Runs when sockets of a control group are created, bound and released.
    CgroupSock = 9, "cgroup_sock", (4, 10, "610236587600"), Number, None, Never, Converted "bpf_sock";
    /// Lightweight tunnel: runs on received packets of a route.
    LwtIn = 10, "lwt_in", (4, 10, "3a0af8fd61f9"), RetCode, Some(Skb(SkbRun::READ)), Never, Converted "__sk_buff";
    /// Lightweight tunnel: runs on sent packets of a route.
    LwtOut = 11, "lwt_out", (4, 10, "3a0af8fd61f9"), RetCode, Some(Skb(SkbRun::READ)), Never, Converted "__sk_buff";
    /// Lightweight tunnel: runs on transmitted packets of a route.
    LwtXmit = 12, "lwt_xmit", (4, 10, "3a0af8fd61f9"), RetCode, Some(Skb(SkbRun::SENT)), Never, Converted "__sk_buff";
    /// Runs at events of TCP connections.
    SockOps = 13, "sock_ops", (4, 13, "40304b2a1567"), Number, None, Never, Converted "bpf_sock_ops";
    /// Parses and redirects streams of sockets in a sockmap.
    SkSkb = 14, "sk_skb", (4, 14, "b005fd189cec"), Number, None, Never, Converted "__sk_buff";
    /// Decides which devices a control group may access.
    CgroupDevice = 15, "cgroup_device", (4, 15, "ebc614f68736"), Number, None, Never, Plain "bpf_cgroup_dev_ctx";
    /// Runs on messages that a socket in a sockmap sends.
    SkMsg = 16, "sk_msg", (4, 17, "4f738adba30a"), Number, None, Never, Converted "sk_msg_md";
    /// Runs at a tracepoint, with its raw arguments.
    RawTracepoint = 17, "raw_tracepoint", (4, 17, "c4f6699dfcb8"), Number, Some(RawTracepoint), Since(Feature::SleepableTracepoints), Plain "bpf_raw_tracepoint_args";
    /// Changes the addresses of bind, connect and the like in a control group.
    CgroupSockAddr = 18, "cgroup_sock_addr", (4, 17, "4fbac77d2d09"), Number, None, Never, Converted "bpf_sock_addr";
    /// Runs on packets of IPv6 segment routing.
    LwtSeg6local = 19, "lwt_seg6local", (4, 18, "004d4b274e2a"), RetCode, Some(Skb(SkbRun::READ)), Never, Converted "__sk_buff";
    /// Decodes infrared signals.
    LircMode2 = 20, "lirc_mode2", (4, 18, "f4364dcfc86d"), Number, None, Never, Plain _;
    /// Chooses among sockets that share a port.
    SkReuseport = 21, "sk_reuseport", (4, 19, "2dbb9b9e6df6"), Number, None, Never, Converted "sk_reuseport_md";
    /// Dissects the headers of a packet.
    FlowDissector = 22, "flow_dissector", (4, 20, "d58e468b1112"), RetCode, Some(FlowDissector), Never, Converted "__sk_buff";
    /// Decides which sysctls a control group may read and write.
    CgroupSysctl = 23, "cgroup_sysctl", (5, 2, "7b146cebe30c"), Number, None, Never, Converted "bpf_sysctl";
    /// Runs at a tracepoint and may write to its buffer.
    RawTracepointWritable = 24, "raw_tracepoint_writable", (5, 2, "9df1c28bb752"), Number, Some(RawTracepoint), Never, Plain "bpf_raw_tracepoint_args";
    /// Runs at getsockopt and setsockopt in a control group.
    CgroupSockopt = 25, "cgroup_sockopt", (5, 3, "0d01da6afc54"), Number, None, Never, Converted "bpf_sockopt";
    /// fentry, fexit, fmod_ret, iterators and typed raw tracepoints.
    Tracing = 26, "tracing", (5, 5, "f1b9509c2fb0"), Number, None, ByHook, Plain _;
    /// Implements a function pointer of a struct_ops type.
    StructOps = 27, "struct_ops", (5, 6, "27ae7997a661"), Number, None, Since(Feature::SleepableStructOps), Plain _;
    /// Replaces a function of another program (freplace).
    Ext = 28, "ext", (5, 6, "be8704ff07d2"), Number, None, Never, Converted _;
    /// Runs at LSM hooks.
    Lsm = 29, "lsm", (5, 7, "fc611f47f218"), Number, None, Since(Feature::Sleepable), Plain _;
    /// Selects the socket of a new connection.
    SkLookup = 30, "sk_lookup", (5, 9, "e9ddbb7707ff"), SkLookup, Some(SkLookup), Never, Converted "bpf_sk_lookup";
    /// Runs on demand of user space (BPF_PROG_TEST_RUN) and may make system calls.
    Syscall = 31, "syscall", (5, 14, "79a7f8bdb159"), Number, Some(Syscall), Always, Plain _;
    /// Runs at netfilter hooks.
    Netfilter = 32, "netfilter", (6, 4, "84601d6ee68a"), Netfilter, Some(Netfilter), Never, Plain "bpf_nf_ctx";
}

// Number, name, first release with the commit, hook.
attach_types! {
    CgroupInetIngress = 0, "cgroup_inet_ingress", (4, 10, "0e33661de493"), Unnamed;
    CgroupInetEgress = 1, "cgroup_inet_egress", (4, 10, "0e33661de493"), Unnamed;
    CgroupInetSockCreate = 2, "cgroup_inet_sock_create", (4, 10, "610236587600"), Unnamed;
    CgroupSockOps = 3, "cgroup_sock_ops", (4, 13, "40304b2a1567"), Unnamed;
    SkSkbStreamParser = 4, "sk_skb_stream_parser", (4, 14, "464bc0fd6273"), Unnamed;
    SkSkbStreamVerdict = 5, "sk_skb_stream_verdict", (4, 14, "464bc0fd6273"), Unnamed;
    CgroupDevice = 6, "cgroup_device", (4, 15, "ebc614f68736"), Unnamed;
    SkMsgVerdict = 7, "sk_msg_verdict", (4, 17, "4f738adba30a"), Unnamed;
    CgroupInet4Bind = 8, "cgroup_inet4_bind", (4, 17, "4fbac77d2d09"), Unnamed;
    CgroupInet6Bind = 9, "cgroup_inet6_bind", (4, 17, "4fbac77d2d09"), Unnamed;
    CgroupInet4Connect = 10, "cgroup_inet4_connect", (4, 17, "d74bad4e74ee"), Unnamed;
    CgroupInet6Connect = 11, "cgroup_inet6_connect", (4, 17, "d74bad4e74ee"), Unnamed;
    CgroupInet4PostBind = 12, "cgroup_inet4_post_bind", (4, 17, "aac3fc320d94"), Unnamed;
    CgroupInet6PostBind = 13, "cgroup_inet6_post_bind", (4, 17, "aac3fc320d94"), Unnamed;
    CgroupUdp4Sendmsg = 14, "cgroup_udp4_sendmsg", (4, 18, "1cedee13d25a"), Unnamed;
    CgroupUdp6Sendmsg = 15, "cgroup_udp6_sendmsg", (4, 18, "1cedee13d25a"), Unnamed;
    LircMode2 = 16, "lirc_mode2", (4, 18, "f4364dcfc86d"), Unnamed;
    FlowDissector = 17, "flow_dissector", (4, 20, "d58e468b1112"), Unnamed;
    CgroupSysctl = 18, "cgroup_sysctl", (5, 2, "7b146cebe30c"), Unnamed;
    CgroupUdp4Recvmsg = 19, "cgroup_udp4_recvmsg", (5, 2, "983695fa6765"), Unnamed;
    CgroupUdp6Recvmsg = 20, "cgroup_udp6_recvmsg", (5, 2, "983695fa6765"), Unnamed;
    CgroupGetsockopt = 21, "cgroup_getsockopt", (5, 3, "0d01da6afc54"), Unnamed;
    CgroupSetsockopt = 22, "cgroup_setsockopt", (5, 3, "0d01da6afc54"), Unnamed;
    TraceRawTp = 23, "trace_raw_tp", (5, 5, "f1b9509c2fb0"), RawTracepoint;
    TraceFentry = 24, "trace_fentry", (5, 5, "fec56f5890d9"), Fentry;
    TraceFexit = 25, "trace_fexit", (5, 5, "fec56f5890d9"), Fexit;
    ModifyReturn = 26, "modify_return", (5, 7, "ae24082331d9"), ModifyReturn;
    LsmMac = 27, "lsm_mac", (5, 7, "fc611f47f218"), Lsm;
    TraceIter = 28, "trace_iter", (5, 8, "15d83c4d7cef"), Iterator;
    CgroupInet4Getpeername = 29, "cgroup_inet4_getpeername", (5, 8, "1b66d253610c"), Unnamed;
    CgroupInet6Getpeername = 30, "cgroup_inet6_getpeername", (5, 8, "1b66d253610c"), Unnamed;
    CgroupInet4Getsockname = 31, "cgroup_inet4_getsockname", (5, 8, "1b66d253610c"), Unnamed;
    CgroupInet6Getsockname = 32, "cgroup_inet6_getsockname", (5, 8, "1b66d253610c"), Unnamed;
    XdpDevmap = 33, "xdp_devmap", (5, 8, "fbee97feed9b"), Unnamed;
    CgroupInetSockRelease = 34, "cgroup_inet_sock_release", (5, 9, "f5836749c9c0"), Unnamed;
    XdpCpumap = 35, "xdp_cpumap", (5, 9, "9216477449f3"), Unnamed;
    SkLookup = 36, "sk_lookup", (5, 9, "e9ddbb7707ff"), Unnamed;
    Xdp = 37, "xdp", (5, 9, "aa8d3a716b59"), Unnamed;
    SkSkbVerdict = 38, "sk_skb_verdict", (5, 13, "a7ba4558e69a"), Unnamed;
    SkReuseportSelect = 39, "sk_reuseport_select", (5, 14, "d5e4ddaeb6ab"), Unnamed;
    SkReuseportSelectOrMigrate = 40, "sk_reuseport_select_or_migrate", (5, 14, "d5e4ddaeb6ab"), Unnamed;
    PerfEvent = 41, "perf_event", (5, 15, "b89fbfbb854c"), Unnamed;
    TraceKprobeMulti = 42, "trace_kprobe_multi", (5, 18, "0dcac2725406"), Unnamed;
    LsmCgroup = 43, "lsm_cgroup", (6, 0, "69fd337a975c"), LsmCgroup;
    StructOps = 44, "struct_ops", (6, 4, "68b04864ca42"), Unnamed;
    Netfilter = 45, "netfilter", (6, 4, "84601d6ee68a"), Unnamed;
    TcxIngress = 46, "tcx_ingress", (6, 6, "e420bed02507"), Unnamed;
    TcxEgress = 47, "tcx_egress", (6, 6, "e420bed02507"), Unnamed;
    TraceUprobeMulti = 48, "trace_uprobe_multi", (6, 6, "89ae89f53d20"), Unnamed;
    CgroupUnixConnect = 49, "cgroup_unix_connect", (6, 7, "859051dd165e"), Unnamed;
    CgroupUnixSendmsg = 50, "cgroup_unix_sendmsg", (6, 7, "859051dd165e"), Unnamed;
    CgroupUnixRecvmsg = 51, "cgroup_unix_recvmsg", (6, 7, "859051dd165e"), Unnamed;
    CgroupUnixGetpeername = 52, "cgroup_unix_getpeername", (6, 7, "859051dd165e"), Unnamed;
    CgroupUnixGetsockname = 53, "cgroup_unix_getsockname", (6, 7, "859051dd165e"), Unnamed;
    NetkitPrimary = 54, "netkit_primary", (6, 7, "35dfaad7188c"), Unnamed;
    NetkitPeer = 55, "netkit_peer", (6, 7, "35dfaad7188c"), Unnamed;
    TraceKprobeSession = 56, "trace_kprobe_session", (6, 10, "535a3692ba72"), Unnamed;
    TraceUprobeSession = 57, "trace_uprobe_session", (6, 13, "d920179b3d48"), Unnamed;
    TraceFsession = 58, "trace_fsession", (7, 0, "2d419c44658f"), Fsession;
    TraceFentryMulti = 59, "trace_fentry_multi", (7, 2, "d14e6b4346bf"), Multi;
    TraceFexitMulti = 60, "trace_fexit_multi", (7, 2, "d14e6b4346bf"), Multi;
    TraceFsessionMulti = 61, "trace_fsession_multi", (7, 2, "d14e6b4346bf"), Multi;
}

/// Where the programs of an attach type run, as far as a program names it when it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// None: a program names no function when it is loaded.
    Unnamed,
    /// A tracepoint with typed arguments.
    RawTracepoint,
    /// The begin of a function.
    Fentry,
    /// The end of a function.
    Fexit,
    /// A function whose result the program may decide.
    ModifyReturn,
    /// An iterator over objects of the kernel.
    Iterator,
    /// A hook of the security modules.
    Lsm,
    /// Such a hook for the processes of a control group.
    LsmCgroup,
    /// Begin and end of a function, which Linux 6.18 lacks.
    Fsession,
    /// Many functions, which a link names, of a module that the program names. Linux 6.18 lacks it.
    Multi,
}

impl HookKind {
    /// Hook of an attach type.
    pub fn of(attach: Option<AttachType>) -> HookKind {
        attach.map_or(HookKind::Unnamed, AttachType::hook)
    }

    /// Feature with which its tracing programs may sleep; `None` for those that may not, and for the
    /// hooks that Linux 6.18 lacks.
    pub const fn sleepable(self) -> Option<Feature> {
        match self {
            HookKind::RawTracepoint => Some(Feature::SleepableTracepoints),
            HookKind::Iterator => Some(Feature::SleepableIterators),
            HookKind::Fentry | HookKind::Fexit | HookKind::ModifyReturn => Some(Feature::Sleepable),
            HookKind::Unnamed
            | HookKind::Lsm
            | HookKind::LsmCgroup
            | HookKind::Fsession
            | HookKind::Multi => None,
        }
    }

    /// Prefix of the names in BTF of what such programs attach to.
    pub const fn target_prefix(self) -> &'static str {
        match self {
            HookKind::RawTracepoint => "btf_trace_",
            HookKind::Lsm | HookKind::LsmCgroup => "bpf_lsm_",
            HookKind::Iterator => "bpf_iter_",
            HookKind::Unnamed
            | HookKind::Fentry
            | HookKind::Fexit
            | HookKind::ModifyReturn
            | HookKind::Fsession
            | HookKind::Multi => "",
        }
    }
}

/// Flags of `BPF_PROG_LOAD` (`prog_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LoadFlags(pub u32);

macro_rules! load_flags {
    ($($(#[$doc:meta])* $flag:ident = $bit:literal, $name:literal, $since:tt;)*) => {
        impl LoadFlags {
            $($(#[$doc])* pub const $flag: LoadFlags = LoadFlags(1 << $bit);)*

            /// Every flag with its name in C, by bit.
            pub const ALL: &'static [(LoadFlags, &'static str)] =
                &[$((LoadFlags::$flag, $name),)*];

            /// Release that introduced each flag, in the order of [`LoadFlags::ALL`].
            const SINCE: &'static [Since] = &[$(since!$since,)*];
        }
    };
}

load_flags! {
    /// Unaligned accesses are refused, even if the processor supports them.
    STRICT_ALIGNMENT = 0, "BPF_F_STRICT_ALIGNMENT", (4, 12);
    /// Unaligned accesses are accepted, even if the processor lacks them.
    ANY_ALIGNMENT = 1, "BPF_F_ANY_ALIGNMENT", (5, 0);
    /// The upper halves of 32-bit results are randomised where dead (for tests).
    TEST_RND_HI32 = 2, "BPF_F_TEST_RND_HI32", (5, 3);
    /// The verifier adds a checkpoint at every prune point (for tests).
    TEST_STATE_FREQ = 3, "BPF_F_TEST_STATE_FREQ", (5, 3);
    /// The program may sleep.
    SLEEPABLE = 4, "BPF_F_SLEEPABLE", (5, 10, "1e6c62a88215");
    /// The program supports frames with fragments (multi-buffer XDP).
    XDP_HAS_FRAGS = 5, "BPF_F_XDP_HAS_FRAGS", (5, 18, "c2f2cdbeffda");
    /// The program is bound to one network device and runs on the host.
    XDP_DEV_BOUND_ONLY = 6, "BPF_F_XDP_DEV_BOUND_ONLY", (6, 3);
    /// The program is refused if range invariants are violated (for tests).
    TEST_REG_INVARIANTS = 7, "BPF_F_TEST_REG_INVARIANTS", (6, 8);
    /// A BPF token grants the privileges.
    TOKEN_FD = 16, "BPF_F_TOKEN_FD", (6, 9);
}

impl LoadFlags {
    /// True if all of these are set.
    pub const fn has(self, other: LoadFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags among these that came with a release, each with its name and that release.
    #[doc(hidden)]
    pub fn since(self) -> impl Iterator<Item = (&'static str, Since)> {
        let rows = LoadFlags::ALL.iter().zip(LoadFlags::SINCE);
        rows.filter(move |((flag, _), _)| self.has(*flag))
            .map(|((_, name), since)| (*name, *since))
    }

    /// The bits that are no flag of any release.
    #[doc(hidden)]
    pub fn unknown(self) -> LoadFlags {
        let flags = LoadFlags::ALL.iter();
        LoadFlags(flags.fold(self.0, |rest, (flag, _)| rest & !flag.0))
    }

    /// Union of both.
    #[must_use]
    pub const fn with(self, other: LoadFlags) -> LoadFlags {
        LoadFlags(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_number_never_has_an_earlier_release() {
        let types = ProgramType::ALL.iter().map(|kind| kind.since().release);
        assert!(types.is_sorted());
        let attach = AttachType::ALL.iter().map(|kind| kind.since().release);
        assert!(attach.is_sorted());
    }
}
