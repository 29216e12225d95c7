//! Section definitions of libbpf 0.8, the last release before 1.0, with its default mode: many of
//! them are prefixes (`SEC_SLOPPY_PFX`). Of several that match, the first counts.

sections! {
    SocketFilter {
        prefix "socket";
    }
    SkReuseport {
        prefix "sk_reuseport/migrate" -> SkReuseportSelectOrMigrate;
        prefix "sk_reuseport" -> SkReuseportSelect;
    }
    Kprobe {
        with_target "kprobe";
        with_target "uprobe";
        with_target "kretprobe";
        with_target "uretprobe";
        with_target "kprobe.multi" -> TraceKprobeMulti;
        with_target "kretprobe.multi" -> TraceKprobeMulti;
        with_target "usdt";
    }
    SchedCls {
        exact "tc";
        prefix "classifier";
    }
    SchedAct {
        prefix "action";
    }
    Tracepoint {
        with_target "tracepoint";
        with_target "tp";
    }
    RawTracepoint {
        with_target "raw_tracepoint";
        with_target "raw_tp";
    }
    RawTracepointWritable {
        with_target "raw_tracepoint.w";
        with_target "raw_tp.w";
    }
    Tracing {
        with_target "tp_btf" -> TraceRawTp as ATTACH_BTF;
        with_target "fentry" -> TraceFentry as ATTACH_BTF;
        with_target "fmod_ret" -> ModifyReturn as ATTACH_BTF;
        with_target "fexit" -> TraceFexit as ATTACH_BTF;
        with_target "fentry.s" -> TraceFentry as ATTACH_BTF + SLEEPABLE;
        with_target "fmod_ret.s" -> ModifyReturn as ATTACH_BTF + SLEEPABLE;
        with_target "fexit.s" -> TraceFexit as ATTACH_BTF + SLEEPABLE;
        with_target "iter" -> TraceIter as ATTACH_BTF;
        with_target "iter.s" -> TraceIter as ATTACH_BTF + SLEEPABLE;
    }
    Ext {
        with_target "freplace" as ATTACH_BTF;
    }
    Lsm {
        with_target "lsm" -> LsmMac as ATTACH_BTF;
        with_target "lsm.s" -> LsmMac as ATTACH_BTF + SLEEPABLE;
    }
    Syscall {
        exact "syscall" as SLEEPABLE;
    }
    Xdp {
        exact "xdp.frags/devmap" -> XdpDevmap as XDP_FRAGS;
        exact "xdp/devmap" -> XdpDevmap;
        before_slash "xdp_devmap" -> XdpDevmap;
        exact "xdp.frags/cpumap" -> XdpCpumap as XDP_FRAGS;
        exact "xdp/cpumap" -> XdpCpumap;
        before_slash "xdp_cpumap" -> XdpCpumap;
        exact "xdp.frags" -> Xdp as XDP_FRAGS;
        prefix "xdp" -> Xdp;
    }
    PerfEvent {
        prefix "perf_event";
    }
    LwtIn {
        prefix "lwt_in";
    }
    LwtOut {
        prefix "lwt_out";
    }
    LwtXmit {
        prefix "lwt_xmit";
    }
    LwtSeg6local {
        prefix "lwt_seg6local";
    }
    CgroupSkb {
        prefix "cgroup_skb/ingress" -> CgroupInetIngress;
        prefix "cgroup_skb/egress" -> CgroupInetEgress;
        prefix "cgroup/skb";
    }
    CgroupSock {
        prefix "cgroup/sock_create" -> CgroupInetSockCreate;
        prefix "cgroup/sock_release" -> CgroupInetSockRelease;
        prefix "cgroup/sock" -> CgroupInetSockCreate;
        prefix "cgroup/post_bind4" -> CgroupInet4PostBind;
        prefix "cgroup/post_bind6" -> CgroupInet6PostBind;
    }
    CgroupDevice {
        prefix "cgroup/dev" -> CgroupDevice;
    }
    SockOps {
        prefix "sockops" -> CgroupSockOps;
    }
    SkSkb {
        prefix "sk_skb/stream_parser" -> SkSkbStreamParser;
        prefix "sk_skb/stream_verdict" -> SkSkbStreamVerdict;
        prefix "sk_skb";
    }
    SkMsg {
        prefix "sk_msg" -> SkMsgVerdict;
    }
    LircMode2 {
        prefix "lirc_mode2" -> LircMode2;
    }
    FlowDissector {
        prefix "flow_dissector" -> FlowDissector;
    }
    CgroupSockAddr {
        prefix "cgroup/bind4" -> CgroupInet4Bind;
        prefix "cgroup/bind6" -> CgroupInet6Bind;
        prefix "cgroup/connect4" -> CgroupInet4Connect;
        prefix "cgroup/connect6" -> CgroupInet6Connect;
        prefix "cgroup/sendmsg4" -> CgroupUdp4Sendmsg;
        prefix "cgroup/sendmsg6" -> CgroupUdp6Sendmsg;
        prefix "cgroup/recvmsg4" -> CgroupUdp4Recvmsg;
        prefix "cgroup/recvmsg6" -> CgroupUdp6Recvmsg;
        prefix "cgroup/getpeername4" -> CgroupInet4Getpeername;
        prefix "cgroup/getpeername6" -> CgroupInet6Getpeername;
        prefix "cgroup/getsockname4" -> CgroupInet4Getsockname;
        prefix "cgroup/getsockname6" -> CgroupInet6Getsockname;
    }
    CgroupSysctl {
        prefix "cgroup/sysctl" -> CgroupSysctl;
    }
    CgroupSockopt {
        prefix "cgroup/getsockopt" -> CgroupGetsockopt;
        prefix "cgroup/setsockopt" -> CgroupSetsockopt;
    }
    StructOps {
        with_target "struct_ops";
    }
    SkLookup {
        prefix "sk_lookup" -> SkLookup;
    }
}
