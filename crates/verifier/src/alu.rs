//! Arithmetic on scalars and pointers.

use isa::ebpf::Insn;

use crate::walk::Walk;
use crate::{Result, Stop};

/// Checks an instruction of the ALU classes (`check_alu_op`).
pub fn check_alu_op(_walk: &mut Walk<'_>, _insn: Insn) -> Result<()> {
    Err(Stop::unsupported("arithmetic"))
}
