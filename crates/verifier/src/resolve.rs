//! Wide immediates: constants, maps, BTF variables, functions.

use isa::ebpf::Insn;

use crate::walk::Walk;
use crate::{Result, Stop};

/// Checks `BPF_LD_IMM64` (`check_ld_imm`).
pub fn check_ld_imm(_walk: &mut Walk<'_>, _insn: Insn) -> Result<()> {
    Err(Stop::unsupported("wide immediate"))
}
