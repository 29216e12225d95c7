//! What the name of a section says about the programs in it, as libbpf 7.2 reads
//! names (`SEC("xdp.frags/devmap")`).
//!
//! A rule takes its own name, or that name and anything behind a slash: the rest
//! says what to attach to, and whoever attaches reads it. No two rules take the
//! same name, so their order means nothing; they stand by program type.

use super::{AttachType, LoadFlags, ProgramType};

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRule {
    /// The name, or what it starts with.
    pub name: &'static str,
    /// May a slash and more follow?
    pub takes_rest: bool,
    /// The type of the programs.
    pub kind: ProgramType,
    /// Where they attach, if that must be said when they are loaded.
    pub attach: Option<AttachType>,
    /// What else they are.
    pub traits: Traits,
}

/// What else programs of a section are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Traits(u8);

impl Traits {
    /// Nothing special.
    pub const NONE: Traits = Traits(0);
    /// They may sleep.
    pub const SLEEPABLE: Traits = Traits(1);
    /// What they attach to is a type of the kernel, or a function of another
    /// program, which must be found before they are loaded.
    pub const BY_TYPE: Traits = Traits(2);
    /// They can work on frames in several pieces.
    pub const FRAGS: Traits = Traits(4);
    /// They attach to static probes of user space: through one link for many
    /// places where the kernel has that.
    pub const USDT: Traits = Traits(8);

    /// Are these among them?
    pub const fn has(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }

    const fn with(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// What is asked of the kernel for them when a program is loaded.
    pub const fn load_flags(self) -> LoadFlags {
        let mut flags = LoadFlags(0);
        if self.has(Traits::SLEEPABLE) {
            flags = flags.with(LoadFlags::SLEEPABLE);
        }
        if self.has(Traits::FRAGS) {
            flags = flags.with(LoadFlags::XDP_HAS_FRAGS);
        }
        flags
    }
}

impl SectionRule {
    /// The rule for a section of that name. A question mark before it (do not
    /// load unless asked to) is no part of the name.
    pub fn find(section: &str) -> Option<&'static SectionRule> {
        SECTIONS.iter().find(|rule| rule.takes(section))
    }

    /// What follows the slash in the name of a section with this rule.
    pub fn rest<'s>(&self, section: &'s str) -> Option<&'s str> {
        section
            .split_once('/')
            .map(|(_, rest)| rest)
            .filter(|_| self.takes_rest)
    }

    fn takes(&self, section: &str) -> bool {
        // Lengths decide for nearly all rules, without a look at the names.
        match section.as_bytes().get(self.name.len()) {
            None => section == self.name,
            Some(b'/') => self.takes_rest && section.starts_with(self.name),
            Some(_) => false,
        }
    }
}

macro_rules! rules {
    ($($kind:ident { $($shape:ident $name:literal $(-> $attach:ident)? $(as $first:ident $(+ $more:ident)*)?;)+ })*) => {
        /// Every rule.
        pub const SECTIONS: &[SectionRule] = &[$($(
            SectionRule {
                name: $name,
                takes_rest: rules!(@$shape),
                kind: ProgramType::$kind,
                attach: rules!(@attach $($attach)?),
                traits: Traits::NONE $(.with(Traits::$first) $(.with(Traits::$more))*)?,
            },
        )+)*];
    };
    (@exact) => { false };
    (@with_rest) => { true };
    (@attach) => { None };
    (@attach $attach:ident) => { Some(AttachType::$attach) };
}

rules! {
    SocketFilter {
        exact "socket";
    }
    Kprobe {
        with_rest "kprobe";
        with_rest "uprobe";
        with_rest "uprobe.s" as SLEEPABLE;
        with_rest "kretprobe";
        with_rest "uretprobe";
        with_rest "uretprobe.s" as SLEEPABLE;
        with_rest "kprobe.multi" -> TraceKprobeMulti;
        with_rest "kretprobe.multi" -> TraceKprobeMulti;
        with_rest "kprobe.session" -> TraceKprobeSession;
        with_rest "uprobe.multi" -> TraceUprobeMulti;
        with_rest "uretprobe.multi" -> TraceUprobeMulti;
        with_rest "uprobe.session" -> TraceUprobeSession;
        with_rest "uprobe.multi.s" -> TraceUprobeMulti as SLEEPABLE;
        with_rest "uretprobe.multi.s" -> TraceUprobeMulti as SLEEPABLE;
        with_rest "uprobe.session.s" -> TraceUprobeSession as SLEEPABLE;
        with_rest "ksyscall";
        with_rest "kretsyscall";
        with_rest "usdt" as USDT;
        with_rest "usdt.s" as USDT + SLEEPABLE;
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
        with_rest "tracepoint";
        with_rest "tp";
        with_rest "tracepoint.s" as SLEEPABLE;
        with_rest "tp.s" as SLEEPABLE;
    }
    Xdp {
        exact "xdp.frags/devmap" -> XdpDevmap as FRAGS;
        exact "xdp/devmap" -> XdpDevmap;
        exact "xdp.frags/cpumap" -> XdpCpumap as FRAGS;
        exact "xdp/cpumap" -> XdpCpumap;
        exact "xdp.frags" -> Xdp as FRAGS;
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
        with_rest "raw_tracepoint";
        with_rest "raw_tp";
        with_rest "raw_tracepoint.s" as SLEEPABLE;
        with_rest "raw_tp.s" as SLEEPABLE;
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
        with_rest "raw_tracepoint.w";
        with_rest "raw_tp.w";
    }
    CgroupSockopt {
        exact "cgroup/getsockopt" -> CgroupGetsockopt;
        exact "cgroup/setsockopt" -> CgroupSetsockopt;
    }
    Tracing {
        with_rest "tp_btf" -> TraceRawTp as BY_TYPE;
        with_rest "tp_btf.s" -> TraceRawTp as BY_TYPE + SLEEPABLE;
        with_rest "fentry" -> TraceFentry as BY_TYPE;
        with_rest "fmod_ret" -> ModifyReturn as BY_TYPE;
        with_rest "fexit" -> TraceFexit as BY_TYPE;
        with_rest "fentry.s" -> TraceFentry as BY_TYPE + SLEEPABLE;
        with_rest "fmod_ret.s" -> ModifyReturn as BY_TYPE + SLEEPABLE;
        with_rest "fexit.s" -> TraceFexit as BY_TYPE + SLEEPABLE;
        with_rest "fsession" -> TraceFsession as BY_TYPE;
        with_rest "fsession.s" -> TraceFsession as BY_TYPE + SLEEPABLE;
        with_rest "fsession.multi" -> TraceFsessionMulti;
        with_rest "fsession.multi.s" -> TraceFsessionMulti as SLEEPABLE;
        with_rest "fentry.multi" -> TraceFentryMulti;
        with_rest "fexit.multi" -> TraceFexitMulti;
        with_rest "fentry.multi.s" -> TraceFentryMulti as SLEEPABLE;
        with_rest "fexit.multi.s" -> TraceFexitMulti as SLEEPABLE;
        with_rest "iter" -> TraceIter as BY_TYPE;
        with_rest "iter.s" -> TraceIter as BY_TYPE + SLEEPABLE;
    }
    StructOps {
        with_rest "struct_ops";
        with_rest "struct_ops.s" as SLEEPABLE;
    }
    Ext {
        with_rest "freplace" as BY_TYPE;
    }
    Lsm {
        with_rest "lsm" -> LsmMac as BY_TYPE;
        with_rest "lsm.s" -> LsmMac as BY_TYPE + SLEEPABLE;
        with_rest "lsm_cgroup" -> LsmCgroup as BY_TYPE;
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
    fn no_two_rules_take_the_same_name() {
        for (at, rule) in SECTIONS.iter().enumerate() {
            let mut names = vec![rule.name.to_owned()];
            if rule.takes_rest {
                names.push(format!("{}/x", rule.name));
            }
            for name in names {
                let takers = SECTIONS.iter().filter(|rule| rule.takes(&name)).count();
                assert_eq!(takers, 1, "rule {at}, {name}");
            }
        }
    }

    #[test]
    fn names_with_and_without_a_rest() {
        let kind = |name| SectionRule::find(name).map(|rule| (rule.kind, rule.attach));
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
    fn what_a_name_asks_of_the_kernel() {
        let flags = |name| SectionRule::find(name).unwrap().traits.load_flags();
        assert_eq!(flags("fentry.s/foo"), LoadFlags::SLEEPABLE);
        assert_eq!(flags("xdp.frags/devmap"), LoadFlags::XDP_HAS_FRAGS);
        assert_eq!(flags("lsm/foo"), LoadFlags(0));
        let rule = SectionRule::find("tp_btf.s/sched_switch").unwrap();
        assert!(rule.traits.has(Traits::BY_TYPE));
        assert_eq!(rule.rest("tp_btf.s/a/b"), Some("a/b"));
        assert_eq!(rule.rest("tp_btf.s"), None);
    }
}
