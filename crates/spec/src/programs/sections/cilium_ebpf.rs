//! Section definitions of cilium/ebpf 0.22. A name without an attach target is a prefix, so that the
//! order counts: `xdp.frags` before `xdp`.

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
        prefix "tc/ingress" -> TcxIngress;
        prefix "tc/egress" -> TcxEgress;
        prefix "tcx/ingress" -> TcxIngress;
        prefix "tcx/egress" -> TcxEgress;
        prefix "tc";
        prefix "classifier";
        prefix "netkit/primary" -> NetkitPrimary;
        prefix "netkit/peer" -> NetkitPeer;
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
        with_target "fsession" -> TraceFsession as ATTACH_BTF;
        with_target "fsession.s" -> TraceFsession as ATTACH_BTF + SLEEPABLE;
        with_target "iter" -> TraceIter as ATTACH_BTF;
        with_target "iter.s" -> TraceIter as ATTACH_BTF + SLEEPABLE;
    }
    Ext {
        with_target "freplace" as ATTACH_BTF;
    }
    Lsm {
        with_target "lsm" -> LsmMac as ATTACH_BTF;
        with_target "lsm.s" -> LsmMac as ATTACH_BTF + SLEEPABLE;
        with_target "lsm_cgroup" -> LsmCgroup as ATTACH_BTF;
    }
    Syscall {
        prefix "syscall" as SLEEPABLE;
    }
    Xdp {
        prefix "xdp.frags/devmap" -> XdpDevmap as XDP_FRAGS;
        prefix "xdp/devmap" -> XdpDevmap;
        prefix "xdp.frags/cpumap" -> XdpCpumap as XDP_FRAGS;
        prefix "xdp/cpumap" -> XdpCpumap;
        prefix "xdp.frags" -> Xdp as XDP_FRAGS;
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
    SockOps {
        prefix "sockops" -> CgroupSockOps;
    }
    SkSkb {
        prefix "sk_skb/stream_parser" -> SkSkbStreamParser;
        prefix "sk_skb/stream_verdict" -> SkSkbStreamVerdict;
        prefix "sk_skb/verdict" -> SkSkbVerdict;
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
    CgroupSockAddr {
        prefix "cgroup/bind4" -> CgroupInet4Bind;
        prefix "cgroup/bind6" -> CgroupInet6Bind;
        prefix "cgroup/connect4" -> CgroupInet4Connect;
        prefix "cgroup/connect6" -> CgroupInet6Connect;
        prefix "cgroup/connect_unix" -> CgroupUnixConnect;
        prefix "cgroup/sendmsg4" -> CgroupUdp4Sendmsg;
        prefix "cgroup/sendmsg6" -> CgroupUdp6Sendmsg;
        prefix "cgroup/sendmsg_unix" -> CgroupUnixSendmsg;
        prefix "cgroup/recvmsg4" -> CgroupUdp4Recvmsg;
        prefix "cgroup/recvmsg6" -> CgroupUdp6Recvmsg;
        prefix "cgroup/recvmsg_unix" -> CgroupUnixRecvmsg;
        prefix "cgroup/getpeername4" -> CgroupInet4Getpeername;
        prefix "cgroup/getpeername6" -> CgroupInet6Getpeername;
        prefix "cgroup/getpeername_unix" -> CgroupUnixGetpeername;
        prefix "cgroup/getsockname4" -> CgroupInet4Getsockname;
        prefix "cgroup/getsockname6" -> CgroupInet6Getsockname;
        prefix "cgroup/getsockname_unix" -> CgroupUnixGetsockname;
    }
    CgroupSysctl {
        prefix "cgroup/sysctl" -> CgroupSysctl;
    }
    CgroupSockopt {
        prefix "cgroup/getsockopt" -> CgroupGetsockopt;
        prefix "cgroup/setsockopt" -> CgroupSetsockopt;
    }
    CgroupDevice {
        prefix "cgroup/dev" -> CgroupDevice;
    }
    StructOps {
        with_target "struct_ops";
        with_target "struct_ops.s" as SLEEPABLE;
    }
    SkLookup {
        prefix "sk_lookup" -> SkLookup;
    }
    Netfilter {
        prefix "netfilter" -> Netfilter;
    }
}
