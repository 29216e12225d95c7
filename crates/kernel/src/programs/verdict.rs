//! Meaning of return values by program type.

use std::borrow::Cow;

use spec::programs::{ProgramType, Returns};

/// Meaning of a return value, and what becomes of the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketVerdict {
    /// Its name: Linux's where there is one, and the number itself for program types whose
    /// values mean nothing to Linux.
    pub name: Cow<'static, str>,
    /// Number of bytes that go on, from the start of the program's packet; `None` if the packet
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

/// Decoding of a program type's return values.
enum Values {
    /// Numbers in these tables, which begin at 0; others drop packets, or let them go on.
    Table(&'static [(&'static str, bool)], Others),
    /// `enum bpf_ret_code`.
    RetCodes,
    /// Bytes of the packet that are kept.
    Length,
    /// They mean nothing to Linux.
    Numbers,
}

/// Fate of packets by values that are in no table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Drop,
    GoOn,
}

/// The value by which tc programs go on with the next one.
const UNSPEC: (u32, &str) = (u32::MAX, "TC_ACT_UNSPEC");

const SOCKET_FILTER: [&str; 2] = ["drop", "keep"];

impl Values {
    fn of(kind: ProgramType) -> Values {
        match kind.returns() {
            Returns::Length => Values::Length,
            Returns::Xdp => Values::Table(XDP, Others::Drop),
            Returns::Cgroup => Values::Table(CGROUP, Others::Drop),
            Returns::SkLookup => Values::Table(SK, Others::Drop),
            Returns::Netfilter => Values::Table(NETFILTER, Others::Drop),
            Returns::Tc => Values::Table(TC, Others::GoOn),
            Returns::RetCode => Values::RetCodes,
            Returns::Number => Values::Numbers,
        }
    }
}

/// Meaning of the return value of a program of this type. Values that have no meaning drop
/// packets in XDP, and let them go on in tc, as in Linux.
pub fn verdict(kind: ProgramType, retval: u32) -> PacketVerdict {
    let (name, kept) = match Values::of(kind) {
        Values::Length => {
            let is_kept = retval > 0;
            let name = SOCKET_FILTER[usize::from(is_kept)].into();
            (name, is_kept.then_some(retval as usize))
        }
        Values::Numbers => ((retval as i32).to_string().into(), None),
        Values::RetCodes => {
            let known = RET_CODES.iter().find(|(value, ..)| *value == retval);
            let name = known.map_or_else(|| unknown(retval), |(_, name, _)| (*name).into());
            let goes_on = known.is_some_and(|(.., goes_on)| *goes_on);
            (name, goes_on.then_some(usize::MAX))
        }
        Values::Table(names, others) => {
            let (name, goes_on) = match (names.get(retval as usize), others) {
                (Some((name, goes_on)), _) => ((*name).into(), *goes_on),
                (None, Others::GoOn) if retval == UNSPEC.0 => (UNSPEC.1.into(), true),
                (None, others) => (unknown(retval), others == Others::GoOn),
            };
            (name, goes_on.then_some(usize::MAX))
        }
    };
    PacketVerdict { name, kept }
}

/// The names that [`verdict`] has for a program type; none for types whose values are numbers.
pub fn verdict_names(kind: ProgramType) -> Vec<&'static str> {
    match Values::of(kind) {
        Values::Length => SOCKET_FILTER.to_vec(),
        Values::Numbers => Vec::new(),
        Values::RetCodes => RET_CODES.iter().map(|(_, name, _)| *name).collect(),
        Values::Table(names, others) => {
            let unspec = (others == Others::GoOn).then_some(UNSPEC.1);
            names.iter().map(|(name, _)| *name).chain(unspec).collect()
        }
    }
}

/// Names of verdicts in a row, in quotes where one has a comma.
pub fn verdict_list(names: &[&str]) -> String {
    let has_comma = names.iter().any(|name| name.contains(','));
    let quoted = |name: &&str| match has_comma {
        true => format!("{name:?}"),
        false => (*name).to_owned(),
    };
    names.iter().map(quoted).collect::<Vec<_>>().join(", ")
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
