//! Program types, attach types and load flags: numbers and names
//! (`include/uapi/linux/bpf.h`; names are bpftool's), and libbpf's section definitions.
//!
//! Numbers newer than 6.18 are included, because objects state them; the kernel refuses
//! them at load time.

mod sections;

pub use sections::{SECTIONS, SectionDef, SectionFlags};

macro_rules! numbered {
    (
        $(#[$about:meta])* $name:ident:
        $($(#[$doc:meta])* $variant:ident = $number:literal, $text:literal;)*
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
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

numbered! {
    /// Program type (`enum bpf_prog_type`): decides context, helpers and return values.
    ProgramType:
    /// Filters packets of a socket.
    SocketFilter = 1, "socket_filter";
    /// Runs at kprobes and uprobes.
    Kprobe = 2, "kprobe";
    /// Classifies packets of a network device (tc, tcx, netkit).
    SchedCls = 3, "sched_cls";
    /// Runs as an action of tc.
    SchedAct = 4, "sched_act";
    /// Runs at a tracepoint, with its formatted record.
    Tracepoint = 5, "tracepoint";
    /// Runs on frames in the driver, before the network stack.
    Xdp = 6, "xdp";
    /// Runs on perf samples.
    PerfEvent = 7, "perf_event";
    /// Filters packets of a control group.
    CgroupSkb = 8, "cgroup_skb";
    /// Runs when sockets of a control group are created, bound and released.
    CgroupSock = 9, "cgroup_sock";
    /// Lightweight tunnel: runs on received packets of a route.
    LwtIn = 10, "lwt_in";
    /// Lightweight tunnel: runs on sent packets of a route.
    LwtOut = 11, "lwt_out";
    /// Lightweight tunnel: runs on transmitted packets of a route.
    LwtXmit = 12, "lwt_xmit";
    /// Runs at events of TCP connections.
    SockOps = 13, "sock_ops";
    /// Parses and redirects streams of sockets in a sockmap.
    SkSkb = 14, "sk_skb";
    /// Decides which devices a control group may access.
    CgroupDevice = 15, "cgroup_device";
    /// Runs on messages that a socket in a sockmap sends.
    SkMsg = 16, "sk_msg";
    /// Runs at a tracepoint, with its raw arguments.
    RawTracepoint = 17, "raw_tracepoint";
    /// Changes the addresses of bind, connect and the like in a control group.
    CgroupSockAddr = 18, "cgroup_sock_addr";
    /// Runs on packets of IPv6 segment routing.
    LwtSeg6local = 19, "lwt_seg6local";
    /// Decodes infrared signals.
    LircMode2 = 20, "lirc_mode2";
    /// Chooses among sockets that share a port.
    SkReuseport = 21, "sk_reuseport";
    /// Dissects the headers of a packet.
    FlowDissector = 22, "flow_dissector";
    /// Decides which sysctls a control group may read and write.
    CgroupSysctl = 23, "cgroup_sysctl";
    /// Runs at a tracepoint and may write to its buffer.
    RawTracepointWritable = 24, "raw_tracepoint_writable";
    /// Runs at getsockopt and setsockopt in a control group.
    CgroupSockopt = 25, "cgroup_sockopt";
    /// fentry, fexit, fmod_ret, iterators and typed raw tracepoints.
    Tracing = 26, "tracing";
    /// Implements a function pointer of a struct_ops type.
    StructOps = 27, "struct_ops";
    /// Replaces a function of another program (freplace).
    Ext = 28, "ext";
    /// Runs at LSM hooks.
    Lsm = 29, "lsm";
    /// Selects the socket of a new connection.
    SkLookup = 30, "sk_lookup";
    /// Runs on demand of user space (BPF_PROG_TEST_RUN) and may make system calls.
    Syscall = 31, "syscall";
    /// Runs at netfilter hooks.
    Netfilter = 32, "netfilter";
}

numbered! {
    /// Attach type (`enum bpf_attach_type`). Number 0 is also the value of
    /// `expected_attach_type` for programs that need none.
    #[allow(missing_docs)]
    AttachType:
    CgroupInetIngress = 0, "cgroup_inet_ingress";
    CgroupInetEgress = 1, "cgroup_inet_egress";
    CgroupInetSockCreate = 2, "cgroup_inet_sock_create";
    CgroupSockOps = 3, "cgroup_sock_ops";
    SkSkbStreamParser = 4, "sk_skb_stream_parser";
    SkSkbStreamVerdict = 5, "sk_skb_stream_verdict";
    CgroupDevice = 6, "cgroup_device";
    SkMsgVerdict = 7, "sk_msg_verdict";
    CgroupInet4Bind = 8, "cgroup_inet4_bind";
    CgroupInet6Bind = 9, "cgroup_inet6_bind";
    CgroupInet4Connect = 10, "cgroup_inet4_connect";
    CgroupInet6Connect = 11, "cgroup_inet6_connect";
    CgroupInet4PostBind = 12, "cgroup_inet4_post_bind";
    CgroupInet6PostBind = 13, "cgroup_inet6_post_bind";
    CgroupUdp4Sendmsg = 14, "cgroup_udp4_sendmsg";
    CgroupUdp6Sendmsg = 15, "cgroup_udp6_sendmsg";
    LircMode2 = 16, "lirc_mode2";
    FlowDissector = 17, "flow_dissector";
    CgroupSysctl = 18, "cgroup_sysctl";
    CgroupUdp4Recvmsg = 19, "cgroup_udp4_recvmsg";
    CgroupUdp6Recvmsg = 20, "cgroup_udp6_recvmsg";
    CgroupGetsockopt = 21, "cgroup_getsockopt";
    CgroupSetsockopt = 22, "cgroup_setsockopt";
    TraceRawTp = 23, "trace_raw_tp";
    TraceFentry = 24, "trace_fentry";
    TraceFexit = 25, "trace_fexit";
    ModifyReturn = 26, "modify_return";
    LsmMac = 27, "lsm_mac";
    TraceIter = 28, "trace_iter";
    CgroupInet4Getpeername = 29, "cgroup_inet4_getpeername";
    CgroupInet6Getpeername = 30, "cgroup_inet6_getpeername";
    CgroupInet4Getsockname = 31, "cgroup_inet4_getsockname";
    CgroupInet6Getsockname = 32, "cgroup_inet6_getsockname";
    XdpDevmap = 33, "xdp_devmap";
    CgroupInetSockRelease = 34, "cgroup_inet_sock_release";
    XdpCpumap = 35, "xdp_cpumap";
    SkLookup = 36, "sk_lookup";
    Xdp = 37, "xdp";
    SkSkbVerdict = 38, "sk_skb_verdict";
    SkReuseportSelect = 39, "sk_reuseport_select";
    SkReuseportSelectOrMigrate = 40, "sk_reuseport_select_or_migrate";
    PerfEvent = 41, "perf_event";
    TraceKprobeMulti = 42, "trace_kprobe_multi";
    LsmCgroup = 43, "lsm_cgroup";
    StructOps = 44, "struct_ops";
    Netfilter = 45, "netfilter";
    TcxIngress = 46, "tcx_ingress";
    TcxEgress = 47, "tcx_egress";
    TraceUprobeMulti = 48, "trace_uprobe_multi";
    CgroupUnixConnect = 49, "cgroup_unix_connect";
    CgroupUnixSendmsg = 50, "cgroup_unix_sendmsg";
    CgroupUnixRecvmsg = 51, "cgroup_unix_recvmsg";
    CgroupUnixGetpeername = 52, "cgroup_unix_getpeername";
    CgroupUnixGetsockname = 53, "cgroup_unix_getsockname";
    NetkitPrimary = 54, "netkit_primary";
    NetkitPeer = 55, "netkit_peer";
    TraceKprobeSession = 56, "trace_kprobe_session";
    TraceUprobeSession = 57, "trace_uprobe_session";
    TraceFsession = 58, "trace_fsession";
    TraceFentryMulti = 59, "trace_fentry_multi";
    TraceFexitMulti = 60, "trace_fexit_multi";
    TraceFsessionMulti = 61, "trace_fsession_multi";
}

impl AttachType {
    /// True for multi-attach types, whose link attaches a program to many functions. Only
    /// their module is known at load time.
    pub const fn is_multi(self) -> bool {
        use AttachType::{TraceFentryMulti, TraceFexitMulti, TraceFsessionMulti};
        matches!(
            self,
            TraceFentryMulti | TraceFexitMulti | TraceFsessionMulti
        )
    }
}

/// Flags of `BPF_PROG_LOAD` (`prog_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LoadFlags(pub u32);

macro_rules! load_flags {
    ($($(#[$doc:meta])* $flag:ident = $bit:literal, $name:literal;)*) => {
        impl LoadFlags {
            $($(#[$doc])* pub const $flag: LoadFlags = LoadFlags(1 << $bit);)*

            /// Every flag with its name in C, by bit.
            pub const ALL: &'static [(LoadFlags, &'static str)] =
                &[$((LoadFlags::$flag, $name),)*];
        }
    };
}

load_flags! {
    /// Unaligned accesses are refused, even if the processor supports them.
    STRICT_ALIGNMENT = 0, "BPF_F_STRICT_ALIGNMENT";
    /// Unaligned accesses are accepted, even if the processor lacks them.
    ANY_ALIGNMENT = 1, "BPF_F_ANY_ALIGNMENT";
    /// The upper halves of 32-bit results are randomised where dead (for tests).
    TEST_RND_HI32 = 2, "BPF_F_TEST_RND_HI32";
    /// The verifier adds a checkpoint at every prune point (for tests).
    TEST_STATE_FREQ = 3, "BPF_F_TEST_STATE_FREQ";
    /// The program may sleep.
    SLEEPABLE = 4, "BPF_F_SLEEPABLE";
    /// The program supports frames with fragments (multi-buffer XDP).
    XDP_HAS_FRAGS = 5, "BPF_F_XDP_HAS_FRAGS";
    /// The program is bound to one network device and runs on the host.
    XDP_DEV_BOUND_ONLY = 6, "BPF_F_XDP_DEV_BOUND_ONLY";
    /// The program is refused if range invariants are violated (for tests).
    TEST_REG_INVARIANTS = 7, "BPF_F_TEST_REG_INVARIANTS";
    /// A BPF token grants the privileges.
    TOKEN_FD = 16, "BPF_F_TOKEN_FD";
}

impl LoadFlags {
    /// True if all of these are set.
    pub const fn has(self, other: LoadFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Union of both.
    #[must_use]
    pub const fn with(self, other: LoadFlags) -> LoadFlags {
        LoadFlags(self.0 | other.0)
    }
}
