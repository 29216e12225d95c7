//! Container profiles: the JSON in which OCI runtimes and Docker describe a
//! filter by names, and its compilation to classic code.
//!
//! ```text
//! JSON ──► read ──► Profile ──► select (machine, capabilities, kernel) ──► rules ──► compile ──► code
//! ```
//!
//! What a profile means is what runc and libseccomp make of it: conditions of a
//! rule are all required, unless one argument has several (then each is a rule
//! of its own); rules of one call are alternatives, and one without conditions
//! decides the call alone; names that an architecture lacks are passed over;
//! 32-bit architectures and x32 compare the low half of arguments.

mod capabilities;
mod code;
mod compile;
mod read;
mod select;

pub use capabilities::{CAPABILITIES, CAPABILITY_SETS, UnknownCapability, parse_capabilities};
pub use compile::{Compiled, Shape, TooLong, compile};
pub use read::ProfileError;
pub use select::{Machine, Note, Version};

use crate::action::Action;

/// A profile as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What happens to calls that no rule names.
    pub default: Action,
    /// Architectures that the filter is for, by their names in profiles.
    pub architectures: Vec<String>,
    /// For each machine, the architectures that run on it (Docker).
    pub arch_map: Vec<(String, Vec<String>)>,
    /// The rules in their order.
    pub rules: Vec<Rule>,
}

/// What happens to some calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Their names.
    pub names: Vec<String>,
    /// What happens.
    pub action: Action,
    /// For which arguments.
    pub args: Vec<Arg>,
    /// Counts only if this holds.
    pub includes: Filter,
    /// Counts only if nothing of this holds.
    pub excludes: Filter,
}

/// On which machines a rule counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Capabilities of the container.
    pub caps: Vec<String>,
    /// Architectures, by Docker's names.
    pub arches: Vec<String>,
    /// The least kernel version.
    pub min_kernel: Option<Version>,
}

/// A condition on one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arg {
    /// Which, 0 to 5.
    pub index: u8,
    /// How it is compared.
    pub op: Op,
    /// With what; for a masked comparison, the mask.
    pub value: u64,
    /// For a masked comparison, what must remain.
    pub value_two: u64,
}

/// A comparison, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Op {
    Ne,
    Lt,
    Le,
    Eq,
    Ge,
    Gt,
    MaskedEq,
}
