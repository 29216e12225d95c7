//! First release of each program type and attach type.

use super::{Feature, Since};
use crate::programs::{AttachType, ProgramType};

impl Feature {
    /// Feature that a sleepable program of this type requires; `None` if all programs of the
    /// type are sleepable.
    pub const fn of_sleepable(kind: ProgramType, attach: Option<AttachType>) -> Option<Feature> {
        Some(match (kind, attach) {
            (ProgramType::Syscall, _) => return None,
            (ProgramType::Kprobe, _) => Feature::SleepableUprobes,
            (ProgramType::StructOps, _) => Feature::SleepableStructOps,
            (ProgramType::Tracing, Some(AttachType::TraceIter)) => Feature::SleepableIterators,
            (ProgramType::Tracing, Some(AttachType::TraceRawTp))
            | (ProgramType::Tracepoint | ProgramType::RawTracepoint, _) => {
                Feature::SleepableTracepoints
            }
            _ => Feature::Sleepable,
        })
    }
}

impl ProgramType {
    /// Release that introduced the program type.
    #[rustfmt::skip]
    #[doc(hidden)]
    pub const fn since(self) -> Since {
        match self {
            ProgramType::SocketFilter => Since::commit(3, 19, "ddd872bc3098"),
            ProgramType::Kprobe => Since::commit(4, 1, "2541517c32be"),
            ProgramType::SchedCls => Since::commit(4, 1, "96be4325f443"),
            ProgramType::SchedAct => Since::commit(4, 1, "94caee8c312d"),
            ProgramType::Tracepoint => Since::commit(4, 7, "98b5c2c65c29"),
            ProgramType::Xdp => Since::commit(4, 8, "6a773a15a1e8"),
            ProgramType::PerfEvent => Since::commit(4, 9, "0515e5999a46"),
            ProgramType::CgroupSkb => Since::commit(4, 10, "0e33661de493"),
            ProgramType::CgroupSock => Since::commit(4, 10, "610236587600"),
            ProgramType::LwtIn => Since::commit(4, 10, "3a0af8fd61f9"),
            ProgramType::LwtOut => Since::commit(4, 10, "3a0af8fd61f9"),
            ProgramType::LwtXmit => Since::commit(4, 10, "3a0af8fd61f9"),
            ProgramType::SockOps => Since::commit(4, 13, "40304b2a1567"),
            ProgramType::SkSkb => Since::commit(4, 14, "b005fd189cec"),
            ProgramType::CgroupDevice => Since::commit(4, 15, "ebc614f68736"),
            ProgramType::SkMsg => Since::commit(4, 17, "4f738adba30a"),
            ProgramType::RawTracepoint => Since::commit(4, 17, "c4f6699dfcb8"),
            ProgramType::CgroupSockAddr => Since::commit(4, 17, "4fbac77d2d09"),
            ProgramType::LwtSeg6local => Since::commit(4, 18, "004d4b274e2a"),
            ProgramType::LircMode2 => Since::commit(4, 18, "f4364dcfc86d"),
            ProgramType::SkReuseport => Since::commit(4, 19, "2dbb9b9e6df6"),
            ProgramType::FlowDissector => Since::commit(4, 20, "d58e468b1112"),
            ProgramType::CgroupSysctl => Since::commit(5, 2, "7b146cebe30c"),
            ProgramType::RawTracepointWritable => Since::commit(5, 2, "9df1c28bb752"),
            ProgramType::CgroupSockopt => Since::commit(5, 3, "0d01da6afc54"),
            ProgramType::Tracing => Since::commit(5, 5, "f1b9509c2fb0"),
            ProgramType::StructOps => Since::commit(5, 6, "27ae7997a661"),
            ProgramType::Ext => Since::commit(5, 6, "be8704ff07d2"),
            ProgramType::Lsm => Since::commit(5, 7, "fc611f47f218"),
            ProgramType::SkLookup => Since::commit(5, 9, "e9ddbb7707ff"),
            ProgramType::Syscall => Since::commit(5, 14, "79a7f8bdb159"),
            ProgramType::Netfilter => Since::commit(6, 4, "84601d6ee68a"),
        }
    }
}

impl AttachType {
    /// Release that introduced the attach type.
    #[rustfmt::skip]
    #[doc(hidden)]
    pub const fn since(self) -> Since {
        match self {
            AttachType::CgroupInetIngress => Since::commit(4, 10, "0e33661de493"),
            AttachType::CgroupInetEgress => Since::commit(4, 10, "0e33661de493"),
            AttachType::CgroupInetSockCreate => Since::commit(4, 10, "610236587600"),
            AttachType::CgroupSockOps => Since::commit(4, 13, "40304b2a1567"),
            AttachType::SkSkbStreamParser => Since::commit(4, 14, "464bc0fd6273"),
            AttachType::SkSkbStreamVerdict => Since::commit(4, 14, "464bc0fd6273"),
            AttachType::CgroupDevice => Since::commit(4, 15, "ebc614f68736"),
            AttachType::SkMsgVerdict => Since::commit(4, 17, "4f738adba30a"),
            AttachType::CgroupInet4Bind => Since::commit(4, 17, "4fbac77d2d09"),
            AttachType::CgroupInet6Bind => Since::commit(4, 17, "4fbac77d2d09"),
            AttachType::CgroupInet4Connect => Since::commit(4, 17, "d74bad4e74ee"),
            AttachType::CgroupInet6Connect => Since::commit(4, 17, "d74bad4e74ee"),
            AttachType::CgroupInet4PostBind => Since::commit(4, 17, "aac3fc320d94"),
            AttachType::CgroupInet6PostBind => Since::commit(4, 17, "aac3fc320d94"),
            AttachType::CgroupUdp4Sendmsg => Since::commit(4, 18, "1cedee13d25a"),
            AttachType::CgroupUdp6Sendmsg => Since::commit(4, 18, "1cedee13d25a"),
            AttachType::LircMode2 => Since::commit(4, 18, "f4364dcfc86d"),
            AttachType::FlowDissector => Since::commit(4, 20, "d58e468b1112"),
            AttachType::CgroupSysctl => Since::commit(5, 2, "7b146cebe30c"),
            AttachType::CgroupUdp4Recvmsg => Since::commit(5, 2, "983695fa6765"),
            AttachType::CgroupUdp6Recvmsg => Since::commit(5, 2, "983695fa6765"),
            AttachType::CgroupGetsockopt => Since::commit(5, 3, "0d01da6afc54"),
            AttachType::CgroupSetsockopt => Since::commit(5, 3, "0d01da6afc54"),
            AttachType::TraceRawTp => Since::commit(5, 5, "f1b9509c2fb0"),
            AttachType::TraceFentry => Since::commit(5, 5, "fec56f5890d9"),
            AttachType::TraceFexit => Since::commit(5, 5, "fec56f5890d9"),
            AttachType::ModifyReturn => Since::commit(5, 7, "ae24082331d9"),
            AttachType::LsmMac => Since::commit(5, 7, "fc611f47f218"),
            AttachType::TraceIter => Since::commit(5, 8, "15d83c4d7cef"),
            AttachType::CgroupInet4Getpeername => Since::commit(5, 8, "1b66d253610c"),
            AttachType::CgroupInet6Getpeername => Since::commit(5, 8, "1b66d253610c"),
            AttachType::CgroupInet4Getsockname => Since::commit(5, 8, "1b66d253610c"),
            AttachType::CgroupInet6Getsockname => Since::commit(5, 8, "1b66d253610c"),
            AttachType::XdpDevmap => Since::commit(5, 8, "fbee97feed9b"),
            AttachType::CgroupInetSockRelease => Since::commit(5, 9, "f5836749c9c0"),
            AttachType::XdpCpumap => Since::commit(5, 9, "9216477449f3"),
            AttachType::SkLookup => Since::commit(5, 9, "e9ddbb7707ff"),
            AttachType::Xdp => Since::commit(5, 9, "aa8d3a716b59"),
            AttachType::SkSkbVerdict => Since::commit(5, 13, "a7ba4558e69a"),
            AttachType::SkReuseportSelect => Since::commit(5, 14, "d5e4ddaeb6ab"),
            AttachType::SkReuseportSelectOrMigrate => Since::commit(5, 14, "d5e4ddaeb6ab"),
            AttachType::PerfEvent => Since::commit(5, 15, "b89fbfbb854c"),
            AttachType::TraceKprobeMulti => Since::commit(5, 18, "0dcac2725406"),
            AttachType::LsmCgroup => Since::commit(6, 0, "69fd337a975c"),
            AttachType::StructOps => Since::commit(6, 4, "68b04864ca42"),
            AttachType::Netfilter => Since::commit(6, 4, "84601d6ee68a"),
            AttachType::TcxIngress => Since::commit(6, 6, "e420bed02507"),
            AttachType::TcxEgress => Since::commit(6, 6, "e420bed02507"),
            AttachType::TraceUprobeMulti => Since::commit(6, 6, "89ae89f53d20"),
            AttachType::CgroupUnixConnect => Since::commit(6, 7, "859051dd165e"),
            AttachType::CgroupUnixSendmsg => Since::commit(6, 7, "859051dd165e"),
            AttachType::CgroupUnixRecvmsg => Since::commit(6, 7, "859051dd165e"),
            AttachType::CgroupUnixGetpeername => Since::commit(6, 7, "859051dd165e"),
            AttachType::CgroupUnixGetsockname => Since::commit(6, 7, "859051dd165e"),
            AttachType::NetkitPrimary => Since::commit(6, 7, "35dfaad7188c"),
            AttachType::NetkitPeer => Since::commit(6, 7, "35dfaad7188c"),
            AttachType::TraceKprobeSession => Since::commit(6, 10, "535a3692ba72"),
            AttachType::TraceUprobeSession => Since::commit(6, 13, "d920179b3d48"),
            AttachType::TraceFsession => Since::commit(7, 0, "2d419c44658f"),
            AttachType::TraceFentryMulti => Since::commit(7, 2, "d14e6b4346bf"),
            AttachType::TraceFexitMulti => Since::commit(7, 2, "d14e6b4346bf"),
            AttachType::TraceFsessionMulti => Since::commit(7, 2, "d14e6b4346bf"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_number_never_has_an_earlier_release() {
        let types = ProgramType::ALL.iter().map(|kind| kind.since().release);
        assert!(types.is_sorted());
        let attach = AttachType::ALL.iter().map(|kind| kind.since().release);
        assert!(attach.is_sorted());
    }
}
