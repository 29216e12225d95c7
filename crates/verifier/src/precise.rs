//! Precision tracking: backtracking along the history.

use isa::ebpf::Reg;

use crate::walk::Walk;
use crate::{Result, Stop};

/// Demands that the scalar in a register of the executing frame be precise.
pub fn mark_chain_precision(_walk: &mut Walk<'_>, _reg: Option<Reg>) -> Result<()> {
    Err(Stop::unsupported("precision"))
}
