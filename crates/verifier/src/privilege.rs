//! Capability checks of program load (`bpf_prog_load`). The kernel
//! refuses all of this before it verifies, so that its log stays empty. The sysctl
//! `kernel.unprivileged_bpf_disabled` counts as 0: at any other value callers without
//! CAP_BPF load nothing.

use spec::kernel::Privileges;
use spec::programs::ProgramType;

use crate::env::Env;
use crate::verdict::{RefusalKind, Result, Stop, errno};

/// Checks the number of instructions and the program type, in the kernel's order.
pub(crate) fn check_load(env: &Env<'_>, privileges: Privileges) -> Result<()> {
    check_size(env)?;
    let kind = env.context.kind;
    let missing = if !privileges.has_bpf() && !is_for_all(kind) {
        "CAP_BPF"
    } else if !privileges.has_net_admin() && needs_net_admin(kind) {
        "CAP_NET_ADMIN"
    } else if !privileges.has_perfmon() && needs_perfmon(kind) {
        "CAP_PERFMON"
    } else {
        return Ok(());
    };
    Err(Stop::refusal(
        errno::EPERM,
        RefusalKind::Privilege,
        None,
        format_args!("programs of this type are for callers with {missing}"),
    ))
}

/// Checks the number of instructions.
fn check_size(env: &Env<'_>) -> Result<()> {
    let count = env.insns.len();
    let limits = &env.registry.limits;
    let most = match env.bpf_capable {
        true => limits.insns_processed,
        false => limits.insns_unprivileged,
    };
    if (1..=most as usize).contains(&count) {
        return Ok(());
    }
    let whose = match env.bpf_capable {
        true => "",
        false => " without CAP_BPF",
    };
    Err(Stop::refusal(
        errno::E2BIG,
        RefusalKind::Limit,
        None,
        format_args!("program of {count} instructions: 1 to {most} are allowed{whose}"),
    ))
}

/// True for program types that every caller may load.
const fn is_for_all(kind: ProgramType) -> bool {
    matches!(kind, ProgramType::SocketFilter | ProgramType::CgroupSkb)
}

/// True for program types that need CAP_NET_ADMIN (`is_net_admin_prog_type`).
const fn needs_net_admin(kind: ProgramType) -> bool {
    matches!(
        kind,
        ProgramType::SchedCls
            | ProgramType::SchedAct
            | ProgramType::Xdp
            | ProgramType::LwtIn
            | ProgramType::LwtOut
            | ProgramType::LwtXmit
            | ProgramType::LwtSeg6local
            | ProgramType::SkSkb
            | ProgramType::SkMsg
            | ProgramType::FlowDissector
            | ProgramType::CgroupDevice
            | ProgramType::CgroupSock
            | ProgramType::CgroupSockAddr
            | ProgramType::CgroupSockopt
            | ProgramType::CgroupSysctl
            | ProgramType::SockOps
            | ProgramType::Ext
            | ProgramType::Netfilter
    )
}

/// True for program types that need CAP_PERFMON (`is_perfmon_prog_type`).
const fn needs_perfmon(kind: ProgramType) -> bool {
    matches!(
        kind,
        ProgramType::Kprobe
            | ProgramType::Tracepoint
            | ProgramType::PerfEvent
            | ProgramType::RawTracepoint
            | ProgramType::RawTracepointWritable
            | ProgramType::Tracing
            | ProgramType::Lsm
            | ProgramType::StructOps
            | ProgramType::Ext
    )
}
