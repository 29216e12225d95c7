//! Section definitions of libbpf 7.2 (`section_defs`). No two definitions match the same name; the
//! table is sorted by program type.

sections! {
    SocketFilter {
        exact "socket";
    }
    Kprobe {
        with_target "kprobe";
        with_target "uprobe";
        with_target "uprobe.s" as SLEEPABLE;
        with_target "kretprobe";
        with_target "uretprobe";
        with_target "uretprobe.s" as SLEEPABLE;
        with_target "kprobe.multi" -> TraceKprobeMulti;
        with_target "kretprobe.multi" -> TraceKprobeMulti;
        with_target "kprobe.session" -> TraceKprobeSession;
        with_target "uprobe.multi" -> TraceUprobeMulti;
        with_target "uretprobe.multi" -> TraceUprobeMulti;
        with_target "uprobe.session" -> TraceUprobeSession;
        with_target "uprobe.multi.s" -> TraceUprobeMulti as SLEEPABLE;
        with_target "uretprobe.multi.s" -> TraceUprobeMulti as SLEEPABLE;
        with_target "uprobe.session.s" -> TraceUprobeSession as SLEEPABLE;
        with_target "ksyscall";
        with_target "kretsyscall";
        with_target "usdt" as USDT;
        with_target "usdt.s" as USDT + SLEEPABLE;
    }
    SchedCls {
        exact "tc/ingress" -> TcxIngress;
        exact "tc/egress" -> TcxEgress;
        exact "tcx/ingress" -> TcxIngress;
        exact "tcx/egress" -> TcxEgress;
        exact "tc";
        exact "classifier";
        exact "netkit/primary" -> NetkitPrimary;
        exact "netkit/peer" -> NetkitPeer;
    }
    SchedAct {
        exact "action";
    }
    Tracepoint {
        with_target "tracepoint";
        with_target "tp";
        with_target "tracepoint.s" as SLEEPABLE;
        with_target "tp.s" as SLEEPABLE;
    }
    Xdp {
        exact "xdp.frags/devmap" -> XdpDevmap as XDP_FRAGS;
        exact "xdp/devmap" -> XdpDevmap;
        exact "xdp.frags/cpumap" -> XdpCpumap as XDP_FRAGS;
        exact "xdp/cpumap" -> XdpCpumap;
        exact "xdp.frags" -> Xdp as XDP_FRAGS;
        exact "xdp" -> Xdp;
    }
    PerfEvent {
        exact "perf_event";
    }
    CgroupSkb {
        exact "cgroup_skb/ingress" -> CgroupInetIngress;
        exact "cgroup_skb/egress" -> CgroupInetEgress;
        exact "cgroup/skb";
    }
    CgroupSock {
        exact "cgroup/sock_create" -> CgroupInetSockCreate;
        exact "cgroup/sock_release" -> CgroupInetSockRelease;
        exact "cgroup/sock" -> CgroupInetSockCreate;
        exact "cgroup/post_bind4" -> CgroupInet4PostBind;
        exact "cgroup/post_bind6" -> CgroupInet6PostBind;
    }
    LwtIn {
        exact "lwt_in";
    }
    LwtOut {
        exact "lwt_out";
    }
    LwtXmit {
        exact "lwt_xmit";
    }
    SockOps {
        exact "sockops" -> CgroupSockOps;
    }
    SkSkb {
        exact "sk_skb/stream_parser" -> SkSkbStreamParser;
        exact "sk_skb/stream_verdict" -> SkSkbStreamVerdict;
        exact "sk_skb/verdict" -> SkSkbVerdict;
        exact "sk_skb";
    }
    CgroupDevice {
        exact "cgroup/dev" -> CgroupDevice;
    }
    SkMsg {
        exact "sk_msg" -> SkMsgVerdict;
    }
    RawTracepoint {
        with_target "raw_tracepoint";
        with_target "raw_tp";
        with_target "raw_tracepoint.s" as SLEEPABLE;
        with_target "raw_tp.s" as SLEEPABLE;
    }
    CgroupSockAddr {
        exact "cgroup/bind4" -> CgroupInet4Bind;
        exact "cgroup/bind6" -> CgroupInet6Bind;
        exact "cgroup/connect4" -> CgroupInet4Connect;
        exact "cgroup/connect6" -> CgroupInet6Connect;
        exact "cgroup/connect_unix" -> CgroupUnixConnect;
        exact "cgroup/sendmsg4" -> CgroupUdp4Sendmsg;
        exact "cgroup/sendmsg6" -> CgroupUdp6Sendmsg;
        exact "cgroup/sendmsg_unix" -> CgroupUnixSendmsg;
        exact "cgroup/recvmsg4" -> CgroupUdp4Recvmsg;
        exact "cgroup/recvmsg6" -> CgroupUdp6Recvmsg;
        exact "cgroup/recvmsg_unix" -> CgroupUnixRecvmsg;
        exact "cgroup/getpeername4" -> CgroupInet4Getpeername;
        exact "cgroup/getpeername6" -> CgroupInet6Getpeername;
        exact "cgroup/getpeername_unix" -> CgroupUnixGetpeername;
        exact "cgroup/getsockname4" -> CgroupInet4Getsockname;
        exact "cgroup/getsockname6" -> CgroupInet6Getsockname;
        exact "cgroup/getsockname_unix" -> CgroupUnixGetsockname;
    }
    LwtSeg6local {
        exact "lwt_seg6local";
    }
    LircMode2 {
        exact "lirc_mode2" -> LircMode2;
    }
    SkReuseport {
        exact "sk_reuseport/migrate" -> SkReuseportSelectOrMigrate;
        exact "sk_reuseport" -> SkReuseportSelect;
    }
    FlowDissector {
        exact "flow_dissector" -> FlowDissector;
    }
    CgroupSysctl {
        exact "cgroup/sysctl" -> CgroupSysctl;
    }
    RawTracepointWritable {
        with_target "raw_tracepoint.w";
        with_target "raw_tp.w";
    }
    CgroupSockopt {
        exact "cgroup/getsockopt" -> CgroupGetsockopt;
        exact "cgroup/setsockopt" -> CgroupSetsockopt;
    }
    Tracing {
        with_target "tp_btf" -> TraceRawTp as ATTACH_BTF;
        with_target "tp_btf.s" -> TraceRawTp as ATTACH_BTF + SLEEPABLE;
        with_target "fentry" -> TraceFentry as ATTACH_BTF;
        with_target "fmod_ret" -> ModifyReturn as ATTACH_BTF;
        with_target "fexit" -> TraceFexit as ATTACH_BTF;
        with_target "fentry.s" -> TraceFentry as ATTACH_BTF + SLEEPABLE;
        with_target "fmod_ret.s" -> ModifyReturn as ATTACH_BTF + SLEEPABLE;
        with_target "fexit.s" -> TraceFexit as ATTACH_BTF + SLEEPABLE;
        with_target "fsession" -> TraceFsession as ATTACH_BTF;
        with_target "fsession.s" -> TraceFsession as ATTACH_BTF + SLEEPABLE;
        with_target "fsession.multi" -> TraceFsessionMulti;
        with_target "fsession.multi.s" -> TraceFsessionMulti as SLEEPABLE;
        with_target "fentry.multi" -> TraceFentryMulti;
        with_target "fexit.multi" -> TraceFexitMulti;
        with_target "fentry.multi.s" -> TraceFentryMulti as SLEEPABLE;
        with_target "fexit.multi.s" -> TraceFexitMulti as SLEEPABLE;
        with_target "iter" -> TraceIter as ATTACH_BTF;
        with_target "iter.s" -> TraceIter as ATTACH_BTF + SLEEPABLE;
    }
    StructOps {
        with_target "struct_ops";
        with_target "struct_ops.s" as SLEEPABLE;
    }
    Ext {
        with_target "freplace" as ATTACH_BTF;
    }
    Lsm {
        with_target "lsm" -> LsmMac as ATTACH_BTF;
        with_target "lsm.s" -> LsmMac as ATTACH_BTF + SLEEPABLE;
        with_target "lsm_cgroup" -> LsmCgroup as ATTACH_BTF;
    }
    SkLookup {
        exact "sk_lookup" -> SkLookup;
    }
    Syscall {
        exact "syscall" as SLEEPABLE;
    }
    Netfilter {
        exact "netfilter" -> Netfilter;
    }
}
