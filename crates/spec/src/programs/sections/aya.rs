//! Section definitions of aya 0.14 (`ProgramSection`). Only the parts between slashes that name a
//! program type count; what follows is the programmer's. Any other executable section but `.text…`
//! is an error.

sections! {
    Kprobe {
        with_target "kprobe";
        with_target "kretprobe";
        with_target "uprobe";
        with_target "uprobe.s" as SLEEPABLE;
        with_target "uretprobe";
        with_target "uretprobe.s" as SLEEPABLE;
    }
    Xdp {
        exact "xdp" -> Xdp;
        with_target "xdp/cpumap" -> XdpCpumap;
        with_target "xdp/devmap" -> XdpDevmap;
        exact "xdp.frags" -> Xdp as XDP_FRAGS;
        with_target "xdp.frags/cpumap" -> XdpCpumap as XDP_FRAGS;
        with_target "xdp.frags/devmap" -> XdpDevmap as XDP_FRAGS;
    }
    Tracing {
        with_target "tp_btf" -> TraceRawTp as ATTACH_BTF;
        with_target "fentry" -> TraceFentry as ATTACH_BTF;
        with_target "fentry.s" -> TraceFentry as ATTACH_BTF + SLEEPABLE;
        with_target "fexit" -> TraceFexit as ATTACH_BTF;
        with_target "fexit.s" -> TraceFexit as ATTACH_BTF + SLEEPABLE;
        with_target "iter" -> TraceIter as ATTACH_BTF;
        with_target "iter.s" -> TraceIter as ATTACH_BTF + SLEEPABLE;
    }
    Tracepoint {
        with_target "tracepoint";
        with_target "tp";
    }
    SocketFilter {
        with_target "socket";
    }
    SkMsg {
        with_target "sk_msg" -> SkMsgVerdict;
    }
    SkSkb {
        with_target "sk_skb/stream_parser";
        with_target "sk_skb/stream_verdict";
    }
    SockOps {
        with_target "sockops" -> CgroupSockOps;
    }
    SchedCls {
        with_target "classifier";
    }
    CgroupSkb {
        with_target "cgroup_skb/ingress" -> CgroupInetIngress;
        with_target "cgroup_skb/egress" -> CgroupInetEgress;
        with_target "cgroup/skb";
    }
    CgroupSysctl {
        with_target "cgroup/sysctl" -> CgroupSysctl;
    }
    CgroupDevice {
        with_target "cgroup/dev" -> CgroupDevice;
    }
    CgroupSockopt {
        with_target "cgroup/getsockopt" -> CgroupGetsockopt;
        with_target "cgroup/setsockopt" -> CgroupSetsockopt;
    }
    CgroupSock {
        with_target "cgroup/sock" -> CgroupInetSockCreate;
        with_target "cgroup/post_bind4" -> CgroupInet4PostBind;
        with_target "cgroup/post_bind6" -> CgroupInet6PostBind;
        with_target "cgroup/sock_create" -> CgroupInetSockCreate;
        with_target "cgroup/sock_release" -> CgroupInetSockRelease;
    }
    CgroupSockAddr {
        with_target "cgroup/bind4" -> CgroupInet4Bind;
        with_target "cgroup/bind6" -> CgroupInet6Bind;
        with_target "cgroup/connect4" -> CgroupInet4Connect;
        with_target "cgroup/connect6" -> CgroupInet6Connect;
        with_target "cgroup/getpeername4" -> CgroupInet4Getpeername;
        with_target "cgroup/getpeername6" -> CgroupInet6Getpeername;
        with_target "cgroup/getsockname4" -> CgroupInet4Getsockname;
        with_target "cgroup/getsockname6" -> CgroupInet6Getsockname;
        with_target "cgroup/sendmsg4" -> CgroupUdp4Sendmsg;
        with_target "cgroup/sendmsg6" -> CgroupUdp6Sendmsg;
        with_target "cgroup/recvmsg4" -> CgroupUdp4Recvmsg;
        with_target "cgroup/recvmsg6" -> CgroupUdp6Recvmsg;
    }
    LircMode2 {
        with_target "lirc_mode2" -> LircMode2;
    }
    PerfEvent {
        with_target "perf_event";
    }
    RawTracepoint {
        with_target "raw_tp";
        with_target "raw_tracepoint";
    }
    Lsm {
        with_target "lsm" -> LsmMac as ATTACH_BTF;
        with_target "lsm.s" -> LsmMac as ATTACH_BTF + SLEEPABLE;
        with_target "lsm_cgroup" -> LsmCgroup as ATTACH_BTF;
    }
    FlowDissector {
        with_target "flow_dissector" -> FlowDissector;
    }
    Ext {
        with_target "freplace" as ATTACH_BTF;
    }
    SkLookup {
        with_target "sk_lookup" -> SkLookup;
    }
    SkReuseport {
        exact "sk_reuseport" -> SkReuseportSelect;
        with_target "sk_reuseport/migrate" -> SkReuseportSelectOrMigrate;
    }
}
