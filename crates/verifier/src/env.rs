//! What a verification reads and never changes: program, kernel, options, limits.

use isa::ebpf::Insn;
use program::Program;
use spec::registry::{ProgramContext, Registry};

use crate::options::Options;

/// What a verification reads and never changes.
pub struct Env<'a> {
    /// The program.
    pub program: &'a Program,
    /// What the kernel is known to have.
    pub registry: &'a Registry,
    /// What of the program decides about its helpers, context and return value.
    pub context: ProgramContext<'a>,
    /// Options.
    pub options: &'a Options,
    /// The program's slots, decoded.
    pub insns: Vec<Insn>,
    /// Privilege: pointers may be compared and stored where others could read them.
    pub allow_ptr_leaks: bool,
    /// Privilege: stack that was not written may be read.
    pub allow_uninit_stack: bool,
    /// Privilege: CAP_BPF.
    pub bpf_capable: bool,
    /// Accesses must be aligned whatever the processor allows.
    pub strict_alignment: bool,
    /// A checkpoint at every prune point (BPF_F_TEST_STATE_FREQ).
    pub test_state_freq: bool,
    /// Broken register invariants refuse the program (BPF_F_TEST_REG_INVARIANTS).
    pub test_reg_invariants: bool,
}
