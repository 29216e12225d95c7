//! What return values mean.

use std::borrow::Cow;

use spec::programs::ProgramType;

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketVerdict {
    /// Its name: Linux's where there is one.
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

/// What a program of this type says by a return value. Values that have no meaning drop
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
        _ if retval == u32::MAX => {
            return PacketVerdict {
                name: "TC_ACT_UNSPEC".into(),
                kept: Some(usize::MAX),
            };
        }
        _ => (TC, true),
    };
    match names.get(retval as usize) {
        Some(&(name, is_kept)) => PacketVerdict {
            name: name.into(),
            kept: is_kept.then_some(usize::MAX),
        },
        None => PacketVerdict {
            name: format!("unknown ({retval})").into(),
            kept: of_others.then_some(usize::MAX),
        },
    }
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
        assert_eq!(verdict(ProgramType::SocketFilter, 9).kept, Some(9));
        assert_eq!(verdict(ProgramType::CgroupSkb, 2).kept, None);
    }
}
