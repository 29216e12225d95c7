//! Capability checks of program load (`bpf_prog_load`). The kernel
//! refuses all of this before it verifies, so that its log stays empty. The sysctl
//! `kernel.unprivileged_bpf_disabled` counts as 0: at any other value callers without
//! CAP_BPF load nothing.

use spec::kernel::Privileges;

use crate::Errno;
use crate::env::Env;
use crate::type_rules::Loader;
use crate::verdict::{RefusalKind, Result, Stop};

/// Checks the number of instructions and the program type, in the kernel's order
/// (`bpf_prog_load`).
#[doc(alias = "bpf_prog_load")]
pub(crate) fn check_load(env: &Env<'_>, privileges: Privileges) -> Result<()> {
    check_size(env)?;
    let (net_admin, perfmon) = match env.type_rules().loader {
        Loader::Anyone => return Ok(()),
        Loader::Bpf => (false, false),
        Loader::NetAdmin => (true, false),
        Loader::Perfmon => (false, true),
        Loader::NetAdminAndPerfmon => (true, true),
    };
    let missing = if !privileges.has_bpf() {
        "CAP_BPF"
    } else if net_admin && !privileges.has_net_admin() {
        "CAP_NET_ADMIN"
    } else if perfmon && !privileges.has_perfmon() {
        "CAP_PERFMON"
    } else {
        return Ok(());
    };
    Err(Stop::refusal(
        Errno::EPERM,
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
        Errno::E2BIG,
        RefusalKind::Limit,
        None,
        format_args!("program of {count} instructions: 1 to {most} are allowed{whose}"),
    ))
}
