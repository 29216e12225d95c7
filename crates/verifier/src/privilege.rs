//! Capability checks of program load (`bpf_prog_load`). The kernel
//! refuses all of this before it verifies, so that its log stays empty. The sysctl
//! `kernel.unprivileged_bpf_disabled` counts as 0: at any other value callers without
//! CAP_BPF load nothing.

use spec::kernel::Privileges;
use spec::limits;

use crate::attach;
use crate::input::Input;
use crate::rejection::Program;
use crate::type_rules::Loader;
use crate::verdict::{Result, Stop};

/// Checks load flags, number of instructions, capabilities and program type, in the kernel's order
/// (`bpf_prog_load`).
#[doc(alias = "bpf_prog_load")]
pub(crate) fn check_load(input: &Input<'_>, privileges: Privileges) -> Result<()> {
    if input.has_rules {
        attach::check_flags(input)?;
    }
    check_size(input)?;
    check_capabilities(input, privileges)?;
    match input.has_rules {
        true => attach::check_type(input),
        // The tables of releases say what such a kernel lacks (`release`).
        false => Ok(()),
    }
}

/// Checks the capabilities that programs of the type need.
fn check_capabilities(input: &Input<'_>, privileges: Privileges) -> Result<()> {
    let (net_admin, perfmon) = match input.type_rules().loader {
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
    let missing = missing.to_owned();
    Err(Stop::refusal(Program::TypePrivilege { missing }, None))
}

/// Checks the number of instructions.
fn check_size(input: &Input<'_>) -> Result<()> {
    let count = input.insns.len();
    let most = match input.bpf_capable {
        true => limits::INSNS_PROCESSED,
        false => limits::INSNS_UNPRIVILEGED,
    };
    if (1..=most as usize).contains(&count) {
        return Ok(());
    }
    let (most, is_capable) = (most, input.bpf_capable);
    Err(Stop::refusal(
        Program::Size {
            count: count as i64,
            most: most.into(),
            is_capable,
        },
        None,
    ))
}
