//! Return values of programs as enumerations, by program type.

use std::borrow::Cow;

use ::kernel::programs::verdict;
use spec::programs::{ProgramType, Returns};

macro_rules! values {
    ($(
        $(#[$about:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident = $number:literal,)* }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// A number without a name.
            Other(u32),
        }

        impl $name {
            /// That of a return value.
            #[inline]
            pub const fn from_number(number: u32) -> $name {
                match number {
                    $($number => $name::$variant,)*
                    other => $name::Other(other),
                }
            }

            /// Its number.
            #[inline]
            pub const fn number(self) -> u32 {
                match self {
                    $($name::$variant => $number,)*
                    $name::Other(number) => number,
                }
            }
        }
    )*};
}

values! {
    /// Return value of XDP programs (`enum xdp_action`).
    XdpAction {
        /// `XDP_ABORTED`: an error of the program; the packet is dropped.
        Aborted = 0,
        /// `XDP_DROP`
        Drop = 1,
        /// `XDP_PASS`
        Pass = 2,
        /// `XDP_TX`: out of the interface that it came from.
        Tx = 3,
        /// `XDP_REDIRECT`
        Redirect = 4,
    }

    /// Return value of programs of tc (`TC_ACT_…`).
    TcAction {
        /// `TC_ACT_UNSPEC`, -1: the next program decides.
        Unspec = 0xffff_ffff,
        /// `TC_ACT_OK`
        Ok = 0,
        /// `TC_ACT_RECLASSIFY`
        Reclassify = 1,
        /// `TC_ACT_SHOT`: the packet is dropped.
        Shot = 2,
        /// `TC_ACT_PIPE`
        Pipe = 3,
        /// `TC_ACT_STOLEN`
        Stolen = 4,
        /// `TC_ACT_QUEUED`
        Queued = 5,
        /// `TC_ACT_REPEAT`
        Repeat = 6,
        /// `TC_ACT_REDIRECT`
        Redirect = 7,
        /// `TC_ACT_TRAP`
        Trap = 8,
    }

    /// Return value of netfilter programs.
    NetfilterVerdict {
        /// `NF_DROP`
        Drop = 0,
        /// `NF_ACCEPT`
        Accept = 1,
    }

    /// Return value of programs that look sockets up (`enum sk_action`).
    SkAction {
        /// `SK_DROP`
        Drop = 0,
        /// `SK_PASS`
        Pass = 1,
    }

    /// Return value of programs of control groups on packets.
    CgroupVerdict {
        /// Dropped.
        Drop = 0,
        /// Goes on.
        Pass = 1,
        /// Dropped, and the sender learns of congestion.
        DropCongested = 2,
        /// Goes on, and the sender learns of congestion.
        PassCongested = 3,
    }

    /// Return value of flow dissectors and programs of lightweight tunnels
    /// (`enum bpf_ret_code`).
    ReturnCode {
        /// `BPF_OK`
        Ok = 0,
        /// `BPF_DROP`
        Drop = 2,
        /// `BPF_REDIRECT`
        Redirect = 7,
        /// `BPF_LWT_REROUTE`
        LwtReroute = 128,
        /// `BPF_FLOW_DISSECTOR_CONTINUE`
        FlowDissectorContinue = 129,
    }
}

/// Meaning of a return value by the type of its program. It compares with the enumerations in it:
/// `result.verdict == XdpAction::Drop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// Of an XDP program.
    Xdp(XdpAction),
    /// Of a program of tc.
    Tc(TcAction),
    /// Of a netfilter program.
    Netfilter(NetfilterVerdict),
    /// Of a program that looks sockets up.
    SkLookup(SkAction),
    /// Of a program of a control group on packets.
    Cgroup(CgroupVerdict),
    /// Of a flow dissector or a program of a lightweight tunnel.
    Code(ReturnCode),
    /// Number of bytes that a socket filter keeps of a packet; 0 drops it.
    SocketFilter(u32),
    /// Of a program of another type, to whose values Linux gives no names.
    Value(i32),
}

impl Verdict {
    /// That of the return value of a program of this type.
    #[inline]
    pub fn new(kind: ProgramType, retval: u32) -> Verdict {
        match kind.returns() {
            Returns::Xdp => Verdict::Xdp(XdpAction::from_number(retval)),
            Returns::Tc => Verdict::Tc(TcAction::from_number(retval)),
            Returns::Netfilter => Verdict::Netfilter(NetfilterVerdict::from_number(retval)),
            Returns::SkLookup => Verdict::SkLookup(SkAction::from_number(retval)),
            Returns::Cgroup => Verdict::Cgroup(CgroupVerdict::from_number(retval)),
            Returns::RetCode => Verdict::Code(ReturnCode::from_number(retval)),
            Returns::Length => Verdict::SocketFilter(retval),
            Returns::Number => Verdict::Value(retval as i32),
        }
    }

    /// The return value, and a program type that gives it this meaning.
    #[inline]
    fn parts(self) -> (ProgramType, u32) {
        match self {
            Verdict::Xdp(action) => (ProgramType::Xdp, action.number()),
            Verdict::Tc(action) => (ProgramType::SchedCls, action.number()),
            Verdict::Netfilter(verdict) => (ProgramType::Netfilter, verdict.number()),
            Verdict::SkLookup(action) => (ProgramType::SkLookup, action.number()),
            Verdict::Cgroup(verdict) => (ProgramType::CgroupSkb, verdict.number()),
            Verdict::Code(code) => (ProgramType::FlowDissector, code.number()),
            Verdict::SocketFilter(kept) => (ProgramType::SocketFilter, kept),
            Verdict::Value(value) => (ProgramType::Syscall, value as u32),
        }
    }

    /// The return value.
    #[inline]
    pub fn retval(self) -> u32 {
        self.parts().1
    }

    /// Its name: Linux's (`XDP_DROP`) where there is one.
    pub fn name(self) -> Cow<'static, str> {
        let (kind, retval) = self.parts();
        verdict(kind, retval).name
    }

    /// True if the packet goes on, perhaps elsewhere or cut off.
    #[inline]
    pub fn passes(self) -> bool {
        match self {
            Verdict::Xdp(action) => matches!(
                action,
                XdpAction::Pass | XdpAction::Tx | XdpAction::Redirect
            ),
            Verdict::Tc(action) => !matches!(
                action,
                TcAction::Shot | TcAction::Stolen | TcAction::Queued | TcAction::Trap
            ),
            Verdict::Netfilter(verdict) => verdict == NetfilterVerdict::Accept,
            Verdict::SkLookup(action) => action == SkAction::Pass,
            Verdict::Cgroup(verdict) => {
                matches!(verdict, CgroupVerdict::Pass | CgroupVerdict::PassCongested)
            }
            Verdict::Code(code) => !matches!(code, ReturnCode::Drop | ReturnCode::Other(_)),
            Verdict::SocketFilter(kept) => kept > 0,
            Verdict::Value(_) => false,
        }
    }
}

macro_rules! compared {
    ($($variant:ident($value:ty))*) => {$(
        impl PartialEq<$value> for Verdict {
            fn eq(&self, other: &$value) -> bool {
                matches!(self, Verdict::$variant(value) if value == other)
            }
        }
    )*};
}

compared! {
    Xdp(XdpAction) Tc(TcAction) Netfilter(NetfilterVerdict) SkLookup(SkAction)
    Cgroup(CgroupVerdict) Code(ReturnCode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_has_a_name_is_no_other_number() {
        for kind in ProgramType::ALL {
            for retval in (0..300).chain([u32::MAX]) {
                let typed = Verdict::new(*kind, retval);
                assert_eq!(typed.retval(), retval, "{kind:?}");
                let known = verdict(*kind, retval);
                let name = known.name;
                assert_eq!(typed.name(), name, "{kind:?} {retval}");
                assert_eq!(typed.passes(), known.kept.is_some(), "{kind:?} {retval}");
                let is_other = format!("{typed:?}").contains("Other");
                assert_eq!(is_other, name.starts_with("unknown"), "{typed:?}: {name}");
            }
        }
        assert_eq!(Verdict::new(ProgramType::Xdp, 1), XdpAction::Drop);
        assert!(Verdict::new(ProgramType::SchedCls, u32::MAX).passes());
    }
}
