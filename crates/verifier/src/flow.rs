//! Jumps and exits.

use isa::ebpf::Insn;

use crate::walk::{Outcome, Walk};
use crate::{Result, Stop};

/// Checks a jump or exit.
pub fn check_flow(_walk: &mut Walk<'_>, _insn: Insn) -> Result<Outcome> {
    Err(Stop::unsupported("jump"))
}
