//! What return values mean.

use std::borrow::Cow;

use spec::programs::ProgramType;

/// Meaning of a return value, and what becomes of the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketVerdict {
    /// Its name: Linux's where there is one, and the number itself for program types whose
    /// values mean nothing to Linux.
    pub name: Cow<'static, str>,
    /// How many bytes go on, from where the program's packet begins; `None` if the packet
    /// is dropped or kept back.
    pub kept: Option<usize>,
}

const XDP: &[(&str, bool)] = &[
    ("XDP_ABORTED", false),
    ("XDP_DROP", false),
    ("XDP_PASS", true),
    ("XDP_TX", true),
    ("XDP_REDIRECT", true),
];

const TC: &[(&str, bool)] = &[
    ("TC_ACT_OK", true),
    ("TC_ACT_RECLASSIFY", true),
    ("TC_ACT_SHOT", false),
    ("TC_ACT_PIPE", true),
    ("TC_ACT_STOLEN", false),
    ("TC_ACT_QUEUED", false),
    ("TC_ACT_REPEAT", true),
    ("TC_ACT_REDIRECT", true),
    ("TC_ACT_TRAP", false),
];

const CGROUP: &[(&str, bool)] = &[
    ("drop", false),
    ("pass", true),
    ("drop, congested", false),
    ("pass, congested", true),
];

const SK: &[(&str, bool)] = &[("SK_DROP", false), ("SK_PASS", true)];

const NETFILTER: &[(&str, bool)] = &[("NF_DROP", false), ("NF_ACCEPT", true)];

/// `enum bpf_ret_code`, for flow dissectors and light-weight tunnels.
const RET_CODES: &[(u32, &str, bool)] = &[
    (0, "BPF_OK", true),
    (2, "BPF_DROP", false),
    (7, "BPF_REDIRECT", true),
    (128, "BPF_LWT_REROUTE", true),
    (129, "BPF_FLOW_DISSECTOR_CONTINUE", true),
];

/// Meaning of the return value of a program of this type. Values that have no meaning drop
/// packets in XDP, and let them go on in tc, as in Linux.
pub fn verdict(kind: ProgramType, retval: u32) -> PacketVerdict {
    let (names, of_others) = match kind {
        ProgramType::SocketFilter => {
            let is_kept = retval > 0;
            return PacketVerdict {
                name: if is_kept { "keep" } else { "drop" }.into(),
                kept: is_kept.then_some(retval as usize),
            };
        }
        ProgramType::Xdp => (XDP, false),
        ProgramType::CgroupSkb => (CGROUP, false),
        ProgramType::SkLookup => (SK, false),
        ProgramType::Netfilter => (NETFILTER, false),
        ProgramType::FlowDissector
        | ProgramType::LwtIn
        | ProgramType::LwtOut
        | ProgramType::LwtXmit
        | ProgramType::LwtSeg6local => {
            let mut known = RET_CODES.iter();
            let known = known.find(|(value, ..)| *value == retval);
            return PacketVerdict {
                name: known.map_or_else(|| unknown(retval), |(_, name, _)| (*name).into()),
                kept: known.is_some_and(|known| known.2).then_some(usize::MAX),
            };
        }
        // Those behind the first three are not test-run.
        ProgramType::Syscall
        | ProgramType::RawTracepoint
        | ProgramType::RawTracepointWritable
        | ProgramType::Kprobe
        | ProgramType::Tracepoint
        | ProgramType::PerfEvent
        | ProgramType::CgroupSock
        | ProgramType::SockOps
        | ProgramType::SkSkb
        | ProgramType::CgroupDevice
        | ProgramType::SkMsg
        | ProgramType::CgroupSockAddr
        | ProgramType::LircMode2
        | ProgramType::SkReuseport
        | ProgramType::CgroupSysctl
        | ProgramType::CgroupSockopt
        | ProgramType::Tracing
        | ProgramType::StructOps
        | ProgramType::Ext
        | ProgramType::Lsm => {
            return PacketVerdict {
                name: (retval as i32).to_string().into(),
                kept: None,
            };
        }
        ProgramType::SchedCls | ProgramType::SchedAct if retval == u32::MAX => {
            return PacketVerdict {
                name: "TC_ACT_UNSPEC".into(),
                kept: Some(usize::MAX),
            };
        }
        ProgramType::SchedCls | ProgramType::SchedAct => (TC, true),
    };
    match names.get(retval as usize) {
        Some(&(name, is_kept)) => PacketVerdict {
            name: name.into(),
            kept: is_kept.then_some(usize::MAX),
        },
        None => PacketVerdict {
            name: unknown(retval),
            kept: of_others.then_some(usize::MAX),
        },
    }
}

/// The names that [`verdict`] has for a program type; none for types whose values are numbers.
pub fn verdict_names(kind: ProgramType) -> Vec<&'static str> {
    let of = |names: &[(&'static str, bool)]| names.iter().map(|(name, _)| *name).collect();
    match kind {
        ProgramType::SocketFilter => vec!["drop", "keep"],
        ProgramType::Xdp => of(XDP),
        ProgramType::CgroupSkb => of(CGROUP),
        ProgramType::SkLookup => of(SK),
        ProgramType::Netfilter => of(NETFILTER),
        ProgramType::FlowDissector
        | ProgramType::LwtIn
        | ProgramType::LwtOut
        | ProgramType::LwtXmit
        | ProgramType::LwtSeg6local => RET_CODES.iter().map(|(_, name, _)| *name).collect(),
        ProgramType::Syscall | ProgramType::RawTracepoint | ProgramType::RawTracepointWritable => {
            Vec::new()
        }
        _ => {
            let mut names: Vec<_> = of(TC);
            names.push("TC_ACT_UNSPEC");
            names
        }
    }
}

fn unknown(retval: u32) -> Cow<'static, str> {
    format!("unknown ({retval})").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_names() {
        let name = |kind, retval| verdict(kind, retval).name.into_owned();
        assert_eq!(name(ProgramType::Xdp, 1), "XDP_DROP");
        assert_eq!(name(ProgramType::Xdp, 5), "unknown (5)");
        assert_eq!(name(ProgramType::SchedCls, u32::MAX), "TC_ACT_UNSPEC");
        assert_eq!(name(ProgramType::SchedCls, 2), "TC_ACT_SHOT");
        assert_eq!(name(ProgramType::Netfilter, 1), "NF_ACCEPT");
        assert_eq!(name(ProgramType::SkLookup, 0), "SK_DROP");
        assert_eq!(name(ProgramType::LwtXmit, 128), "BPF_LWT_REROUTE");
        assert_eq!(name(ProgramType::FlowDissector, 3), "unknown (3)");
        assert_eq!(name(ProgramType::Syscall, u32::MAX), "-1");
        assert_eq!(verdict(ProgramType::SocketFilter, 9).kept, Some(9));
        for kind in [
            ProgramType::Xdp,
            ProgramType::SchedCls,
            ProgramType::CgroupSkb,
        ] {
            let names = verdict_names(kind);
            assert!(
                names.contains(&&*name(kind, 1)) && names.len() > 3,
                "{names:?}"
            );
        }
        assert_eq!(verdict(ProgramType::CgroupSkb, 2).kept, None);
    }
}
