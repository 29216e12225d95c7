//! Helpers and kfuncs as code of verified programs calls them.

use crate::Call;

/// Mark behind an argument that is an address, or memory with addresses, at which the function
/// reads by [`MemoryPort::probe`](crate::MemoryPort::probe).
const PROBED: char = '@';

/// The function of a helper or kfunc, with the signatures that it is written for.
#[derive(Clone, Copy, Debug)]
pub struct Implementation {
    /// The function.
    pub call: Call,
    /// What it reads and writes by its arguments and what it returns, as
    /// `spec::registry::HelperProto::signature` writes it: one for each group of program types
    /// with a prototype of their own, separated by ` or `. An `@` behind an argument says that
    /// the function reads at addresses in it that are not proven valid.
    pub declared: &'static str,
}

impl Implementation {
    /// The signatures that the function is written for.
    pub fn signatures(&self) -> impl Iterator<Item = String> {
        signatures(self.declared)
    }

    /// True if the function reads at addresses that are not proven valid.
    pub fn probes(&self) -> bool {
        self.declared.contains(PROBED)
    }
}

/// The signatures in a declaration ([`Implementation::declared`]).
pub fn signatures(declared: &str) -> impl Iterator<Item = String> {
    let declared = declared.split(" or ");
    declared.map(|signature| signature.replace(PROBED, ""))
}
