//! Section definitions of libbpf 7.2 (`section_defs`): program type and attach type by
//! section name (`SEC("xdp.frags/devmap")`).
//!
//! A definition matches its name, and where it allows that, its name followed by a slash
//! and the attach target. No two definitions match the same name; the table is sorted by
//! program type.

use super::{AttachType, LoadFlags, ProgramType};

/// Section definition (libbpf's `struct bpf_sec_def`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionDef {
    /// Section name, without an attach target.
    pub name: &'static str,
    /// True if a slash and an attach target may follow.
    pub allows_target: bool,
    /// Program type.
    pub kind: ProgramType,
    /// Expected attach type, if the kernel requires it at load time.
    pub attach: Option<AttachType>,
    /// Properties of the programs.
    pub flags: SectionFlags,
}

/// Properties of the programs of a section (libbpf's `enum sec_def_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SectionFlags(u8);

impl SectionFlags {
    /// No property.
    pub const NONE: SectionFlags = SectionFlags(0);
    /// Sleepable (`SEC_SLEEPABLE`).
    pub const SLEEPABLE: SectionFlags = SectionFlags(1);
    /// Attached by the BTF id of a kernel function or a function of another program,
    /// resolved at load time (`SEC_ATTACH_BTF`).
    pub const ATTACH_BTF: SectionFlags = SectionFlags(2);
    /// Support frames with fragments (`SEC_XDP_FRAGS`).
    pub const XDP_FRAGS: SectionFlags = SectionFlags(4);
    /// Attached to USDTs, by one uprobe-multi link if the kernel has those (`SEC_USDT`).
    pub const USDT: SectionFlags = SectionFlags(8);

    /// True if all of these are set.
    pub const fn has(self, other: SectionFlags) -> bool {
        self.0 & other.0 == other.0
    }

    const fn with(self, other: SectionFlags) -> SectionFlags {
        SectionFlags(self.0 | other.0)
    }

    /// Load flags that they imply.
    pub const fn load_flags(self) -> LoadFlags {
        let mut flags = LoadFlags(0);
        if self.has(SectionFlags::SLEEPABLE) {
            flags = flags.with(LoadFlags::SLEEPABLE);
        }
        if self.has(SectionFlags::XDP_FRAGS) {
            flags = flags.with(LoadFlags::XDP_HAS_FRAGS);
        }
        flags
    }
}

impl SectionDef {
    /// Definition that matches a section name. The name has no leading `?`, which disables
    /// autoload.
    pub fn find(section: &str) -> Option<&'static SectionDef> {
        SECTIONS.iter().find(|def| def.matches(section))
    }

    /// Attach target after the slash of a section name.
    pub fn target<'s>(&self, section: &'s str) -> Option<&'s str> {
        section
            .split_once('/')
            .map(|(_, rest)| rest)
            .filter(|_| self.allows_target)
    }

    fn matches(&self, section: &str) -> bool {
        // The lengths exclude nearly all definitions without a comparison of names.
        match section.as_bytes().get(self.name.len()) {
            None => section == self.name,
            Some(b'/') => self.allows_target && section.starts_with(self.name),
            Some(_) => false,
        }
    }
}

macro_rules! rules {
    ($($kind:ident { $($shape:ident $name:literal $(-> $attach:ident)? $(as $first:ident $(+ $more:ident)*)?;)+ })*) => {
        /// Every section definition.
        pub const SECTIONS: &[SectionDef] = &[$($(
            SectionDef {
                name: $name,
                allows_target: rules!(@$shape),
                kind: ProgramType::$kind,
                attach: rules!(@attach $($attach)?),
                flags: SectionFlags::NONE $(.with(SectionFlags::$first) $(.with(SectionFlags::$more))*)?,
            },
        )+)*];
    };
    (@exact) => { false };
    (@with_target) => { true };
    (@attach) => { None };
    (@attach $attach:ident) => { Some(AttachType::$attach) };
}

rules! {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_definitions_match_the_same_name() {
        for (at, rule) in SECTIONS.iter().enumerate() {
            let mut names = vec![rule.name.to_owned()];
            if rule.allows_target {
                names.push(format!("{}/x", rule.name));
            }
            for name in names {
                let takers = SECTIONS.iter().filter(|rule| rule.matches(&name)).count();
                assert_eq!(takers, 1, "rule {at}, {name}");
            }
        }
    }

    #[test]
    fn names_with_and_without_an_attach_target() {
        let kind = |name| SectionDef::find(name).map(|rule| (rule.kind, rule.attach));
        let probe = (ProgramType::Kprobe, None);
        assert_eq!(kind("kprobe"), Some(probe));
        assert_eq!(kind("kprobe/"), Some(probe));
        assert_eq!(kind("kprobe/do_exit+0x10"), Some(probe));
        assert_eq!(kind("kprobes"), None);
        assert_eq!(
            kind("xdp/devmap"),
            Some((ProgramType::Xdp, Some(AttachType::XdpDevmap)))
        );
        assert_eq!(kind("xdp/anything"), None);
        assert_eq!(kind("XDP"), None);
        assert_eq!(kind(""), None);
    }

    #[test]
    fn section_names_imply_load_flags() {
        let flags = |name| SectionDef::find(name).unwrap().flags.load_flags();
        assert_eq!(flags("fentry.s/foo"), LoadFlags::SLEEPABLE);
        assert_eq!(flags("xdp.frags/devmap"), LoadFlags::XDP_HAS_FRAGS);
        assert_eq!(flags("lsm/foo"), LoadFlags(0));
        let rule = SectionDef::find("tp_btf.s/sched_switch").unwrap();
        assert!(rule.flags.has(SectionFlags::ATTACH_BTF));
        assert_eq!(rule.target("tp_btf.s/a/b"), Some("a/b"));
        assert_eq!(rule.target("tp_btf.s"), None);
    }
}
