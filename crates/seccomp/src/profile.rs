//! Container profiles: the JSON format of OCI runtimes and Docker, and its compilation to
//! classic programs.
//!
//! ```text
//! JSON ──► read ──► ContainerProfile ──► select (machine, capabilities, kernel) ──► rules ──► compile ──► code
//! ```
//!
//! Semantics are those of libseccomp, and of the filter that runc puts in front of its code
//! ([`Runtime`]): the conditions of a rule are a conjunction,
//! unless one argument has several (then each is a rule of its own); rules of one call are
//! alternatives, and one without conditions replaces the others; unknown names are ignored;
//! 32-bit architectures and x32 compare the low half of arguments.

mod capabilities;
mod code;
mod compile;
mod filter_file;
mod read;
mod select;
#[cfg(feature = "yaml")]
mod yaml;

pub use capabilities::{CAPABILITIES, CAPABILITY_SETS, UnknownCapability, parse_capabilities};
pub use compile::{CompileError, Compiled, ProgramShape, compile};
pub use filter_file::FilterFile;
pub use read::ProfileError;
pub use select::{NEWEST_KERNEL, ProfileNote, Runtime, TargetMachine};

use spec::kernel::KernelVersion;

use crate::action::Action;

/// A container profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerProfile {
    /// Action of calls without a rule.
    pub default: Action,
    /// Architectures of the filter, by their names in profiles.
    pub architectures: Vec<String>,
    /// Architectures of each machine (Docker's `archMap`).
    pub arch_map: Vec<(String, Vec<String>)>,
    /// Rules in order.
    pub rules: Vec<SyscallRule>,
    /// Flags of `seccomp(2)`, by their names in profiles. They do not affect the code.
    pub flags: Vec<String>,
}

/// A rule: an action for some calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyscallRule {
    /// Names of the calls.
    pub names: Vec<String>,
    /// Action.
    pub action: Action,
    /// Conditions on arguments.
    pub args: Vec<ArgCondition>,
    /// Machines to which the rule applies.
    pub includes: MachineCondition,
    /// Machines to which the rule does not apply.
    pub excludes: MachineCondition,
}

/// Condition of a rule on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineCondition {
    /// Capabilities of the container.
    pub caps: Vec<String>,
    /// Architectures, by Docker's names.
    pub arches: Vec<String>,
    /// Smallest kernel version.
    pub min_kernel: Option<KernelVersion>,
}

/// A condition on one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgCondition {
    /// Index, 0 to 5.
    pub index: u8,
    /// Comparison operator.
    pub op: ArgOp,
    /// Operand; for a masked comparison, the mask.
    pub value: u64,
    /// For a masked comparison, the expected value.
    pub value_two: u64,
}

/// A comparison, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ArgOp {
    Ne,
    Lt,
    Le,
    Eq,
    Ge,
    Gt,
    MaskedEq,
}
