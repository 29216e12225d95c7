//! Section definitions of aya 0.14 (`ProgramSection`). Only the parts between slashes that name a
//! program type count; what follows is the programmer's. Any other executable section but `.text…`
//! is an error.

sections! {
    Kprobe {
        target "kprobe";
        target "kretprobe";
        target "uprobe";
        target "uprobe.s" as SLEEPABLE;
        target "uretprobe";
        target "uretprobe.s" as SLEEPABLE;
    }
    Xdp {
        exact "xdp" -> Xdp;
        target "xdp/cpumap" -> XdpCpumap;
        target "xdp/devmap" -> XdpDevmap;
        exact "xdp.frags" -> Xdp as XDP_FRAGS;
        target "xdp.frags/cpumap" -> XdpCpumap as XDP_FRAGS;
        target "xdp.frags/devmap" -> XdpDevmap as XDP_FRAGS;
    }
    Tracing {
        target "tp_btf" -> TraceRawTp as ATTACH_BTF;
        target "fentry" -> TraceFentry as ATTACH_BTF;
        target "fentry.s" -> TraceFentry as ATTACH_BTF + SLEEPABLE;
        target "fexit" -> TraceFexit as ATTACH_BTF;
        target "fexit.s" -> TraceFexit as ATTACH_BTF + SLEEPABLE;
        target "iter" -> TraceIter as ATTACH_BTF;
        target "iter.s" -> TraceIter as ATTACH_BTF + SLEEPABLE;
    }
    Tracepoint {
        target "tracepoint";
        target "tp";
    }
    SocketFilter {
        target "socket";
    }
    SkMsg {
        target "sk_msg" -> SkMsgVerdict;
    }
    SkSkb {
        target "sk_skb/stream_parser";
        target "sk_skb/stream_verdict";
    }
    SockOps {
        target "sockops" -> CgroupSockOps;
    }
    SchedCls {
        target "classifier";
    }
    CgroupSkb {
        target "cgroup_skb/ingress" -> CgroupInetIngress;
        target "cgroup_skb/egress" -> CgroupInetEgress;
        target "cgroup/skb";
    }
    CgroupSysctl {
        target "cgroup/sysctl" -> CgroupSysctl;
    }
    CgroupDevice {
        target "cgroup/dev" -> CgroupDevice;
    }
    CgroupSockopt {
        target "cgroup/getsockopt" -> CgroupGetsockopt;
        target "cgroup/setsockopt" -> CgroupSetsockopt;
    }
    CgroupSock {
        target "cgroup/sock" -> CgroupInetSockCreate;
        target "cgroup/post_bind4" -> CgroupInet4PostBind;
        target "cgroup/post_bind6" -> CgroupInet6PostBind;
        target "cgroup/sock_create" -> CgroupInetSockCreate;
        target "cgroup/sock_release" -> CgroupInetSockRelease;
    }
    CgroupSockAddr {
        target "cgroup/bind4" -> CgroupInet4Bind;
        target "cgroup/bind6" -> CgroupInet6Bind;
        target "cgroup/connect4" -> CgroupInet4Connect;
        target "cgroup/connect6" -> CgroupInet6Connect;
        target "cgroup/getpeername4" -> CgroupInet4Getpeername;
        target "cgroup/getpeername6" -> CgroupInet6Getpeername;
        target "cgroup/getsockname4" -> CgroupInet4Getsockname;
        target "cgroup/getsockname6" -> CgroupInet6Getsockname;
        target "cgroup/sendmsg4" -> CgroupUdp4Sendmsg;
        target "cgroup/sendmsg6" -> CgroupUdp6Sendmsg;
        target "cgroup/recvmsg4" -> CgroupUdp4Recvmsg;
        target "cgroup/recvmsg6" -> CgroupUdp6Recvmsg;
    }
    LircMode2 {
        target "lirc_mode2" -> LircMode2;
    }
    PerfEvent {
        target "perf_event";
    }
    RawTracepoint {
        target "raw_tp";
        target "raw_tracepoint";
    }
    Lsm {
        target "lsm" -> LsmMac as ATTACH_BTF;
        target "lsm.s" -> LsmMac as ATTACH_BTF + SLEEPABLE;
        target "lsm_cgroup" -> LsmCgroup as ATTACH_BTF;
    }
    FlowDissector {
        target "flow_dissector" -> FlowDissector;
    }
    Ext {
        target "freplace" as ATTACH_BTF;
    }
    SkLookup {
        target "sk_lookup" -> SkLookup;
    }
    SkReuseport {
        exact "sk_reuseport" -> SkReuseportSelect;
        target "sk_reuseport/migrate" -> SkReuseportSelectOrMigrate;
    }
}
