//! Section definitions of libbpf 7.2 (`section_defs`), of libbpf 0.8, the last release before 1.0, with its
//! default mode (`SEC_SLOPPY_PFX`), and of cilium/ebpf 0.22, which took libbpf's names: a row for each
//! definition, with the names that each of the three takes by it. Where names are prefixes, the first
//! definition that matches counts: `xdp.frags` before `xdp`. Of libbpf 7.2 no two match the same name.

use super::{SectionDef, SectionPattern};

/// A definition with the names that each loader takes by it; `None` where a loader lacks it.
struct Row {
    def: SectionDef,
    patterns: [Option<SectionPattern>; 3],
}

macro_rules! rows {
    ($($kind:ident {
        $($new:tt $old:tt $cilium:tt $name:literal
            $(-> $attach:ident)? $(as $first:ident $(+ $more:ident)*)?;)+
    })*) => {
        const ROWS: &[Row] = &[$($(
            Row {
                def: sections!(@def $kind exact $name [$($attach)?] [$($first $($more)*)?]),
                patterns: [rows!(@ $new), rows!(@ $old), rows!(@ $cilium)],
            },
        )+)*];
    };
    (@ -) => { None };
    (@ $shape:tt) => { Some(sections!(@$shape)) };
}

const fn count(loader: usize) -> usize {
    let (mut found, mut at) = (0, 0);
    while at < ROWS.len() {
        found += ROWS[at].patterns[loader].is_some() as usize;
        at += 1;
    }
    found
}

const fn table<const N: usize>(loader: usize) -> [SectionDef; N] {
    let (mut defs, mut found, mut at) = ([ROWS[0].def; N], 0, 0);
    while at < ROWS.len() {
        if let Some(pattern) = ROWS[at].patterns[loader] {
            defs[found] = ROWS[at].def;
            defs[found].pattern = pattern;
            found += 1;
        }
        at += 1;
    }
    defs
}

/// The definitions of libbpf 7.2.
pub(crate) const SECTIONS: &[SectionDef] = &table::<{ count(0) }>(0);
/// The definitions of libbpf 0.8.
pub(crate) const OF_0_8: &[SectionDef] = &table::<{ count(1) }>(1);
/// The definitions of cilium/ebpf 0.22.
pub(crate) const OF_CILIUM_EBPF: &[SectionDef] = &table::<{ count(2) }>(2);

rows! {
    // libbpf 7.2, libbpf 0.8, cilium/ebpf; name, attach type, properties
    SocketFilter {
        exact  prefix prefix "socket";
    }
    Kprobe {
        target target target "kprobe";
        target target target "uprobe";
        target -      target "uprobe.s" as SLEEPABLE;
        target target target "kretprobe";
        target target target "uretprobe";
        target -      target "uretprobe.s" as SLEEPABLE;
        target target target "kprobe.multi" -> TraceKprobeMulti;
        target target target "kretprobe.multi" -> TraceKprobeMulti;
        target -      target "kprobe.session" -> TraceKprobeSession;
        target -      target "uprobe.multi" -> TraceUprobeMulti;
        target -      target "uretprobe.multi" -> TraceUprobeMulti;
        target -      target "uprobe.session" -> TraceUprobeSession;
        target -      target "uprobe.multi.s" -> TraceUprobeMulti as SLEEPABLE;
        target -      target "uretprobe.multi.s" -> TraceUprobeMulti as SLEEPABLE;
        target -      target "uprobe.session.s" -> TraceUprobeSession as SLEEPABLE;
        target -      target "ksyscall";
        target -      target "kretsyscall";
        target -      target "usdt" as USDT;
        target -      target "usdt.s" as USDT + SLEEPABLE;
        -      target -      "usdt";
    }
    SchedCls {
        exact  -      prefix "tc/ingress" -> TcxIngress;
        exact  -      prefix "tc/egress" -> TcxEgress;
        exact  -      prefix "tcx/ingress" -> TcxIngress;
        exact  -      prefix "tcx/egress" -> TcxEgress;
        exact  exact  prefix "tc";
        exact  prefix prefix "classifier";
        exact  -      prefix "netkit/primary" -> NetkitPrimary;
        exact  -      prefix "netkit/peer" -> NetkitPeer;
    }
    SchedAct {
        exact  prefix prefix "action";
    }
    Tracepoint {
        target target target "tracepoint";
        target target target "tp";
        target -      -      "tracepoint.s" as SLEEPABLE;
        target -      -      "tp.s" as SLEEPABLE;
    }
    Xdp {
        exact  exact  prefix "xdp.frags/devmap" -> XdpDevmap as XDP_FRAGS;
        exact  exact  prefix "xdp/devmap" -> XdpDevmap;
        -      slash  -      "xdp_devmap" -> XdpDevmap;
        exact  exact  prefix "xdp.frags/cpumap" -> XdpCpumap as XDP_FRAGS;
        exact  exact  prefix "xdp/cpumap" -> XdpCpumap;
        -      slash  -      "xdp_cpumap" -> XdpCpumap;
        exact  exact  prefix "xdp.frags" -> Xdp as XDP_FRAGS;
        exact  prefix prefix "xdp" -> Xdp;
    }
    PerfEvent {
        exact  prefix prefix "perf_event";
    }
    CgroupSkb {
        exact  prefix prefix "cgroup_skb/ingress" -> CgroupInetIngress;
        exact  prefix prefix "cgroup_skb/egress" -> CgroupInetEgress;
        exact  prefix prefix "cgroup/skb";
    }
    CgroupSock {
        exact  prefix prefix "cgroup/sock_create" -> CgroupInetSockCreate;
        exact  prefix prefix "cgroup/sock_release" -> CgroupInetSockRelease;
        exact  prefix prefix "cgroup/sock" -> CgroupInetSockCreate;
        exact  prefix prefix "cgroup/post_bind4" -> CgroupInet4PostBind;
        exact  prefix prefix "cgroup/post_bind6" -> CgroupInet6PostBind;
    }
    LwtIn {
        exact  prefix prefix "lwt_in";
    }
    LwtOut {
        exact  prefix prefix "lwt_out";
    }
    LwtXmit {
        exact  prefix prefix "lwt_xmit";
    }
    SockOps {
        exact  prefix prefix "sockops" -> CgroupSockOps;
    }
    SkSkb {
        exact  prefix prefix "sk_skb/stream_parser" -> SkSkbStreamParser;
        exact  prefix prefix "sk_skb/stream_verdict" -> SkSkbStreamVerdict;
        exact  -      prefix "sk_skb/verdict" -> SkSkbVerdict;
        exact  prefix prefix "sk_skb";
    }
    CgroupDevice {
        exact  prefix prefix "cgroup/dev" -> CgroupDevice;
    }
    SkMsg {
        exact  prefix prefix "sk_msg" -> SkMsgVerdict;
    }
    RawTracepoint {
        target target target "raw_tracepoint";
        target target target "raw_tp";
        target -      -      "raw_tracepoint.s" as SLEEPABLE;
        target -      -      "raw_tp.s" as SLEEPABLE;
    }
    CgroupSockAddr {
        exact  prefix prefix "cgroup/bind4" -> CgroupInet4Bind;
        exact  prefix prefix "cgroup/bind6" -> CgroupInet6Bind;
        exact  prefix prefix "cgroup/connect4" -> CgroupInet4Connect;
        exact  prefix prefix "cgroup/connect6" -> CgroupInet6Connect;
        exact  -      prefix "cgroup/connect_unix" -> CgroupUnixConnect;
        exact  prefix prefix "cgroup/sendmsg4" -> CgroupUdp4Sendmsg;
        exact  prefix prefix "cgroup/sendmsg6" -> CgroupUdp6Sendmsg;
        exact  -      prefix "cgroup/sendmsg_unix" -> CgroupUnixSendmsg;
        exact  prefix prefix "cgroup/recvmsg4" -> CgroupUdp4Recvmsg;
        exact  prefix prefix "cgroup/recvmsg6" -> CgroupUdp6Recvmsg;
        exact  -      prefix "cgroup/recvmsg_unix" -> CgroupUnixRecvmsg;
        exact  prefix prefix "cgroup/getpeername4" -> CgroupInet4Getpeername;
        exact  prefix prefix "cgroup/getpeername6" -> CgroupInet6Getpeername;
        exact  -      prefix "cgroup/getpeername_unix" -> CgroupUnixGetpeername;
        exact  prefix prefix "cgroup/getsockname4" -> CgroupInet4Getsockname;
        exact  prefix prefix "cgroup/getsockname6" -> CgroupInet6Getsockname;
        exact  -      prefix "cgroup/getsockname_unix" -> CgroupUnixGetsockname;
    }
    LwtSeg6local {
        exact  prefix prefix "lwt_seg6local";
    }
    LircMode2 {
        exact  prefix prefix "lirc_mode2" -> LircMode2;
    }
    SkReuseport {
        exact  prefix prefix "sk_reuseport/migrate" -> SkReuseportSelectOrMigrate;
        exact  prefix prefix "sk_reuseport" -> SkReuseportSelect;
    }
    FlowDissector {
        exact  prefix prefix "flow_dissector" -> FlowDissector;
    }
    CgroupSysctl {
        exact  prefix prefix "cgroup/sysctl" -> CgroupSysctl;
    }
    RawTracepointWritable {
        target target target "raw_tracepoint.w";
        target target target "raw_tp.w";
    }
    CgroupSockopt {
        exact  prefix prefix "cgroup/getsockopt" -> CgroupGetsockopt;
        exact  prefix prefix "cgroup/setsockopt" -> CgroupSetsockopt;
    }
    Tracing {
        target target target "tp_btf" -> TraceRawTp as ATTACH_BTF;
        target -      -      "tp_btf.s" -> TraceRawTp as ATTACH_BTF + SLEEPABLE;
        target target target "fentry" -> TraceFentry as ATTACH_BTF;
        target target target "fmod_ret" -> ModifyReturn as ATTACH_BTF;
        target target target "fexit" -> TraceFexit as ATTACH_BTF;
        target target target "fentry.s" -> TraceFentry as ATTACH_BTF + SLEEPABLE;
        target target target "fmod_ret.s" -> ModifyReturn as ATTACH_BTF + SLEEPABLE;
        target target target "fexit.s" -> TraceFexit as ATTACH_BTF + SLEEPABLE;
        target -      target "fsession" -> TraceFsession as ATTACH_BTF;
        target -      target "fsession.s" -> TraceFsession as ATTACH_BTF + SLEEPABLE;
        target -      -      "fsession.multi" -> TraceFsessionMulti;
        target -      -      "fsession.multi.s" -> TraceFsessionMulti as SLEEPABLE;
        target -      -      "fentry.multi" -> TraceFentryMulti;
        target -      -      "fexit.multi" -> TraceFexitMulti;
        target -      -      "fentry.multi.s" -> TraceFentryMulti as SLEEPABLE;
        target -      -      "fexit.multi.s" -> TraceFexitMulti as SLEEPABLE;
        target target target "iter" -> TraceIter as ATTACH_BTF;
        target target target "iter.s" -> TraceIter as ATTACH_BTF + SLEEPABLE;
    }
    StructOps {
        target target target "struct_ops";
        target -      target "struct_ops.s" as SLEEPABLE;
    }
    Ext {
        target target target "freplace" as ATTACH_BTF;
    }
    Lsm {
        target target target "lsm" -> LsmMac as ATTACH_BTF;
        target target target "lsm.s" -> LsmMac as ATTACH_BTF + SLEEPABLE;
        target -      target "lsm_cgroup" -> LsmCgroup as ATTACH_BTF;
    }
    SkLookup {
        exact  prefix prefix "sk_lookup" -> SkLookup;
    }
    Syscall {
        exact  exact  prefix "syscall" as SLEEPABLE;
    }
    Netfilter {
        exact  -      prefix "netfilter" -> Netfilter;
    }
}
