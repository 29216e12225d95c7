//! Calls of helpers, kfuncs, subprograms and callbacks.

use isa::ebpf::Callee;

use crate::walk::{Outcome, Walk};
use crate::{Result, Stop};

/// Checks a call. A local call enters a frame and returns [`Outcome::Jump`].
pub fn check_call(_walk: &mut Walk<'_>, _callee: Callee) -> Result<Outcome> {
    Err(Stop::unsupported("call"))
}
