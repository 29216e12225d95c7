//! Loads, stores, atomics and legacy packet loads.

use isa::ebpf::Insn;

use crate::walk::Walk;
use crate::{Result, Stop};

/// Checks a load, store or atomic instruction.
pub fn check_mem_insn(_walk: &mut Walk<'_>, _insn: Insn) -> Result<()> {
    Err(Stop::unsupported("memory access"))
}

/// Checks `BPF_LD_ABS` and `BPF_LD_IND` (`check_ld_abs`).
pub fn check_ld_abs(_walk: &mut Walk<'_>, _insn: Insn) -> Result<()> {
    Err(Stop::unsupported("legacy packet load"))
}
